"""Output and warnings of hundreds of runs in one test: only those of the last run are kept."""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest


@contextmanager
def without_cleanup_warnings() -> Iterator[None]:
    """Suppress the warnings about what the explorer aborts: a coroutine that it cancels before its
    first step is never awaited, and is collected during a later run."""
    hook = sys.unraisablehook
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "coroutine .* was never awaited", RuntimeWarning)
        warnings.simplefilter("ignore", ResourceWarning)
        sys.unraisablehook = lambda unraisable: None
        try:
            yield
        finally:
            sys.unraisablehook = hook


@contextmanager
def mute_asyncio_log() -> Iterator[None]:
    """Disable asyncio's logger, which would log each run that fails."""
    logger = logging.getLogger("asyncio")
    before = logger.disabled
    logger.disabled = True
    try:
        yield
    finally:
        logger.disabled = before


def clear_before_each_run(item: pytest.Function) -> Callable[[], None]:
    """Return a function to call before each run: it empties `caplog` and `capsys`, and the log
    that pytest shows."""
    log: Any = item.config.pluginmanager.get_plugin("logging-plugin")
    handlers = (getattr(log, name, None) for name in ("caplog_handler", "report_handler"))
    clears: list[Callable[[], object]] = [each.clear for each in handlers if each is not None]
    clears += [
        value.readouterr
        for value in item.funcargs.values()
        if isinstance(value, pytest.CaptureFixture)
    ]

    def clear_all() -> None:
        for clear in clears:
            clear()

    return clear_all


def discard(item: pytest.Function) -> None:
    """Discard what the runs so far have printed."""
    capture: Any = item.config.pluginmanager.get_plugin("capturemanager")
    if capture is not None and capture.is_globally_capturing():
        capture.read_global_capture()
