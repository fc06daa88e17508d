"""SIGINT and SIGTERM while `run` runs: the first starts the shutdown, the second ends the waiting.

`run` waits for two futures; nothing here concerns tasks. This file makes sure that no signal is
lost, however busy the loop is, and that the shell gets the exit status that it expects.

An exception that a signal handler raises in asyncio's own code, or in ours, may lose a callback
that was just taken out of the queue, or leave the loop marked as running: then the shutdown waits
for ever (#95571). So the handler only tells the loop. It raises in one case: the loop has not
noticed an earlier signal, and it is code of the program that runs, and so blocks the loop.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
import time
from asyncio import AbstractEventLoop
from contextlib import suppress
from types import FrameType
from typing import Any

from handfast._runtime.program.signal_resend import SignalResend

# Signals with another handler than these, set by the program or its parent, are left alone.
_DEFAULTS = ((signal.SIGINT, signal.default_int_handler), (signal.SIGTERM, signal.SIG_DFL))


# Seconds in which code that was interrupted is not interrupted again.
_UNWINDING = 0.5


class DeferredSignals:
    """Defers SIGINT and SIGTERM while handlers are installed or removed, and delivers them later.

    Another thread may still receive one for the process: then Python runs the handler in the
    main thread in spite of this.
    """

    __slots__ = ("_before",)

    def __init__(self) -> None:
        self._before: set[signal.Signals | int] | None = None

    def defer(self) -> None:
        if hasattr(signal, "pthread_sigmask") and self._before is None:
            self._before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))

    def deliver(self) -> None:
        before, self._before = self._before, None
        if before is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Signals:
    """Resolves a future for the first and one for the second signal. In the main thread only.

    After `resend_after` seconds a loop that is blocked is interrupted.
    """

    def __init__(self, loop: AbstractEventLoop, resend_after: float) -> None:
        self._loop = loop
        # The handlers that the loop itself has set for these signals.
        self._loop_handlers: dict[int, Any] = {}
        self._handled: set[int] = set()
        # A signal has come, and the loop has not noticed it yet.
        self._unnoticed = False
        # So has another one since, which was not raised in the code that ran.
        self._insists = False
        # An exception in the clean-up after the last one would cut that, and leave a lock taken.
        self._spared_until = 0.0
        self._resend = SignalResend(self._on_signal, resend_after, lambda: self._insists)
        self.received: list[int] = []
        self.first: asyncio.Future[None] = loop.create_future()
        self.second: asyncio.Future[None] = loop.create_future()

    def __enter__(self) -> Signals:
        # Python allows signal handlers in the main thread only.
        if threading.current_thread() is threading.main_thread():
            for number, default in _DEFAULTS:
                if signal.getsignal(number) is default:
                    self._install(number)
        return self

    def _install(self, number: int) -> None:
        # A signal right before the loop blocks in select() does not wake it: its handler waits
        # for the next bytecode instruction, which never comes. The loop's own handler makes
        # Python write the signal to the loop's wake-up pipe; that stays when ours replaces it.
        with suppress(NotImplementedError):  # Windows, where the loop wakes in any case
            self._loop.add_signal_handler(number, self._on_noticed, number)
        self._loop_handlers[number] = signal.getsignal(number)
        signal.signal(number, self._on_signal)

    def __exit__(self, *_: object) -> None:
        for number, default in _DEFAULTS:
            if number in self._loop_handlers:
                self._restore(number, default)

    def _restore(self, number: int, default: Any) -> None:
        present = signal.getsignal(number)
        with suppress(NotImplementedError):
            self._loop.remove_signal_handler(number)
        ours = present == self._on_signal or present == self._loop_handlers[number]
        signal.signal(number, default if ours else present)  # the program may have set its own

    def stop_resending(self) -> None:
        """To be called before signals are deferred: one that is sent now must still come to us."""
        self._resend.end()

    def on_fork(self) -> None:
        self._resend.end_in_fork()

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        # Python may call this again for another signal before any of these lines.
        self._handled.add(number)
        again = self._unnoticed
        self._unnoticed = True
        if not self._resend.is_own(number):
            self.received.append(number)
        self._resend.begin(number)
        self._loop.call_soon_threadsafe(self._on_turn)
        if again:
            self._interrupt(frame)

    def _interrupt(self, frame: FrameType | None) -> None:
        now = time.monotonic()
        if now >= self._spared_until and frame is not None and blocks_the_loop(frame, self._loop):
            self._spared_until = now + _UNWINDING
            self._insists = False
            self._resend.interrupted()
            raise self.error()
        self._insists = True
        self._resend.hurry()

    def _on_noticed(self, number: int) -> None:
        """Called by the loop, after our handler; without it if that was not installed yet."""
        # The program may have set a handler of its own.
        if number not in self._handled and signal.getsignal(number) == self._on_signal:
            self._on_signal(number, None)

    def _on_turn(self) -> None:
        self._unnoticed = self._insists = False
        for future, _ in zip((self.first, self.second), self.received, strict=False):
            if not future.done():
                future.set_result(None)

    def more_than(self, before: int) -> bool:
        """Whether to stop waiting: there was a second signal, or one more than `before`."""
        return len(self.received) > min(before, 1)

    def error(self) -> BaseException:
        """The exception that gives the exit status which the shell expects after the signal."""
        number = self.received[0]
        return KeyboardInterrupt() if number == signal.SIGINT else SystemExit(128 + number)


# The modules of `run`: what is called from there and not by the loop is not the program's.
_RUNS_THE_LOOP = tuple(f"handfast._runtime.program.{name}" for name in ("run", "loop_shutdown"))

# Methods of `threading` in which a thread does nothing but wait.
_WAITS = ("wait", "join", "_wait_for_tstate_lock", "acquire")


def blocks_the_loop(frame: FrameType, loop: AbstractEventLoop) -> bool:
    """Whether code of the program runs at `frame`, which an exception may interrupt.

    Not while it calls asyncio, the loop or handfast; but while handfast only waits there, for
    another thread. Nor in code of the standard library that one of them has called, nor where
    `threading` does anything but wait.
    """
    loop_modules = {kind.__module__ for kind in type(loop).__mro__}
    waits = False
    if _module(frame) == "threading":
        waits = frame.f_code.co_name in _WAITS
        if not waits:
            return False  # it takes or releases a lock
    at: FrameType | None = frame
    while at is not None and _module(at) not in _RUNS_THE_LOOP:
        module = _module(at)
        package = module.partition(".")[0]
        if package == "asyncio" or module in loop_modules:
            return False
        if package == "handfast":
            if not waits:
                return False
        elif package not in sys.stdlib_module_names:
            return True
        at = at.f_back
    return False


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))
