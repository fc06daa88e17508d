"""`Scope`: the owner of tasks and resources. The public class of the runtime.

It checks arguments. The live tasks are in `task_registry`, closing is in `ending` and `shutdown`,
work from other threads in `threads/submit_queue`.
"""

from __future__ import annotations

import asyncio
import sys
from asyncio import Task
from collections.abc import AsyncIterable, Awaitable, Callable, Coroutine, Iterable
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from contextvars import Context
from functools import partial
from threading import get_ident
from types import CoroutineType, TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, TypeVarTuple, overload

from handfast._asyncio_internals import RUNNING_LOOP_IS_SLOW, coroutine_function, running_loop
from handfast._origin import Origin, intern_origin
from handfast._runtime import fork
from handfast._runtime.arguments import (
    CLOSE_TIMEOUT,
    require_coroutine,
    seconds,
    whole_number,
    wrong_type,
)
from handfast._runtime.cancel_reason import CLOSE, CancelReason, reason_here
from handfast._runtime.errors import HandfastError
from handfast._runtime.hosting.held_resource import hold_in, release_from
from handfast._runtime.hosting.stream import Stream
from handfast._runtime.map import map_in
from handfast._runtime.readiness import start_in
from handfast._runtime.report import CloseReport
from handfast._runtime.restart import Restart, supervised
from handfast._runtime.scope.ending import Ending
from handfast._runtime.scope.failure_reports import OnFailure, require_on_failure
from handfast._runtime.scope.states import State
from handfast._runtime.scope.tasks import task_creation
from handfast._runtime.scope.tasks.task_registry import AnyTask, TaskRegistry, name_of
from handfast._runtime.scope.tasks.task_wrapper import ShownCoroutine, tracked
from handfast._runtime.threads.submit_queue import SubmitQueue

T = TypeVar("T")
R = TypeVar("R")
P = ParamSpec("P")
Ts = TypeVarTuple("Ts")

_getframe = sys._getframe
_running_loop = running_loop


class Scope:
    """An owner of tasks and resources.

    With `async with` it is structured: it ends when its children have ended; a failure
    cancels the siblings and is raised in a group.

    >>> import asyncio
    >>> async def double(n):
    ...     return 2 * n
    >>> async def main():
    ...     async with Scope("sums") as scope:
    ...         task = scope.spawn(double(21))
    ...     return task.result()
    >>> asyncio.run(main())
    42

    As a long-lived owner it is open until `close`, which returns a report.

    >>> async def service():
    ...     scope = Scope("bot")
    ...     scope.spawn(asyncio.Event().wait(), name="idle")
    ...     return await scope.close()
    >>> print(asyncio.run(service()))
    scope 'bot' closed: 1 cancelled

    Parameters:
        name: its name in reports and errors.
        limit: how many children run at once; the others wait for their turn.
        on_failure: "cancel" (the siblings), "report" (to the loop's exception handler, unless
            another task awaits the failed one), or a function that is called with the `TaskEnd`.
            None: "cancel" if it is entered with `async with`, "report" if it is kept.
        grace: seconds in which children may finish by themselves when the scope closes.
            None: unlimited at the end of `async with`, zero for `close`.
        timeout: seconds that the whole close may take, even if a task swallows its cancel.
            None: ten seconds more than its grace.
    """

    __slots__ = (
        "__weakref__",
        "_cancel_if_entered",
        "_ending",
        "_registry",
        "_submit_queue",
    )

    def __init__(
        self,
        name: str = "",
        *,
        limit: int | None = None,
        on_failure: OnFailure | None = None,
        grace: float | None = None,
        timeout: float | None = None,
    ) -> None:
        if not isinstance(name, str):
            raise TypeError(f"name must be a string, not {name!r}")
        if limit is not None:
            whole_number("limit", limit, at_least=1)
        require_on_failure(on_failure)
        grace = None if grace is None else seconds("grace", grace)
        timeout = None if timeout is None else seconds("timeout", timeout)
        self._cancel_if_entered = on_failure is None
        self._registry = TaskRegistry(name, Origin.here(1), on_failure or "report", limit)
        self._submit_queue = SubmitQueue(self._registry)
        self._ending = Ending(self._registry, self._submit_queue, grace, timeout)
        if _running_loop() is not None:
            self._registry.bind()

    # --- work ------------------------------------------------------------------------------

    def spawn(
        self,
        coro: Coroutine[Any, Any, T],
        *,
        name: str | None = None,
        context: Context | None = None,
    ) -> Task[T]:
        """Start `coro` as a task of this scope. Call it on the scope's own loop.

        The task ends before what the scope holds. `context` is as in `loop.create_task`.
        """
        # One of the three functions that create tasks, with `TaskRegistry.start` inlined: see
        # `task_creation` for the benchmark that guards this.
        registry = self._registry
        loop: Any = registry.loop
        if (
            registry.fast
            and context is None
            and type(coro) is CoroutineType
            and (loop._task_factory if registry.stock else loop.get_task_factory()) is None
            and (
                loop._thread_id == get_ident() and registry.process is fork.this_process
                if RUNNING_LOOP_IS_SLOW and registry.stock
                else _running_loop() is loop
            )
            and not coro.cr_suspended
            and coro not in registry.live
        ):
            wrapper = None
            try:
                frame = _getframe(1)
                origin = registry.last_origin
                if origin.code is not frame.f_code or origin.lasti != frame.f_lasti:
                    origin = registry.last_origin = intern_origin(frame.f_code, frame.f_lasti)
                start_time = registry.start_time
                if start_time is None:
                    start_time = registry.start_time = registry.clock()
                wrapper = tracked(registry, coro, origin, start_time)
                task = registry.live[coro] = task_creation.new_task(
                    wrapper, loop=loop, name=name or coro.__qualname__
                )
            except BaseException:  # RecursionError, MemoryError
                coro.close()
                if wrapper is not None:
                    wrapper.close()
                raise
            task.shown = coro
            return task
        return self._spawn_checked(coro, name, context, Origin.here(1))

    def _spawn_checked(
        self, coro: Any, name: str | None, context: Context | None, origin: Origin
    ) -> AnyTask:
        """The long path of `spawn`: names each mistake, and closes the coroutine."""
        registry = self._registry
        if asyncio.isfuture(coro):
            hint = "a gather() is a future: spawn each child by itself"
            raise wrong_type("spawn", "a coroutine", coro, hint)
        require_coroutine("spawn", coro)
        if type(coro) is not CoroutineType:
            # Any other class may have an __eq__: the registry tells coroutines by identity.
            coro = ShownCoroutine(coro)
        if coro in registry.live:
            raise HandfastError(f"{coro!r} is already a task of {registry.describe()}")
        try:
            registry.bind()
            registry.require_open(f"spawn({name or name_of(coro)})")
        except BaseException:
            coro.close()
            raise
        return registry.start(coro, name, origin, context)

    def submit(
        self, function: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> Future[T]:
        """Run `await function(*args, **kwargs)` in this scope, from any thread.

        The future always gets an outcome: a result, an error, or that it was cancelled or refused.
        """
        return self._submit_queue.submit(function, args, kwargs, _getframe(1))

    def supervise(
        self,
        function: Callable[[*Ts], Awaitable[object]],
        /,
        *args: *Ts,
        restart: Restart | None = None,
        every: float | None = None,
        name: str | None = None,
    ) -> Task[None]:
        """Keep a service running: `function(*args)` is called again when it ends, as `restart` says.

        Each run has a task and a context of its own. With `every` it starts every so many seconds,
        counted from the first start; a time at which it still runs is skipped. A service does not
        keep the scope open: it is cancelled once all other tasks have ended.
        """
        registry = self._registry
        origin = Origin.here(1)
        if not callable(function):
            raise wrong_type("supervise", "an async function, which it calls", function)
        coro = supervised(registry, partial(function, *args), restart or Restart(), every, origin)
        try:
            registry.bind()
            registry.require_open(f"supervise({name or name_of(function)})")
        except BaseException:
            coro.close()
            raise
        return registry.start_service(coro, name or name_of(function), origin)

    @coroutine_function
    def start(
        self,
        function: Callable[Concatenate[Callable[[T], None], P], Coroutine[Any, Any, object]],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Coroutine[Any, Any, T]:
        """Start `function(ready, *args, **kwargs)` as a task; wait until it calls `ready(value)`.

        Returns that value; the task runs on. If it fails or ends before, that is raised here. If
        the caller is cancelled before, the task is cancelled and joined.
        """
        return start_in(self._registry, function, args, kwargs, Origin.here(1))

    def map(
        self,
        function: Callable[[T], Awaitable[R]],
        items: Iterable[T] | AsyncIterable[T],
        /,
        *,
        limit: int,
        ordered: bool = True,
    ) -> Stream[R]:
        """Call `await function(item)` for each item, `limit` at once; iterate over the results.

        They come in the order of the items, or as they are completed. An item is taken only when
        there is a place for it: at most `limit` calls run, and twice as many items are between
        `items` and the consumer. The first error, of a call or of `items`, is raised to the
        consumer when all other calls have ended.

        Use it with `async with` if you may leave it early: what is under way is cancelled and
        joined at the end of the block, and `items` is closed if it is a generator. Without, the scope
        does that when it ends.

        >>> import asyncio
        >>> async def double(n):
        ...     return 2 * n
        >>> async def main():
        ...     async with Scope() as scope:
        ...         return [n async for n in scope.map(double, range(4), limit=2)]
        >>> asyncio.run(main())
        [0, 2, 4, 6]
        """
        calls = Scope("map", on_failure="report")
        return map_in(self._registry, calls, function, items, limit, ordered, Origin.here(1))

    # Two overloads: aiohttp's ClientSession has both protocols, and only the async one works.
    @overload
    async def hold(
        self,
        resource: AbstractAsyncContextManager[T, Any],
        /,
        *,
        name: str | None = None,
        timeout: float = CLOSE_TIMEOUT,
    ) -> T: ...

    @overload
    async def hold(
        self,
        resource: AbstractContextManager[T, Any],
        /,
        *,
        name: str | None = None,
        timeout: float = CLOSE_TIMEOUT,
    ) -> T: ...

    async def hold(
        self,
        resource: Any,
        /,
        *,
        name: str | None = None,
        timeout: float = CLOSE_TIMEOUT,
    ) -> Any:
        """Enter `resource` in an owner task, which also leaves it, once, when the scope closes.

        It is an async context manager or a plain one. `timeout` bounds its exit: cancels do not
        interrupt that, only the time-out does.
        """
        self._registry.bind()
        self._registry.require_open("hold()")
        return await hold_in(
            self._registry,
            resource,
            name,
            seconds("timeout", timeout),
            Origin.here(1),
            resource._ending if isinstance(resource, Scope) else None,
        )

    async def release(self, resource: object, /) -> bool:
        """Leave one held resource now: the object that was given to `hold`.

        The value of `hold` is accepted too, if one resource only has it and it is not None. All
        callers wait for the same clean-up; an error in it is raised here. False if the scope
        does not hold it, or no longer.
        """
        self._registry.bind()
        return await release_from(self._registry, resource)

    # --- the end ---------------------------------------------------------------------------

    def cancel(self) -> None:
        """Refuse new work and cancel all tasks now, without waiting for their end.

        The end of the block or `close` joins them, and leaves what is held. Inside of `async with`
        the body is cancelled too, and the block ends without an error.
        """
        self._registry.bind()
        self._registry.cancel_all(reason_here("cancel()"))
        self._submit_queue.refuse_waiting()

    async def close(
        self, *, grace: float | None = None, timeout: float | None = None
    ) -> CloseReport:
        """Refuse new work, wait for the grace, cancel once, join until empty; return a report.

        Returns within `timeout`, even if a task swallows its cancel. Cancelling the closer does
        not interrupt the close: the CancelledError is raised when it is over.
        """
        return await self._close(*self._close_times(grace, timeout), reason_here(CLOSE))

    aclose = close

    async def _close(self, grace: float, timeout: float, reason: CancelReason) -> CloseReport:
        return await self._ending.close(grace, timeout, reason)

    def _close_times(self, grace: float | None, timeout: float | None) -> tuple[float, float]:
        """The grace and the time-out of a close: those of the call, or else of the scope."""
        ending = self._ending
        grace = (ending.grace or 0.0) if grace is None else seconds("grace", grace)
        timeout = ending.default_timeout(grace) if timeout is None else seconds("timeout", timeout)
        return grace, timeout

    def close_from_thread(
        self, *, grace: float | None = None, timeout: float | None = None
    ) -> CloseReport:
        """Close from any thread but the loop's own, and wait for it, at most `timeout`.

        If the loop is blocked or has stopped, nothing can be ended: the report lists what still
        runs, and the close continues if the loop does.
        """
        times = self._close_times(grace, timeout)
        return self._ending.close_from_thread(*times, reason_here(CLOSE))

    async def __aenter__(self) -> Self:
        self._ending.enter()
        if self._cancel_if_entered:
            self._registry.on_failure = "cancel"
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        return await self._ending.leave(error)

    def __del__(self) -> None:
        if hasattr(self, "_ending"):  # or else __init__ has failed
            self._ending.on_dropped()

    # --- state -----------------------------------------------------------------------------

    @property
    def name(self) -> str:
        return self._registry.name

    @property
    def tasks(self) -> tuple[AnyTask, ...]:
        """The live tasks, as a snapshot. From any thread."""
        return self._registry.tasks()

    def __len__(self) -> int:
        return len(self._registry.live)

    def __bool__(self) -> bool:
        return True  # an empty scope is still a scope

    @property
    def closing(self) -> bool:
        """Whether new work is refused and the scope is not closed yet."""
        return self._registry.state in (State.DRAINING, State.CANCELLING)

    @property
    def closed(self) -> bool:
        return self._registry.state is State.CLOSED

    def __repr__(self) -> str:
        state = self._registry.state.value
        return f"<Scope {self._registry.name!r} {state}, {len(self)} tasks>"
