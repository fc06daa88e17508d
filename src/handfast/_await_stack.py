"""The await stack of a suspended task: the whole chain of awaits, as text.

`Task.get_stack` stops at the outermost coroutine. This follows each await inwards to the line of
the program that waits, and omits the frames of asyncio and of the runtime.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Iterator
from types import AsyncGeneratorType, CodeType, CoroutineType, FrameType, GeneratorType
from typing import Any, TypeVar

from handfast._code_owner import is_machinery
from handfast._origin import Origin

_RUN = (AsyncGeneratorType, CoroutineType, GeneratorType)
_OPAQUE = {
    "async_generator_asend",
    "async_generator_athrow",
    "anext_awaitable",
    "coroutine_wrapper",
    "HookedSteps",
}
# The code of the functions marked with `stand_in`, by identity: the hash of a code object reads
# all of its bytecode.
_STAND_INS: dict[int, CodeType] = {}
_LINKS = (("cr_frame", "cr_await"), ("gi_frame", "gi_yieldfrom"), ("ag_frame", "ag_await"))


Function = TypeVar("Function", bound=Callable[..., Any])


def stand_in(function: Function) -> Function:
    """Mark a coroutine function as a stand-in for the task that is its first argument.

    A task that runs it is shown waiting where that other task waits.
    """
    code: CodeType = function.__code__
    _STAND_INS[id(code)] = code
    return function


def await_chain(task: asyncio.Task[Any]) -> tuple[str, ...]:
    """One line for each frame, the innermost last."""
    frames = list(await_frames(task.get_coro()))
    shown = [f for f in frames if not is_machinery(f.f_code.co_filename, "runtime")]
    # A task that runs only code of the runtime is shown with it, rather than with no line.
    return tuple(str(Origin(frame.f_code, frame.f_lasti)) for frame in shown or frames)


def await_frames(awaitable: Any) -> Iterator[FrameType]:
    """The frames of a suspended awaitable, outermost first."""
    return (frame for _, frame in _walk(awaitable))


def awaited(awaitable: Any) -> Iterator[Any]:
    """The coroutines and generators that a suspended awaitable runs, outermost first."""
    return (running for running, _ in _walk(awaitable))


def _walk(awaitable: Any) -> Iterator[tuple[Any, FrameType]]:
    while awaitable is not None:
        for kind, link in _LINKS:
            frame = getattr(awaitable, kind, None)
            if frame is not None:
                yield awaitable, frame
                awaitable = _replaced(frame) or getattr(awaitable, link, None)
                break
        else:
            awaitable = _wrapped(awaitable)


def _replaced(frame: FrameType) -> Any:
    """The coroutine of the task that this frame is a stand-in for, if it is one."""
    if id(frame.f_code) in _STAND_INS:
        task = frame.f_locals.get(frame.f_code.co_varnames[0])
        if isinstance(task, asyncio.Task):
            return task.get_coro()
    return None


def _wrapped(awaitable: Any) -> Any:
    """What an opaque awaitable runs: a step of an async generator (`__anext__`, `athrow`,
    `aclose`), what `__await__` of a coroutine returns, or a coroutine inside `HookedSteps`. Only
    the collector knows it."""
    if type(awaitable).__name__ not in _OPAQUE:
        return None
    # `anext` with a default wraps one such step into another.
    referents = gc.get_referents(awaitable)
    return next((r for r in referents if type(r).__name__ in _OPAQUE or isinstance(r, _RUN)), None)
