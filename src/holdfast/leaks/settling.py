"""Time for what is on its way out: a few turns of the loop, then a short grace.

The grace is counted in pauses and not on a clock: a test may have stopped that.
"""

from __future__ import annotations

import asyncio
import gc
import time
from asyncio import AbstractEventLoop
from collections.abc import Callable, Iterator, Sequence

from holdfast.census import Thing

__all__ = ["pass_time", "settle", "settle_here"]

Look = Callable[[], list[Thing]]

_TURNS = 8
_LONGEST = 0.02

# Bound here: a test that freezes the time puts its own functions into the module `time`.
_sleep = time.sleep


def settle(look: Look, grace: float) -> list[Thing]:
    """What `look` still sees after the grace. No loop runs in this thread."""
    left = look()
    for pause in _pauses(grace):
        if not left:
            break
        pass_time(_idle_loops(left), pause)
        _collect(left, pause)
        left = look()
    return _staying(left)


async def settle_here(look: Look, grace: float) -> list[Thing]:
    """The same, on the loop that runs in this thread."""
    left = look()
    for pause in _pauses(grace):
        if not left:
            break
        await asyncio.sleep(pause)
        _collect(left, pause)
        left = look()
    return _staying(left)


def pass_time(loops: Sequence[AbstractEventLoop], pause: float) -> None:
    """Let a moment pass, on loops that nobody runs; other threads go on meanwhile."""
    for loop in loops:
        turn = asyncio.sleep(pause / len(loops))
        try:
            loop.run_until_complete(turn)
        except RuntimeError:  # stopped by a callback, or it cannot run here
            turn.close()
            _sleep(pause / len(loops))
    if not loops:
        _sleep(pause)


def _idle_loops(things: Sequence[Thing]) -> list[AbstractEventLoop]:
    loops = {id(thing.loop): thing.loop for thing in things if thing.loop is not None}
    return [loop for loop in loops.values() if not (loop.is_closed() or loop.is_running())]


def _pauses(grace: float) -> Iterator[float]:
    if grace <= 0:
        return
    for _ in range(_TURNS):
        yield 0.0
    pause, spent = 0.001, 0.0
    while spent < grace:
        yield min(pause, grace - spent)
        spent += pause
        pause = min(pause * 2, _LONGEST)


def _collect(left: Sequence[Thing], pause: float) -> None:
    """A generator in a reference cycle is on its way out; only the collector does not know yet.
    Once, after the last of the turns that take no time."""
    if pause == 0.001 and any(thing.check == "generators" for thing in left):
        gc.collect()


def _staying(left: Sequence[Thing]) -> list[Thing]:
    return [thing for thing in left if not thing.passing]
