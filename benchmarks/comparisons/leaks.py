"""300 trivial async tests under pytest-asyncio: plain, with `--handfast`, and with pyleak.

Each lap is a whole `pytest` in a fresh process, as a user runs it. pyleak checks only tests with
its marker, so its suite has one; with all its checks it takes long, and is measured once.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from benchmarks.comparison import Comparison, Contestant, Lap, Laps, Ratio, Target, laps_of
from benchmarks.fresh_process import run_python

PLAIN, HANDFAST = "pytest-asyncio", "handfast"
PYLEAK, PYLEAK_TASKS = "pyleak", "pyleak, tasks only"
SUITES = {
    PLAIN: ("", ()),
    HANDFAST: ("", ("--handfast",)),
    PYLEAK_TASKS: ('@pytest.mark.no_leaks("tasks")\n', ()),
    PYLEAK: ("@pytest.mark.no_leaks\n", ()),
}
TEST = """
{marker}@pytest.mark.asyncio
async def test_{number}():
    await asyncio.sleep(0)
"""


def suite(n: int, marker: str) -> str:
    tests = (TEST.format(marker=marker, number=number) for number in range(n))
    return "import asyncio\nimport pytest\n" + "".join(tests)


def seconds(file: Path, contestant: str) -> float:
    """Return the time of pytest for the suite, from its start to its exit."""
    foreign = () if contestant.startswith(PYLEAK) else ("-p", "no:pyleak")
    options = ("-q", "-p", "no:cacheprovider", "-c", str(file.with_name("pytest.ini")), *foreign)
    start = perf_counter()
    run_python("-m", "pytest", str(file), *options, *SUITES[contestant][1])
    return perf_counter() - start


def once(lap: Lap) -> Lap:
    """Run a lap the first time, and remember its figure."""
    known: list[float] = []

    def remembered() -> float:
        if not known:
            known.append(lap())
        return known[0]

    return remembered


@contextmanager
def laps(n: int) -> Iterator[Laps]:
    with TemporaryDirectory() as folder:
        (Path(folder) / "pytest.ini").write_text("[pytest]\nasyncio_mode = strict\n")
        files: dict[str, Path] = {}
        for number, (name, (marker, _)) in enumerate(SUITES.items()):
            files[name] = Path(folder) / f"test_suite_{number}.py"
            files[name].write_text(suite(n, marker))

        def lap(name: str) -> Lap:
            timed = partial(seconds, files[name], name)
            return once(timed) if name == PYLEAK else timed

        yield laps_of(CONTESTANTS, lap)


CONTESTANTS = (
    Contestant(PLAIN, PLAIN, needs="pytest_asyncio"),
    Contestant(HANDFAST, HANDFAST, needs="pytest_asyncio"),
    Contestant(PYLEAK_TASKS, PYLEAK_TASKS, needs="pyleak"),
    Contestant(PYLEAK, PYLEAK, needs="pyleak"),
)

COMPARISON = Comparison(
    work="leaks",
    title=f"trivial async tests, each run a fresh pytest on {sys.implementation.name}",
    n=300,
    rounds=7,
    laps=laps,
    ratios=tuple(Ratio(each.name, each.name, PLAIN) for each in CONTESTANTS[1:]),
    targets=(Target(HANDFAST, "<=", 1.25),),
)
