"""`serve` and `snapshot`: the watch of this process, as its program uses it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from handfast._asyncio_internals import running_loop
from handfast._watch.agent import agent
from handfast._watch.agent.dump import Trigger, require_possible
from handfast._watch.agent.pacing import Pace, no_pause
from handfast._watch.recording import event_loops
from handfast._watch.recording.collect import take_snapshot, this_process
from handfast._watch.snapshot import Snapshot


class Watch:
    """The watch of this process while it runs. Stop it, or use it with `with`."""

    __slots__ = ("_agent",)

    def __init__(self, started: agent.Agent) -> None:
        self._agent = started

    @property
    def socket(self) -> str:
        """The path of the socket that other processes read."""
        return str(self._agent.path)

    def stop(self) -> None:
        """Stop the watch, and remove the socket. Calling it again has no effect."""
        if agent.current() is self._agent:
            agent.stop()

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def serve(
    name: str = "",
    *,
    dump_on: Iterable[Trigger] = (),
    dump_folder: str | os.PathLike[str] = ".",
    hang_after: float = 5.0,
) -> Watch:
    """Watch this process from now on: `handfast ps` lists it, `handfast top` shows it.

    If it is watched already, the triggers are added, and the watch that runs is returned.

    Parameters:
        name: what it is called there. The default is the name of its script.
        dump_on: when to write a snapshot to a file: on "sigterm", before the program's own handler
            runs; on "close", when a `Scope.close` passes its deadline; on "hang", when a loop is
            late by `hang_after` seconds.
        dump_folder: where to. The files are `handfast-PID-TIME-TRIGGER.json`, at most 20.
        hang_after: in seconds.

    >>> from handfast import watch
    >>> with watch.serve("bot"):
    ...     print(watch.snapshot().process.program)
    bot
    """
    triggers = tuple(dump_on)
    folder = Path(dump_folder).absolute()
    require_possible(triggers, folder)
    running = agent.start(name)
    if triggers:
        running.dump_on(triggers, folder, hang_after)
    return Watch(running)


def snapshot(tasks: int = 1000) -> Snapshot:
    """A snapshot of this process, with at most so many tasks, the oldest first.

    Without `serve` it shows all tasks too, but not where they were created.
    """
    # A pause would only hold up the loop of this thread for longer.
    pause = Pace() if running_loop() is None else no_pause
    running = agent.current()
    if running is not None:
        return running.snapshot(tasks, pause)
    event_loops.find_loops()
    return take_snapshot(this_process(), tasks, pause)
