"""The coroutine that stands around every task: the hot path.

A task is tracked by one coroutine around the user's own: no done callback (a turn of the
loop each), no task subclass. The promise: a task is on its roster from birth until its very
end, whichever way it ends, and is dropped by identity, never by a guess.
"""

from __future__ import annotations

import gc
from collections.abc import Awaitable, Coroutine, Generator
from types import coroutine
from typing import TYPE_CHECKING, Any, TypeAlias

from holdfast.origin import Origin

if TYPE_CHECKING:
    from holdfast.runtime.roster import Roster

__all__ = [
    "PAUSE",
    "AnyCoroutine",
    "certificate",
    "primed",
    "resumed",
    "tracked",
    "tracked_in_turn",
]

AnyCoroutine: TypeAlias = Coroutine[Any, Any, Any]


class _Pause(tuple[None]):
    """Awaiting it yields once. A tuple's own iterator does that without a Python frame."""

    __slots__ = ()
    __await__: Any = tuple.__iter__


PAUSE: Awaitable[None] = _Pause((None,))


def primed(wrapper: AnyCoroutine) -> AnyCoroutine:
    """Take a tracking coroutine to its pause, which lies inside its try block.

    A task that is cancelled before its first step never enters its coroutine, so a `finally`
    in there never runs. A primed coroutine has been entered: the cancel arrives at the pause.
    """
    wrapper.send(None)
    return wrapper


@coroutine
def _resume(wrapper: AnyCoroutine) -> Generator[Any, Any, Any]:
    return (yield from wrapper)


async def resumed(wrapper: AnyCoroutine) -> Any:
    """A primed coroutine in a form that can be awaited: `await` refuses one that was entered.

    A task factory that puts a coroutine of its own around ours will await it.
    """
    return await _resume(wrapper)


# The size of this frame is the memory that a tracked task costs: four arguments, no locals.
async def tracked(roster: Roster, coro: AnyCoroutine, origin: Origin, birth: float) -> Any:
    """Run `coro` on the roster."""
    try:
        await PAUSE
        if roster.adopting:
            roster.adopt(coro)
        return await coro
    except BaseException:
        coro.close()  # it has not started if the cancel came before the first step
        roster.fell(coro, origin)
        raise
    finally:
        del roster.live[coro]
        if roster.watchers:
            roster.ended()


async def tracked_in_turn(roster: Roster, coro: AnyCoroutine, origin: Origin, birth: float) -> Any:
    """The same in a scope with a limit: wait for a turn first."""
    try:
        await PAUSE
        if roster.adopting:
            roster.adopt(coro)
        async with roster.turns:
            return await coro
    except BaseException:
        coro.close()
        roster.fell(coro, origin)
        raise
    finally:
        del roster.live[coro]
        if roster.watchers:
            roster.ended()


def certificate(wrapper: object) -> tuple[Origin | None, float | None]:
    """Origin and time of birth, read out of the frame of a tracking coroutine.

    They stand nowhere else: a second copy would cost every task what only a report needs.
    Asking for `cr_frame` would make a frame object for each, and keep it.
    """
    origin: Origin | None = None
    birth: float | None = None
    for value in gc.get_referents(wrapper):
        if type(value) is Origin:
            origin = value
        elif type(value) is float:
            birth = value
    return origin, birth
