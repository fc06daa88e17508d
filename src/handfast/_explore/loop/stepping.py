"""Steps and instants: what makes a run of a loop countable, so that it can be repeated.

One handle is one step. Before each handle, and each time the loop has nothing to do, there is an
instant, at which a task may be cancelled. A run is fixed by its answers at the choice points and
by its cancels (number of the task, instant); nothing else may influence it.

`Stepper` is called by a loop and knows no loop: where handles come from is decided in the poll of
`explored_loop`, `real_io_loop`, or a loop of the tests.
"""

from __future__ import annotations

import asyncio
import math
import sys
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Protocol
from weakref import WeakSet

from handfast._await_stack import await_frames
from handfast._explore.loop.task_table import TaskTable, task_of
from handfast._explore.search.plan import Actor, Cancel, Invariant, Point, Settings
from handfast._explore.verdict.cpython_bugs import lost_in_create_server, lost_in_wait_for
from handfast._explore.verdict.swallower import AwaitLine, await_lines

NEVER = sys.maxsize


class Aborted(BaseException):
    """The run ends here, in the middle. Not an `Exception`: the program must not catch it."""


class Deadlocked(Aborted):
    """Nothing is ready, no timer is set, and no event from outside is coming.

    If the thread of the loop itself waits, `lines` say for what.
    """

    code = "HF431"
    lines: tuple[str, ...] = ()


class Livelocked(Aborted):
    """The run has taken more steps than the limit."""


class InvariantBroken(Aborted):
    """The user's invariant returned False or raised `error`."""

    def __init__(self, error: Exception | None) -> None:
        self.error = error
        super().__init__(type(error).__name__ if error else "the invariant returned False")


class Decider(Protocol):
    """Answers choice points. `actors` names, for each answer, the actor that would go first."""

    def choose(self, kind: str, options: int, actors: Callable[[], Sequence[Hashable]]) -> int: ...


class Observer(Protocol):
    """Is called for every task, step, cancel, departure and event from outside."""

    def task_created(self, task: asyncio.Task[Any], number: int) -> None: ...
    def before(self, instant: int, handle: asyncio.Handle, queued: int) -> None: ...
    def after(self, instant: int, handle: asyncio.Handle, ready: deque[asyncio.Handle]) -> None: ...
    def cancelled(self, instant: int, task: asyncio.Task[Any]) -> None: ...
    def chose(self, instant: int, kind: str, options: int, value: int, label: str) -> None: ...
    def arrives(self, instant: int, channel: str, label: str) -> None: ...


class Stepper:
    """The steps, instants, choices and cancels of one run, and what the verdict needs of them.

    A loop may set `hand_over`. It is called between two handles after `expect_between`, to let in
    what need not wait for a poll, and returns whether more may follow.
    """

    def __init__(
        self,
        settings: Settings,
        decider: Decider,
        cancels: Sequence[Cancel] = (),
        observer: Observer | None = None,
        invariant: Invariant = None,
        *,
        points: bool = False,
    ) -> None:
        self.settings = settings
        self.observer = observer
        self.tasks = TaskTable()
        # The numbers of the tasks that the program has created itself; the rest are a library's.
        self.own: set[int] = set()
        # The numbers of the tasks that the program has marked with `victim()`.
        self.victims: list[int] = []
        # What was passed to the loop's exception handler.
        self.complaints: list[dict[str, Any]] = []
        self.taken: list[int] = []
        self.points: list[Point] | None = [] if points else None
        # How many events each actor had; counted only if the points are recorded.
        self.counts: dict[Actor, int] = {}
        self.steps = 0
        self.instant = 0
        self.accepted: list[Cancel] = []
        # The tasks that were cancelled, by number; strong references, because the verdict depends
        # on how they ended.
        self.cancelled_tasks: dict[int, asyncio.Task[Any]] = {}
        # Where they waited then, for the line that swallows a cancel.
        self.cancelled_at: dict[int, tuple[AwaitLine, ...]] = {}
        # The tasks whose CancelledError has not been raised yet, and those that it did not end at
        # once: a body that returns where it catches one has merely ended in another way.
        self.pending_cancels: dict[asyncio.Task[Any], int] = {}
        self.survived_cancel: set[int] = set()
        # Those whose CancelledError asyncio itself has lost, and whether it has lost a server.
        self.not_blamed: set[int] = set()
        self.lost_servers = False
        # The timers that a library has set, where the callback does not show it.
        self.foreign_timers: WeakSet[asyncio.TimerHandle] = WeakSet()
        # Whether lateness could order the timers in a way that is not listed.
        self.late_timers = False
        # The program has ended: what is ready still runs, and the clock may move up to `horizon`.
        self.settling = False
        self.firing = True
        self.horizon = math.inf
        # The verdict is known: what is left is ended, and nothing that it reports counts.
        self.cleaning_up = False
        self.invariant = invariant
        self._decider = decider
        self._cancels = deque(sorted(cancels))
        self._watched = observer is not None or invariant is not None
        self.hand_over: Callable[[], bool] | None = None
        self._expects_between = False
        # Up to this instant there is nothing to do but to run handles. This is what makes a run
        # without cancels and observers nearly as fast as one on the stock loop.
        self._quiet_until = 0
        self._find_quiet_end()

    # --- tasks -----------------------------------------------------------------------------

    def add_task(self, task: asyncio.Task[Any], *, own: bool) -> None:
        """Give a new task its number."""
        number = len(self.tasks)
        if own:
            self.own.add(number)
        if self.observer is not None:
            self.observer.task_created(task, number)
        self.tasks.append(task)

    # --- choices ---------------------------------------------------------------------------

    def choose(
        self,
        kind: str,
        options: int,
        actors: Callable[[], Sequence[Hashable]],
        label: Callable[[int], str],
    ) -> int:
        """The decider's answer; 0 is the plain order. `label` describes an answer."""
        if self.settling:
            return 0
        value = self._decider.choose(kind, options, actors)
        self.taken.append(value)
        if self.points is not None:
            self.points.append(Point(kind, options, self.instant))
        if value and self.observer is not None:
            self.observer.chose(self.instant, kind, options, value, label(value))
        return value

    # --- instants --------------------------------------------------------------------------

    def expect_between(self) -> None:
        """Something may now arrive between two handles: call `hand_over` there."""
        self._expects_between = True
        self._quiet_until = 0

    def pass_instant(self) -> None:
        """An instant without a step, or the one before a step of a loop that runs its handles
        itself and then calls `end_step`."""
        if self.instant >= self._quiet_until:
            self._between()
        self.instant += 1

    def _find_quiet_end(self) -> None:
        if self._watched or self.pending_cancels or self._expects_between:
            self._quiet_until = 0
        else:
            self._quiet_until = self._cancels[0].instant if self._cancels else NEVER

    def _between(self) -> None:
        """Cancel, and let arrive, what is due at this instant."""
        while self._cancels and self._cancels[0].instant <= self.instant:
            cancel = self._cancels.popleft()
            if cancel.instant == self.instant:
                self._cancel(cancel)
        if self._expects_between and self.hand_over is not None:
            self._expects_between = self.hand_over()
        self._find_quiet_end()

    def _cancel(self, cancel: Cancel) -> None:
        if not self._may_cancel(cancel.task):
            return
        task = self.tasks.get(cancel.task)
        if task is None:
            return
        lost = lost_in_create_server(task)
        lines = await_lines(await_frames(task.get_coro()))
        if task.cancel():
            self.lost_servers |= lost
            self.cancelled_at[cancel.task] = lines
            self.accepted.append(cancel)
            self.cancelled_tasks[cancel.task] = task
            self.pending_cancels[task] = cancel.task
            if self.observer is not None:
                self.observer.cancelled(self.instant, task)

    def _may_cancel(self, number: int) -> bool:
        # A program that marks its victims allows no other. A number may belong to another task
        # than it did when the plan was made, because earlier departures change the numbers.
        return not self.victims or number in self.victims or self.settings.cancel == "main"

    # --- steps -----------------------------------------------------------------------------

    def count_steps(self, count: int) -> None:
        """Add to the number of steps; Livelocked if there are too many."""
        self.steps += count
        if self.steps > self.settings.step_limit and not self.settling:
            raise Livelocked

    def run_batch(self, ready: deque[asyncio.Handle]) -> None:
        """Run exactly the handles that are in the queue now, first in, first out."""
        todo = len(ready)
        self.count_steps(todo)
        while todo:
            todo -= 1
            if self.instant >= self._quiet_until:
                self._between()
                self._watch_step(ready)
                continue
            self.instant += 1
            handle: Any = ready.popleft()
            if not handle._cancelled:
                handle._run()

    def _watch_step(self, ready: deque[asyncio.Handle]) -> None:
        handle: Any = ready.popleft()
        instant = self.instant
        self.instant += 1
        if handle._cancelled:
            return
        if self.pending_cancels:
            self._note_lost_cancel(handle)
        observer = self.observer
        if observer is None:
            handle._run()
        else:
            observer.before(instant, handle, len(ready))
            handle._run()
            observer.after(self.instant, handle, ready)
        self.end_step(handle)

    def end_step(self, handle: asyncio.Handle) -> None:
        """After a step: has its task survived a cancel, and does the invariant hold?"""
        if self.pending_cancels:
            self._note_survivor(handle)
        if self.invariant is not None and not self.settling:
            self._check_invariant(self.invariant)

    def _note_lost_cancel(self, handle: Any) -> None:
        task = task_of(handle)
        if task in self.pending_cancels and lost_in_wait_for(task):
            self.not_blamed.add(self.pending_cancels[task])

    def _note_survivor(self, handle: Any) -> None:
        task = task_of(handle)
        if task in self.pending_cancels:
            number = self.pending_cancels.pop(task)
            if not task.done():
                self.survived_cancel.add(number)

    def _check_invariant(self, invariant: Callable[[], object]) -> None:
        try:
            holds = invariant()
        except Exception as error:
            raise InvariantBroken(error) from error
        if holds is False:
            raise InvariantBroken(None)

    # --- the end ---------------------------------------------------------------------------

    def begin_shutdown(self) -> None:
        """A runner shuts its loop down: timers still fire, but no more choices and cancels."""
        self.settling = True
        self._cancels.clear()
        self._find_quiet_end()

    def settle(self, *, firing: bool, horizon: float) -> None:
        """The program has ended: no more choices and cancels."""
        self.begin_shutdown()
        self.firing = firing
        self.horizon = horizon
