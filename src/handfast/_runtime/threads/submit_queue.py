"""Calls that other threads submit: a queue that the loop empties in batches.

Waking a loop costs a system call, so it is woken once for all calls that are waiting. The
invariant: every future gets an outcome, whatever happens to the scope or the loop.
"""

from __future__ import annotations

import asyncio
from asyncio import AbstractEventLoop, CancelledError, current_task
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from contextvars import Context, copy_context
from functools import partial
from types import FrameType
from typing import Any, TypeAlias

from handfast._origin import Origin, intern_origin
from handfast._runtime.arguments import require_function
from handfast._runtime.covered_failure import covered_failure
from handfast._runtime.errors import LoopStopped
from handfast._runtime.fork import register_inherited
from handfast._runtime.scope.tasks import task_creation
from handfast._runtime.scope.tasks.task_registry import TaskRegistry, name_of
from handfast._runtime.scope.tasks.task_wrapper import (
    YIELD_ONCE,
    AnyCoroutine,
    is_entered,
    task_wrapper,
)
from handfast._runtime.threads.submit_future import PENDING, SubmitFuture, loop_stopped

AsyncFunction: TypeAlias = Callable[..., Awaitable[Any]]
Call: TypeAlias = tuple[
    SubmitFuture[Any], AsyncFunction, tuple[Any, ...], Mapping[str, Any] | None, Origin, Context
]

HAS_EAGER_TASKS = hasattr(asyncio, "eager_task_factory")  # from 3.12 on

# How many calls are started in one step of the loop. More would delay its other tasks; if no task
# is eager, all of these live at the same time, and more would not fit into the cache.
_BATCH = 500 if HAS_EAGER_TASKS else 100


@task_wrapper
async def tracked_submission(
    registry: TaskRegistry,
    future: SubmitFuture[Any],
    function: AsyncFunction,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any] | None,
    origin: Origin,
    start_time: float,
) -> None:
    """Run a call as `task_wrapper.tracked` does, and resolve its future.

    An error belongs to the submitter, so the siblings are not cancelled.
    """
    live = registry.live
    try:
        if future not in live:
            await YIELD_ONCE  # see `advance_to_pause`
        if live[future] is None:  # an eager task
            live[future] = current_task(registry.loop)
        if future._state != PENDING:  # cancelled, or failed with LoopStopped: the call must not run
            return
        # The function is called in its turn, and not before: the coroutine that it returns would
        # otherwise never be awaited if this task is cancelled while it waits.
        if registry.limit is not None:
            async with registry.turns:
                future.resolve(await function(*args, **kwargs or {}))
        elif kwargs:
            future.resolve(await function(*args, **kwargs))
        else:
            future.resolve(await function(*args))
    except CancelledError as cancelled:
        _resolve_cancelled(future, cancelled)
        raise
    except Exception as error:
        future.resolve_error(error)
    except GeneratorExit:
        # The task was collected with its loop; or a task factory lost it when it was cancelled.
        if registry.is_running():
            future.resolve_cancelled()
        else:
            future.resolve_error(loop_stopped(registry))
        raise
    except BaseException as error:
        future.resolve_error(error)
        registry.on_task_failed(future, origin)
        raise
    finally:
        live.pop(future, None)  # absent if it was collected while it was created
        if registry.cancel_requested:
            registry.cancel_requested.pop(future, None)
        del future  # an error would refer to it, through its traceback and this frame
        if len(live) <= registry.floor:
            registry.on_task_ended()


def _resolve_cancelled(future: SubmitFuture[Any], cancelled: CancelledError) -> None:
    """Answer a call that was cancelled; it may have failed before."""
    if (failure := covered_failure(cancelled)) is None:
        future.resolve_cancelled()
    else:
        future.resolve_error(failure)


def _name(function: object) -> str:
    return name_of(function.func if isinstance(function, partial) else function)


def _refusal(registry: TaskRegistry, function: object) -> Exception:
    if registry.forked:
        return loop_stopped(registry)
    state = "closing" if registry.state.takes_work else registry.state.value
    return registry.scope_closed(
        f"submit({_name(function)}) refused: {registry.describe()} is {state}"
    )


class SubmitQueue:
    """The calls that were submitted and not started yet."""

    __slots__ = (
        "__weakref__",
        "_calls",
        "_last_origin",
        "_refusing",
        "_registered",
        "_registry",
        "_woken",
    )

    def __init__(self, registry: TaskRegistry) -> None:
        self._registry = registry
        self._calls: deque[Call] = deque()
        self._last_origin = registry.origin
        self._refusing = False
        # Whether a forked child knows that it must refuse calls.
        self._registered = False
        self._woken = False

    def submit(
        self,
        function: AsyncFunction,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        caller: FrameType,
    ) -> SubmitFuture[Any]:
        """Submit a call, from any thread; `caller` is the frame that reports name."""
        registry = self._registry
        loop = registry.loop
        if self._refusing or not registry.state.takes_work or not callable(function):
            require_function("submit(fn, arg)", function)
            raise _refusal(registry, function)
        woken = self._woken  # then the check below is enough
        if loop is None or not (woken or loop.is_running()):
            raise loop_stopped(registry)
        origin = self._last_origin
        if origin.lasti != caller.f_lasti or origin.code is not caller.f_code:
            origin = self._last_origin = intern_origin(caller.f_code, caller.f_lasti)
        future: SubmitFuture[Any] = SubmitFuture(registry)
        # Append first, then read the flag; `drain` clears the flag first and then reads the
        # queue. So a submitter that sees the flag set knows that a drain will follow.
        self._calls.append((future, function, args, kwargs or None, origin, copy_context()))
        if not self._woken:
            self._wake(loop)
        # `drain` refuses calls for a closed scope. It does not run if the loop has stopped, perhaps
        # since it was woken.
        if not loop.is_running():
            self.refuse_waiting()
            if woken and isinstance(future._exception, LoopStopped):
                raise future._exception
        return future

    def _wake(self, loop: AbstractEventLoop) -> None:
        if not self._registered:
            self._register()
        self._woken = True
        with suppress(RuntimeError):  # closed meanwhile: _Wake.__del__ refuses the calls
            loop.call_soon_threadsafe(_Wake(self))

    def _register(self) -> None:
        if self._registry.forked:
            self._refusing = True
            raise loop_stopped(self._registry)
        self._registered = True
        register_inherited(self)

    def on_fork(self) -> None:
        """In a forked child: no thread of it runs the loop."""
        self._refusing = True

    def drain(self) -> None:
        """Start the waiting calls, one batch in a step of the loop. On the loop."""
        self._woken = False
        calls = self._calls
        if not self._registry.state.takes_work:
            self.refuse_waiting()
        try:
            self._start_calls(min(len(calls), _BATCH))
        finally:
            if calls and not self._woken:
                assert self._registry.loop is not None
                self._woken = True
                self._registry.loop.call_soon(_Wake(self))

    # One of the three functions that create tasks, with `TaskRegistry.create_task` inlined: see
    # `task_creation` for the benchmark that guards this.
    def _start_calls(self, count: int) -> None:
        registry = self._registry
        calls = self._calls
        loop: Any = registry.loop
        plain = registry.direct and loop.get_task_factory() is None
        # The first step of a call is taken here, which saves a step of the loop: most calls end in
        # it. Not in debug mode, which would log a slow one as a step of this queue (A25).
        eager = plain and HAS_EAGER_TASKS and not loop.get_debug()
        live = registry.live
        start_time = registry.clock()
        future: SubmitFuture[Any] | None = None
        wrapper: AnyCoroutine | None = None
        last_function: AsyncFunction | None = None
        name = ""
        new_task: Any = task_creation.new_task  # `eager_start` came with 3.12
        try:
            for _ in range(count):
                try:
                    future, function, args, kwargs, origin, context = calls.popleft()
                except IndexError:  # another thread was faster
                    return
                if function is not last_function:
                    last_function, name = function, _name(function)
                wrapper = tracked_submission(
                    registry, future, function, args, kwargs, origin, start_time
                )
                # In the context of its submitter, and not of the one that has woken the loop.
                if eager:
                    live[future] = None
                    new_task(wrapper, loop=loop, name=name, context=context, eager_start=True)
                    continue
                wrapper.send(None)  # see task_wrapper.advance_to_pause
                if plain:
                    live[future] = new_task(wrapper, loop=loop, name=name, context=context)
                else:
                    context.run(registry.create_task, future, wrapper, name, None)
        except BaseException as error:
            # A task factory that failed, or a KeyboardInterrupt in the middle of this.
            if future is not None and live.get(future) is None:
                live.pop(future, None)
                future.resolve_error(error)
                if wrapper is not None and not is_entered(wrapper):
                    wrapper.close()
            raise
        finally:
            # An error of an eager step refers to this frame, as the caller of its task.
            del future, wrapper

    def stop_accepting(self) -> None:
        """Refuse new calls, before the scope itself is closed on its loop. From any thread."""
        self._refusing = True

    def refuse_waiting(self) -> None:
        """Resolve the future of each waiting call with an error. From any thread."""
        registry = self._registry
        running = registry.is_running()
        refused: AsyncFunction | None = None
        error: Exception | None = None
        while call := self._take():
            future, function, *_ = call
            # One text for many calls, but an exception for each: it gets a traceback when raised.
            if error is None or function is not refused:
                refused = function
                error = _refusal(registry, function) if running else loop_stopped(registry)
            each = type(error)(*error.args)
            each.__cause__ = error.__cause__
            future.resolve_error(each)

    def fail_all(self) -> None:
        """The loop does not run, and the scope is closed: fail the calls that were started too.
        From any thread."""
        self.refuse_waiting()
        for key in list(self._registry.live):
            if isinstance(key, SubmitFuture):
                key.fail_stopped()

    def _take(self) -> Call | None:
        try:
            return self._calls.popleft()
        except IndexError:  # another thread was faster
            return None


class _Wake:
    """A call of `drain`. If the loop is closed before it runs, the waiting calls are refused."""

    __slots__ = ("_queue",)

    def __init__(self, queue: SubmitQueue) -> None:
        self._queue: SubmitQueue | None = queue

    def __call__(self) -> None:
        queue, self._queue = self._queue, None
        assert queue is not None
        queue.drain()

    def __del__(self) -> None:
        if self._queue is not None:
            self._queue.refuse_waiting()
