"""Reads a process again and again, in a thread of its own, for a screen that must not wait.

The thread is a daemon, and does the work that may take long: a screen can end at once while the process
under watch does not answer.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Protocol, TypeVar

from handfast._watch.error import WatchError
from handfast._watch.snapshot import Snapshot

PERIOD = 0.5
"""Seconds between two summaries."""

_T = TypeVar("_T")


class Source(Protocol):
    """Where the snapshots come from: a `Client`."""

    def summary(self) -> Snapshot:
        """A snapshot without tasks."""
        ...

    def snapshot(self, tasks: int = 1000) -> Snapshot:
        """A snapshot with at most so many tasks."""
        ...


class LiveReader(threading.Thread):
    """Passes a summary to `on_summary` twice a second, until the process is gone: `on_end`."""

    def __init__(
        self,
        source: Source,
        on_summary: Callable[[Snapshot], object],
        on_end: Callable[[str], object],
    ) -> None:
        super().__init__(name="handfast-top", daemon=True)
        self._source = source
        self._on_summary = on_summary
        self._on_end = on_end
        self._taken = threading.Event()
        self._taken.set()
        self._requests: queue.SimpleQueue[Callable[[], object] | None] = queue.SimpleQueue()

    def with_tasks(
        self, most: int, work: Callable[[Snapshot], _T], receive: Callable[[_T], object]
    ) -> None:
        """Take one snapshot with tasks, and pass on what `work` makes of it; both in the thread."""
        self._requests.put(lambda: receive(work(self._source.snapshot(most))))

    def taken(self) -> None:
        """The last summary was drawn. No other one is read before: a slow screen is not flooded."""
        self._taken.set()

    def stop(self) -> None:
        """End after the request that runs now; nobody has to wait for it."""
        self._requests.put(None)

    def run(self) -> None:
        """Read until the end."""
        try:
            while True:
                if self._taken.is_set():
                    self._taken.clear()
                    self._on_summary(self._source.summary())
                if not self._serve():
                    return
        except WatchError as error:
            self._on_end(str(error))

    def _serve(self) -> bool:
        """Do what is requested until it is time for the next summary; False: the end."""
        try:
            request = self._requests.get(timeout=PERIOD)
        except queue.Empty:
            return True
        if request is not None:
            request()
        return request is not None
