"""Services that are started again when they fail, within limits, as in OTP.

A service that fails too often is not started again, and its failure is a failure of its scope.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Literal

from handfast._await_stack import stand_in
from handfast._origin import Origin
from handfast._runtime.arguments import seconds, whole_number
from handfast._runtime.covered_failure import covered_failure
from handfast._runtime.errors import RestartLimit
from handfast._runtime.failure import annotate
from handfast._runtime.report import TaskEnd
from handfast._runtime.scope.failure_reports import report_error
from handfast._runtime.scope.tasks.task_registry import TaskRegistry
from handfast._runtime.uncancellable import raise_outcome, run_uncancelled, wait_uncancelled


@dataclass(frozen=True, slots=True)
class Restart:
    """When to start a service again, how often, and after which pause.

    Parameters:
        when: "failure" (after an error only), "always" (also after it has returned), "never".
        intensity: how many restarts are allowed within `period` seconds.
        period: the window in which restarts are counted.
        backoff: the pause before the first restart in the window; it doubles with each one.
        ceiling: the longest pause.

    >>> Restart(intensity=5, period=60).pause(3)
    0.4
    """

    when: Literal["failure", "always", "never"] = "failure"
    intensity: int = 3
    period: float = 60.0
    backoff: float = 0.1
    ceiling: float = 30.0

    def __post_init__(self) -> None:
        if self.when not in ("failure", "always", "never"):
            raise ValueError(f'when must be "failure", "always" or "never", not {self.when!r}')
        whole_number("intensity", self.intensity, at_least=0)
        for what in ("period", "backoff", "ceiling"):
            seconds(what, getattr(self, what))

    def pause(self, restarts: int) -> float:
        """Seconds to wait before restart number `restarts` (from 1) in the window."""
        # An unbounded exponent overflows; the ceiling is reached long before.
        return min(self.ceiling, self.backoff * 2.0 ** min(restarts - 1, 60))


def supervised(
    registry: TaskRegistry,
    call: Callable[[], Awaitable[object]],
    restart: Restart,
    every: float | None,
    origin: Origin,
) -> Coroutine[Any, Any, None]:
    """The coroutine that calls a service as often as `restart` and `every` allow."""
    if every is not None and not seconds("every", every):
        raise ValueError("every must be more than zero seconds; without it a service runs on")
    return _Supervisor(registry, call, restart, every, origin).run()


class _Supervisor:
    """Runs a service, each time in a new task with a context of its own.

    A task that has failed once is not fit to run the service again: a TaskGroup that fails while
    it joins leaves `cancelling()` at 1 on 3.11 and 3.12 (#116720), and a time-out in the next run
    would take that for a cancel from outside.
    """

    def __init__(
        self,
        registry: TaskRegistry,
        call: Callable[[], Awaitable[object]],
        restart: Restart,
        every: float | None,
        origin: Origin,
    ) -> None:
        self._registry = registry
        self._call = call
        self._restart = restart
        self._every = every
        self._origin = origin
        self._window = _Window(restart)
        self._periods = 0  # from the first run to the one that is next, or under way

    async def run(self) -> None:
        me = asyncio.current_task()
        assert me is not None
        name = me.get_name()
        first = self._registry.clock()
        while True:
            failure, cancelled = await self._run_once(me)
            try:
                if self._is_last(failure, cancelled):
                    raise_outcome(failure, cancelled)
                    return
                pause = self._admit(failure, name)
            finally:
                del failure, cancelled  # they refer to this frame
            await asyncio.sleep(self._delay(first, pause))
            if not self._registry.state.takes_work:
                return  # its last failure was reported

    async def _run_once(
        self, me: asyncio.Task[Any]
    ) -> tuple[BaseException | None, asyncio.CancelledError | None]:
        """Run the service in a task of its own, to its end. Its error, and a cancel of this one."""
        errors: list[BaseException] = []
        covered: list[BaseException] = []
        cancels = me.cancelling()

        async def run() -> None:
            # A cancel or a close may come between the creation of this task and its first step.
            if me.cancelling() > cancels or not self._registry.state.takes_work:
                raise asyncio.CancelledError
            try:
                await self._call()
            except asyncio.CancelledError as cancel:
                if (failure := covered_failure(cancel)) is not None:
                    covered.append(failure)
                raise
            except GeneratorExit:
                raise
            except BaseException as error:
                errors.append(error)  # raised or reported by the supervisor

        task = run_uncancelled(run(), me.get_name())
        cancelled = await _join(task)
        if covered and cancelled is not None:
            end = TaskEnd(me.get_name(), self._origin, covered.pop())
            self._registry.on_failed_before_cancel(None, me, end)
            return None, cancelled
        if errors or covered:
            return (errors or covered).pop(), cancelled
        if task.cancelled() and cancelled is None:
            # The service awaited a future that was cancelled: no one has cancelled the service.
            return asyncio.CancelledError(), None
        return None, cancelled

    def _is_last(
        self, failure: BaseException | None, cancelled: asyncio.CancelledError | None
    ) -> bool:
        """Whether the run that has just ended was the last one."""
        if cancelled is not None or not self._registry.state.takes_work:
            return True
        if failure is None:
            return self._every is None and self._restart.when != "always"
        fatal = not isinstance(failure, (Exception, asyncio.CancelledError))
        return fatal or self._restart.when == "never"

    def _admit(self, failure: BaseException | None, name: str) -> float:
        """Count a restart and report the failure; the pause before it. RestartLimit if there were
        too many."""
        if failure is None and self._every is not None:
            return 0.0
        window, restart, registry = self._window, self._restart, self._registry
        if not window.admits(registry.clock()):
            raise RestartLimit(
                f"service {name!r} ended {window.count + 1} times within "
                f"{restart.period:g} s, and is not started again; its Restart allows "
                f"{restart.intensity}"
            ) from failure
        if failure is not None:
            annotate(
                failure,
                f"in service {name!r} of {registry.describe()}, created at {self._origin}; "
                f"restart {window.count} of {restart.intensity} follows",
            )
            end = TaskEnd(name, self._origin, failure)
            report_error(registry, f"service {name!r} failed and is started again", end)
        return restart.pause(window.count)

    def _delay(self, first: float, pause: float) -> float:
        """Seconds to wait: the pause, and then until the next full period since the first run.

        Counted from the first run, so the times do not drift; a run that takes longer than its
        period skips the times that it has missed, so that runs do not overlap.
        """
        if self._every is None:
            return pause
        passed = self._registry.clock() - first + pause
        # A timer may fire early, on uvloop by a millisecond: the period of this run is over anyway.
        self._periods = max(self._periods, math.floor(passed / self._every)) + 1
        return pause + max(0.0, self._periods * self._every - passed)


@stand_in  # it is shown waiting where the service waits
async def _join(task: asyncio.Task[None]) -> asyncio.CancelledError | None:
    """Wait for a run; a cancel is passed on, once, and returned when the run has ended."""
    cancelled: asyncio.CancelledError | None = None
    try:
        if not task.done():
            await asyncio.wait({task})
        return None
    except asyncio.CancelledError as error:
        cancelled = error
        task.cancel(*error.args)
        await wait_uncancelled({task})
        return cancelled
    finally:
        del cancelled  # it refers to this frame


class _Window:
    """The restarts of the last `period` seconds."""

    def __init__(self, restart: Restart) -> None:
        self._restart = restart
        self._times: deque[float] = deque()

    @property
    def count(self) -> int:
        return len(self._times)

    def admits(self, now: float) -> bool:
        """Whether one more restart is allowed now; counts it if so."""
        while self._times and self._times[0] <= now - self._restart.period:
            self._times.popleft()
        if self.count >= self._restart.intensity:
            return False
        self._times.append(now)
        return True
