"""A progress bar for commands that run long, and the silence around a program that is run often."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, ProgressColumn


@contextmanager
def silence() -> Iterator[None]:
    """Discard what a program prints, which it would print in every run, and asyncio's log."""
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
    """A progress bar on a terminal, shown once the command has taken `after` seconds.

    `columns` are those of rich's `Progress`: an object, a format such as "{task.completed}", or
    "bar" for the bar itself.
    Without a `console` it is shown on stderr. rich is imported when the bar is shown, since most
    runs of `check` end before.
    """

    def __init__(
        self, console: Console | None, after: float, *columns: str | ProgressColumn
    ) -> None:
        self._console = console
        self._after = after
        self._columns = columns
        self._bar: Progress | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def show(self, seconds: float, **row: Any) -> None:
        """Update the bar after so many seconds: `completed`, `total`, and the columns' fields."""
        terminal = self._console.is_terminal if self._console else sys.stderr.isatty()
        if not terminal or seconds < self._after:
            return
        if self._bar is None:
            self._bar = self._new(row)
        self._bar.update(self._bar.task_ids[0], **row)
        self._bar.refresh()

    def _new(self, row: dict[str, Any]) -> Progress:
        from rich.console import Console
        from rich.progress import BarColumn, Progress

        bar = Progress(
            *(BarColumn() if column == "bar" else column for column in self._columns),
            console=self._console or Console(file=sys.stderr),
            auto_refresh=False,  # rich's thread would run beside those of the program
            transient=True,
            redirect_stdout=False,  # rich would show what the program prints
            redirect_stderr=False,
        )
        bar.add_task("", **row)
        bar.start()
        return bar
