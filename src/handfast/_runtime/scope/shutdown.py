"""Closes a scope: grace, one cancel, join until empty, and a report, within the time-out.

A close runs in a task of its own, so that it is not interrupted when the closer is cancelled.
`shutdown_order` says in which order, the registry cancels; this file says when.
"""

from __future__ import annotations

import time
from asyncio import CancelledError, Task
from collections.abc import Callable, Iterable
from contextlib import suppress

from handfast._origin import Origin
from handfast._runtime.cancel_reason import DROPPED, THE_PROGRAM, timeout_reason
from handfast._runtime.report import CloseReport, Straggler, TaskEnd
from handfast._runtime.scope.failure_reports import report_to_loop
from handfast._runtime.scope.gc_pause import BURST, gc_paused
from handfast._runtime.scope.shutdown_order import Member
from handfast._runtime.scope.states import Event, State
from handfast._runtime.scope.tasks.task_creation import wrapper_of
from handfast._runtime.scope.tasks.task_ends import recorded
from handfast._runtime.scope.tasks.task_registry import AnyTask, TaskRegistry
from handfast._runtime.scope.tasks.task_wrapper import YIELD_ONCE, advance_to_pause
from handfast._runtime.uncancellable import wait_uncancelled

# After this part of the time-out a grace ends at the latest: the rest is for the clean-up. And what
# the scope holds is left even if a task still cleans up; that task is not disturbed.
_ORDERLY_PART = 0.9


def ignore(registry: TaskRegistry) -> None:
    """Do nothing about a close that has passed its deadline."""


on_timed_out: Callable[[TaskRegistry], None] = ignore
"""The hook: called on the loop when a close has passed its deadline and tasks are left. A tool may
replace it."""


class Shutdown:
    """One close in progress, shared by all its callers."""

    __slots__ = ("_cancelled", "_grace_until", "_orderly_until", "_registry", "_until", "task")

    def __init__(
        self,
        registry: TaskRegistry,
        grace: float,
        timeout: float,
        cancelled: AnyTask | None = None,
    ) -> None:
        self._registry = registry
        # The host, if it was cancelled and it is not known by whom.
        self._cancelled = cancelled
        now = self._time()
        self._until = now + timeout
        self._orderly_until = now + timeout * _ORDERLY_PART
        self._grace_until = min(now + grace, self._orderly_until)
        # Entered, and not through a task factory: a close that is cancelled before its first
        # step, as the end of the loop does, must still take place.
        self.task: AnyTask = Task(
            advance_to_pause(self._run()),
            loop=registry.loop,
            name=f"handfast: close {registry.describe()}",
        )

    def shorten(self, grace: float, timeout: float) -> None:
        """For a second closer: the shorter grace and the longer time-out count."""
        now = self._time()
        self._grace_until = min(self._grace_until, now + grace)
        self._until = max(self._until, now + timeout)
        self._orderly_until = max(self._orderly_until, now + timeout * _ORDERLY_PART)
        self._registry.wake_watchers()

    async def _run(self) -> None:
        with suppress(CancelledError):
            await YIELD_ONCE
        registry = self._registry
        if self._cancelled is not None and not self._cancelled.done():
            registry.reason = timeout_reason(wrapper_of(self._cancelled)) or registry.reason
        if registry.state is State.DRAINING:
            while registry.has_ending_tasks() and self._has_grace(State.DRAINING):
                await self._wait_for(registry.never_ending, self._grace_until)
            registry.move(Event.GRACE_OVER)
        for wave in registry.closing_waves():
            await self._drain_held_scopes(wave)
            if not await self._cancel_and_wait(wave, self._orderly_until):
                break
        # A task that ignores its cancel must not keep resources from being left at all.
        left = [member for member in registry.closing_tasks if not member.task.done()]
        await self._cancel_and_wait(left, self._until)
        if registry.live:
            on_timed_out(registry)
        registry.move(Event.TIMED_OUT if registry.live else Event.EMPTY)

    def _time(self) -> float:
        # Not `registry.clock`: timers run by this one, which a program may replace at any time.
        assert self._registry.loop is not None
        return self._registry.loop.time()

    def _has_grace(self, state: State) -> bool:
        return self._registry.state is state and self._time() < self._grace_until

    async def _drain_held_scopes(self, wave: list[Member]) -> None:
        """Give the rest of the grace to the tasks of a held scope."""
        registry = self._registry
        owners = [registry.held[member.key] for member in wave if member.key in registry.held]
        for inner in (owner.inner for owner in owners if owner.inner is not None):
            while (
                inner.waits_for_tasks
                and self._has_grace(State.CANCELLING)
                and (busy := inner.registry.busy_part()) is not None
            ):
                with busy.watch(busy.never_ending) as reached, registry.watch(-1) as changed:
                    left = self._grace_until - self._time()
                    await wait_uncancelled({reached, changed}, left)

    async def _cancel_and_wait(self, wave: list[Member], until: float) -> bool:
        """Cancel a wave; whether all of it has ended in time."""
        registry = self._registry
        with gc_paused(len(wave)):
            registry.cancel_members(wave, registry.reason)
            floor = max(0, len(registry.live) - len(wave))
            await self._wait_for(floor, min(until, self._time() + BURST))
        # Others may have ended meanwhile, so the count alone does not say that the wave has.
        while left := sum(not member.task.done() for member in wave):
            if not await self._wait_for(len(registry.live) - left, until):
                return False
        return True

    async def _wait_for(self, floor: int, until: float) -> bool:
        """Wait until at most `floor` tasks are alive; False when it takes too long."""
        with self._registry.watch(floor) as reached:
            while not reached.done():
                left = until - self._time()
                if left <= 0:
                    return False
                await wait_uncancelled({reached}, left)
            return True


def on_scope_dropped(registry: TaskRegistry, timeout: float) -> None:
    """Have a scope that was dropped closed on its loop; report errors that no report will show."""
    loop = registry.loop
    if loop is None:
        return
    with suppress(RuntimeError):  # the loop is closed: the tasks will never run again
        loop.call_soon_threadsafe(_close_dropped, registry, timeout)
    for member in registry.closing_tasks:
        task = member.task
        if task.done() and not task.cancelled() and (error := task.exception()) is not None:
            message = f"{registry.describe()} was not closed, and one of its tasks failed"
            report_to_loop(loop, message, error, task)


def _close_dropped(registry: TaskRegistry, timeout: float) -> None:
    """Close its tasks in their order, with what it holds."""
    if registry.live:
        registry.move(Event.CLOSE_NOW, DROPPED)
        shutdown = Shutdown(registry, 0.0, timeout)
        shutdown.task.add_done_callback(lambda _: report_unseen(registry, report_on(registry)))


def report_unseen(registry: TaskRegistry, report: CloseReport) -> None:
    """No one gets this report: pass its errors to the loop's exception handler."""
    if registry.on_failure == "cancel" and registry.loop is not None:
        message = f"{registry.describe()} was closed, and no one has got the report"
        for error in [*(end.error for end in report.failed), *report.cleanup_errors]:
            if error is not None:
                report_to_loop(registry.loop, message, error)


def report_on(registry: TaskRegistry, closed_at: Origin | None = None) -> CloseReport:
    """What has become so far of each task that the scope closes."""
    clock = time.monotonic if registry.loop is None else registry.clock
    # Read from a thread while the loop is blocked, the scope may not be closing yet.
    closing = list(registry.members()) if registry.state.takes_work else registry.closing_tasks
    with gc_paused(len(closing)):
        return report_of(registry.name, closing, clock, closed_at)


def report_of(
    name: str,
    members: Iterable[Member],
    clock: Callable[[], float],
    closed_at: Origin | None,
) -> CloseReport:
    """What has become so far of each of `members`."""
    finished: list[TaskEnd] = []
    cancelled: list[TaskEnd] = []
    failed: list[TaskEnd] = []
    cleanup_errors: list[Exception] = []
    stragglers: list[Straggler] = []
    for member in members:
        task, origin = member.task, member.origin
        if not task.done():
            age = None if member.start_time is None else clock() - member.start_time
            stragglers.append(Straggler.of(task, origin, age))
        elif (failure := recorded(task).failure) is not None:
            failed.append(TaskEnd(task.get_name(), origin, failure))
        elif task.cancelled():
            reason = recorded(task).reason or member.reason or THE_PROGRAM
            cancelled.append(TaskEnd(task.get_name(), origin, None, reason))
        elif (error := task.exception()) is None:
            finished.append(TaskEnd(task.get_name(), origin))
        elif isinstance(error, Exception) and recorded(task).in_cleanup:
            cleanup_errors.append(error)
        else:
            failed.append(TaskEnd(task.get_name(), origin, error))
    return CloseReport(
        name,
        tuple(finished),
        tuple(cancelled),
        tuple(failed),
        tuple(cleanup_errors),
        tuple(stragglers),
        closed_at,
    )
