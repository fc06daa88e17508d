"""Reports leaks: at the end of the run, on GitHub, in the JUnit file and in a baseline file.

The leaks of a test are attached to its report, which xdist sends from its workers to the process
that prints. What belongs to no test is sent when a worker ends.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Generator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from handfast._asyncio_internals import untested_python
from handfast._github import Level, annotation
from handfast._leaks import baseline
from handfast._leaks.leak import Leak
from handfast._leaks.summary import by_origin, summary
from handfast.pytest_plugin.leaks.marker import IgnoreUse, is_whole_run, unused_ignores
from handfast.pytest_plugin.leaks.options import Mode, baseline_to_read, baseline_to_write

_KEY = "handfast_leaks"


class FoundLeaks(NamedTuple):
    """The leaks of one test: all, those not in the baseline, and whether its failure shows them."""

    all: Sequence[Leak]
    new: Sequence[Leak]
    shown: bool


class LeakReporter:
    """Collects the leaks of all processes of the run, and prints them at the end."""

    def __init__(self, config: pytest.Config, mode: Mode) -> None:
        self._config = config
        self._mode = mode
        self._all: list[Leak] = []
        self._new: list[Leak] = []
        # New ones that no failure of a test shows.
        self._not_shown: list[Leak] = []
        self._ran: set[str] = set()
        self._not_checked: Counter[str] = Counter()
        self._uses: list[IgnoreUse] = []
        self._unused: list[str] = []

    # --- from the tests ------------------------------------------------------------------------

    def attach(self, report: pytest.TestReport, found: FoundLeaks) -> None:
        """Put the leaks of a test on its report."""
        setattr(report, _KEY, found)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        found: FoundLeaks | None = getattr(report, _KEY, None)
        if found is not None:
            self._ran.add(report.nodeid)
            self._all += found.all
            self._new += found.new
            self._not_shown += () if found.shown else found.new

    @pytest.hookimpl(wrapper=True)
    def pytest_report_to_serializable(self) -> Generator[None, Any, Any]:
        data = yield
        if data and (found := data.get(_KEY)):
            data[_KEY] = [*([*map(Leak.to_data, each)] for each in found[:2]), found.shown]
        return data

    @pytest.hookimpl(wrapper=True)
    def pytest_report_from_serializable(self) -> Generator[None, Any, Any]:
        report: Any = yield
        if data := getattr(report, _KEY, None):
            leaks, new = ([*map(Leak.from_data, each)] for each in data[:2])
            self.attach(report, FoundLeaks(leaks, new, shown=data[2]))
        return report

    def add_not_checked(self, counts: Mapping[str, int]) -> None:
        """Add what could not be checked, and how often."""
        self._not_checked.update(counts)

    def add_uses(self, uses: Iterable[IgnoreUse]) -> None:
        """Add how the ignores were used in one process."""
        self._uses += uses

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take what a worker of xdist sends when it ends."""
        output = getattr(node, "workeroutput", {}).get(_KEY)
        if output:
            self.add_not_checked(output["not_checked"])
            self.add_uses(output["uses"])

    # --- at the end ----------------------------------------------------------------------------

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        output = getattr(self._config, "workeroutput", None)
        if output is not None:  # a worker of xdist: the process that started it prints
            output[_KEY] = {"not_checked": dict(self._not_checked), "uses": self._uses}
            return
        if is_whole_run(self._config):
            self._unused = unused_ignores(self._uses)
        if self._unused and self._mode == "fail" and not session.exitstatus:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        path = baseline_to_write(self._config)
        if path is not None:
            baseline.write(path, self._all, self._config.rootpath)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        lines = self._lines()
        if lines:
            terminalreporter.section("handfast: leaks")
        if os.environ.get("GITHUB_ACTIONS") == "true":
            level: Level = "error" if self._mode == "fail" else "warning"
            lines += github_lines(self._new, level, self._config.rootpath)
        for line in lines:
            terminalreporter.write_line(line)

    def _lines(self) -> list[str]:
        if self._mode == "report":
            lines = summary(self._new, self._not_checked)
            if not self._new:
                lines.insert(0, f"no leaks in {len(self._ran)} tests")
        else:
            lines = [*map(str, self._not_shown), *summary((), self._not_checked)]
        if (untested := untested_python()) is not None:
            lines.append(f"warning: {untested}")
        return lines + self._unused + self._about_baseline()

    def _about_baseline(self) -> list[str]:
        lines = []
        if path := baseline_to_write(self._config):
            count = len(self._all)
            lines.append(f"written to {path}: {count} known leak{'' if count == 1 else 's'}")
        if (path := baseline_to_read(self._config)) is not None:
            known = baseline.load(path, self._config.rootpath)
            known.new(self._all)
            if len(self._all) > len(self._new):
                lines.append(f"known from the baseline: {len(self._all) - len(self._new)}")
            if gone := baseline.FILE.gone_text(baseline.gone(known, self._ran)):
                lines.append(gone)
        return lines


# --- CI ------------------------------------------------------------------------------------------


def junit_properties(leaks: Iterable[Leak]) -> list[tuple[str, str]]:
    """Return the leaks as `user_properties` of a test, which are in the JUnit file."""
    return [
        ("handfast.leak", f"{leak.code} {leak.kind.name}: {leak.what}, created {_at(leak)}")
        for leak in leaks
    ]


def github_lines(leaks: Iterable[Leak], level: Level, root: Path) -> list[str]:
    """Return an annotation for each line that created leaks, the one with most leaks first:
    GitHub shows ten for a step. `root` is the folder of the repository."""
    return [_annotation(group, level, root) for group in by_origin(leaks)]


def _annotation(group: Sequence[Leak], level: Level, root: Path) -> str:
    leak = group[0]
    where: dict[str, object] = {}
    # GitHub can show it only at a line of this repository.
    if leak.created_at is not None and Path(leak.created_at.filename).is_relative_to(root):
        file = Path(leak.created_at.filename).relative_to(root).as_posix()
        where = {"file": file, "line": leak.created_at.lineno}
    more = f"\n    and {len(group) - 1} more from this line" if group[1:] else ""
    return annotation(level, where | {"title": f"{leak.code} {leak.kind.name}"}, f"{leak}{more}")


def _at(leak: Leak) -> str:
    return f"at {leak.created_at}" if leak.created_at is not None else "at an unknown line"
