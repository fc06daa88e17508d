"""A tree as a service has it, read by the checker, by ruff and by flake8-async: asyncio packages among
others, in the order of the table, up to `n` thousand lines.

Each lap is a whole command in a fresh process, with one job; its figure is CPU seconds, which other
programs on the machine change little. The packages are downloaded once, by pip, into a
folder of the user's cache. flake8-async is slow: it reads a tenth of the files, once, and its time
is scaled to all of them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.comparison import Comparison, Contestant, Lap, Laps, Ratio, Target, laps_of
from benchmarks.fresh_process import _environment

COLD, WARM, MEMORY = "handfast, cold", "handfast, warm", "handfast, peak of a process in MB"
CHANGED = "handfast, one file of 200,000 lines changed"
RUFF, ASYNC = "ruff", "flake8-async"
# Pinned, so that the figures of two days are about the same lines.
PACKAGES = (
    "aiohttp==3.12.0",
    "Django==5.2",
    "redis==6.2.0",
    "SQLAlchemy==2.0.41",
    "distributed==2025.5.0",
    "sympy==1.14.0",
)
RULES = "ASYNC,RUF006,BLE001"
JOBS = "1"
SAMPLE = 10
"""flake8-async reads one file of so many."""


# --- the tree ------------------------------------------------------------------------------------


def cache_folder() -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "handfast-benchmarks" / "check"


def sources(package: str) -> Path:
    """The sources of a package; what is there already is not downloaded again."""
    folder = cache_folder()
    goal = folder / package.replace("==", "-")
    if not goal.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=folder) as beside:
            _download(package, Path(beside))
            # A run that was cut leaves nothing that looks whole.
            (Path(beside) / "src").rename(goal)
    return goal


def _download(package: str, beside: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "-q",
        "--no-deps",
        "-d",
        str(beside),
        package,
    ]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        why = done.stderr.strip().rpartition("\n")[2]
        sys.exit(f"cannot download {package} with `{sys.executable} -m pip`: {why}")
    [archive] = [each for each in beside.iterdir() if each.is_file()]
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            wheel.extractall(beside / "src")
    else:
        with tarfile.open(archive) as sdist:
            sdist.extractall(beside / "src", filter="data")


def copied(n: int, goal: Path) -> None:
    """The packages up to `n` thousand lines, as a copy that nobody else touches."""
    lines = 0
    for package in PACKAGES:
        if lines >= n * 1000:
            return
        source = sources(package)
        for path in sorted(source.rglob("*.py")):
            if lines >= n * 1000:
                return
            there = goal / source.name / path.relative_to(source)
            there.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, there)
            lines += path.read_bytes().count(b"\n")


# --- the contestants -----------------------------------------------------------------------------


def command(*arguments: str, folder: Path) -> float:
    """The CPU seconds of a command, from its start to its exit; findings are no failure."""
    start = _cpu_seconds()
    done = subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=folder,
        env=_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode not in (0, 1) or "Error" in done.stderr or "No module" in done.stderr:
        raise RuntimeError(f"{arguments[0]} ended with {done.returncode}:\n{done.stderr}")
    return _cpu_seconds() - start


def _cpu_seconds() -> float:
    import resource

    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def cold(folder: Path) -> float:
    return command("handfast", "check", "src", "--no-cache", "--jobs", JOBS, folder=folder)


def warm(folder: Path) -> float:
    if not (folder / ".handfast_cache").exists():
        command("handfast", "check", "src", "--jobs", JOBS, folder=folder)
    return command("handfast", "check", "src", "--jobs", JOBS, folder=folder)


def changed(folder: Path) -> float:
    """A warm run after an edit of one file; `part` has 200,000 lines of the tree."""
    part = folder / "part"
    if not part.exists():
        copied(200, part / "src")
        command("handfast", "check", "src", "--jobs", JOBS, folder=part)
    edited = sorted(part.rglob("client.py"))[0]
    edited.write_text(edited.read_text(encoding="utf-8") + "\n# edited\n", encoding="utf-8")
    return command("handfast", "check", "src", "--jobs", JOBS, folder=part)


def ruff(folder: Path) -> float:
    wanted = ("check", "src", "--isolated", "--no-cache", "--select", RULES)
    os.environ["RAYON_NUM_THREADS"] = JOBS
    return command("ruff", *wanted, folder=folder)


def flake8_async(folder: Path) -> float:
    """One file in ten, scaled to all: by lines, because files differ."""
    every = sorted((folder / "src").rglob("*.py"))
    some = every[::SAMPLE]
    wanted = ("--isolated", "--select", "ASYNC", "--jobs", JOBS)
    seconds = command("flake8", *wanted, *map(str, some), folder=folder)
    return seconds * _lines(every) / max(1, _lines(some))


def _lines(paths: list[Path]) -> int:
    return sum(path.read_bytes().count(b"\n") for path in paths)


def memory(folder: Path) -> float:
    """The largest process of a cold run, in megabytes; the time stands elsewhere."""
    program = (
        "import resource, subprocess, sys; subprocess.run(sys.argv[1:], capture_output=True); "
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    command = [sys.executable, "-m", "handfast", "check", "src", "--no-cache", "--jobs", JOBS]
    done = subprocess.run(
        [sys.executable, "-c", program, *command],
        cwd=folder, env=_environment(), capture_output=True, text=True, check=True,
    )  # fmt: skip
    unit = 1 if sys.platform == "darwin" else 1024
    return int(done.stdout) * unit / 1e6


def once(lap: Lap) -> Lap:
    """A lap that is run the first time, and remembered."""
    known: list[float] = []

    def remembered() -> float:
        if not known:
            known.append(lap())
        return known[0]

    return remembered


CONTESTANTS = (
    Contestant(RUFF, ruff, needs="ruff"),
    Contestant(COLD, cold),
    Contestant(WARM, warm),
    Contestant(CHANGED, changed),
    Contestant(ASYNC, flake8_async, needs="flake8"),
    Contestant(MEMORY, memory),
)


@contextmanager
def laps(n: int) -> Iterator[Laps]:
    with TemporaryDirectory() as beside:
        folder = Path(beside)
        copied(n, folder / "src")

        def lap(way: partial[float]) -> Lap:
            timed = partial(way, folder)
            return once(timed) if way in (flake8_async, memory) else timed

        yield laps_of(CONTESTANTS, lap)  # type: ignore[arg-type]


def _first(figure: float, _: float) -> float:
    return figure


COMPARISON = Comparison(
    work="check",
    title="{n},000 lines of published packages, one job; flake8-async reads a tenth, scaled",
    n=1200,
    rounds=3,
    laps=laps,
    ratios=(
        Ratio("cold", COLD, RUFF),
        Ratio("warm", WARM, RUFF),
        Ratio("faster than flake8-async", ASYNC, COLD),
        # Figures by themselves.
        Ratio("cold in seconds", COLD, COLD, combine=_first),
        Ratio("warm in seconds", WARM, WARM, combine=_first),
        Ratio("one file changed, in seconds", CHANGED, CHANGED, combine=_first),
        Ratio("memory in MB", MEMORY, MEMORY, combine=_first),
    ),
    targets=(
        Target("cold in seconds", "<=", 12.0),
        Target("warm in seconds", "<=", 1.0),
        Target("one file changed, in seconds", "<=", 0.3),
        Target("faster than flake8-async", ">=", 100.0),
        Target("memory in MB", "<=", 250.0),
    ),
)
