"""A limit on the real time of a run: virtual time does not pass in a loop without an await.

A thread of its own raises `TooLong` in the thread of the run. It comes between two bytecodes, so a
signal wakes the main thread from a call that blocks, such as `socket.accept`: the handler is Python
code, and raises. A call in C that no signal interrupts is not cut.
"""

from __future__ import annotations

import ctypes
import signal
import threading
from _thread import allocate_lock, get_ident, start_new_thread
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic

from handfast._explore.simulation.threads.worker import frame_of, in_debugger

_TICK = 0.1
# Ignored by default, and used by hardly any program.
_SIGNAL: signal.Signals | None = getattr(signal, "SIGURG", None)


class TooLong(BaseException):
    """A run has taken more real time than it may."""


class Watchdog:
    """Watches the runs of one thread, one at a time."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._thread = get_ident()
        self._deadline: float | None = None
        # Whether the limit of the current or last block was exceeded.
        self.fired = False
        # Raw locks: those of `threading` are controlled during a run.
        self._guard = allocate_lock()
        self._end = allocate_lock()
        self._end.acquire()
        self._ended = allocate_lock()
        self._ended.acquire()
        self._signal = _SIGNAL if threading.main_thread().ident == self._thread else None
        if self._signal is not None and signal.getsignal(self._signal) not in _FREE:
            self._signal = None
        if self._signal is not None:
            self._handler = signal.signal(self._signal, _wake)
        start_new_thread(self._watch, ())

    @contextmanager
    def limit(self) -> Iterator[None]:
        """Raise TooLong in this block once the seconds are over, and again if it is caught."""
        with self._guard:
            self.fired = False
            self._deadline = monotonic() + self._seconds
        try:
            yield
        finally:
            with self._guard:
                self._deadline = None
                if self.fired:
                    _clear(self._thread)

    def close(self) -> None:
        """End the thread."""
        self._end.release()
        self._ended.acquire()
        if self._signal is not None:
            signal.signal(self._signal, self._handler)

    def _watch(self) -> None:
        while not self._end.acquire(timeout=_TICK):
            with self._guard:
                if self._deadline is not None and monotonic() > self._deadline:
                    if in_debugger(frame_of(self._thread)):
                        continue
                    self._deadline = monotonic() + 10 * _TICK
                    self.fired = True
                    _raise_in(self._thread, TooLong)
                    if self._signal is not None:
                        signal.pthread_kill(self._thread, self._signal)
        self._ended.release()


def _wake(number: int, frame: object) -> None:
    """Let the exception that waits for the next bytecode come."""


# No program has set the signal, or another watchdog has.
_FREE = (signal.SIG_DFL, _wake)


def _clear(thread: int) -> None:
    """Withdraw an exception that this thread has not raised yet.

    Setting NULL would leave CPython 3.11 and 3.12 a signal without an exception, for good: all code
    is slower from then on, and under a trace function 3.11 repeats one instruction forever. So the
    exception is replaced by a new one, which is caught here.
    """
    try:
        _raise_in(thread, TooLong)
        while True:
            pass
    except TooLong:
        pass


def _raise_in(thread: int, error: type[BaseException]) -> None:
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(error))
