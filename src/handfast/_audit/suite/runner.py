"""Runs the tests of a project in its own interpreter, with a limit of time, and reads the results.

The folder of handfast is put on the path there; nothing is installed, and pytest's cache is in a
temporary folder, so that nothing in the project changes.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import handfast
from handfast._audit.budget import ENDING, STARTING, STOPPING
from handfast._audit.project import Project
from handfast._audit.suite import VARIABLE
from handfast._audit.suite.interpreter import Interpreter

_POLL = 0.05
# Options of pytest and its plugins that name a file to write: it would be one of the project.
_WRITING = {"--junitxml", "--junit-xml", "--html", "--log-file", "--report-log"}


@dataclass
class SuiteResult:
    """What a run has written, and how it ended."""

    events: list[dict[str, Any]] = field(default_factory=list)
    status: int | None = None
    hung_test: str = ""
    # The test that ran when the run was stopped: what it leaves is not its own doing.
    cut_test: str = ""
    timed_out: bool = False
    interrupted: bool = False
    output: str = ""
    seconds: float = 0.0

    def of(self, event: str) -> Iterator[dict[str, Any]]:
        """The lines of one kind."""
        return (line for line in self.events if line["event"] == event)


@dataclass
class SuiteRunner:
    """Starts pytest for a project. `folder` is for what the runs write."""

    project: Project
    interpreter: Interpreter
    folder: Path
    progress: Callable[[str], None] = lambda text: None
    # Variables in addition to those of this process.
    environment: Mapping[str, str] = field(default_factory=dict)
    # Whether a run was ended with Ctrl-C.
    interrupted: bool = False
    _runs: int = 0

    def run(
        self,
        options: Sequence[str],
        seconds: float,
        test_seconds: float,
        *,
        only: Sequence[str] | None = None,
        skip: Sequence[str] = (),
    ) -> SuiteResult:
        """Run it. A test that takes more than `test_seconds` ends the run."""
        self._runs += 1
        output = self.folder / f"events{self._runs}.jsonl"
        wanted = {"only": only, "skip": list(skip), "seconds": seconds, "output": str(output)}
        order = self.folder / f"wanted{self._runs}.json"
        order.write_text(json.dumps(wanted), encoding="utf-8")
        output.touch()
        result = SuiteResult()
        began = time.monotonic()
        with (
            open(self.folder / f"output{self._runs}.txt", "w+b") as printed,
            _group(self.command(options), self.project.root, self._environment(order), printed)
            as process,
        ):  # fmt: skip
            events = _Events(output, result)
            try:
                self._follow(process, events, seconds, test_seconds)
            except KeyboardInterrupt:
                result.interrupted = self.interrupted = True
            result.cut_test = events.running if process.poll() is None else ""
            _end(process)
            result.status = process.poll()
            printed.seek(0)
            result.output = printed.read().decode("utf-8", "replace")
        _Events(output, result).read_again()
        result.seconds = time.monotonic() - began
        return result

    def command(self, options: Sequence[str]) -> list[str]:
        """The command line of pytest."""
        addopts = self.project.addopts + os.environ.get("PYTEST_ADDOPTS", "").split()
        command = [
            self.interpreter.path, "-m", "pytest", "-q",
            # With an installed handfast the plugin would be there twice.
            "-p", "no:handfast", "-p", "handfast.pytest_plugin", "-p", "handfast._audit.suite.plugin",
            "--continue-on-collection-errors", "--maxfail=0", "--color=no",
            "-o", f"cache_dir={self.folder / 'cache'}",
            # pytest-asyncio warns of a missing setting, and a suite may make errors of warnings.
            "-W", "ignore:The configuration option:pytest.PytestDeprecationWarning",
        ]  # fmt: skip
        if any(word.startswith(("-n", "--numprocesses")) for word in addopts):
            command.append("-n0")  # the explorer and the limits need one process
        if any(word.startswith("--cov") for word in addopts):
            command.append("--no-cov")
        for word in addopts:
            name = word.partition("=")[0]
            if name in _WRITING:
                command.append(f"{name}={self.folder / 'unread'}")
        if self.project.broken:
            empty = self.folder / "empty.ini"
            empty.write_text("[pytest]\n", encoding="utf-8")
            command += ["-c", str(empty), "--rootdir", str(self.project.root)]
            command += self.project.tests
        return [*command, *options]

    def _environment(self, order: Path) -> dict[str, str]:
        path = [str(_package_folder(self.folder)), os.environ.get("PYTHONPATH", "")]
        return {
            **os.environ,
            **self.environment,
            VARIABLE: str(order),
            "PYTHONPATH": os.pathsep.join(filter(None, path)),
            "PYTHONDONTWRITEBYTECODE": "1",
            "HYPOTHESIS_STORAGE_DIRECTORY": str(self.folder / "hypothesis"),
        }

    def _follow(
        self,
        process: subprocess.Popen[bytes],
        events: _Events,
        seconds: float,
        test_seconds: float,
    ) -> None:
        """Wait for the end, and end it if it takes too long."""
        result = events.result
        ends = time.monotonic() + seconds + STARTING
        while process.poll() is None:
            time.sleep(_POLL)
            events.read()
            self.progress(events.status())
            if events.running and events.silent > test_seconds:
                result.hung_test = events.running
            result.timed_out = time.monotonic() > ends + STOPPING
            if result.hung_test or result.timed_out:
                return


class _Events:
    """The results of a run, as far as they are written."""

    def __init__(self, path: Path, result: SuiteResult) -> None:
        self.result = result
        self.running = ""
        self._path = path
        self._read = 0
        self._changed = time.monotonic()

    @property
    def silent(self) -> float:
        """Seconds since something was written."""
        return time.monotonic() - self._changed

    def read(self) -> None:
        data = self._path.read_bytes()[self._read :]
        whole = data[: data.rfind(b"\n") + 1]
        if whole:
            self._changed = time.monotonic()
        self._read += len(whole)
        for line in whole.splitlines():
            event = json.loads(line)
            self.result.events.append(event)
            if event["event"] in ("began", "ended"):
                self.running = event["test"] if event["event"] == "began" else ""

    def read_again(self) -> None:
        """Read all, once the run has ended."""
        self.result.events.clear()
        self._read = 0
        self.read()

    def status(self) -> str:
        """How far the run is."""
        collected = sum(line["tests"] for line in self.result.of("collected"))
        if not collected:
            return "starting pytest"
        done = sum(1 for _ in self.result.of("ended"))
        explored = sum(1 for _ in self.result.of("explored"))
        return f"{explored} explored" if explored else f"{done} of {collected} tests"


@contextmanager
def _group(
    command: list[str], root: Path, environment: dict[str, str], output: Any
) -> Iterator[subprocess.Popen[bytes]]:
    """A child with a process group of its own, which is ended with all its children."""
    # A file and no pipe: a grandchild that keeps the pipe open would block the reader.
    process = subprocess.Popen(
        command,
        cwd=root,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process, then all that is left of its group. A second Ctrl-C makes it quicker."""
    try:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            process.wait(ENDING)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        pass
    finally:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):  # all of the group have ended
            pass
        process.wait()


def _package_folder(folder: Path) -> Path:
    """A folder that contains handfast and nothing else.

    handfast may be installed beside packages that the project has in other versions.
    """
    place = folder / "path"
    package = Path(handfast.__file__).parent
    if not place.exists():
        place.mkdir()
        (place / "handfast").symlink_to(package, target_is_directory=True)
    return place


@contextmanager
def result_folder() -> Iterator[Path]:
    """A temporary folder."""
    with tempfile.TemporaryDirectory(prefix="handfast-audit-", ignore_cleanup_errors=True) as name:
        yield Path(name)
