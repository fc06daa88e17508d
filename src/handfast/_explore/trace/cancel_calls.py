"""Who cancels which task: the calls of `Task.cancel()`, as they happen.

A task of asyncio is written in C, and its methods cannot be replaced. The hook for profilers sees the
call, with the task and the calling frame. It slows a run down, so it is used only for the one that is
traced, and it is removed after a number of calls that any usual run stays below.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

_MOST_CALLS = 1_000_000


class CancelCalls:
    """Calls `note` with the task and the calling frame."""

    def __init__(self, note: Callable[[asyncio.Task[Any], FrameType], None]) -> None:
        self._note = note
        self._left = _MOST_CALLS
        self._hook = self._called

    def start(self) -> None:
        """Watch the calls on this thread, unless another profiler does."""
        if sys.getprofile() is None:
            sys.setprofile(self._hook)

    def stop(self) -> None:
        if sys.getprofile() is self._hook:
            sys.setprofile(None)

    def _called(self, frame: FrameType, event: str, called: Any) -> None:
        if event == "c_call" and called.__name__ == "cancel":
            task = called.__self__
            if isinstance(task, asyncio.Task) and not task.done():
                self._note(task, frame)
        self._left -= 1
        if self._left < 0:
            self.stop()
