"""Sends a signal to the main thread again, while the event loop there does not notice it.

A handler of ours raises only in code of the program, and only if that code blocks the loop. If the
signal finds other code running, or if the loop is blocked later, it has to come again.
"""

from __future__ import annotations

import _thread
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue

# Seconds between two attempts.
RETRY = 0.05


class SignalResend:
    """A thread that exists from the first signal on.

    It resends once `patience` seconds have passed, and before that while `wanted()` holds; not
    after the program has replaced `handler` by its own.
    Nothing that a signal handler calls here takes a lock: a handler may interrupt itself.
    """

    def __init__(
        self, handler: Callable[..., object], patience: float, wanted: Callable[[], bool]
    ) -> None:
        self._handler: Callable[..., object] | None = handler
        # At least one attempt later: a loop that is not blocked needs time to notice the first.
        self._patience = min(max(patience, RETRY), threading.TIMEOUT_MAX)
        self._wanted = wanted
        self._events: SimpleQueue[None] = SimpleQueue()
        self._sending = threading.Lock()
        self._begun = False
        self._over = False
        self._interrupted = False
        # The thread resends this signal; those sent and not yet seen by the handler are its own.
        self._number = 0
        self._sent = False

    def begin(self, number: int) -> None:
        """Start the thread, for the first signal."""
        if self._begun:
            return
        self._begun = True
        self._number = number
        # Not threading.Thread: it takes locks that the interrupted code may have, and waits.
        with suppress(RuntimeError):  # the system has no thread for us
            _thread.start_new_thread(self._run, ())

    def is_own(self, number: int) -> bool:
        """Whether the signal that was just received is one that this thread has sent."""
        own = self._sent and number == self._number
        if own:
            self._sent = False
        return own

    def hurry(self) -> None:
        """Look at `wanted()` now."""
        self._events.put(None)

    def interrupted(self) -> None:
        """Code of the program was interrupted, and gets `patience` seconds more to end."""
        self._interrupted = True
        self._events.put(None)

    def end(self) -> None:
        """After this no signal is sent. To be called while the handlers are in place."""
        with self._sending:
            self._over = True
        self._handler, self._wanted = None, bool  # they refer to the owner of this object
        self._events.put(None)

    def end_in_fork(self) -> None:
        """In a forked child, which has no such thread, and perhaps a lock that no one releases."""
        self._sending = threading.Lock()
        self._over = True

    def _run(self) -> None:
        until = time.monotonic() + self._patience
        while not self._over:
            now = time.monotonic()
            if self._interrupted:
                self._interrupted = False
                until = now + self._patience
            elif self._wanted() or now >= until:
                self._send()
                self._rest(now + RETRY)
                continue
            self._wait(until - now)

    def _rest(self, until: float) -> None:
        """Not cut short by `hurry`: a handler that interrupts nothing would be called without pause."""
        while not self._over and (left := until - time.monotonic()) > 0:
            self._wait(left)

    def _wait(self, seconds: float) -> None:
        with suppress(Empty):
            self._events.get(timeout=max(0.0, seconds))

    def _send(self) -> None:
        with self._sending:
            if self._over or signal.getsignal(self._number) != self._handler:
                return
            self._sent = True
            if sys.platform == "win32":
                signal.raise_signal(self._number)
            else:
                # To the main thread itself, so that its system call is interrupted.
                signal.pthread_kill(threading.main_thread().ident or 0, self._number)
