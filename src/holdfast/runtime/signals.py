"""SIGINT and SIGTERM while `run` runs: the first asks for the end, the second does not wait.

Decides nothing about tasks: `runner` listens to two futures. What is kept here is that a signal
is never lost, however busy the loop is, and that the shell sees what it expects.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
from asyncio import AbstractEventLoop
from contextlib import suppress
from types import FrameType
from typing import Any

__all__ = ["HeldBack", "Signals"]

# Only who has not been given another handler by the program, or by whoever started it.
_DEFAULTS = ((signal.SIGINT, signal.default_int_handler), (signal.SIGTERM, signal.SIG_DFL))


class HeldBack:
    """SIGINT and SIGTERM wait outside, while something stands that only we can take down.

    They come in when they are let go. Another thread may still take one for the process: then
    Python strikes in the main thread all the same.
    """

    __slots__ = ("_before",)

    def __init__(self) -> None:
        self._before: set[signal.Signals | int] | None = None

    def hold(self) -> None:
        if hasattr(signal, "pthread_sigmask") and self._before is None:
            self._before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))

    def let_go(self) -> None:
        before, self._before = self._before, None
        if before is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Signals:
    """Turns signals into futures, for as long as it is entered. In the main thread only."""

    def __init__(self, loop: AbstractEventLoop, patience: float) -> None:
        self._loop = loop
        self._patience = patience
        # The handlers that the loop itself has set for the signals that are ours.
        self._loops: dict[int, Any] = {}
        self._alarm: threading.Timer | None = None
        self._notices = 0
        self.received: list[int] = []
        self.asked: asyncio.Future[None] = loop.create_future()
        self.insisted: asyncio.Future[None] = loop.create_future()

    def __enter__(self) -> Signals:
        # Python lets nobody but the main thread have handlers.
        if threading.current_thread() is threading.main_thread():
            for number, default in _DEFAULTS:
                if signal.getsignal(number) is default:
                    self._take(number)
        return self

    def _take(self, number: int) -> None:
        # A signal that comes right before the loop goes to sleep does not wake it by itself: its
        # handler waits for the next instruction, which never comes. The loop's own handler has
        # the signal written to its wake-up pipe; that stays, and ours takes the handler's place.
        with suppress(NotImplementedError):  # Windows, where the loop does that in any case
            self._loop.add_signal_handler(number, self._noticed, number)
        self._loops[number] = signal.getsignal(number)
        signal.signal(number, self._arrived)

    def __exit__(self, *_: object) -> None:
        self._disarm()
        for number, default in _DEFAULTS:
            if number in self._loops:
                self._give_back(number, default)

    def _give_back(self, number: int, default: Any) -> None:
        present = signal.getsignal(number)
        with suppress(NotImplementedError):
            self._loop.remove_signal_handler(number)
        ours = present == self._arrived or present == self._loops[number]
        signal.signal(number, default if ours else present)  # the program may have set its own

    def _arrived(self, number: int, frame: FrameType | None) -> None:
        self.received.append(number)
        if len(self.received) == 1:
            self._arm(number)
        elif not self.asked.done() and self._loop.is_running():
            # The loop has not even heard the first one: something blocks it, and that is where
            # this strikes.
            raise self.error()
        self._loop.call_soon_threadsafe(self._tell)

    def _noticed(self, number: int) -> None:
        """By the loop itself, after our handler; alone if that was not yet in place."""
        if signal.getsignal(number) == self._arrived:  # or else the program has one of its own
            self._notices += 1
            if self._notices > len(self.received):
                self._arrived(number, None)

    def _tell(self) -> None:
        self._disarm()
        for future, _ in zip((self.asked, self.insisted), self.received, strict=False):
            if not future.done():
                future.set_result(None)

    # Code that blocks the loop would hold up the end without bound. After some time the signal
    # is sent once more, from here, and breaks the blocking call.

    def _arm(self, number: int) -> None:
        self._alarm = threading.Timer(self._patience, self._send_again, (number,))
        self._alarm.daemon = True
        self._alarm.start()

    def _disarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()

    def _send_again(self, number: int) -> None:
        if sys.platform == "win32":
            signal.raise_signal(number)
        else:
            # To the main thread itself, so that its system call is interrupted.
            signal.pthread_kill(threading.main_thread().ident or 0, number)

    def press(self, before: int) -> bool:
        """Whether to wait no longer: a second one has come, or one more than `before`."""
        return len(self.received) > min(before, 1)

    def error(self) -> BaseException:
        """What the shell expects after the first signal that came."""
        number = self.received[0]
        return KeyboardInterrupt() if number == signal.SIGINT else SystemExit(128 + number)
