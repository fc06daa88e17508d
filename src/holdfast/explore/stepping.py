"""The part of a loop that makes steps countable: one handle is one step, and between any two of
them stands an instant at which a task may be cancelled.

Nothing here knows where handles come from; the poll is the business of the two loops that build
on this, the explored one (`loop`) and the one with a real selector (`real`).
"""

from __future__ import annotations

import asyncio
import math
import sys
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Hashable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from weakref import WeakSet

from holdfast.explore.ownership import made_by_the_program
from holdfast.explore.plan import Cancel, Point, Settings
from holdfast.explore.python_bugs import lost_in_create_server, lost_in_wait_for
from holdfast.explore.roll import Roll

if TYPE_CHECKING:
    from holdfast.explore.refusals import Uncontrolled

__all__ = ["Aborted", "Deadlocked", "Decider", "LeftOver", "Livelocked", "Observer", "Stepping"]

T = TypeVar("T")
LeftOver = tuple[str, str, tuple[str, ...]]
NEVER = sys.maxsize
# The steps that a program may take to settle once its first task has ended.
_SETTLING = 10_000


class Aborted(BaseException):
    """The run ends here, in the middle. No `Exception`: the program must not catch it."""


class Deadlocked(Aborted):
    """Nothing is ready, no timer is set, and nothing from outside is on its way. If the loop's own
    thread waits, `lines` say who waits for what."""

    code = "HF431"
    lines: tuple[str, ...] = ()


class Livelocked(Aborted):
    """Step after step, beyond the bound."""


class Decider(Protocol):
    """Who answers at a choice point. `actors` names whoever each answer would let go first."""

    def choose(self, kind: str, options: int, actors: Callable[[], Sequence[Hashable]]) -> int: ...


class Observer(Protocol):
    """Who looks on: told of every step, task and queued handle, and of every departure."""

    def born(self, task: asyncio.Task[Any], number: int) -> None: ...
    def before(self, instant: int, handle: asyncio.Handle, queued: int) -> None: ...
    def after(self, instant: int, handle: asyncio.Handle, ready: deque[asyncio.Handle]) -> None: ...
    def cancelled(self, instant: int, task: asyncio.Task[Any]) -> None: ...
    def chose(self, instant: int, kind: str, options: int, value: int, label: str) -> None: ...
    def arrives(self, instant: int, channel: str, label: str) -> None: ...


class Stepping:
    """A mixin above a `BaseEventLoop`. Call `prepare` before the first task is made."""

    # What is left on this loop is the explorer's to judge: no census looks here.
    looked_after = True

    # How long what a library has going may take to end by itself once the program has ended.
    grace = 5.0
    _ready: deque[asyncio.Handle]
    _stopping: bool
    _task_factory: Any
    uncontrolled: Uncontrolled | None

    def prepare(
        self,
        settings: Settings,
        decider: Decider,
        cancels: Sequence[Cancel] = (),
        observer: Observer | None = None,
        invariant: Callable[[], object] | None = None,
        *,
        points: bool = False,
    ) -> None:
        self.settings = settings
        self.decider = decider
        self.tasks = Roll()
        # The numbers of the tasks that the program has made itself; the rest are a library's.
        self.own: set[int] = set()
        # The numbers of the tasks that the program itself offers for cancelling.
        self.victims: list[int] = []
        self.complaints: list[dict[str, Any]] = []
        self.taken: list[int] = []
        self.points: list[Point] | None = [] if points else None
        self.steps = 0
        # Counts the moments at which a cancel could come: before each handle, and each time the
        # loop has nothing to do.
        self.instant = 0
        self.accepted: list[Cancel] = []
        # Those that were cancelled, by number; held, to see in the end how they took it.
        self.victimised: dict[int, asyncio.Task[Any]] = {}
        # The cancelled tasks whose CancelledError is on its way, and those that it did not end at
        # once: a body that returns where it catches one has only chosen another way to end.
        self._struck: dict[asyncio.Task[Any], int] = {}
        self.went_on: set[int] = set()
        # Those whose CancelledError asyncio itself has lost, and whether it has lost a server.
        self.excused: set[int] = set()
        self.lost_servers = False
        # The timers without code of their own that a library has set.
        self.foreign_timers: WeakSet[asyncio.TimerHandle] = WeakSet()
        # The program has ended: what is ready still runs, and the clock may go on up to `horizon`.
        self.settling = False
        self.firing = True
        self.horizon = math.inf
        # The verdict is spoken: what is left is ended, and nothing that it says counts.
        self.burying = False
        self._cancels = deque(sorted(cancels))
        self._observer = observer
        self._invariant = invariant
        self._watched = observer is not None or invariant is not None
        self._pay_attention()

    # --- tasks -----------------------------------------------------------------------------

    def create_task(
        self, coro: Generator[Any, None, T] | Coroutine[Any, Any, T], **options: Any
    ) -> asyncio.Task[T]:
        """As the stock loop does it, and the task gets a number."""
        if self._task_factory is None:
            task = asyncio.Task(coro, loop=self, **options)  # type: ignore[arg-type]
        else:
            task = super().create_task(coro, **options)  # type: ignore[misc]
        if made_by_the_program(sys._getframe(1)):
            self.own.add(len(self.tasks))
        if self._observer is not None:
            self._observer.born(task, len(self.tasks))
        self.tasks.append(task)
        return task

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """What nobody handles is evidence. A handler of the program's own handles it."""
        if getattr(self, "_exception_handler", None) is not None:
            super().call_exception_handler(context)  # type: ignore[misc]
        elif not self.burying:
            self.complaints.append(context)

    # --- choices ---------------------------------------------------------------------------

    def choose(
        self,
        kind: str,
        options: int,
        actors: Callable[[], Sequence[Hashable]],
        label: Callable[[int], str] | None = None,
    ) -> int:
        """Ask; 0 is the plain order. `label` says in words what an answer means."""
        if self.settling:
            return 0
        value = self.decider.choose(kind, options, actors)
        self.taken.append(value)
        if self.points is not None:
            self.points.append(Point(kind, options, self.instant))
        if value and self._observer is not None:
            said = label(value) if label else str(actors()[value])
            self._observer.chose(self.instant, kind, options, value, said)
        return value

    # --- steps -----------------------------------------------------------------------------

    def _pay_attention(self) -> None:
        """Work out the next instant at which there is something to do besides running handles."""
        if self._watched or self._struck or self._asks_between():
            self._quiet_until = 0
        else:
            self._quiet_until = self._cancels[0].instant if self._cancels else NEVER

    def _asks_between(self) -> bool:
        """Whether something may come between two handles of one batch."""
        return False

    def _hand_over(self) -> None:
        """Let come what may come between two handles."""

    def _pause(self) -> None:
        """The loop has nothing to do: an instant of its own."""
        if self.instant >= self._quiet_until:
            self._between()
        self.instant += 1

    def _between(self) -> None:
        while self._cancels and self._cancels[0].instant <= self.instant:
            cancel = self._cancels.popleft()
            if cancel.instant == self.instant:
                self._cancel(cancel)
        if self._asks_between():
            self._hand_over()
        self._pay_attention()

    def _cancel(self, cancel: Cancel) -> None:
        if self._is_spared(cancel.task):
            return
        task = self.tasks.get(cancel.task)
        lost = task is not None and lost_in_create_server(task)
        if task is not None and task.cancel():
            self.lost_servers |= lost
            self.accepted.append(cancel)
            self.victimised[cancel.task] = task
            self._struck[task] = cancel.task
            if self._observer is not None:
                self._observer.cancelled(self.instant, task)

    def _is_spared(self, number: int) -> bool:
        """Whether the program names its victims, and this is none: earlier departures have moved the
        numbers."""
        return bool(self.victims) and number not in self.victims and self.settings.cancel != "main"

    def _run_batch(self) -> None:
        """Exactly the handles that are in the queue now, first in, first out."""
        if self.settings.model == "wild" and not self.settling:
            self._run_permuted()
            return
        ready = self._ready
        todo = len(ready)
        self.steps += todo
        if self.steps > self.settings.step_limit and not self.settling:
            raise Livelocked
        while todo:
            todo -= 1
            if self.instant >= self._quiet_until:
                self._between()
                self._watch_step(ready.popleft())
                continue
            self.instant += 1
            handle: Any = ready.popleft()
            if not handle._cancelled:
                handle._run()

    def _run_permuted(self) -> None:
        """Model `wild`: any handle of the queue may be the next one, whoever queued it."""
        ready = self._ready
        todo = len(ready)
        self.steps += todo
        if self.steps > self.settings.step_limit and not self.settling:
            raise Livelocked
        while todo:
            todo -= 1
            if self.instant >= self._quiet_until:
                self._between()
            if len(ready) > 1:
                at = self.choose("wild", len(ready), self._actors)
                if at:
                    handle = ready[at]
                    del ready[at]
                    self._watch_step(handle)
                    continue
            self._watch_step(ready.popleft())

    def _actors(self) -> list[Hashable]:
        return [self.actor(handle) for handle in self._ready]

    def actor(self, handle: asyncio.Handle) -> Hashable:
        """Whoever gets its turn with this handle: a task by its number, else the callback's name."""
        callback: Any = getattr(handle, "_callback", None)
        owner = getattr(callback, "__self__", None)
        if isinstance(owner, asyncio.Task):
            number = self.tasks.index(owner)
            if number >= 0:
                return number
        return getattr(callback, "__qualname__", type(callback).__name__)

    def _watch_step(self, handle: Any) -> None:
        instant = self.instant
        self.instant += 1
        if handle._cancelled:
            return
        if self._struck:
            self._see_who_swallows(handle)
        observer = self._observer
        if observer is None:
            handle._run()
        else:
            observer.before(instant, handle, len(self._ready))
            handle._run()
            observer.after(self.instant, handle, self._ready)
        if self._struck:
            self._see_whether_it_goes_on(handle)
        if self._invariant is not None and not self.settling:
            self._check_invariant(self._invariant)

    def _see_who_swallows(self, handle: Any) -> None:
        task = getattr(handle._callback, "__self__", None)
        if isinstance(task, asyncio.Task) and task in self._struck and lost_in_wait_for(task):
            self.excused.add(self._struck[task])

    def _see_whether_it_goes_on(self, handle: Any) -> None:
        task: Any = getattr(handle._callback, "__self__", None)
        number = self._struck.pop(task, None) if isinstance(task, asyncio.Task) else None
        if number is not None and not task.done():
            self.went_on.add(number)

    def _check_invariant(self, invariant: Callable[[], object]) -> None:
        try:
            held = invariant()
        except Exception as error:
            raise InvariantBroken(error) from error
        if held is False:
            raise InvariantBroken(None)

    # --- the end ---------------------------------------------------------------------------

    def settle(self, *, limit: int = _SETTLING, seconds: float = 0.0) -> None:
        """Let run what is ready, in the plain order, until nothing is; and what becomes ready
        within so many seconds."""
        self.settling = True
        self.firing = seconds > 0
        self.horizon = self.time() + seconds
        self._cancels.clear()
        self._pay_attention()
        stop_at = self.steps + limit
        while self._something_ready() and self.steps < stop_at:
            self._stopping = True  # one batch, then stop
            self.run_forever()

    def _something_ready(self) -> bool:
        return bool(self._ready)

    def time(self) -> float:
        return super().time()  # type: ignore[misc, no-any-return]

    def timers(self) -> list[asyncio.TimerHandle]:
        """The timers that are still armed."""
        raise NotImplementedError

    def left_outside(self) -> LeftOver | None:
        """What the program has left in the world: the code, a sentence, and the lines."""
        raise NotImplementedError

    def _busy(self) -> bool:
        """Whether the poll may not wait."""
        return bool(self._ready or (self._stopping and not self.settling))

    def run_forever(self) -> None:
        super().run_forever()  # type: ignore[misc]


class InvariantBroken(Aborted):
    """The user's invariant returned False or raised `error`."""

    def __init__(self, error: Exception | None) -> None:
        self.error = error
        super().__init__(str(error) if error else "the invariant returned False")
