"""Wait for what is about to end: a few turns of the event loop, then a short grace period.

Waiting is written once, as generators that yield the pauses. `run_steps` runs them where no loop
runs in this thread, `run_steps_here` on the running loop. The grace period is the sum of the
pauses and not read from a clock, which a test may have stopped.
"""

from __future__ import annotations

import asyncio
import gc
import time
from asyncio import AbstractEventLoop
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import NamedTuple, TypeAlias, TypeVar

from handfast._census import LiveObject
from handfast._leaks.judge import remaining

Result = TypeVar("Result")

_TURNS = 8
# How many turns a task needs that awaits `asyncio.sleep(0)`, and what waits for that task.
_TURNS_OF_A_STEP = 3
_SHORTEST = 0.001
_LONGEST = 0.02
# Seconds after which a clock shows another time.
_TICK = 1e-6

# Bound here: a test that freezes the time replaces the functions of the module `time`.
_sleep = time.sleep


class Pause(NamedTuple):
    """Seconds to wait, and the loops that shall run meanwhile if they are idle."""

    seconds: float
    loops: Sequence[AbstractEventLoop]


Steps: TypeAlias = Generator[Pause, None, Result]
"""A procedure that waits by yielding pauses."""


def run_steps(steps: Steps[Result]) -> Result:
    """Run `steps` where no loop runs in this thread."""
    while True:
        try:
            pause = next(steps)
        except StopIteration as stop:
            result: Result = stop.value
            return result
        _pass_time(pause)


async def run_steps_here(steps: Steps[Result]) -> Result:
    """Run `steps` on the loop that runs in this thread."""
    while True:
        try:
            pause = next(steps)
        except StopIteration as stop:
            result: Result = stop.value
            return result
        await asyncio.sleep(_real_time(asyncio.get_running_loop(), pause.seconds))


def settle(look: Callable[[], list[LiveObject]], grace: float) -> Steps[list[LiveObject]]:
    """What `look` still returns after the grace period."""
    leaked = look()
    for seconds in pauses(grace):
        if not leaked:
            break
        yield Pause(seconds, [live.loop for live in leaked if live.loop is not None])
        # A generator in a reference cycle is gone with the next collection. Once is enough, after
        # the turns that take no time.
        if seconds == _SHORTEST and any(live.check == "generators" for live in leaked):
            gc.collect()
        leaked = look()
    return remaining(leaked)


def pauses(total: float) -> Iterator[float]:
    """Seconds to sleep, `total` in sum: first a few turns of the loop, then longer and longer."""
    if total <= 0:
        return
    for _ in range(_TURNS):
        yield 0.0
    pause, spent = _SHORTEST, 0.0
    while spent < total:
        yield min(pause, total - spent)
        spent += pause
        pause = min(pause * 2, _LONGEST)


def _pass_time(pause: Pause) -> None:
    """Let time pass on the idle loops; loops in other threads run meanwhile anyway."""
    loops = {id(loop): loop for loop in pause.loops if not (loop.is_closed() or loop.is_running())}
    share = pause.seconds / max(1, len(loops))
    for loop in loops.values():
        try:
            for seconds in (share,) if share else (0.0,) * _TURNS_OF_A_STEP:
                _run(loop, seconds)
        except RuntimeError:  # it cannot run here
            _sleep(share)
    if not loops:
        _sleep(share)


def _run(loop: AbstractEventLoop, seconds: float) -> None:
    """Run it for so long. Not `run_until_complete`: where a callback stops the loop, its task would
    stay behind, as a leak of the test."""
    is_over = False
    seconds = _real_time(loop, seconds)

    def end() -> None:
        nonlocal is_over
        is_over = True
        loop.stop()

    handle = loop.call_later(seconds, end) if seconds else loop.call_soon(end)
    try:
        loop.run_forever()
    finally:
        handle.cancel()
    if not is_over:
        _sleep(seconds)


def _real_time(loop: AbstractEventLoop, seconds: float) -> float:
    """The seconds to wait with a timer of the loop. On a clock that a test has stopped a timer is
    never due: then sleep instead, and 0. Loops other than asyncio's have clocks of their own."""
    if not seconds or not isinstance(loop, asyncio.BaseEventLoop):
        return seconds
    before = loop.time()
    _sleep(_TICK)
    if loop.time() != before:
        return seconds
    _sleep(seconds)
    return 0.0
