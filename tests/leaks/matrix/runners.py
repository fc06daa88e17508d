"""Suites of test files, one folder for each runner, run once in a pytest of their own.

Runners that need the same settings share a suite: one process, one `pytest.ini`. The results of the
tests of a suite are read from its JUnit file, as values that a test can compare.
"""

from __future__ import annotations

import faulthandler
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from xml.etree import ElementTree

__all__ = ["RUNNERS", "Finding", "Outcome", "Runner", "Suite", "Suites", "findings", "run_pytest"]

# A suite that hangs says so long before anybody gives up.
_LIMIT = 300

ENDING = '''\
"""What the programs leave behind ends with the process at the latest."""

import os
import signal
import threading

STOP = threading.Event()
PIDS = []


def end():
    STOP.set()
    while PIDS:
        try:
            os.kill(PIDS.pop(), signal.SIGKILL)
        except OSError:
            pass
'''

CONFTEST = """\
import atexit
import gc
import os

import ending

atexit.register(ending.end)
# What pytest and its plugins are made of is not walked through again by each collection.
gc.freeze()
SESSIONS = []

def pytest_sessionfinish(session):
    SESSIONS.append(session)

def pytest_unconfigure(config):
    ending.end()
    if SESSIONS and not hasattr(config, "workerinput"):
        # What is leaked on purpose may keep the interpreter from its end.
        config.get_terminal_writer().flush()
        os._exit(int(SESSIONS[0].exitstatus))
"""

ANYIO = """\
import pytest

@pytest.fixture(scope="session")
def anyio_backend():
    return "asyncio"
"""

UVLOOP = """\
def pytest_asyncio_loop_factories(config, item):
    import uvloop  # late, as in a program of one's own

    return {"uvloop": uvloop.new_event_loop}
"""

INI = """\
[pytest]
pythonpath = .
addopts = --import-mode=importlib --strict-markers
asyncio_mode = {mode}
asyncio_default_fixture_loop_scope = function
"""

_PYTEST_ASYNCIO = "import pytest_asyncio\nasync_fixture = pytest_asyncio.fixture\n"
_PYTEST = "async_fixture = pytest.fixture\n"


@dataclass(frozen=True)
class Runner:
    """Who runs an async body, and how a test for it is written."""

    name: str
    suite: str
    test: str
    node: str = "test_it"
    conftest: str = ""
    fixtures: str = ""
    """Where an async fixture comes from; empty if this runner knows none."""
    scope: str = "function"
    """That of the loop."""
    arguments: bool = True
    """Whether a test may ask for fixtures."""
    since: tuple[int, int] = (3, 11)
    core: bool = False
    """Whether it is close to another: one program of each kind is enough for it."""
    files: tuple[str, ...] = ()

    @property
    def is_there(self) -> bool:
        if self.suite == "uvloop" and sys.platform == "win32":
            return False
        return sys.version_info >= self.since


def _pytest_asyncio(scope: str) -> str:
    return f"""
@pytest.mark.asyncio(loop_scope="{scope}")
async def test_it(ARGUMENTS):
    await body(ARGUMENTS)
"""


_RUNNERS = [
    Runner("function", "strict", _pytest_asyncio("function"), fixtures=_PYTEST_ASYNCIO),
    Runner(
        "class_",
        "strict",
        """
@pytest.mark.asyncio(loop_scope="class")
class TestIt:
    async def test_it(self, ARGUMENTS):
        await body(ARGUMENTS)
""",
        node="TestIt::test_it",
        fixtures=_PYTEST_ASYNCIO,
        scope="class",
        core=True,
    ),
    Runner(
        "module",
        "strict",
        _pytest_asyncio("module"),
        fixtures=_PYTEST_ASYNCIO,
        scope="module",
        core=True,
    ),
    Runner(
        "package",
        "strict",
        _pytest_asyncio("package"),
        fixtures=_PYTEST_ASYNCIO,
        scope="package",
        core=True,
        files=("__init__.py",),
    ),
    Runner(
        "session",
        "strict",
        _pytest_asyncio("session"),
        fixtures=_PYTEST_ASYNCIO,
        scope="session",
        core=True,
    ),
    Runner(
        "auto",
        "auto",
        "async def test_it(ARGUMENTS):\n    await body(ARGUMENTS)\n",
        fixtures=_PYTEST,
        core=True,
    ),
    Runner(
        "eager",
        "auto",
        """
async def test_it(ARGUMENTS):
    asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
    await body(ARGUMENTS)
""",
        fixtures=_PYTEST,
        since=(3, 12),
        core=True,
    ),
    Runner(
        "anyio_",
        "plain",
        "@pytest.mark.anyio\nasync def test_it(ARGUMENTS):\n    await body(ARGUMENTS)\n",
        conftest=ANYIO,
        fixtures=_PYTEST,
        core=True,
    ),
    Runner(
        "unittest_",
        "plain",
        """
class TestIt(unittest.IsolatedAsyncioTestCase):
    async def test_it(self):
        await body()
""",
        node="TestIt::test_it",
        arguments=False,
        core=True,
    ),
    Runner("run", "plain", "def test_it(ARGUMENTS):\n    asyncio.run(body(ARGUMENTS))\n"),
    Runner(
        "debug",
        "plain",
        "def test_it(ARGUMENTS):\n    asyncio.run(body(ARGUMENTS), debug=True)\n",
        core=True,
    ),
    Runner(
        "by_hand",
        "plain",
        """
def test_it(ARGUMENTS):
    with asyncio.Runner() as runner:
        runner.run(body(ARGUMENTS))
""",
        core=True,
    ),
    Runner(
        "uvloop_",
        "uvloop",
        _pytest_asyncio("function"),
        conftest=UVLOOP,
        fixtures=_PYTEST_ASYNCIO,
        core=True,
    ),
]

# One of each family: a loop for each test, a loop for many, the runners of anyio and unittest,
# a test that is not async, and a loop whose timers cannot be seen.
_FAMILIES = ("function", "session", "anyio_", "unittest_", "run", "uvloop_")
_EVERY = os.environ.get("HANDFAST_LEAK_RUNNERS") == "all"  # nox -s matrix
RUNNERS = {
    runner.name: runner
    for runner in _RUNNERS
    if runner.is_there and (_EVERY or runner.name in _FAMILIES)
}

_SETTINGS = {"strict": "strict", "auto": "auto", "plain": "strict", "uvloop": "strict"}


def file_text(runner: Runner, head: str, source: str, arguments: str = "") -> str:
    """A file with one test that runs the body of `source`."""
    test = runner.test.replace("self, ARGUMENTS", "self, " + arguments if arguments else "self")
    return f"{head}{runner.fixtures}{source}\n{test.replace('ARGUMENTS', arguments)}"


# --- what came of it ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Finding:
    """One leak as printed."""

    code: str
    what: str
    owner: str
    created_at: str
    waiting_at: tuple[str, ...]


@dataclass(frozen=True)
class Outcome:
    """The result of one test."""

    status: str
    text: str

    @property
    def findings(self) -> list[Finding]:
        return findings(self.text)


_HEADLINE = re.compile(r"^[\sE|+-]*(HF\d{3}) [a-z-]+: (.*)$")
_LINE = re.compile(r"^[\sE|]*?(left by|created at|via|waiting at)\s+(\S.*)$")
_PLACE = re.compile(r"^[\sE|]+((?:raised at )?\S+:\d+ in \S+)$")


def findings(text: str) -> list[Finding]:
    """Every leak in a text."""
    found: list[dict[str, list[str]]] = []
    for line in text.splitlines():
        if headline := _HEADLINE.match(line):
            found.append({"code": [headline[1]], "what": [headline[2]]})
        elif found and (word := _LINE.match(line)):
            found[-1].setdefault(word[1], []).append(word[2])
        elif found and "waiting at" in found[-1] and (place := _PLACE.match(line)):
            found[-1]["waiting at"].append(place[1])
    return [
        Finding(
            each["code"][0],
            each["what"][0],
            each.get("left by", [""])[0],
            each.get("created at", [""])[0],
            tuple(each.get("waiting at", ())),
        )
        for each in found
    ]


def run_pytest(
    root: Path, *arguments: str, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the suite in `root`. It prints into a file: a child that is left would hold a pipe."""
    printed = root / "printed.txt"
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", f"--rootdir={root}"]
    command += ["-p", "no:pytest_cov", "-p", "no:benchmark", "-p", "no:langsmith_plugin"]
    command += ["-q", "--assert=plain", *arguments]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    with printed.open("w") as output:
        code = subprocess.run(
            command,
            cwd=root,
            env={**clean, "ENDING": str(root), "COLUMNS": "200", **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            timeout=_LIMIT,
        ).returncode
    return subprocess.CompletedProcess(command, code, printed.read_text())


def furnish(root: Path, mode: str = "strict", more: str = "") -> None:
    """What each suite needs, whatever its tests are."""
    root.mkdir(parents=True, exist_ok=True)
    (root / "pytest.ini").write_text(INI.format(mode=mode) + more)
    (root / "ending.py").write_text(ENDING)
    (root / "conftest.py").write_text(CONFTEST)


class Suite:
    """The test files of the runners that live in one process, and what came of them."""

    def __init__(self, root: Path, name: str, settings: str = "") -> None:
        self.root = root
        self.name = name
        self.printed = ""
        self.returncode = -1
        self._outcomes: dict[tuple[str, str], list[Outcome]] = {}
        furnish(root, _SETTINGS[name], settings)

    def write(self, runner: Runner, name: str, text: str) -> None:
        """A test file."""
        folder = self.root / runner.name
        if not folder.is_dir():
            folder.mkdir()
            (folder / "conftest.py").write_text(runner.conftest)
            for file in runner.files:
                (folder / file).touch()
        self.path(runner, name).write_text(text)

    def path(self, runner: Runner, name: str) -> Path:
        return self.root / runner.name / f"test_{name}.py"

    def text(self, runner: Runner, name: str) -> str:
        return self.path(runner, name).read_text()

    def run(self) -> Suite:
        """Run them all, once."""
        done = run_pytest(self.root, "--handfast", "--junitxml=results.xml")
        self.printed, self.returncode = done.stdout, done.returncode
        results = self.root / "results.xml"
        assert results.exists(), f"the suite ended with {done.returncode}:\n{done.stdout}"
        for case in ElementTree.parse(results).iter("testcase"):
            runner, file, *_ = (case.get("classname") or "").split(".")
            key = runner, file.removeprefix("test_")
            self._outcomes.setdefault(key, []).append(_outcome(case))
        return self

    def outcome(self, runner: Runner, name: str) -> Outcome:
        """That of the one test in this file."""
        found = self._outcomes.get((runner.name, name), [])
        assert len(found) == 1, f"{found} of {self.returncode}:\n{self.printed}"
        return found[0]

    def outcomes(self, runner: Runner, name: str) -> list[Outcome]:
        """Those of all tests in this file."""
        found = self._outcomes.get((runner.name, name), [])
        assert found, f"it ended with {self.returncode}:\n{self.printed}"
        return found


def _outcome(case: ElementTree.Element) -> Outcome:
    texts = [
        (child.tag, child.text or child.get("message") or "")
        for child in case
        if child.tag in ("error", "failure", "skipped")
    ]
    status = "+".join(tag for tag, _ in texts) or "passed"
    return Outcome(status, "\n".join(text for _, text in texts))


class Suites:
    """All suites, run side by side: most of the time a leaky test waits."""

    def __init__(self, suites: Iterable[Suite]) -> None:
        self._pool = ThreadPoolExecutor(os.cpu_count() or 1)
        self._running: dict[str, Future[Suite]] = {
            suite.name: self._pool.submit(suite.run) for suite in suites
        }

    def __getitem__(self, name: str) -> Suite:
        # One test waits for all of its suite, which has a limit of its own.
        faulthandler.cancel_dump_traceback_later()
        return self._running[name].result()

    def __enter__(self) -> Suites:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._pool.shutdown(cancel_futures=True)
