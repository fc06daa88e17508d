"""Schedules a second, against the other explorers of asyncio programs; steps a second, against the
stock loop; what a cancel costs; and how the cost grows with the length of a run.

The peers permute the queue of ready handles, so the model `wild` does the same work. They need
Python 3.12 or newer.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from time import perf_counter
from typing import Any

from benchmarks.comparison import Comparison, Contestant, Lap, Laps, Ratio, Target, laps_of

Explorer = Callable[[int], float]

TASKS, STEPS = 4, 5
# Long enough to measure the steps and not the start.
LONG = 10_000
PLAIN, STRUCK, STOCK = "plain run", "run with a cancel", "stock loop"
SHORTER, LONGER = "10,000 steps", "100,000 steps"


async def yielding(steps: int) -> None:
    for _ in range(steps):
        await asyncio.sleep(0)


async def program() -> None:
    await asyncio.gather(*(yielding(STEPS) for _ in range(TASKS)))


async def long_program(steps: int = LONG) -> None:
    await asyncio.gather(*(yielding(steps // TASKS) for _ in range(TASKS)), return_exceptions=True)


def seconds_for(n: int, work: Callable[[], object], done: Callable[[], int] | None = None) -> float:
    """The time for n schedules, also if the explorer stopped after fewer."""
    start = perf_counter()
    work()
    seconds = perf_counter() - start
    return seconds * n / (done() if done else n)


def holdfast(n: int) -> float:
    from holdfast.explore import explore

    return seconds_for(n, lambda: explore(program, schedules=n, model="wild", strategy="random"))


def simloom(n: int) -> float:
    peer: Any = importlib.import_module("simloom")
    return seconds_for(n, lambda: peer.explore(program, runs=n))


def simloop(n: int) -> float:
    peer: Any = importlib.import_module("simloop")
    return seconds_for(n, lambda: peer.explore(program, range(n)))


def frontrun(n: int, strategy: str) -> float:
    peer: Any = importlib.import_module("frontrun")
    bound = {"max_attempts": n}
    if strategy == "dpor":
        bound = {"max_executions": n, "preemption_bound": TASKS * STEPS}
    results: list[Any] = []

    async def explored() -> None:
        results.append(
            await peer.explore(
                setup=list,
                workers=yielding_on,
                count=TASKS,
                invariant=lambda _: True,
                strategy=strategy,
                **bound,
            )
        )

    return seconds_for(n, lambda: asyncio.run(explored()), lambda: results[0].num_explored)


async def yielding_on(shared: list[int]) -> None:
    """The same steps on something shared, or a reduction would have nothing to explore."""
    for step in range(STEPS):
        shared.append(step)
        await asyncio.sleep(0)


EXPLORERS: tuple[Contestant[Explorer], ...] = (
    Contestant("holdfast", holdfast, needs="holdfast"),
    Contestant("simloom", simloom, needs="simloom"),
    Contestant("simloop", simloop, needs="simloop"),
    Contestant("frontrun DPOR", partial(frontrun, strategy="dpor"), needs="frontrun"),
    Contestant("frontrun random", partial(frontrun, strategy="random"), needs="frontrun"),
)


def one_run(steps: int, *, cancel: bool = False) -> float:
    from holdfast.explore.plan import Cancel, Plan, Settings
    from holdfast.explore.run import run
    from holdfast.explore.steady import steady

    # Late, so that the run is about as long without its victim.
    cancels = (Cancel(steps * 9 // 10, 1),) if cancel else ()
    settings = Settings(cancel="tasks" if cancel else "no")
    with steady():
        start = perf_counter()
        run(partial(long_program, steps), Plan(cancels=cancels), settings)
        return perf_counter() - start


def stock_run() -> float:
    with asyncio.Runner() as runner:
        start = perf_counter()
        runner.run(long_program())
        return perf_counter() - start


@contextmanager
def laps(n: int) -> Iterator[Laps]:
    def lap(explorer: Explorer) -> Lap:
        return lambda: explorer(n)

    yield {
        **laps_of(EXPLORERS, lap),
        STOCK: stock_run,
        PLAIN: lambda: one_run(LONG),
        STRUCK: lambda: one_run(LONG, cancel=True),
        SHORTER: lambda: one_run(10_000),
        LONGER: lambda: one_run(100_000),
    }


def faster_than(peer: str) -> Ratio:
    return Ratio(f"schedules a second, over {peer}", peer, "holdfast")


COMPARISON = Comparison(
    work="explore",
    title="{n:,} schedules of 4 tasks x 5 steps; runs of 10,000 and 100,000 steps",
    n=300,
    rounds=5,
    laps=laps,
    ratios=(
        *(faster_than(explorer.name) for explorer in EXPLORERS[1:]),
        Ratio("steps a second, over the stock loop", STOCK, PLAIN),
        Ratio("a run with a cancel, over a plain one", STRUCK, PLAIN),
        Ratio("100,000 steps, over 10,000", LONGER, SHORTER),
    ),
    targets=(
        Target("schedules a second, over simloom", ">=", 20),
        Target("schedules a second, over simloop", ">=", 20),
        Target("schedules a second, over frontrun DPOR", ">=", 20),
        Target("schedules a second, over frontrun random", ">=", 3),
        Target("steps a second, over the stock loop", ">=", 0.5),
        Target("a run with a cancel, over a plain one", "<=", 1.5),
        Target("100,000 steps, over 10,000", "<=", 12),
    ),
)
