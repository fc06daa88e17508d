"""Shows a line on stderr that says what is being measured.

Only on a terminal, only after two seconds, and erased at the end, so that a pipe or a file gets
only the result.
"""

from __future__ import annotations

import sys
import threading
from types import TracebackType
from typing import Self

PATIENCE = 2.0
ERASE = "\r\x1b[2K"


class Progress:
    """`with Progress() as progress: progress.show("round 2 of 7")`."""

    def __init__(self) -> None:
        self._text = ""
        self._patient = True
        self._shown = False
        # One wake-up after two seconds, for a first lap that takes longer; none after that.
        self._timer = threading.Timer(PATIENCE, self._lose_patience)
        self._timer.daemon = True

    def show(self, text: str) -> None:
        self._text = text
        if not self._patient:
            self._show()

    def erase(self) -> None:
        if self._shown:
            self._shown = False
            print(ERASE, end="", file=sys.stderr, flush=True)

    def _lose_patience(self) -> None:
        self._patient = False
        self._show()

    def _show(self) -> None:
        self._shown = True
        print(f"{ERASE}{self._text}", end="", file=sys.stderr, flush=True)

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            self._timer.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._timer.cancel()
        self.erase()
