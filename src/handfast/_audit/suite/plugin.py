"""The pytest plugin of an audit: it runs in the project's interpreter, and writes what happens.

It is loaded with `-p`. The variable `HANDFAST_AUDIT` names a JSON file with what to do; the results
are JSON lines, written at once, so that a run that is killed leaves all but its last test.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import signal
import sys
import time
from asyncio import events
from collections.abc import Callable, Generator
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from handfast._audit.suite import VARIABLE
from handfast._code_owner import code_owner


class AuditPlugin:
    """Selects the tests, records their results, and ends the run in time."""

    # Bound here: a suite that stops the time replaces the function in all modules.
    _now = staticmethod(time.monotonic)

    def __init__(self, wanted: dict[str, Any]) -> None:
        self._skip = set(wanted["skip"])
        # Tests to run, the first of them first; None: all.
        self._only: list[str] | None = wanted["only"]
        self._ends = self._now() + wanted["seconds"]
        self._output = open(wanted["output"], "a", encoding="utf-8")  # noqa: SIM115
        self._is_async = False
        self._tasks = 0
        self._patches = ExitStack()

    def _write(self, **line: Any) -> None:
        self._output.write(json.dumps(line) + "\n")
        self._output.flush()

    # --- which tests ---------------------------------------------------------------------------

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        chosen = [each for each in items if each.nodeid not in self._skip]
        if self._only is not None:
            order = {nodeid: at for at, nodeid in enumerate(self._only)}
            chosen = [each for each in chosen if each.nodeid in order]
            chosen.sort(key=lambda each: order[each.nodeid])
        kept = set(chosen)
        config.hook.pytest_deselected(items=[each for each in items if each not in kept])
        items[:] = chosen

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._write(event="broken", where=report.nodeid, why=_last_line(report.longreprtext))

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        needs_folder = _needs_folder(Path.cwd(), session.items)
        self._write(event="collected", tests=len(session.items), needs_folder=needs_folder)

    # --- each test -----------------------------------------------------------------------------

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        line = (item.location[1] or 0) + 1
        self._write(event="began", test=item.nodeid, line=line)
        self._is_async = inspect.iscoroutinefunction(getattr(item, "obj", None))
        began = self._now()
        self._tasks = 0
        # A test that Ctrl-C ends raises here, and has no result.
        result = yield
        seconds = round(self._now() - began, 4)
        facts = {"seconds": seconds, "is_async": self._is_async, "tasks": self._tasks}
        if item.get_closest_marker("explore"):
            self._write_marked(item)
        self._write(event="ended", test=item.nodeid, **facts)
        if self._now() > self._ends:
            self._write(event="late")
            item.session.shouldstop = "handfast audit: the time is over"
        return result

    def _write_marked(self, item: Any) -> None:
        """The result of a test that is marked to be explored: that was a part of the suite's run."""
        schedules, finding = getattr(item, "schedules", 0), getattr(item, "finding", None)
        if item.get_closest_marker("xfail"):
            finding = None  # it is known
        if schedules:
            line = {"schedules": schedules, "finding": finding and asdict(finding)}
            self._write(event="explored", nodeid=item.nodeid, extent="sampled", reason="", **line)

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        found = getattr(report, "handfast_leaks", None)
        leaks = [leak.to_data() for leak in found.new] if found is not None else []
        why = _last_line(report.longreprtext) if report.failed else ""
        outcome = "xfailed" if hasattr(report, "wasxfail") else report.outcome
        # The error of a bug in handfast, not in the test.
        crash = getattr(report.longrepr, "reprcrash", None)
        is_ours = crash is not None and code_owner(crash.path) == "handfast"
        line = {"when": report.when, "outcome": outcome, "why": why, "is_ours": is_ours}
        line["leaks"] = leaks
        self._write(event="report", test=report.nodeid, **line)

    def _watch_loops(self) -> None:
        """Count tasks, and notice an event loop that runs.

        The leak detector patches the same functions. Its patches come later and end earlier.
        """
        loop_class: Any = asyncio.BaseEventLoop
        real_create = loop_class.create_task
        real_running: Callable[..., Any] = events._set_running_loop

        def create_task(loop: Any, coro: Any, **options: Any) -> Any:
            # Not those with which asyncio ends a loop, and the leak detector waits.
            code = getattr(coro, "cr_code", None)
            if code is None or code_owner(code.co_filename) in ("program", "library"):
                self._tasks += 1
            return real_create(loop, coro, **options)

        def set_running(loop: Any) -> None:
            self._is_async = self._is_async or loop is not None
            real_running(loop)

        loop_class.create_task = create_task
        events._set_running_loop = set_running
        self._patches.callback(setattr, loop_class, "create_task", real_create)
        self._patches.callback(setattr, events, "_set_running_loop", real_running)

    # --- the explorer --------------------------------------------------------------------------

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        reporter: Any = session.config.pluginmanager.get_plugin("handfast-explore-reporter")
        if reporter is None:
            self._watch_loops()  # the explorer watches them itself
            return
        add = reporter.add

        def write_and_add(result: Any) -> None:
            self._write(event="explored", **result.to_data())
            add(result)

        reporter.add = write_and_add

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        self._write(event="finished", status=int(exitstatus))

    def pytest_unconfigure(self) -> None:
        self._patches.close()
        self._output.close()


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Register the plugin, in the process that runs the tests."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        # An audit that a script starts in the background ignores it. Here it ends the run, and
        # tests may send it.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    with open(os.environ[VARIABLE], encoding="utf-8") as file:
        wanted = json.load(file)
    if hasattr(config.option, "benchmark_storage"):
        # pytest-benchmark makes this folder in the project, even if it stores nothing.
        config.option.benchmark_storage = Path(wanted["output"]).parent.as_uri()
    config.pluginmanager.register(AuditPlugin(wanted), "handfast-audit")


def _needs_folder(here: Path, items: list[pytest.Item]) -> bool:
    """Whether modules of the present folder are imported that only `python -m pytest` finds."""
    others = [each for each in sys.path if Path(each).absolute() != here]
    # The folder is there twice if the project's settings add it too. pytest adds it, if it is not
    # the first, for a conftest.py, a test file and a package of tests at the top.
    if len(sys.path) - len(others) > 1 or (here / "conftest.py").exists():
        return False
    if here in {_base(folder) for folder in {each.path.parent for each in items}}:
        return False
    names = {name for name, module in list(sys.modules.items()) if _is_in(here, name, module)}
    before = sys.path[:]
    sys.path[:] = others
    try:
        return any(not any(each.find_spec(n, None) for each in sys.meta_path) for n in names)
    finally:
        sys.path[:] = before


def _base(folder: Path) -> Path:
    """The folder that pytest adds to the path for the tests in a folder."""
    while (folder / "__init__.py").exists():
        folder = folder.parent
    return folder


def _is_in(here: Path, name: str, module: Any) -> bool:
    file = getattr(module, "__file__", None)
    return isinstance(file, str) and Path(file) in (
        here / f"{name}.py",
        here / name / "__init__.py",
    )


def _last_line(text: str) -> str:
    """The line of a traceback that names the error; pytest begins such lines with `E`."""
    lines = [line for line in text.splitlines() if line.startswith("E ")] or text.splitlines()
    return lines[0].removeprefix("E").strip()[:300] if lines else ""
