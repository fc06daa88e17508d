"""`Scope.start`: start a task and wait until it says that it is ready, as a server that listens.

Until then its error is for the caller of `start`; from then on it is a child like any other.
"""

from __future__ import annotations

import asyncio
from asyncio import CancelledError
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

from handfast._asyncio_internals import running_loop
from handfast._origin import Origin
from handfast._runtime.arguments import (
    CLOSE_TIMEOUT,
    close_unstarted,
    require_coroutine,
    require_function,
)
from handfast._runtime.cancel_reason import CancelReason
from handfast._runtime.errors import HandfastError, WrongLoop
from handfast._runtime.scope.tasks.task_registry import TaskRegistry, name_of
from handfast._runtime.uncancellable import (
    raise_outcome,
    survived_cancels,
    wait_uncancelled,
)

R = TypeVar("R")


class Ready(Generic[R]):
    """What the function gets as its first argument: `ready(value)` ends the wait of `start`."""

    __slots__ = ("_name", "_reached", "error", "waiting")

    def __init__(self, name: str) -> None:
        self._name = name
        self._reached: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        # Whether a caller of `start` waits, and will raise what the function raises.
        self.waiting = True
        self.error: Exception | None = None

    def __call__(self, value: Any = None, /) -> None:
        if running_loop() is not self._reached.get_loop():
            raise WrongLoop(f"ready() of {self._name!r} was called outside of its event loop")
        if self._reached.done():
            raise HandfastError(f"ready() of {self._name!r} was called twice")
        self._reached.set_result(value)
        self.waiting = False

    def __repr__(self) -> str:
        return f"<ready() of {self._name!r}>"

    @property
    def called(self) -> bool:
        return self._reached.done()

    def value(self) -> R:
        return self._reached.result()

    async def run(self, call: Coroutine[Any, Any, object]) -> None:
        """The coroutine of the task."""
        try:
            await call
        except Exception as error:
            if not self.waiting:
                raise
            self.error = error

    async def wait(self, ended: asyncio.Future[None]) -> None:
        """Until the function is ready or has ended."""
        either: set[asyncio.Future[Any]] = {ended, self._reached}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)


async def start_in(
    registry: TaskRegistry,
    function: Callable[..., Coroutine[Any, Any, object]],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    origin: Origin,
) -> Any:
    """Start `function(ready, *args, **kwargs)` as a task, and return the value of `ready`."""
    require_function("start(fn, arg)", function)
    name = name_of(function)
    registry.bind()
    registry.require_open(f"start({name})")
    ready: Ready[Any] = Ready(name)
    call = function(ready, *args, **kwargs)
    if not isinstance(call, Coroutine):
        raise TypeError(f"start() takes an async function, but its call gave {call!r}")
    require_coroutine("start", call)
    survived = survived_cancels()
    cancelled: CancelledError | None = None
    coro: Any = ready.run(call)
    coro.__qualname__ = name
    task = registry.start(coro, name, origin, shown=call)
    # Not the task itself: a task that `asyncio.wait` waits for counts as one whose error is read.
    ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def on_ended(_: object) -> None:
        close_unstarted(call)  # it was not entered if it was cancelled before its first step
        ended.set_result(None)

    task.add_done_callback(on_ended)
    try:
        await ready.wait(ended)
    except CancelledError as error:
        cancelled = error
        if not task.done():
            registry.request_cancel(coro, task, CancelReason("a cancelled start()", origin))
            await wait_uncancelled({ended}, CLOSE_TIMEOUT)
    finally:
        ready.waiting = False
    try:
        raise_outcome(ready.error, cancelled, survived=survived)
        return _value(registry, ready, name, task)
    finally:
        ready.error = None
        del cancelled  # it refers to this frame


def _value(registry: TaskRegistry, ready: Ready[R], name: str, task: asyncio.Task[None]) -> R:
    if ready.called:
        return ready.value()
    if not task.cancelled():
        raise HandfastError(f"{name!r} has ended without a call of ready()")
    if not registry.state.takes_work:
        raise registry.scope_closed(f"{registry.describe()} closed while {name!r} was starting")
    raise HandfastError(f"starting {name!r} was cancelled by other code")
