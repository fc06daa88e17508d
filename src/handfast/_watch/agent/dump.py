"""Writes a snapshot to a file when something goes wrong: at SIGTERM, when a `Scope.close` passes its
deadline, when a loop hangs.

A thread of its own writes: a signal handler runs between any two instructions of the main thread, which
may hold any lock. `queue.SimpleQueue` is made for that.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Literal, TypeAlias

from handfast._runtime.scope import shutdown
from handfast._watch.error import WatchError

Trigger: TypeAlias = Literal["sigterm", "close", "hang"]
TRIGGERS: tuple[Trigger, ...] = ("sigterm", "close", "hang")

MAX_FILES = 20
"""A process writes at most so many."""

_APART = 10.0
"""Seconds between two dumps for the same reason."""

_WAIT_AT_SIGNAL = 5.0
_WAIT_AT_CLOSE = 1.0


def require_possible(triggers: Iterable[str], folder: Path) -> None:
    """Raise for triggers that cannot be installed here, and a folder that is none."""
    for each in triggers:
        if each not in TRIGGERS:
            raise ValueError(f"dump_on has {each!r}; there are {', '.join(TRIGGERS)}")
        if not folder.is_dir():
            raise WatchError(f"{folder} is no folder: create it, or give another dump_folder")
        if each == "sigterm" and threading.current_thread() is not threading.main_thread():
            raise WatchError(
                'a dump on "sigterm" has to be set up in the main thread: call serve() there'
            )


class Dumps:
    """The triggers of one process."""

    def __init__(
        self,
        triggers: Iterable[Trigger],
        folder: Path,
        hang_after: float,
        encode: Callable[[], Iterable[str]],
    ) -> None:
        self.triggers = frozenset(triggers)
        self.hang_after = hang_after
        self._folder = folder
        self._encode = encode
        self._requests: SimpleQueue[tuple[Trigger, threading.Event] | None] = SimpleQueue()
        self._last: dict[Trigger, float] = {}
        self._files = 0
        self._active = True
        self._previous: Any = None
        self._thread = threading.Thread(target=self._run, name="handfast-watch-dump", daemon=True)

    def start(self) -> None:
        """Install the triggers."""
        if "sigterm" in self.triggers:
            self._previous = signal.signal(signal.SIGTERM, self._on_signal)
        if "close" in self.triggers:
            shutdown.on_timed_out = self._on_timed_out
        self._thread.start()

    def stop(self) -> None:
        """Write what is requested already, and remove the triggers."""
        self.abandon()
        self._requests.put(None)
        self._thread.join(_WAIT_AT_SIGNAL)

    def abandon(self) -> None:
        """Remove the triggers. In a forked child: there is no thread that writes."""
        self._active = False
        if shutdown.on_timed_out == self._on_timed_out:
            shutdown.on_timed_out = shutdown.ignore
        # `signal` works in the main thread only. A handler that stays calls the one before it.
        if "sigterm" in self.triggers and signal.getsignal(signal.SIGTERM) == self._on_signal:
            with suppress(ValueError):
                signal.signal(signal.SIGTERM, self._previous or signal.SIG_DFL)

    def problems(self) -> Iterable[str]:
        """What another part of the program has switched off."""
        if "sigterm" in self.triggers and signal.getsignal(signal.SIGTERM) != self._on_signal:
            yield (
                "There will be no dump on SIGTERM: the program has set another handler since "
                "serve(). Call serve() after that."
            )

    # --- triggers --------------------------------------------------------------------------

    def request(self, trigger: Trigger, wait: float = 0.0) -> None:
        """Have a dump written, and wait for so long."""
        now = time.monotonic()
        if not self._active or self._files >= MAX_FILES:
            return
        if now - self._last.get(trigger, -_APART) < _APART:
            return
        self._last[trigger] = now
        self._files += 1
        written = threading.Event()
        self._requests.put((trigger, written))
        if wait:
            written.wait(wait)

    def _on_signal(self, number: int, frame: Any) -> None:
        self.request("sigterm", _WAIT_AT_SIGNAL)
        previous = self._previous
        if callable(previous):
            previous(number, frame)
        elif previous is not signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    def _on_timed_out(self, registry: object) -> None:
        # On the loop, which it holds up: a program that ends now would take the tasks with it.
        self.request("close", _WAIT_AT_CLOSE)

    # --- the thread ------------------------------------------------------------------------

    def _run(self) -> None:
        while (request := self._requests.get()) is not None:
            trigger, written = request
            try:
                self._write(trigger)
            except Exception as error:  # a full disk must not end the thread
                with suppress(Exception):
                    sys.stderr.write(f"handfast watch: no dump was written: {error}\n")
            written.set()

    def _write(self, trigger: Trigger) -> None:
        moment = time.strftime("%Y%m%d-%H%M%S")
        path = self._folder / f"handfast-{os.getpid()}-{moment}-{trigger}.json"
        parts = self._encode()
        unfinished = path.with_suffix(".part")
        # O_EXCL: in a folder of others, a link with this name could lead anywhere.
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "w", encoding="utf-8") as file:
            file.writelines(parts)
        os.replace(unfinished, path)
