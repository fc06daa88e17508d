"""Hundreds of runs in one test: what they say is kept for one of them only, and what they leave
behind is not held against the next test.
"""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

__all__ = ["forget_output", "forgetting", "mute_loop", "sheltered"]


@contextmanager
def sheltered() -> Iterator[None]:
    """What the explorer cuts short is collected while it explores, and nobody is told: a coroutine
    that was cancelled before its first step has never been awaited, and that is its doing."""
    hook = sys.unraisablehook
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "coroutine .* was never awaited", RuntimeWarning)
        warnings.simplefilter("ignore", ResourceWarning)
        sys.unraisablehook = _nobody
        try:
            yield
        finally:
            sys.unraisablehook = hook


def _nobody(unraisable: object) -> None:
    """Tells nobody."""


@contextmanager
def mute_loop() -> Iterator[None]:
    """No word of asyncio's own log: it speaks of each run that goes wrong."""
    logger = logging.getLogger("asyncio")
    before = logger.disabled
    logger.disabled = True
    try:
        yield
    finally:
        logger.disabled = before


def forgetting(item: pytest.Function) -> Callable[[], None]:
    """What to call before each run, so that `caplog` and `capsys` begin empty in each schedule and
    the log that is shown is that of the last one."""
    log: Any = item.config.pluginmanager.get_plugin("logging-plugin")
    handlers = (getattr(log, name, None) for name in ("caplog_handler", "report_handler"))
    clears: list[Callable[[], object]] = [each.clear for each in handlers if each is not None]
    clears += [
        value.readouterr
        for value in item.funcargs.values()
        if isinstance(value, pytest.CaptureFixture)
    ]

    def forget() -> None:
        for clear in clears:
            clear()

    return forget


def forget_output(item: pytest.Function) -> None:
    """Drop what the runs until now have printed."""
    capture: Any = item.config.pluginmanager.get_plugin("capturemanager")
    if capture is not None and capture.is_globally_capturing():
        capture.read_global_capture()
