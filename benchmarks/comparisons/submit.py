"""Submit work to a loop from a thread, and wait for every result."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from benchmarks.clock import seconds_of_call
from benchmarks.comparison import Comparison, Contestant, Lap, Laps, Ratio, Target, laps_of
from benchmarks.foreign_loop import foreign_loop
from benchmarks.work import no_op

if TYPE_CHECKING:
    import handfast

Submit = Callable[[], "Future[None]"]
Way = Callable[[ExitStack, asyncio.AbstractEventLoop], Submit]
"""Prepares the loop in the other thread, and returns the call to be timed."""


def threadsafe(stack: ExitStack, loop: asyncio.AbstractEventLoop) -> Submit:
    return lambda: asyncio.run_coroutine_threadsafe(no_op(), loop)


def portal(stack: ExitStack, loop: asyncio.AbstractEventLoop) -> Submit:
    from anyio.from_thread import start_blocking_portal

    # The portal has its own loop and thread.
    opened = stack.enter_context(start_blocking_portal())
    return lambda: opened.start_task_soon(no_op)


def scope_submit(stack: ExitStack, loop: asyncio.AbstractEventLoop) -> Submit:
    async def open_scope() -> handfast.Scope:
        import handfast

        return handfast.Scope("submitted")

    scope = asyncio.run_coroutine_threadsafe(open_scope(), loop).result()
    stack.callback(scope.close_from_thread, timeout=60.0)
    return lambda: scope.submit(no_op)


CONTESTANTS: tuple[Contestant[Way], ...] = (
    Contestant("run_coroutine_threadsafe", threadsafe),
    Contestant("anyio portal", portal, needs="anyio"),
    Contestant("handfast", scope_submit, needs="handfast"),
)


def submit_and_wait(submit: Submit, n: int) -> None:
    for future in [submit() for _ in range(n)]:
        future.result()


@contextmanager
def laps(n: int) -> Iterator[Laps]:
    with foreign_loop() as loop, ExitStack() as stack:

        def lap(way: Way) -> Lap:
            submit = way(stack, loop)
            return lambda: seconds_of_call(lambda: submit_and_wait(submit, n))

        yield laps_of(CONTESTANTS, lap)


COMPARISON = Comparison(
    work="submit",
    title="{n:,} no-op coroutines submitted from a thread, and every answer fetched",
    n=20_000,
    rounds=7,
    laps=laps,
    ratios=(
        Ratio("run_coroutine_threadsafe / handfast", "run_coroutine_threadsafe", "handfast"),
        Ratio("anyio portal / handfast", "anyio portal", "handfast"),
    ),
    targets=(
        Target("run_coroutine_threadsafe / handfast", ">=", 8.0),
        Target("anyio portal / handfast", ">=", 10.0),
    ),
)
