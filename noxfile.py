"""The checks of this project. A bare `nox` runs what must pass before a change goes in.

`nox -s bench` and `nox -s soak` measure, `nox -s wild` looks for real bugs in published packages,
`nox -s right` for false alarms, `nox -s neighbours` tries the bridges with older releases, all on
demand; `nox -s dev` fills a `.venv` to work in.
"""

import os
import sys

import nox

nox.needs_version = ">=2025.5.1"
nox.options.sessions = ["tests", "acceptance", "integration", "lint", "types", "docs"]
# uv makes the environments in seconds; where it cannot be had, virtualenv does the same slowly.
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.error_on_missing_interpreters = False
nox.options.download_python = "never"
nox.options.reuse_venv = "no"

# Trust what the machine trusts, as pip does: behind a proxy uv's own authorities are not enough.
os.environ.setdefault("UV_SYSTEM_CERTS", "1")
# The suite starts hundreds of interpreters. Where bytecode may not be kept, each of them would
# compile all that it imports once more: up to two thirds of its time.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Those that are missing are skipped; the one that runs nox is always there.
HERE = f"{sys.version_info.major}.{sys.version_info.minor}"
PYTHONS = ["3.11", "3.12", "3.13"]
NEWEST = PYTHONS[-1]
# Counting branches takes a third of the time, and every leak under every runner another: once.
LONG = ["tests/leaks/test_matrix.py", "tests/leaks/test_innocents.py"]
# What reaches into asyncio, and may differ on every Python; the rest is tried on two of them.
DEEP = [
    f"tests/{each}"
    for each in ("bridges", "census", "explore", "leaks", "pytest_plugin", "runtime")
]
PYTHONS += [HERE] if HERE not in PYTHONS else []
# One process for each processor, and a file stays in one: its fixtures are made once.
SPREAD = ["-n", str(min(os.cpu_count() or 1, 4)), "--dist", "loadfile"]
PYPROJECT = nox.project.load_toml("pyproject.toml")


def prepare(session: nox.Session, group: str, *extras: str) -> None:
    """Install the project in place, with its extras and one dependency group of pyproject.toml."""
    project = f".[{','.join(extras)}]" if extras else "."
    wanted = nox.project.dependency_groups(PYPROJECT, group)
    session.install("-q", "-e", project, *wanted)


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """The suite on each Python; warnings are errors; the one that runs nox counts branches, and
    those between it and the newest try what reaches into asyncio."""
    prepare(session, "test", "cli", "test")
    # pytest keeps only what it has rewritten; the programs that tests start import the plain files.
    session.run("python", "-m", "compileall", "-q", "src")
    suite = ["python", "-m", "pytest", "-q", "-W", "error", *SPREAD, *session.posargs]
    if session.python != HERE:
        between = session.python != NEWEST and not session.posargs
        session.run(*suite, *(f"--ignore={each}" for each in LONG), *(DEEP if between else ()))
        return
    # Each process of the run measures itself from its first line on: our pytest plugin, and with
    # it half of the package, is imported before any other plugin could begin to measure.
    session.env["COVERAGE_FILE"] = os.path.join(session.create_tmp(), ".coverage")
    session.env["COVERAGE_PROCESS_START"] = os.path.abspath("pyproject.toml")
    session.run("coverage", "erase")
    session.run(*suite)
    session.run("coverage", "combine", "-q")
    if not session.posargs:  # a part of the suite cannot reach the bound
        session.run("coverage", "report")


@nox.session
def acceptance(session: nox.Session) -> None:
    """What the reports ask for and what must hold, by name: held against the five systems."""
    prepare(session, "acceptance", "tour")
    session.run("python", "-m", "behave", *session.posargs)


@nox.session
def integration(session: nox.Session) -> None:
    """The command from outside: what it says, how it ends, and what is left if it is killed."""
    prepare(session, "integration", "tour")
    # Not create_tmp(): it would move the suite's own folders to where `check` does not look.
    quiet = ["--console", "dotted", "--outputdir", str(session.cache_dir / "robot")]
    session.run("robot", *quiet, *(session.posargs or ["tests/integration"]))


@nox.session
def lint(session: nox.Session) -> None:
    """Style, format, and the walls between the rooms."""
    prepare(session, "lint")
    session.run("ruff", "check", "-q", ".")
    session.run("ruff", "format", "--check", "-q", ".")
    session.run("lint-imports")


@nox.session
def types(session: nox.Session) -> None:
    """mypy --strict on everything, pyright on what users import."""
    session.install("-q", *nox.project.dependency_groups(PYPROJECT, "test", "bench"))
    prepare(session, "types", "cli", "test")
    session.run("mypy", "--strict")
    session.run("pyright")


@nox.session
def docs(session: nox.Session) -> None:
    """The site, built strictly: a dead link or a missing docstring target is an error."""
    prepare(session, "docs")
    session.env["NO_MKDOCS_2_WARNING"] = "1"  # an advertisement on each build
    session.run("mkdocs", "build", "--strict", "-q", "-d", session.create_tmp())


@nox.session(python=["3.11", "3.13"])
def bench(session: nox.Session) -> None:
    """The ASV benchmarks, quick, then the comparison with the peers in one run."""
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
    """Explore and check the releases of published packages that have a bug, and those that fixed it."""
    session.install("-q", "pip")  # run.py puts each release into a folder of its own
    session.run("python", os.path.join("wild", "run.py"), *session.posargs)
    if not session.posargs:  # they choose among the bugs to explore
        session.run("python", os.path.join("wild", "fixes.py"))


@nox.session
@nox.parametrize("release", ["reactivex==4.0.4", "reactivex==5.1.0", "langgraph==0.2.60"])
def neighbours(session: nox.Session, release: str) -> None:
    """The bridges with older releases of their neighbours; the suite has the newest."""
    prepare(session, "test", "cli", "test")
    session.install("-q", release)
    session.run("pytest", "-q", "-W", "default", "tests/bridges", *session.posargs)


@nox.session
def right(session: nox.Session) -> None:
    """A hundred thousand schedules of each program that is right: the explorer finds nothing."""
    prepare(session, "test", "cli", "test")
    session.env["HOLDFAST_RIGHT_SCHEDULES"] = "100000"
    tests = ("tests/explore/test_catalogue.py", "tests/explore/test_reports.py")
    session.run("pytest", "-q", "-o", "faulthandler_timeout=0", *tests, *session.posargs)


@nox.session(venv_backend="none")
def dev(session: nox.Session) -> None:
    """Put the project, in place, and every tool into the `.venv` that the README's command made."""
    python = os.path.join(".venv", "Scripts" if os.name == "nt" else "bin", "python")
    wanted = nox.project.dependency_groups(PYPROJECT, "dev")
    session.run(python, "-m", "pip", "install", "-q", "-e", ".[cli,test]", *wanted, external=True)
