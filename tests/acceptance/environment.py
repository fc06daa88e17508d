"""Behave's hooks. What the reported programs leak is cleaned up after each scenario, without the
warnings of Python about it: that it leaks is what the scenario has shown."""

from __future__ import annotations

import gc
import logging
import sys
import warnings
from typing import Any

from examples.prefetch import cleanup

__all__ = ["after_scenario"]


def after_scenario(context: Any, scenario: Any) -> None:
    """Behave calls it by this name."""
    if not {"as_reported", "as_proposed", "left_over"} & set(scenario.effective_tags):
        return
    logger, hook = logging.getLogger("asyncio"), sys.unraisablehook
    logger.disabled, sys.unraisablehook = True, _ignore
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            cleanup.close_all()
            del context.trial
            gc.collect()
    finally:
        logger.disabled, sys.unraisablehook = False, hook


def _ignore(_: object) -> None: ...
