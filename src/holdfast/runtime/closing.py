"""The way down: grace, one cancel, join until empty, and a report, within the deadline.

A close runs in a task of its own, so that a closer who is cancelled cuts nothing short.
`waves` says in which order; `roster` does the asking; here is when, and for how long.
"""

from __future__ import annotations

import time
from asyncio import CancelledError, Task
from collections.abc import Callable, Iterable
from contextlib import suppress

from holdfast.runtime.collector import BURST, collector_paused
from holdfast.runtime.failure import is_cleanup
from holdfast.runtime.lifecycle import Event, State
from holdfast.runtime.patience import CUT, join_patiently
from holdfast.runtime.report import CloseReport, Ending, Straggler
from holdfast.runtime.roster import AnyTask, Roster
from holdfast.runtime.stacks import await_chain
from holdfast.runtime.tracking import PAUSE, primed
from holdfast.runtime.waves import Member, next_wave

__all__ = ["Closing", "close_orphaned", "report_of", "report_on"]


class Closing:
    """One close under way, shared by all who ask for it."""

    __slots__ = ("_deadline", "_grace_until", "_orderly_until", "_roster", "task")

    def __init__(self, roster: Roster, grace: float, deadline: float) -> None:
        assert roster.loop is not None
        now = roster.loop.time()
        self._roster = roster
        self._deadline = now + deadline
        # Whoever does not finish within the grace needs some time to be cancelled in.
        self._orderly_until = now + deadline * CUT
        self._grace_until = min(now + grace, self._orderly_until)
        # Primed, and with no task factory between: a close that is cancelled before its first
        # step, as the loop's teardown does, must take place all the same.
        self.task: AnyTask = Task(
            primed(self._run()), loop=roster.loop, name=f"holdfast: close {roster.describe()}"
        )

    def hurry(self, grace: float, deadline: float) -> None:
        """Another closer: the shorter grace and the longer deadline count."""
        now = self._roster.clock()
        self._grace_until = min(self._grace_until, now + grace)
        self._deadline = max(self._deadline, now + deadline)
        self._roster.rouse()

    async def _run(self) -> None:
        with suppress(CancelledError):
            await PAUSE
        roster = self._roster
        if roster.state is State.DRAINING:
            while len(roster.live) > roster.standing and roster.clock() < self._grace_until:
                await self._until(roster.standing, self._grace_until)
            roster.move(Event.GRACE_OVER)
        ladder = list(roster.roll)
        while wave := next_wave(ladder, roster.held, roster.uses):
            if not await self._ask_and_wait(wave, self._orderly_until):
                break
        # A swallower on top must not leave what lies below it open and unasked.
        await self._ask_and_wait([m for m in ladder if not m.task.done()], self._deadline)
        roster.move(Event.DEADLINE if roster.live else Event.EMPTY)

    async def _ask_and_wait(self, wave: list[Member], until: float) -> bool:
        """Whether all of the wave have ended in time."""
        roster = self._roster
        with collector_paused(len(wave)):
            for member in wave:
                roster.ask(member)
            floor = max(0, len(roster.live) - len(wave))
            await self._until(floor, min(until, roster.clock() + BURST))
        while left := sum(not member.task.done() for member in wave):
            if not await self._until(len(roster.live) - left, until):
                return False
        return True

    async def _until(self, floor: int, until: float) -> bool:
        """Wait for at most `floor` alive; False when it takes too long."""
        watcher = self._roster.watch(floor)
        try:
            while not watcher.future.done():
                left = until - self._roster.clock()
                if left <= 0:
                    return False
                await join_patiently({watcher.future}, left)
            return True
        finally:
            self._roster.unwatch(watcher)


def close_orphaned(roster: Roster, deadline: float) -> None:
    """Close a scope that is gone: what it holds is left, too, below its tasks and in order."""
    if roster.live:
        roster.move(Event.CLOSE_NOW)
        Closing(roster, 0.0, deadline)


def report_on(roster: Roster) -> CloseReport:
    """How everyone on the roll has ended, as of now."""
    clock = time.monotonic if roster.loop is None else roster.clock
    # Seen from a thread, a loop that is blocked has not come to refuse new work.
    roll = list(roster.members()) if roster.state.takes_work else roster.roll
    with collector_paused(len(roll)):
        return report_of(roster.name, roll, clock)


def report_of(name: str, members: Iterable[Member], clock: Callable[[], float]) -> CloseReport:
    """How each of `members` has ended, as of now."""
    finished: list[Ending] = []
    cancelled: list[Ending] = []
    failed: list[Ending] = []
    cleanup_errors: list[Exception] = []
    stragglers: list[Straggler] = []
    for member in members:
        task, origin = member.task, member.origin
        if not task.done():
            age = 0.0 if member.birth is None else clock() - member.birth
            stragglers.append(Straggler(task.get_name(), origin, age, await_chain(task)))
        elif task.cancelled():
            cancelled.append(Ending(task.get_name(), origin))
        elif (error := task.exception()) is None:
            finished.append(Ending(task.get_name(), origin))
        elif isinstance(error, Exception) and is_cleanup(error):
            cleanup_errors.append(error)
        else:
            failed.append(Ending(task.get_name(), origin, error))
    return CloseReport(
        name,
        tuple(finished),
        tuple(cancelled),
        tuple(failed),
        tuple(cleanup_errors),
        tuple(stragglers),
    )
