"""The agent: a thread of this process that watches its event loops and answers on a socket.

There is one for each process. Starting it switches the hook on, stopping it switches the hook off.
"""

from __future__ import annotations

import atexit
import json
import os
import threading
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from handfast._watch.agent.dump import Dumps, Trigger
from handfast._watch.agent.findings import Findings
from handfast._watch.agent.pacing import Pace, no_pause
from handfast._watch.connection.encode import parts_of
from handfast._watch.connection.protocol import ProtocolError
from handfast._watch.connection.server import Server
from handfast._watch.connection.socket_folder import listen, require_unix_sockets
from handfast._watch.recording import event_loops, places, task_creation
from handfast._watch.recording.collect import (
    counts_by_place,
    encoded_snapshot,
    pending_tasks,
    take_snapshot,
    this_process,
)
from handfast._watch.recording.event_loops import Pause, known_loops
from handfast._watch.recording.loop_lag import BLOCKED, PERIOD, LoopLag, LoopLags
from handfast._watch.recording.shown_text import LineTexts
from handfast._watch.snapshot import Snapshot, WatchedProcess

MAX_TASKS = 20_000
"""A snapshot that is sent has at most so many tasks."""

DUMPED_TASKS = 2000
"""A snapshot in a file has at most so many."""

_LOOK_PERIOD = 1.0

_SHARE = 10
"""A new summary is made after so many times the time that the last one took."""


class Agent:
    """The threads and the socket of one process."""

    def __init__(self, name: str = "") -> None:
        self._name = name
        self._began = time.monotonic()
        self._lags = LoopLags()
        self._findings = Findings()
        self._looks_at = 0.0
        self._stop = threading.Event()
        self._collecting = threading.Lock()
        self._summary: Snapshot | None = None
        self._summary_until = 0.0
        self._server: Server | None = None
        self._dumps: Dumps | None = None
        self._thread = threading.Thread(target=self._run, name="handfast-watch", daemon=True)

    def start(self) -> None:
        """Switch the hook on, listen, and start the thread."""
        require_unix_sockets()
        listening, path = listen()
        verbs = {"hello": self._hello, "summary": self._send_summary, "snapshot": self._send}
        try:
            task_creation.switch_on()
            event_loops.watch_loops()
            # After that: the first answer has all loops.
            self._server = Server(listening, path, verbs)
            self._thread.start()
        except BaseException:
            if self._server is None:
                listening.close()
                path.unlink(missing_ok=True)
            self.stop()
            raise

    def dump_on(self, triggers: Iterable[Trigger], folder: Path, hang_after: float) -> None:
        """Write snapshots to files on these triggers, and no longer on those of the last call."""
        if self._dumps is not None:
            self._dumps.stop()
        self._dumps = Dumps(triggers, folder, hang_after, lambda: self._encoded(DUMPED_TASKS))
        self._dumps.start()

    def stop(self) -> None:
        """Switch all of it off again, and remove the socket."""
        if self._dumps is not None:
            self._dumps.stop()
        self._stop.set()
        if self._server is not None:
            self._server.stop()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(5)
        event_loops.stop_watching_loops()
        task_creation.switch_off()

    def abandon(self) -> None:
        """In a forked child: close what was inherited. The threads are not here."""
        if self._dumps is not None:
            self._dumps.abandon()
        if self._server is not None:
            self._server.close_sockets()
        event_loops.stop_watching_loops()
        task_creation.switch_off()

    @property
    def path(self) -> Path | None:
        """The socket."""
        return None if self._server is None else self._server.path

    # --- the thread ----------------------------------------------------------------------

    def _run(self) -> None:
        while not self._stop.is_set():
            with suppress(Exception):  # a loop of the program's may do anything
                self._watch_once()

    def _watch_once(self) -> None:
        task_creation.patch_late_imports()
        event_loops.patch_late_imports()
        self._look()
        self._lags.post(known_loops())
        until = time.monotonic() + PERIOD
        while (left := until - time.monotonic()) > 0 and not self._stop.wait(min(left, BLOCKED)):
            late = self._lags.sample()
            if not late:
                self._stop.wait(max(0.0, until - time.monotonic()))
            self._dump_hangs(late)

    def _look(self) -> None:
        now = time.monotonic()
        if now >= self._looks_at:
            self._looks_at = now + _LOOK_PERIOD
            self._findings.look(lambda: counts_by_place(Pace()), lambda: pending_tasks(Pace()))

    def _dump_hangs(self, late: Iterable[LoopLag]) -> None:
        dumps = self._dumps
        if dumps is None or "hang" not in dumps.triggers:
            return
        for lag in late:
            # A loop that waits for events in the selector is late because the machine is.
            if lag.late_for() > dumps.hang_after and not lag.reported_hang:
                if lag.blocked_at(LineTexts()):
                    lag.reported_hang = True
                    dumps.request("hang")

    # --- snapshots -----------------------------------------------------------------------

    def process(self) -> WatchedProcess:
        """This process."""
        return this_process(self._name, time.monotonic() - self._began)

    def snapshot(self, tasks: int, pause: Pause = no_pause) -> Snapshot:
        """A new snapshot."""
        with self._collecting:
            states = self._lags.states(known_loops())
            taken = take_snapshot(self.process(), tasks, pause, states, self._findings)
            return replace(taken, not_checked=(*taken.not_checked, *self._problems()))

    def _problems(self) -> Iterable[str]:
        return () if self._dumps is None else self._dumps.problems()

    def summary(self) -> Snapshot:
        """A snapshot without tasks. With very many tasks it is a little old."""
        now = time.monotonic()
        if self._summary is None or now >= self._summary_until:
            self._summary = self.snapshot(0, Pace())
            took = time.monotonic() - now
            self._summary_until = now + took + min(took * _SHARE, 5.0)
            return self._summary
        states = self._lags.states(known_loops())
        loops = (
            replace(states.get(loop.id, loop), tasks=loop.tasks) for loop in self._summary.loops
        )
        return replace(self._summary, loops=tuple(loops))

    # --- verbs ---------------------------------------------------------------------------

    def _hello(self, _: Mapping[str, Any]) -> Iterable[str]:
        return [json.dumps(asdict(self.process()))]

    def _send_summary(self, _: Mapping[str, Any]) -> Iterable[str]:
        return parts_of(self.summary())

    def _send(self, request: Mapping[str, Any]) -> Iterable[str]:
        tasks = request.get("tasks", 1000)
        if type(tasks) is not int or not 0 <= tasks <= MAX_TASKS:
            raise ProtocolError(f"tasks is a number from 0 to {MAX_TASKS:,}")
        return self._encoded(tasks)

    def _encoded(self, tasks: int) -> Iterable[str]:
        with self._collecting:
            states = self._lags.states(known_loops())
            return encoded_snapshot(self.process(), tasks, Pace(), states, self._findings)


# --- the agent of this process -------------------------------------------------------------------

_lock = threading.RLock()
_agent: Agent | None = None


def current() -> Agent | None:
    """The agent of this process, if it runs."""
    return _agent


def start(name: str = "") -> Agent:
    """Start the agent, or return the one that runs."""
    global _agent
    with _lock:
        if _agent is None:
            agent = Agent(name)
            agent.start()
            _agent = agent
            atexit.register(stop)
        return _agent


def stop() -> None:
    """Stop the agent, if it runs."""
    global _agent
    with _lock:
        agent, _agent = _agent, None
        atexit.unregister(stop)
        if agent is not None:
            agent.stop()


def _after_fork() -> None:
    """In a forked child: leave the parent's socket alone."""
    global _agent, _lock
    # Another thread of the parent may have held a lock. It is not here to release it.
    _lock = threading.RLock()
    places.on_fork()
    agent, _agent = _agent, None
    if agent is not None:
        agent.abandon()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
