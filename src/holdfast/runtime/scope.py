"""The scope: the owner that every task has. The public face of the runtime.

Checks what comes in, and gives work and close a shape people can use. Who is alive stands
in `roster`, the way down in `closing`, work from threads in `submission`.
"""

from __future__ import annotations

import asyncio
import sys
import warnings
from asyncio import Task
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, suppress
from functools import partial
from types import CoroutineType, TracebackType
from typing import Any, ParamSpec, TypeVar

from holdfast.origin import Origin, intern_origin
from holdfast.runtime.closing import Closing, close_orphaned, report_on
from holdfast.runtime.durations import seconds
from holdfast.runtime.errors import HoldfastError
from holdfast.runtime.failure import CleanupErrors
from holdfast.runtime.holding import hold_in, release_from
from holdfast.runtime.lifecycle import Event, State
from holdfast.runtime.patience import CUT, join_patiently, strike_again
from holdfast.runtime.report import CloseReport
from holdfast.runtime.restart import Restart, served
from holdfast.runtime.roster import AnyTask, Chore, OnFailure, Roster, name_of
from holdfast.runtime.submission import Inbox
from holdfast.runtime.threads import run_across_threads
from holdfast.runtime.tracking import tracked

__all__ = ["DEADLINE", "Scope"]

T = TypeVar("T")
P = ParamSpec("P")

# Seconds that a close may take unless told otherwise.
DEADLINE = 10.0
# Tasks born within so many seconds share one time of birth: a float less for each.
_SAME_MOMENT = 0.001

_NOTHING: tuple[object, ...] = ()

_getframe = sys._getframe
_running_loop = asyncio._get_running_loop


class Scope:
    """An owner of tasks and resources.

    As `async with` it is structured: it ends when its children have ended; a failure
    cancels the siblings and comes out as a group.

    >>> async def double(n):
    ...     return 2 * n
    >>> async def main():
    ...     async with Scope("sums") as scope:
    ...         task = scope.spawn(double(21))
    ...     return task.result()
    >>> asyncio.run(main())
    42

    As a long-lived owner it lives until it is closed, and says how that went.

    >>> async def service():
    ...     scope = Scope("bot", on_failure="report")
    ...     scope.spawn(asyncio.Event().wait(), name="idle")
    ...     return await scope.close()
    >>> print(asyncio.run(service()))
    scope 'bot' closed: 1 cancelled

    Parameters:
        name: what reports and errors call it.
        limit: how many children run at once; the others wait for their turn.
        on_failure: "cancel" (the siblings), "report" (to the loop's exception handler, unless
            somebody awaits that task), or a function that is called with the exception.
        grace: seconds in which children may finish by themselves when the scope closes.
            None: as long as it takes at the end of `async with`, no time at all for `close`.
        deadline: seconds that the whole close may take, whoever swallows a cancel. None: ten
            seconds more than its grace.
    """

    __slots__ = (
        "__weakref__",
        "_cancelling_before",
        "_closing",
        "_deadline",
        "_grace",
        "_inbox",
        "_reported",
        "_roster",
    )

    def __init__(
        self,
        name: str = "",
        *,
        limit: int | None = None,
        on_failure: OnFailure = "cancel",
        grace: float | None = None,
        deadline: float | None = None,
    ) -> None:
        if not isinstance(name, str):
            raise TypeError(f"a scope's name is a string, not {name!r}")
        if limit is not None and limit < 1:
            raise ValueError(f"limit must be at least 1, not {limit!r}")
        if on_failure not in ("cancel", "report") and not callable(on_failure):
            raise ValueError(f'on_failure is "cancel", "report" or a function, not {on_failure!r}')
        self._grace = None if grace is None else seconds("grace", grace)
        self._deadline = None if deadline is None else seconds("deadline", deadline)
        self._roster = Roster(name, Origin.here(1), on_failure, limit)
        self._inbox = Inbox(self._roster)
        self._closing: Closing | None = None
        self._cancelling_before = 0
        self._reported = False
        if _running_loop() is not None:
            self._roster.bind()

    # --- work ------------------------------------------------------------------------------

    def spawn(
        self,
        coro: Coroutine[Any, Any, T],
        *,
        name: str | None = None,
        uses: object = _NOTHING,
    ) -> Task[T]:
        """Start `coro` as a task of this scope. Call it on the scope's own loop.

        `uses` names what the task consumes (another task of this scope, a resource that it
        holds; one thing or several): the consumer is joined before that is closed.
        """
        roster = self._roster
        loop: Any = roster.loop
        if (
            roster.fast
            and uses is _NOTHING
            and type(coro) is CoroutineType
            and loop._task_factory is None
            and _running_loop() is loop
            and coro not in roster.live
        ):
            frame = _getframe(1)
            origin = roster.last_origin
            if origin.code is not frame.f_code or origin.lasti != frame.f_lasti:
                origin = roster.last_origin = intern_origin(frame.f_code, frame.f_lasti)
            birth = roster.clock()
            if birth - roster.last_birth < _SAME_MOMENT:
                birth = roster.last_birth
            else:
                roster.last_birth = birth
            wrapper = tracked(roster, coro, origin, birth)
            wrapper.send(None)  # primed: see tracking.primed
            task = roster.live[coro] = Task(wrapper, loop=loop, name=name or coro.__qualname__)
            return task
        return self._spawn_checked(coro, name, uses, Origin.here(1))

    def _spawn_checked(self, coro: Any, name: str | None, uses: object, origin: Origin) -> AnyTask:
        """The long way: every mistake is named, and the coroutine is closed."""
        roster = self._roster
        if asyncio.isfuture(coro):
            raise TypeError(
                f"spawn() takes a coroutine, not the future {coro!r}. A gather() is a future, "
                "too: spawn each child by itself"
            )
        if not asyncio.iscoroutine(coro) or not hasattr(coro, "cr_frame"):
            hint = "; call it: spawn(fn())" if callable(coro) else ""
            raise TypeError(f"spawn() takes a coroutine, not {coro!r}{hint}")
        if coro in roster.live:
            raise HoldfastError(f"{coro!r} is already a task of {roster.describe()}")
        try:
            roster.bind()
            roster.require_open(f"spawn({name or name_of(coro)})")
            consumed = self._consumed(uses)
        except BaseException:
            coro.close()
            raise
        if consumed:
            roster.uses[coro] = consumed
        task = roster.enlist(coro, name, origin)
        if consumed:
            task.add_done_callback(Chore(lambda _: roster.uses.pop(coro, None)))
        return task

    def _consumed(self, uses: object) -> tuple[object, ...]:
        things = tuple(uses) if isinstance(uses, (tuple, list, set, frozenset)) else (uses,)
        known = {id(task) for task in self._roster.live.values()}
        known.update(id(held.value) for held in self._roster.held.values())
        for thing in things:
            ended = isinstance(thing, asyncio.Future) and thing.done()
            if id(thing) not in known and not ended:
                raise ValueError(
                    f"uses={thing!r}: neither a task of {self._roster.describe()} nor a "
                    "resource that it holds"
                )
        return things

    def submit(
        self, function: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> Future[T]:
        """Run `await function(*args, **kwargs)` in this scope, from any thread.

        The answer always comes: the result, the error, or that it was cancelled or refused.
        """
        return self._inbox.submit(function, args, kwargs, _getframe(1))

    def serve(
        self,
        function: Callable[[], Awaitable[object]],
        *,
        restart: Restart | None = None,
        name: str | None = None,
    ) -> Task[None]:
        """Keep a service running: `function` is called again when it ends, as `restart` says.

        A service does not keep the scope open: once all else has ended it is cancelled.
        """
        roster = self._roster
        origin = Origin.here(1)
        coro = served(roster, function, restart or Restart(), origin)
        try:
            roster.bind()
            roster.require_open(f"serve({name or name_of(function)})")
        except BaseException:
            coro.close()
            raise
        roster.services.add(coro)
        task = roster.enlist(coro, name or name_of(function), origin, in_turn=False)
        task.add_done_callback(Chore(lambda _: roster.services.discard(coro)))
        return task

    async def hold(
        self,
        resource: AbstractAsyncContextManager[T],
        *,
        name: str | None = None,
        deadline: float = DEADLINE,
    ) -> T:
        """Enter `resource` in an owner task, which also leaves it, once, when the scope closes.

        `deadline` is for leaving it: cancels do not cut that short, only the deadline does.
        """
        self._roster.bind()
        self._roster.require_open("hold()")
        return await hold_in(
            self._roster, resource, name, seconds("deadline", deadline), Origin.here(1)
        )

    async def release(self, value: object) -> bool:
        """Leave one held resource now, given the value that `hold` has returned.

        All who ask wait for the one clean-up; an error in it is raised here. False if the
        scope does not hold it, or no longer.
        """
        self._roster.bind()
        return await release_from(self._roster, value)

    # --- the end ---------------------------------------------------------------------------

    async def close(
        self, *, grace: float | None = None, deadline: float | None = None
    ) -> CloseReport:
        """Refuse new work, give the grace, cancel once, join until empty; say how it went.

        Returns within `deadline`, whoever swallows a cancel. Cancelling the closer does not
        cut the close short: the CancelledError is raised when it is over.
        """
        grace = (self._grace or 0.0) if grace is None else seconds("grace", grace)
        deadline = self._patience(grace) if deadline is None else seconds("deadline", deadline)
        report, cancelled = await self._close(grace, deadline)
        if cancelled is not None:
            raise cancelled
        return report

    def _patience(self, grace: float) -> float:
        """How long a close with this grace may take, if nobody says."""
        return grace + DEADLINE if self._deadline is None else self._deadline

    async def _close(
        self, grace: float, deadline: float
    ) -> tuple[CloseReport, asyncio.CancelledError | None]:
        roster = self._roster
        loop = roster.bind()
        if (current := asyncio.current_task(loop)) in roster.live.values():
            raise RuntimeError(
                f"task {current.get_name() if current else ''!r} cannot wait for the end of "
                f"{roster.describe()}, which owns it; let whoever made the scope close it"
            )
        roster.move(Event.CLOSE_WITH_GRACE if grace else Event.CLOSE_NOW)
        self._inbox.refuse()
        cancelled = None
        if not roster.live:
            roster.move(Event.EMPTY)
        elif self._closing is None or self._closing.task.done():
            self._closing = Closing(roster, grace, deadline)
            cancelled = await join_patiently({self._closing.task})
        else:
            self._closing.hurry(grace, deadline)
            cancelled = await join_patiently({self._closing.task}, deadline)
        self._reported = True
        return report_on(roster), cancelled

    def close_from_thread(
        self, *, grace: float | None = None, timeout: float | None = None
    ) -> CloseReport:
        """Close from any thread but the loop's own, and wait for it, at most `timeout`.

        On a loop that is blocked or has stopped nothing can be ended: the report says who is
        still there, and the close goes on if the loop does.
        """
        grace = (self._grace or 0.0) if grace is None else seconds("grace", grace)
        timeout = self._patience(grace) if timeout is None else seconds("timeout", timeout)
        roster = self._roster
        loop = roster.loop
        if loop is not None and _running_loop() is loop:
            raise RuntimeError(
                f"close_from_thread() would block the very loop that {roster.describe()} "
                "needs to close; on this thread use: await scope.close()"
            )
        self._reported = True
        self._inbox.shut()
        if loop is None:
            roster.move(Event.EMPTY)
            return report_on(roster)
        # The loop gets a little less than the caller, so that its report arrives in time.
        report = run_across_threads(
            loop, lambda: self.close(grace=grace, deadline=timeout * CUT), timeout
        )
        if report is None and not loop.is_running():
            with suppress(RuntimeError):  # the loop is closed: nobody there can be woken
                roster.move(Event.CLOSE_NOW if roster.live else Event.EMPTY)
            self._inbox.give_up()
        self._inbox.refuse()
        return report or report_on(roster)

    async def __aenter__(self) -> Scope:
        roster = self._roster
        loop = roster.bind()
        roster.require_open("entering")
        if roster.host is not None or roster.state is not State.OPEN:
            raise RuntimeError(f"{roster.describe()} has been entered already")
        host = asyncio.current_task(loop)
        if host is None:
            raise RuntimeError(f"{roster.describe()} can be entered in a task only")
        roster.host = host
        self._cancelling_before = host.cancelling()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if isinstance(error, GeneratorExit) and _running_loop() is not self._roster.loop:
            return  # the loop has gone, and the host is being dropped: nothing can be awaited
        roster = self._roster
        host, roster.host = roster.host, None
        cancelled = error if isinstance(error, asyncio.CancelledError) else None
        grace = self._grace or 0.0
        if error is not None:
            roster.move(Event.CLOSE_NOW)
        else:
            roster.move(Event.BODY_ENDED)
            if self._grace is None and (cancelled := await self._join()):
                roster.move(Event.CLOSE_NOW)
        report, again = await self._close(grace, self._patience(grace))
        cancelled = cancelled or again
        if host is not None and host is asyncio.current_task() and roster.host_cancelled:
            cancelled = await self._take_back_interrupt(host, cancelled)
        self._raise_problems(report, error, cancelled)

    async def _join(self) -> asyncio.CancelledError | None:
        """Wait for the children to end, or for somebody to begin the close."""
        roster = self._roster
        cancelled = None
        while len(roster.live) > roster.standing and roster.state.takes_work and not cancelled:
            watcher = roster.watch(roster.standing)
            try:
                await asyncio.wait({watcher.future})
            except asyncio.CancelledError as error:
                cancelled = error
            finally:
                roster.unwatch(watcher)
        return cancelled

    async def _take_back_interrupt(
        self, host: AnyTask, cancelled: asyncio.CancelledError | None
    ) -> asyncio.CancelledError | None:
        """A failed child had the host cancelled. Account for that cancel, and for no other
        (#95289); what is left over is somebody else's and goes on."""
        if cancelled is None:
            # The body ended before the cancel reached it: take it here, or it would strike
            # at the first await after the scope.
            try:
                await asyncio.sleep(0)
            except asyncio.CancelledError as error:
                cancelled = error
        if host.uncancel() <= self._cancelling_before:
            return None
        return cancelled

    def _raise_problems(
        self,
        report: CloseReport,
        error: BaseException | None,
        cancelled: asyncio.CancelledError | None,
    ) -> None:
        roster = self._roster
        # With another `on_failure` the errors have gone where it says.
        problems: list[BaseException] = [*report.left_behind()]
        if roster.on_failure == "cancel":
            problems = report.problems()
        if isinstance(error, Exception):
            problems.insert(0, error)
        # KeyboardInterrupt and SystemExit go out as they are.
        for fatal in [error, *(ending.error for ending in report.failed)]:
            if fatal is not None and not isinstance(fatal, (Exception, asyncio.CancelledError)):
                raise fatal
        if not problems:
            if cancelled is not None:
                raise cancelled
            return
        if cancelled is not None:
            # Errors go first, but the cancel is not forgotten: nested task groups lose it on
            # 3.11 and 3.12 (#116720).
            strike_again(cancelled)
        if len(problems) == 1 and isinstance(problems[0], CleanupErrors):
            raise problems[0]
        raise BaseExceptionGroup(f"errors in {roster.describe()}", problems) from None

    def __del__(self) -> None:
        if getattr(self, "_reported", True):  # closed, or never made
            return
        roster = self._roster
        try:
            if roster.live:
                names = ", ".join(sorted({task.get_name() for task in self.tasks})[:10])
                warnings.warn(
                    f"{roster.describe()} was dropped without close; what was alive is "
                    f"cancelled: {names}",
                    ResourceWarning,
                    source=self,
                    stacklevel=2,
                )
        finally:  # the warning may be an error
            roster.orphan(partial(close_orphaned, roster, self._patience(0.0)))
            if not roster.is_running():
                self._inbox.give_up()

    # --- looking ---------------------------------------------------------------------------

    @property
    def name(self) -> str:
        return self._roster.name

    @property
    def tasks(self) -> tuple[AnyTask, ...]:
        """The live tasks, as a snapshot. From any thread."""
        return tuple(task for task in self._roster.live.copy().values() if task is not None)

    def __len__(self) -> int:
        return len(self._roster.live)

    def __bool__(self) -> bool:
        return True  # an empty scope is still a scope

    @property
    def closing(self) -> bool:
        """New work is refused, and the end has not been reached."""
        return self._roster.state in (State.DRAINING, State.CANCELLING)

    @property
    def closed(self) -> bool:
        return self._roster.state is State.CLOSED

    def __repr__(self) -> str:
        state = self._roster.state.value
        return f"<Scope {self._roster.name!r} {state}, {len(self)} tasks>"
