"""Signals before chosen lines of asyncio, of the loop and of handfast.

The tracer is in the module of the loop on purpose: a real signal, which may come while it runs,
then finds code of the loop, where it may not raise.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from types import FrameType
from typing import Any

import handfast
from tests.support import stepping

# The loop's own lines, and ours.
_TRACED = (os.path.dirname(asyncio.__file__), os.path.dirname(handfast.__file__), stepping.__file__)

# Until 3.13 these run once for each task that exists in this process, those of other tests included.
_FOR_EACH_TASK = ("all_tasks", "_get_loop")


class TracedLoop(stepping.SteppingLoop):
    """The loop of such a run."""


class SignalsAtLines:
    """Sends a signal before each of these lines, counted from `begin()` on."""

    def __init__(self, lines: list[int]) -> None:
        self._lines = lines
        self._counting = False
        self.seen = 0
        self.sent = 0

    def begin(self) -> None:
        self._counting = True

    def run(self, main: Any, **options: Any) -> str:
        before = sys.gettrace()  # a measurement of coverage, say
        sys.settrace(self._enter)
        try:
            return repr(handfast.run(main, **options))
        except BaseException as error:
            return repr(error)
        finally:
            sys.settrace(before)

    def _enter(self, frame: FrameType, event: str, argument: Any) -> Any:
        code = frame.f_code
        if not code.co_filename.startswith(_TRACED) or code.co_qualname.startswith(_FOR_EACH_TASK):
            return None
        return self._line

    def _line(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line" and self._counting:
            for _ in range(self._lines.count(self.seen)):
                self._send(frame)
            self.seen += 1
        return self._line

    def _send(self, frame: FrameType) -> None:
        """What the interpreter does with a signal, but at this frame and not at the tracer's."""
        handler = signal.getsignal(signal.SIGINT)
        if not callable(handler) or handler is signal.default_int_handler:
            return  # `run` has not begun, or has ended
        self.sent += 1
        wakeup = signal.set_wakeup_fd(-1)
        signal.set_wakeup_fd(wakeup)
        os.write(wakeup, bytes([signal.SIGINT]))
        handler(signal.SIGINT, frame)
