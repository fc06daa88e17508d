"""Where a suspended task stands now: the whole chain of awaits, as text.

`Task.get_stack` stops at the outermost coroutine. This follows each await inwards to the
line of the program that really waits, and leaves out asyncio's and the runtime's own frames.
"""

from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import Iterator
from types import AsyncGeneratorType, CoroutineType, FrameType, GeneratorType
from typing import Any

from holdfast.origin import Origin

__all__ = ["await_chain", "await_frames", "awaited"]

_HERE = os.path.dirname(__file__)
_NOT_THEIRS = {_HERE, os.path.dirname(asyncio.__file__)}
_RUN = (AsyncGeneratorType, CoroutineType, GeneratorType)
_OPAQUE = {
    "async_generator_asend",
    "async_generator_athrow",
    "anext_awaitable",
    "coroutine_wrapper",
}
_LINKS = (("cr_frame", "cr_await"), ("gi_frame", "gi_yieldfrom"), ("ag_frame", "ag_await"))


def await_chain(task: asyncio.Task[Any]) -> tuple[str, ...]:
    """One line for each frame, the innermost last."""
    frames = list(await_frames(task.get_coro()))
    theirs = [f for f in frames if os.path.dirname(f.f_code.co_filename) not in _NOT_THEIRS]
    # A task that is in nobody else's code stands there, and not nowhere.
    return tuple(str(Origin(frame.f_code, frame.f_lasti)) for frame in theirs or frames)


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
                awaitable = _stand_in(frame) or getattr(awaitable, link, None)
                break
        else:
            awaitable = _wrapped(awaitable)


def _stand_in(frame: FrameType) -> Any:
    """A keeper only stands for its owner (see `keeping`), so look where that one stands."""
    if os.path.dirname(frame.f_code.co_filename) == _HERE:
        owner = frame.f_locals.get("stands_for")
        if isinstance(owner, asyncio.Task):
            return owner.get_coro()
    return None


def _wrapped(awaitable: Any) -> Any:
    """The steps of an async generator (`__anext__`, `athrow`, `aclose`) and what `__await__`
    gives for a coroutine are objects that do not tell what they run; the collector knows."""
    if type(awaitable).__name__ not in _OPAQUE:
        return None
    # With a default, `anext` has put one such step around the other.
    things = gc.get_referents(awaitable)
    return next((t for t in things if type(t).__name__ in _OPAQUE or isinstance(t, _RUN)), None)
