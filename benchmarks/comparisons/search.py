"""Bugs found, and schedules needed, by each search strategy of the explorer.

Each planted bug has a known depth: the number of orderings of two events that together make it
certain. An `order` bug shows nothing before the last of them; a `stage` bug takes another path
through the program at each window; one ordering of a `cancel` or `timer` bug is a cancel or a late
timer. The bugs of `wild/` are published ones, installed on demand.

Here `--n` is the number of schedules that a search may run, and `--rounds` the number of seeds, one
more for the round that warms up. A figure is the CPU time for all planted bugs with one seed; the
ratios have what was found. For the table of docs/guides/schedules.md, or for `wild/`:

    python -m benchmarks.comparisons.search [--seeds 200] [--schedules 1000] [--wild]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from importlib.util import module_from_spec, spec_from_file_location
from itertools import count
from pathlib import Path
from statistics import fmean, median
from time import process_time
from typing import Any

from benchmarks.comparison import Comparison, Lap, Laps, Ratio, Target
from handfast._explore.loop.determinism import steady
from handfast._explore.search.plan import Options
from handfast._explore.search.run import run
from handfast._explore.search.strategies import STRATEGIES, make
from handfast.explore import latency, victim

Program = Callable[[], Coroutine[Any, Any, object]]
ROOT = Path(__file__).resolve().parents[2]
# How many schedules a search may run: the default of `explore`.
SCHEDULES = 1_000
DEFAULT = "portfolio"
# These search in one fixed order, whatever the seed.
UNSEEDED = frozenset({"dfs", "states"})
NEVER = float("inf")
DEFAULTS = Options()


# --- planted bugs --------------------------------------------------------------------------------


async def answers(seen: list[str], name: str, count: int) -> None:
    """A task that gets this many answers from outside, one after the other."""
    for number in range(1, count + 1):
        await latency(name=name)
        seen.append(f"{name}{number}")


async def order(*chain: str) -> None:
    """Fails if these answers arrive in this order, whatever comes in between."""
    seen: list[str] = []
    counts = {"a": 5, "b": 3, "c": 3, "d": 3}
    await asyncio.gather(*(answers(seen, name, count) for name, count in counts.items()))
    found = [seen.index(answer) for answer in chain]
    assert found != sorted(found), "planted"


async def stages(depth: int) -> None:
    """Fails if an answer is overtaken by three of another task, at each of so many stages."""
    seen: list[str] = []
    for number in range(1, depth + 1):
        seen.clear()
        await asyncio.gather(answers(seen, "a", 3), answers(seen, "b", 2), answers(seen, "c", 2))
        if seen.index("a3") > seen.index("b1"):  # in the plain order the answers take turns
            return
        await retried(number)
    raise AssertionError("planted")


async def retried(number: int) -> None:
    """The path that is taken only after a window was hit: one more await, at a line of its own."""
    if number == 1 or number == 2:
        await asyncio.sleep(0)
    else:
        await asyncio.sleep(0)


async def cancelled_in_window() -> None:
    """Fails if a task is cancelled in a state that it has only if two answers change places."""
    seen: list[str] = []
    lost: list[str] = []

    async def worker() -> None:
        await answers(seen, "w", 2)
        if "b2" not in seen:
            return
        try:
            await latency(name="clean-up")
        except asyncio.CancelledError:
            lost.append("clean-up")
            raise

    started = victim(worker())
    await asyncio.gather(answers(seen, "a", 3), answers(seen, "b", 3))
    await started
    assert not lost, "planted"


async def late_timers() -> None:
    """Fails if two pairs of timers, each 20 ms apart, both change places."""
    seen: list[str] = []

    async def note(name: str, *delays: float) -> None:
        for delay in delays:
            await asyncio.sleep(delay)
            seen.append(name)
            await asyncio.sleep(0)
            seen.append(name)

    await asyncio.gather(note("a", 0.01, 0.5), note("b", 0.03, 0.53), note("c", 0.06, 0.1))
    both = "".join(seen)
    assert not ("abab" in both[:8] and "abab" in both[8:]), "planted"


@dataclass(frozen=True)
class Bug:
    """A program with a bug, and the options of the search for it."""

    name: str
    program: Program
    options: Options = DEFAULTS

    def needed(self, strategy: str, seed: int, schedules: int) -> float:
        """How many schedules this strategy runs until it finds it; NEVER if it does not."""
        options = self.options
        search = make(strategy, seed=seed, schedules=schedules, cancels=options.cancels)
        ran = 0
        with steady() as collect:
            while ran < schedules and (plans := search.batch()):
                for plan in plans[: schedules - ran]:
                    record = run(self.program, plan, options.settings, invariant=options.invariant)
                    ran += 1
                    if record.verdict is not None:
                        return ran
                    search.learn(record)
                    collect(1)
        return NEVER


PLANTED = (
    Bug("order 1", partial(order, "a4", "b1")),
    Bug("order 2", partial(order, "a3", "b1", "a4")),
    Bug("order 3", partial(order, "a3", "b1", "a4", "c1")),
    Bug("order 4", partial(order, "a3", "b1", "a4", "c1", "a5")),
    Bug("stage 2", partial(stages, 2)),
    Bug("stage 3", partial(stages, 3)),
    Bug("stage 4", partial(stages, 4)),
    Bug("cancel 2", cancelled_in_window, Options(cancel=True)),
    Bug("timer 2", late_timers),
)


# --- the comparison ------------------------------------------------------------------------------

# What each strategy has needed for each bug, one number for each seed.
Needed = dict[tuple[str, str], list[float]]


def search_all(strategy: str, seed: int, schedules: int, needed: Needed) -> float:
    """Search for every planted bug, and return the CPU time."""
    start = process_time()
    for bug in PLANTED:
        needed.setdefault((bug.name, strategy), []).append(bug.needed(strategy, seed, schedules))
    return process_time() - start


class Measured:
    """What the laps of this process have found."""

    needed: Needed = {}  # noqa: RUF012 - one for the process
    schedules = SCHEDULES


@contextmanager
def laps(n: int) -> Iterator[Laps]:
    Measured.needed.clear()
    Measured.schedules = n

    def lap(strategy: str) -> Lap:
        once = cache(lambda seed: search_all(strategy, seed, n, Measured.needed))
        seeds = count()
        return lambda: once(0 if strategy in UNSEEDED else next(seeds))

    yield {strategy: lap(strategy) for strategy in STRATEGIES}


def share(needed: list[float]) -> float:
    """The share of the seeds that found the bug."""
    return sum(each < NEVER for each in needed) / len(needed)


def total(needed: Needed, strategy: str) -> float:
    """The share of all bugs and seeds."""
    return fmean(share(each) for (_, name), each in needed.items() if name == strategy)


def found(bug: str, strategy: str) -> Ratio:
    def value(*_: float) -> float:
        return share(Measured.needed[bug, strategy])

    return Ratio(f"{bug}, {strategy}: found", strategy, strategy, value)


def needs(bug: str, strategy: str) -> Ratio:
    """The median; one more than all schedules if fewer than half of the seeds find it."""

    def value(*_: float) -> float:
        return min(median(Measured.needed[bug, strategy]), Measured.schedules + 1)

    return Ratio(f"{bug}, {strategy}: schedules", strategy, strategy, value)


def over(strategy: str) -> Ratio:
    def share_over(default: float, other: float) -> float:
        return total(Measured.needed, DEFAULT) / (total(Measured.needed, strategy) or NEVER)

    return Ratio(f"bugs found, {DEFAULT} over {strategy}", DEFAULT, strategy, share_over)


OTHERS = [strategy for strategy in STRATEGIES if strategy != DEFAULT]
COMPARISON = Comparison(
    work="search",
    title="planted bugs, {n:,} schedules for each seed",
    n=SCHEDULES,
    rounds=20,
    laps=laps,
    ratios=(
        *(found(bug.name, strategy) for bug in PLANTED for strategy in STRATEGIES),
        *(needs(bug.name, strategy) for bug in PLANTED for strategy in STRATEGIES),
        *(over(strategy) for strategy in OTHERS),
    ),
    targets=tuple(Target(over(strategy).name, ">=", 1) for strategy in OTHERS),
)


# --- the bugs of wild/ ---------------------------------------------------------------------------


def module_of(file: Path) -> Any:
    spec = spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[file.stem] = module
    spec.loader.exec_module(module)
    return module


def search_wild(seeds: int, schedules: int) -> Needed:
    """What each strategy needs for each bug of wild/ that this Python can have, in new processes."""
    wild = module_of(ROOT / "wild" / "run.py")
    needed: Needed = {}
    for file in sorted(wild.BUGS.glob("*.py")):
        bug = wild.Bug.read(file)
        path = [str(wild.SOURCE), str(ROOT)]
        if bug.package != "python":
            target = wild.install(bug, bug.bad)
            if not isinstance(target, Path):
                print(f"{bug.name}: {target.trouble}", file=sys.stderr)
                continue
            path.append(str(target))
        elif bug.bad != ".".join(map(str, sys.version_info[:2])):
            print(f"{bug.name}: needs Python {bug.bad}", file=sys.stderr)
            continue
        for strategy in STRATEGIES:
            arguments = ["--seeds", str(seeds), "--schedules", str(schedules)]
            process = subprocess.run(
                [sys.executable, "-m", __spec__.name, "--only", str(file), strategy, *arguments],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(path), "PYTHONHASHSEED": "0"},
                capture_output=True,
                text=True,
                check=False,
            )
            if process.returncode:
                print(f"{bug.name}: {process.stderr.strip()[-500:]}", file=sys.stderr)
                break
            needed[bug.name, strategy] = json.loads(process.stdout.rpartition("NEEDED ")[2])
    return needed


def search_one(file: Path, strategy: str, seeds: int, schedules: int) -> None:
    """In the subprocess: print the numbers, and do not wait for threads that the bug has leaked."""
    module = module_of(file)
    bug = Bug(file.stem, module.program, Options(**module.OPTIONS))
    needed = [bug.needed(strategy, seed, schedules) for seed in seeds_of(strategy, seeds)]
    print("NEEDED " + json.dumps(needed), flush=True)
    os._exit(0)


def seeds_of(strategy: str, seeds: int) -> range:
    return range(1 if strategy in UNSEEDED else seeds)


# --- the table -----------------------------------------------------------------------------------


def table(needed: Needed) -> str:
    """Markdown: the share of the seeds that found each bug, and the median of the schedules."""
    strategies = list(dict.fromkeys(strategy for _, strategy in needed))
    lines = [f"| bug | {' | '.join(strategies)} |", "|---" * (len(strategies) + 1) + "|"]
    for bug in dict.fromkeys(bug for bug, _ in needed):
        cells = [cell(needed[bug, each]) if (bug, each) in needed else "" for each in strategies]
        lines.append(f"| {bug} | {' | '.join(cells)} |")
    shares = [f"{total(needed, strategy):.1%}" for strategy in strategies]
    return "\n".join([*lines, f"| all | {' | '.join(shares)} |"])


def cell(needed: list[float]) -> str:
    schedules = median(needed)
    return f"{share(needed):.0%}" + (f", {schedules:,.0f}" if schedules < NEVER else "")


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.comparisons.search")
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--schedules", type=int, default=SCHEDULES)
    parser.add_argument(
        "--wild", action="store_true", help="published bugs instead of planted ones"
    )
    parser.add_argument("--only", nargs=2, metavar=("FILE", "STRATEGY"), help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.only:
        file, strategy = options.only
        search_one(Path(file), strategy, options.seeds, options.schedules)
    if options.wild:
        print(table(search_wild(options.seeds, options.schedules)))
        return
    needed: Needed = {}
    for strategy in STRATEGIES:
        for seed in seeds_of(strategy, options.seeds):
            search_all(strategy, seed, options.schedules, needed)
    print(table(needed))


if __name__ == "__main__":
    main()
