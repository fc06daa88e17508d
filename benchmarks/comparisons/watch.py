"""What a watch costs the program that is watched, against none and against aiomonitor."""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from importlib import import_module
from typing import Any

from benchmarks.clock import seconds_of
from benchmarks.comparison import Comparison, Contestant, Lap, Laps, Ratio, Target, laps_of
from benchmarks.comparisons.spawn import bare
from benchmarks.loops import uvloop_or_stock
from benchmarks.watched import measured

Hook = Callable[[asyncio.AbstractEventLoop], AbstractContextManager[Any]]


def off(loop: asyncio.AbstractEventLoop) -> AbstractContextManager[Any]:
    return nullcontext()


def on(loop: asyncio.AbstractEventLoop) -> AbstractContextManager[Any]:
    from handfast import watch

    return watch.serve("benchmark")


def aiomonitor(loop: asyncio.AbstractEventLoop) -> AbstractContextManager[Any]:
    monitor = import_module("aiomonitor")

    @contextmanager
    def monitored() -> Iterator[None]:
        ports = {"port": 0, "console_port": 0, "webui_port": 0}
        with monitor.start_monitor(loop, hook_task_factory=True, **ports):
            yield
        loop.set_task_factory(None)  # which it leaves

    return monitored()


CONTESTANTS: tuple[Contestant[Hook], ...] = (
    Contestant("off", off),
    Contestant("handfast", on, needs="handfast"),
    Contestant("aiomonitor", aiomonitor, needs="aiomonitor"),
)
ON_UVLOOP: tuple[Contestant[Hook], ...] = (
    Contestant("off, uvloop", off, needs="uvloop"),
    Contestant("handfast, uvloop", on, needs="uvloop"),
)

HELLO_OFF = Contestant("hello, off", "hello-off", needs="aiohttp")
HELLO_ON = Contestant("hello, handfast", "hello-on", needs="aiohttp")
SNAPSHOT = "hold-up of the loop in milliseconds, 5 n tasks"
OTHERS = (
    Contestant("bytes, off", "bytes-off"),
    Contestant("bytes, handfast", "bytes-on"),
    Contestant("imported, off", "imported"),
)


@contextmanager
def laps(n: int) -> Iterator[Laps]:
    with asyncio.Runner() as stock, asyncio.Runner(loop_factory=uvloop_or_stock) as other:

        def lap(hook: Hook, runner: asyncio.Runner = stock) -> Lap:
            def run() -> float:
                with hook(runner.get_loop()):
                    return runner.run(seconds_of(bare(n)))

            return run

        yield {
            **laps_of(CONTESTANTS, lap),
            **laps_of(ON_UVLOOP, partial(lap, runner=other)),
            **laps_of((HELLO_OFF, HELLO_ON), lambda measure: partial(measured, measure, n)),
            SNAPSHOT: lambda: 1000 * measured("hold-up", 5 * n),
            **laps_of(OTHERS, lambda measure: partial(measured, measure, n)),
        }


def itself(figure: float, _: float) -> float:
    return figure


COMPARISON = Comparison(
    work="watch",
    title="{n:,} no-op tasks, n requests, a snapshot of 5 n tasks: watched, against not watched",
    n=20_000,
    rounds=5,
    laps=laps,
    ratios=(
        Ratio("handfast", "handfast", "off"),
        Ratio("aiomonitor", "aiomonitor", "off"),
        Ratio("handfast, uvloop", "handfast, uvloop", "off, uvloop"),
        Ratio("hello, requests a CPU second", HELLO_OFF.name, HELLO_ON.name),
        Ratio(SNAPSHOT, SNAPSHOT, SNAPSHOT, itself),
        Ratio("bytes of a live task", "bytes, handfast", "bytes, off", operator.sub),
        Ratio("modules imported while it is off", "imported, off", "imported, off", itself),
    ),
    targets=(
        Target("handfast", "<=", 1.45),
        Target("hello, requests a CPU second", ">=", 0.95),
        Target(SNAPSHOT, "<=", 20.0),
        Target("bytes of a live task", "<=", 100.0),
        Target("modules imported while it is off", "<=", 0.0),
    ),
)
