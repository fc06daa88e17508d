"""While a program is run many times: what it says is not heard, and a bar shows how far it is.

What the bar says is the command's own; when it is shown, and that it disturbs nothing, is decided here.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any

from rich.console import Console
from rich.progress import Progress, ProgressColumn, TaskID

__all__ = ["LateBar", "silence"]


@contextmanager
def silence() -> Iterator[None]:
    """A program that prints a line prints it in every run: nobody wants to read that. The loop's
    own log is as long."""
    logger = logging.getLogger("asyncio")
    before = logger.disabled
    with (
        open(os.devnull, "w", encoding="utf-8") as nowhere,
        redirect_stdout(nowhere),
        redirect_stderr(nowhere),
    ):
        logger.disabled = True
        try:
            yield
        finally:
            logger.disabled = before


class LateBar:
    """A progress bar on a terminal, from the moment on at which it has taken long."""

    def __init__(self, console: Console, patience: float, *columns: ProgressColumn) -> None:
        self._console = console
        self._patience = patience
        self._bar = Progress(
            *columns,
            console=console,
            auto_refresh=False,  # a thread of ours has no business beside those of the program
            transient=True,
            redirect_stdout=False,  # rich would show what the program prints
            redirect_stderr=False,
        )
        self._row: TaskID | None = None

    def __enter__(self) -> None:
        """Nothing is shown until it has taken long."""

    def __exit__(self, *exc: object) -> None:
        if self._row is not None:
            self._bar.stop()

    def show(self, seconds: float, **row: Any) -> None:
        """Where it stands after so many seconds."""
        if not self._console.is_terminal or seconds < self._patience:
            return
        if self._row is None:
            self._row = self._bar.add_task("", **row)
            self._bar.start()
        self._bar.update(self._row, **row)
        self._bar.refresh()
