"""Close with many live tasks: is the time linear in their number?

For bare asyncio it is not quite: the processor's cache and the collector cost more than ten times as
much for ten times as many. Its ratio is reported, too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from benchmarks.clock import seconds_of
from benchmarks.comparison import Comparison, Contestant, Lap, Laps, Ratio, Target, laps_of
from benchmarks.live import WAYS, LimitedScope, Live, Scope
from benchmarks.loops import uvloop_or_stock, wrapping

TIMES = 10
"""The few are closed several times, so that both laps take about as long on a busy machine."""


LoopKind = Callable[[], asyncio.AbstractEventLoop]
Closed = tuple[LoopKind, type[Live]]
HANDFAST: tuple[Contestant[Closed], ...] = (
    Contestant("handfast, limit", (asyncio.new_event_loop, LimitedScope), needs="handfast"),
    Contestant("handfast, wrapping factory", (wrapping, Scope), needs="handfast"),
    Contestant("handfast, uvloop", (uvloop_or_stock, Scope), needs="uvloop"),
)
CONTESTANTS: tuple[Contestant[Closed], ...] = (
    *(Contestant(way.name, (asyncio.new_event_loop, way.way), way.needs) for way in WAYS),
    *HANDFAST,
)


async def seconds_to_close(way: type[Live], n: int) -> float:
    live = way(n)
    await live.spawn()
    return await seconds_of(live.close())


@contextmanager
def laps(n: int) -> Iterator[Laps]:
    few = max(1, n // TIMES)
    with ExitStack() as stack:

        def runs(kind: LoopKind, way: type[Live], n: int) -> Callable[[], float]:
            runner = runners[kind]
            return lambda: runner.run(seconds_to_close(way, n))

        def many_once(each: Closed) -> Lap:
            return runs(*each, n)

        def few_often(each: Closed) -> Lap:
            once = runs(*each, few)
            return lambda: sum(once() for _ in range(TIMES)) / TIMES

        kinds = {kind for kind, _ in (each.way for each in CONTESTANTS)}
        runners = {kind: stack.enter_context(asyncio.Runner(loop_factory=kind)) for kind in kinds}
        yield {
            f"{name}, {label}": lap
            for label, kind in (("n / 10", few_often), ("n", many_once))
            for name, lap in laps_of(CONTESTANTS, kind).items()
        }


COMPARISON = Comparison(
    work="close",
    title="n = {n:,} live tasks, cancelled and joined, against n / 10",
    n=100_000,
    rounds=5,
    laps=laps,
    ratios=(
        *(Ratio(way.name, f"{way.name}, n", f"{way.name}, n / 10") for way in CONTESTANTS),
        Ratio("handfast / bare, n", "handfast, n", "bare, n"),
    ),
    targets=tuple(
        Target(name, "<=", 12.0) for name in ("handfast", *(each.name for each in HANDFAST))
    ),
)
