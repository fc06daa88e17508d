"""The coroutine around the coroutine of every task: the hot path.

A task is tracked by one coroutine around the user's own. A done callback would cost a step of
the loop for each task. The invariant: a task is in its registry from its creation to its very
end, and is removed by identity.

A task that is cancelled before its first step never enters its coroutine, so a `finally` in
there never runs. Such a wrapper is entered before the cancel arrives: see `enter`.
"""

from __future__ import annotations

import gc
from collections.abc import Awaitable, Callable, Coroutine, Generator
from types import CodeType
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from handfast._origin import Origin
from handfast._runtime.arguments import close_unstarted

if TYPE_CHECKING:
    from handfast._runtime.scope.tasks.task_registry import TaskRegistry


AnyCoroutine: TypeAlias = Coroutine[Any, Any, Any]


class _YieldOnce(tuple[None]):
    """Awaiting it yields once. A tuple's own iterator does that without a Python frame."""

    __slots__ = ()
    __await__: Any = tuple.__iter__


YIELD_ONCE: Awaitable[None] = _YieldOnce((None,))


def advance_to_pause(coro: AnyCoroutine) -> AnyCoroutine:
    """Run a coroutine up to its `await YIELD_ONCE`, which is inside its try block.

    A cancel before the first step of its task is then raised at the pause.
    """
    coro.send(None)
    return coro


# True while `enter` runs. A wrapper that another thread starts meanwhile makes the pause too: its
# task needs one step more.
_entering = False


def enter(wrapper: AnyCoroutine) -> None:
    """Run the wrapper of a task that has not started up to a pause inside its try block.

    A cancel is then raised at the pause. Doing so for every task, and not only for those that are
    cancelled before their first step, would cost a tenth of a spawn.
    """
    global _entering
    if not is_entered(wrapper):
        # A RecursionError in `send` would end the wrapper before its try block.
        require_stack(_FRAMES)
        _entering = True
        try:
            wrapper.send(None)
        finally:
            _entering = False


# Frames that the wrapper of a task needs to come to its pause, and a few more.
_FRAMES = 6
# Frames of a task factory that starts its task at once. A wrapper that had no stack for that step
# would end without its `finally`.
FACTORY_FRAMES = 22


def require_stack(frames: int) -> None:
    """Raise RecursionError if the stack has no space for so many frames."""
    if frames:
        require_stack(frames - 1)


def is_entered(wrapper: Any) -> bool:
    """Whether a wrapper that has not ended was entered. `cr_frame` would create a frame object."""
    return bool(wrapper.cr_suspended or wrapper.cr_running)


class ShownCoroutine(Coroutine[Any, Any, Any]):
    """A wrapper that was entered, and shows the attributes of the coroutine inside it.

    For task factories: the task that they create shows the user's coroutine in its repr and its
    stack, and a coroutine of their own can await this one.
    """

    __slots__ = ("shown", "wrapper")

    def __init__(self, wrapper: AnyCoroutine, shown: AnyCoroutine | None = None) -> None:
        self.wrapper = wrapper
        self.shown = wrapper if shown is None else shown

    def send(self, value: Any) -> Any:
        return self.wrapper.send(value)

    def throw(self, *error: Any) -> Any:
        return self.wrapper.throw(*error)

    def close(self) -> None:
        self.wrapper.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        # `await self.wrapper` would refuse a coroutine that was entered.
        return self.wrapper.__await__()

    def __getattr__(self, name: str) -> Any:  # cr_frame, cr_code, __qualname__
        return getattr(self.shown, name)


# The code of the wrappers, by identity: the hash of a code object reads all of its bytecode.
_WRAPPERS: dict[int, CodeType] = {}
Function = TypeVar("Function", bound=Callable[..., Any])


def task_wrapper(function: Function) -> Function:
    """Mark a coroutine function as the wrapper of a task; its local `registry` has the task."""
    code: CodeType = function.__code__
    _WRAPPERS[id(code)] = code
    return function


def is_wrapper(code: CodeType) -> bool:
    return id(code) in _WRAPPERS


# The size of this frame is the memory that tracking costs per task: four arguments, no locals
# (`python -m benchmarks.compare memory`). `origin_and_start_time` reads the last two arguments,
# which must stay next to each other and in this order.
@task_wrapper
async def tracked(
    registry: TaskRegistry, coro: AnyCoroutine, origin: Origin, start_time: float
) -> Any:
    """Run `coro` as a task of `registry`, which has it under the key `coro`."""
    try:
        if _entering:
            await YIELD_ONCE
        registry.start_time = None  # what is spawned from now on is younger
        if registry.has_first_step:
            return await registry.after_first_step(coro, coro)
        return await coro
    except BaseException:
        close_unstarted(coro)  # the cancel came before the first step
        registry.on_task_failed(coro, origin)
        raise
    finally:
        del registry.live[coro]
        if len(registry.live) <= registry.floor:
            registry.on_task_ended()


def origin_and_start_time(wrapper: object) -> tuple[Origin | None, float | None]:
    """Where and when a task was created, read out of the frame of its wrapper.

    They are stored nowhere else: a table with both would cost every task 100 bytes or more that
    only a report needs (`python -m benchmarks.compare memory` measures the bytes per task).
    `cr_frame` would create a frame object for each task, and keep it.
    """
    origin: Origin | None = None
    start_time: float | None = None
    previous: object = None
    # The referents come in the order of the arguments. Only the float directly after the Origin
    # counts: a wrapper may have other floats, and a task without a wrapper has the program's.
    for value in gc.get_referents(wrapper):
        if type(value) is Origin:
            origin, start_time = value, None
        elif type(value) is float and type(previous) is Origin:
            start_time = value
        previous = value
    return origin, start_time
