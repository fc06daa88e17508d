"""The checks of this project. Without arguments, `nox` runs everything that must pass.

On demand: `nox -s matrix` runs every leak under every test runner, `nox -s bench` and `nox -s soak`
measure, `nox -s wild` runs the tools on real bugs of published packages, `nox -s false_alarms` runs
the explorer on correct programs, `nox -s older_releases` tests the bridges with older libraries,
`nox -s dev` installs everything into `.venv`.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import deque

import nox

nox.needs_version = ">=2025.5.1"
nox.options.sessions = ["ci"]
# uv creates environments in seconds; without it, virtualenv does the same slowly.
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.error_on_missing_interpreters = False
nox.options.download_python = "never"
nox.options.reuse_venv = "no"

# Use the certificates of the system, as pip does: behind a proxy uv's own are not enough.
os.environ.setdefault("UV_SYSTEM_CERTS", "1")
# The tests start hundreds of interpreters. Without bytecode files, each of them would compile
# everything that it imports: up to two thirds of its time.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Versions that are not installed are skipped. The one that runs nox always exists.
HERE = f"{sys.version_info.major}.{sys.version_info.minor}"
PYTHONS = ["3.11", "3.12", "3.13", "3.14", "3.15"]
PYTHONS += [HERE] if HERE not in PYTHONS else []


def is_here(version: str) -> bool:
    """Whether this Python starts. The pyenv shim of an inactive version exists, but fails."""
    found = shutil.which(f"python{version}")
    return (
        found is not None and not subprocess.run([found, "-c", ""], capture_output=True).returncode
    )


# All tests run on one Python, with branch coverage. Since 3.14 sys.monitoring can measure branches,
# at a fraction of the cost of a trace function.
WHOLE = "3.14" if is_here("3.14") else HERE
PYTHONS.sort(key=lambda version: version != WHOLE)
# What depends on internals of asyncio or on the syntax tree, and may differ between versions.
DEEP = [
    *(f"tests/{each}" for each in ("bridges", "census", "explore", "leaks", "pytest_plugin")),
    "tests/runtime",
    "tests/check/model",
    "tests/watch",
    "tests/examples/test_explored.py",
    "tests/examples/test_reactive_bridge.py",
]
# Every leak under several test runners; each test starts a pytest.
MATRIX = ["tests/leaks/test_matrix.py", "tests/leaks/test_matrix_no_false_alarm.py"]
# What is the same on every Python: searching and drawing, which know nothing of asyncio; options
# and words of the plugin.
SAME = [
    *(f"tests/explore/{each}" for each in ("corpus", "oracles", "render", "search")),
    *(f"tests/explore/test_{each}.py" for each in ("hostile_programs", "result", "token_safety")),
    "tests/leaks/stress",
    *(f"tests/watch/{each}" for each in ("growth", "metrics", "views")),
    *(
        f"tests/pytest_plugin/explore/test_suite_{each}.py"
        for each in ("calls", "cluster", "corpus", "options", "reasons")
    ),
]
# What runs something thousands of times, to see that nothing grows.
GROWTH = [
    "tests/runtime/hosting/test_held_resource_growth.py",
    "tests/runtime/keyed_tasks/test_keyed_tasks_growth.py",
    "tests/runtime/scope/test_cost_of_many_tasks.py",
    "tests/runtime/threads/test_close_with_queue.py",
]
# One process more than processors: a third of the time, tests wait for a child process or a timer.
# A file stays in one process, so its fixtures are created once.
# A process that dies is not replaced: pytest-xdist would wait for ever for the tests it had.
WORKERS = str(min((os.cpu_count() or 1) + 1, 4))
SPREAD = ["-n", WORKERS, "--dist", "loadfile", "--max-worker-restart=0"]
PYPROJECT = nox.project.load_toml("pyproject.toml")

# Lanes run at the same time. A lane runs its sessions one after the other.
LANES = {
    "tests": ["tests"],
    "others": ["types", "acceptance", "integration", "docs", "lint"],
}
PYTEST_HEADING = re.compile("=+ ([a-z A-Z]+) =+$")
FAILING = ("ERRORS", "FAILURES")
INTERRUPT = signal.SIGINT if os.name == "posix" else signal.SIGTERM


@nox.session(venv_backend="none")
def ci(session: nox.Session) -> None:
    """Everything that must pass, in two parallel lanes."""
    began = time.monotonic()
    lanes: dict[str, subprocess.Popen[str]] = {}

    def stop(*_: object) -> None:
        for lane in lanes.values():
            lane.send_signal(INTERRUPT)
        sys.exit(128 + signal.SIGTERM)

    # Ctrl-C reaches the lanes directly: they are in the process group of the terminal.
    signal.signal(signal.SIGTERM, stop)
    try:
        for name in LANES:
            lanes[name] = start_lane(name)
        failures: list[str] = []
        printers = [print_lines(*each, failures) for each in lanes.items()]
        failed = [name for name, lane in lanes.items() if lane.wait() != 0]
        for printer in printers:
            printer.join(timeout=5)  # a process that outlives its lane may keep the pipe open
    finally:
        for lane in lanes.values():
            end_lane(lane)
    session.log(f"{time.monotonic() - began:.0f} seconds")
    if failed:
        # Thousands of lines may follow a failure, and a log is often cut to its end.
        sys.stdout.write("".join(failures))
        sys.stdout.flush()
        session.error(f"failed: {', '.join(failed)} (the lines that begin with it, above)")


def start_lane(name: str) -> subprocess.Popen[str]:
    """Start a nox for the sessions of a lane."""
    return subprocess.Popen(
        [sys.executable, "-m", "nox", "--noxfile", __file__, "--sessions", *LANES[name]],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )


def print_lines(name: str, lane: subprocess.Popen[str], failures: list[str]) -> threading.Thread:
    """Print each line of a lane at once, prefixed with the name of the lane. What pytest reports of
    failures, and the last lines of each command that fails, are collected, too."""

    def copy() -> None:
        failing = False
        last: deque[str] = deque(maxlen=15)
        for line in lane.stdout or ():
            line = f"{name:6} | {line}"
            sys.stdout.write(line)
            sys.stdout.flush()
            if heading := PYTEST_HEADING.search(line):
                failing = heading[1] in FAILING
            last.append(line)
            if failing:
                failures.append(line)
            elif "nox > Command" in line:
                failures.extend(last)

    printer = threading.Thread(target=copy, daemon=True)
    printer.start()
    return printer


def end_lane(lane: subprocess.Popen[str]) -> None:
    """Wait until a lane has ended; interrupt it, then kill it, if it takes too long."""
    for more in (lambda: lane.send_signal(INTERRUPT), lane.kill):
        try:
            lane.wait(timeout=5)
            return
        except subprocess.TimeoutExpired:
            more()
    lane.wait()


def prepare(session: nox.Session, group: str, *extras: str) -> None:
    """Install the project in editable mode, with extras and a dependency group."""
    project = f".[{','.join(extras)}]" if extras else "."
    wanted = nox.project.dependency_groups(PYPROJECT, group)
    session.install("-q", "-e", project, *wanted, env=compiler_flags(session))


def compiler_flags(session: nox.Session) -> dict[str, str]:
    """Compiler flags for packages without a wheel for this Python. Debian has pyconfig.h in a folder
    that the compiler searches only if Python is installed in /usr."""
    program = "import sysconfig; print(sysconfig.get_path('include'))"
    include = session.run_install("python", "-c", program, silent=True, log=False)
    if not include:  # nothing is installed: `nox --no-install`
        return {}
    beside = os.path.dirname(str(include).strip())
    return {"CFLAGS": f"{os.environ.get('CFLAGS', '')} -idirafter {beside}".strip()}


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """The tests, with warnings as errors. One Python runs all of them, with branch coverage.

    The others run what depends on internals of asyncio or on the syntax tree.
    """
    prepare(session, "test", "cli", "test")
    # pytest writes bytecode only for rewritten modules; programs that tests start need the rest.
    session.run("python", "-m", "compileall", "-q", "src", "examples")
    # pyproject.toml makes warnings errors; `-W error` here would override its exceptions.
    suite = ["python", "-m", "pytest", "-q", *SPREAD]
    if session.python != WHOLE:
        part = [*DEEP, *(f"--ignore={each}" for each in MATRIX + SAME + GROWTH)]
        session.env["HANDFAST_RIGHT_SCHEDULES"] = "60"
        session.run(*suite, *(session.posargs or part))
        return
    # Each process starts coverage at its first line: our pytest plugin, and with it half of the
    # package, is imported before pytest-cov could start.
    session.env["COVERAGE_FILE"] = os.path.join(session.create_tmp(), ".coverage")
    session.env["COVERAGE_PROCESS_START"] = os.path.abspath("pyproject.toml")
    if WHOLE == "3.14":
        session.env["COVERAGE_CORE"] = "sysmon"
    session.run("coverage", "erase")
    session.run(*suite, *session.posargs)
    # coverage only warns about a data file that it cannot read: -W error makes the run fail.
    session.run("python", "-W", "error", "-m", "coverage", "combine", "-q")
    if not session.posargs:  # a part of the tests cannot reach fail_under
        session.run("coverage", "report")


@nox.session(python=PYTHONS)
def matrix(session: nox.Session) -> None:
    """Every leak under every test runner; `tests` has one runner of each family."""
    prepare(session, "test", "cli", "test")
    session.env["HANDFAST_LEAK_RUNNERS"] = "all"
    session.run("pytest", "-q", *MATRIX, *session.posargs)


@nox.session
def acceptance(session: nox.Session) -> None:
    """Behave: the criteria of the reports and the guarantees, on the five example systems."""
    prepare(session, "acceptance", "examples")
    session.run("python", "-m", "behave", *session.posargs)


@nox.session
def integration(session: nox.Session) -> None:
    """Robot Framework: output and exit codes of the command, and what is left if it is killed."""
    prepare(session, "integration", "examples")
    # Not create_tmp(): it sets TMPDIR to a hidden folder, which `check` skips.
    quiet = ["--console", "dotted", "--outputdir", str(session.cache_dir / "robot")]
    session.run("robot", *quiet, *(session.posargs or ["tests/integration"]))


@nox.session
def lint(session: nox.Session) -> None:
    """Style, format and import layers."""
    prepare(session, "lint")
    session.run("ruff", "check", "-q", ".")
    session.run("ruff", "format", "--check", "-q", ".")
    session.run("lint-imports")


@nox.session
def types(session: nox.Session) -> None:
    """mypy --strict on everything, pyright on the package and on the usage files."""
    session.install("-q", *nox.project.dependency_groups(PYPROJECT, "test", "bench"))
    prepare(session, "types", "cli", "test")
    session.run("mypy", "--strict")
    session.run("pyright")


@nox.session
def docs(session: nox.Session) -> None:
    """The site in strict mode: a dead link or a missing docstring is an error. Then a look at it."""
    prepare(session, "docs", "test")
    session.env["NO_MKDOCS_2_WARNING"] = "1"  # an advertisement on each build
    # Not with -q: it hides the warnings also from --strict.
    site = session.create_tmp()
    session.run("mkdocs", "build", "--strict", "-d", site)
    session.env["HANDFAST_SITE"] = site
    # The plugins that have the other settings of pyproject.toml are not installed here.
    unknown = "ignore:Unknown config option"
    session.run("pytest", "-q", "-o", "addopts=", "-W", unknown, "tests/docs/test_site.py")


@nox.session(python=["3.11", "3.13"])
def bench(session: nox.Session) -> None:
    """The ASV benchmarks, then the comparison with other libraries."""
    prepare(session, "bench")
    session.run("asv", "machine", "--yes", silent=True)
    session.run("asv", "run", "--quick", "--python=same", "--show-stderr")
    session.run("python", "-m", "benchmarks.compare", "all", *session.posargs)


@nox.session
def soak(session: nox.Session) -> None:
    """Ten million tasks through one scope; no growth after the first hundred thousand."""
    prepare(session, "bench")
    session.run("python", "-m", "benchmarks.soak", *session.posargs)


@nox.session
def wild(session: nox.Session) -> None:
    """Explore and check releases of published packages with a known bug, and those that fixed it."""
    session.install("-q", "pip")  # run.py installs each release into its own folder
    session.run("python", os.path.join("wild", "run.py"), *session.posargs)
    if not session.posargs:  # arguments select bugs of run.py
        session.run("python", os.path.join("wild", "fixes.py"))


@nox.session
@nox.parametrize("release", ["reactivex==4.0.4", "reactivex==5.1.0", "langgraph==0.2.60"])
def older_releases(session: nox.Session, release: str) -> None:
    """The bridges with older releases of their libraries; `tests` has the newest."""
    prepare(session, "test", "cli", "test")
    session.install("-q", release)
    tests = ("tests/bridges", "tests/examples/test_reactive_bridge.py")
    session.run("pytest", "-q", "-W", "default", *tests, *session.posargs)


@nox.session
def false_alarms(session: nox.Session) -> None:
    """A hundred thousand schedules of each correct program: the explorer must find nothing."""
    prepare(session, "test", "cli", "test")
    session.env["HANDFAST_RIGHT_SCHEDULES"] = "100000"
    tests = ("tests/explore/test_catalogue.py", "tests/examples/test_explored.py")
    session.run("pytest", "-q", "-o", "faulthandler_timeout=0", *tests, *session.posargs)


@nox.session(venv_backend="none")
def dev(session: nox.Session) -> None:
    """Install the project in editable mode and every tool into `.venv`."""
    python = os.path.join(".venv", "Scripts" if os.name == "nt" else "bin", "python")
    wanted = nox.project.dependency_groups(PYPROJECT, "dev")
    session.run(python, "-m", "pip", "install", "-q", "-e", ".[cli,test]", *wanted, external=True)
