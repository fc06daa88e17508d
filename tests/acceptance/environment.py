"""Behave's hooks. What the programs of the reports leave behind is put away after each scenario, and
what Python has to say about it is not heard: that it is there is what the scenario has shown."""

from __future__ import annotations

import gc
import logging
import sys
import warnings
from typing import Any

from holdfast.casebook.prefetch import put_away

__all__ = ["after_scenario"]


def after_scenario(context: Any, scenario: Any) -> None:
    """Behave calls it by this name."""
    if not {"as_reported", "as_proposed", "left_over"} & set(scenario.effective_tags):
        return
    logger, hook = logging.getLogger("asyncio"), sys.unraisablehook
    logger.disabled, sys.unraisablehook = True, _unheard
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            put_away.all_that_is_left()
            del context.trial
            gc.collect()
    finally:
        logger.disabled, sys.unraisablehook = False, hook


def _unheard(_: object) -> None: ...
