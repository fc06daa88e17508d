"""Schedules a second, against the other explorers of asyncio programs; steps a second, against the
stock loop; what a cancel costs; how the cost grows with the length of a run; and the CPU time of the
five examples, whose schedules are mostly their own code.

simloom, simloop and frontrun permute the queue of ready handles, which asyncio never does. So this
explorer gets a program with as many choices as theirs: each step waits for an answer from outside.
seedloop keeps asyncio's order. A second row of figures is for programs whose choices are timers, and
network I/O: there each tool has the timers or the simulated network that it offers for it. The peers
need Python 3.12 or newer.
"""

from __future__ import annotations

import asyncio
import importlib
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from time import perf_counter, process_time
from typing import Any

from benchmarks.comparison import Comparison, Contestant, Lap, Laps, Ratio, Target, laps_of

Explorer = Callable[[int], float]

TASKS, STEPS = 4, 5
PORT = 8080
# Long enough that the start does not matter.
LONG = 10_000
PLAIN, CANCELLED, STOCK = "plain run", "run with a cancel", "stock loop"
SHORTER, LONGER = "10,000 steps", "100,000 steps"
SHORT, EXAMPLES = "two answers (CPU)", "the five examples (CPU)"


async def yielding(steps: int) -> None:
    for _ in range(steps):
        await asyncio.sleep(0)


async def program() -> None:
    await asyncio.gather(*(yielding(STEPS) for _ in range(TASKS)))


async def long_program(steps: int = LONG) -> None:
    await asyncio.gather(*(yielding(steps // TASKS) for _ in range(TASKS)), return_exceptions=True)


def seconds_for(n: int, work: Callable[[], object], done: Callable[[], int] | None = None) -> float:
    """Return the CPU time for n schedules, scaled if the explorer stopped after fewer.

    On a busy machine a long lap waits more often than a short one, so that the wall time of a slow
    explorer is worse than it is.
    """
    start = process_time()
    work()
    seconds = process_time() - start
    return seconds * n / (done() if done else n)


def handfast(n: int) -> float:
    from handfast.explore import explore, latency

    async def answered() -> None:
        for _ in range(STEPS):
            await latency()

    async def choices() -> None:
        await asyncio.gather(*(answered() for _ in range(TASKS)))

    return seconds_for(n, lambda: explore(choices, schedules=n, strategy="random"))


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
    """The same steps with a shared object; without one a reduction would have nothing to explore."""
    for step in range(STEPS):
        shared.append(step)
        await asyncio.sleep(0)


# --- timers and I/O ----------------------------------------------------------------------------


async def random_waits(*_: object) -> None:
    """For tools that draw from a seed: each wait takes another time in each run."""

    async def waits() -> None:
        for _ in range(STEPS):
            await asyncio.sleep(random.uniform(0.001, 0.05))

    await asyncio.gather(*(waits() for _ in range(TASKS)))


async def late_waits() -> None:
    """For this explorer: a loop that is late lets the same timers fire in another order."""

    async def waits() -> None:
        for step in range(STEPS):
            await asyncio.sleep(0.01 + step / 1000)

    await asyncio.gather(*(waits() for _ in range(TASKS)))


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while line := await reader.readline():
        writer.write(line)
    writer.close()


async def serve(host: str | None) -> None:
    async with await asyncio.start_server(answer, host, PORT) as server:
        await server.serve_forever()


async def client(host: str) -> None:
    reader, writer = await asyncio.open_connection(host, PORT)
    for _ in range(STEPS):
        writer.write(b"question\n")
        await reader.readline()
    writer.close()
    await writer.wait_closed()


async def on_one_host() -> None:
    async with await asyncio.start_server(answer, "127.0.0.1", PORT):
        await asyncio.gather(*(client("127.0.0.1") for _ in range(TASKS)))


async def on_simloom(world: Any) -> None:
    world.host("server").spawn(lambda: serve("server"))
    await asyncio.sleep(0.1)
    clients = [world.host(f"client{n}") for n in range(TASKS)]
    await asyncio.gather(*(each.spawn(lambda: client("server")) for each in clients))


async def on_simloop() -> None:
    net = asyncio.get_running_loop().net  # type: ignore[attr-defined]
    net.host("server").create_task(serve(None))
    await asyncio.sleep(0.1)
    clients = [net.host(f"client{n}") for n in range(TASKS)]
    await asyncio.gather(*(each.create_task(client("server")) for each in clients))


class Echo:
    """A node of seedloop, which has messages in place of streams."""

    def __init__(self, world: Any) -> None:
        self.endpoint = world.net.bind("server", reliable=True)

    async def run(self) -> None:
        while True:
            await self.endpoint.send(*await self.endpoint.recv())


async def on_seedloop(world: Any) -> None:
    world.start(Echo(world))

    async def client(name: str) -> None:
        endpoint = world.net.bind(name, reliable=True)
        for _ in range(STEPS):
            await endpoint.send("server", b"question\n")
            await endpoint.recv()

    await asyncio.gather(*(client(f"client{n}") for n in range(TASKS)))


def explored_by(tool: str, world: Any) -> Explorer:
    """Each tool's own call that runs a program n times."""

    def runs(n: int) -> object:
        peer: Any = importlib.import_module("handfast.explore" if tool == "handfast" else tool)
        match tool:
            case "handfast":
                return peer.explore(world, schedules=n, strategy="random")
            case "simloom":
                return peer.explore(world, runs=n)
            case "simloop":
                return peer.explore(world, range(n))
        return peer.check(world, seeds=n)

    return lambda n: seconds_for(n, lambda: runs(n))


TIMERS: dict[str, Any] = {
    "handfast": late_waits,
    "simloom": random_waits,
    "simloop": random_waits,
    "seedloop": random_waits,
}
NETWORK: dict[str, Any] = {
    "handfast": on_one_host,
    "simloom": on_simloom,
    "simloop": on_simloop,
    "seedloop": on_seedloop,
}
WORLDS = tuple(
    Contestant(f"{tool}, {what}", explored_by(tool, world), needs=tool)
    for what, worlds in (("timers", TIMERS), ("network", NETWORK))
    for tool, world in worlds.items()
)


EXPLORERS: tuple[Contestant[Explorer], ...] = (
    Contestant("handfast", handfast, needs="handfast"),
    Contestant("simloom", simloom, needs="simloom"),
    Contestant("simloop", simloop, needs="simloop"),
    Contestant("frontrun DPOR", partial(frontrun, strategy="dpor"), needs="frontrun"),
    Contestant("frontrun random", partial(frontrun, strategy="random"), needs="frontrun"),
)


def one_run(steps: int, *, cancel: bool = False) -> float:
    from handfast._explore.loop.determinism import steady
    from handfast._explore.search.plan import Cancel, Plan, Settings
    from handfast._explore.search.run import run

    # Late, so that the run is about as long as one without a cancel.
    cancels = (Cancel(steps * 9 // 10, 1),) if cancel else ()
    settings = Settings(cancel="tasks" if cancel else "no")
    with steady():
        start = perf_counter()
        run(partial(long_program, steps), Plan(cancels=cancels), settings)
        return perf_counter() - start


def short(n: int) -> float:
    """A schedule with two answers: nearly all of it is the explorer's own work."""
    from handfast.explore import explore, latency

    async def two_answers() -> None:
        await asyncio.gather(latency(), latency())

    start = process_time()
    explore(two_answers, schedules=n, strategy="random")
    return process_time() - start


def examples(n: int) -> float:
    """The schedules of all fixed examples, which run to the end."""
    from examples import all_examples
    from examples.example import FIXED
    from handfast.explore import explore

    programs = [example.explored(FIXED) for example in all_examples()]
    start = process_time()
    for each in programs:
        explore(each, schedules=n, cancel=True)
    return process_time() - start


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
        **laps_of((*EXPLORERS, *WORLDS), lap),
        STOCK: stock_run,
        PLAIN: lambda: one_run(LONG),
        CANCELLED: lambda: one_run(LONG, cancel=True),
        SHORTER: lambda: one_run(10_000),
        LONGER: lambda: one_run(100_000),
        SHORT: lambda: short(n),
        EXAMPLES: lambda: examples(n),
    }


def faster_in(world: Contestant[Explorer]) -> Ratio:
    peer, _, what = world.name.partition(", ")
    return Ratio(f"schedules a second on {what}, over {peer}", world.name, f"handfast, {what}")


def faster_than(peer: str) -> Ratio:
    return Ratio(f"schedules a second, over {peer}", peer, "handfast")


COMPARISON = Comparison(
    work="explore",
    title="{n:,} schedules of 4 tasks x 5 steps; runs of 10,000 and 100,000 steps",
    n=300,
    rounds=5,
    laps=laps,
    ratios=(
        *(faster_than(explorer.name) for explorer in EXPLORERS[1:]),
        *(faster_in(world) for world in WORLDS if world.needs != "handfast"),
        Ratio("steps a second, over the stock loop", STOCK, PLAIN),
        Ratio("a run with a cancel, over a plain one", CANCELLED, PLAIN),
        Ratio("100,000 steps, over 10,000", LONGER, SHORTER),
    ),
    targets=(
        Target("schedules a second, over simloom", ">=", 20),
        Target("schedules a second, over simloop", ">=", 20),
        Target("schedules a second, over frontrun DPOR", ">=", 20),
        Target("schedules a second, over frontrun random", ">=", 3),
        Target("schedules a second on timers, over simloom", ">=", 30),
        Target("schedules a second on timers, over simloop", ">=", 30),
        Target("schedules a second on timers, over seedloop", ">=", 30),
        Target("steps a second, over the stock loop", ">=", 0.5),
        Target("a run with a cancel, over a plain one", "<=", 1.5),
        Target("100,000 steps, over 10,000", "<=", 12),
    ),
)
