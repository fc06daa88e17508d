"""What was found, on its way to whoever reads it: the end of the run, GitHub, a baseline file.

Findings ride on the reports of their tests, so that under xdist they come from the workers to the
process that prints. What belongs to no test travels when a worker is done.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from holdfast.leaks.baseline import Baseline, gone_in_words
from holdfast.leaks.finding import Leak
from holdfast.leaks.summary import summary
from holdfast.leaks.travel import from_data, to_data
from holdfast.pytest_plugin.leak_annotations import github_lines, on_github
from holdfast.pytest_plugin.leak_ignores import Use, reach, stale
from holdfast.pytest_plugin.leak_options import Mode, baseline_to_read, baseline_to_write

__all__ = ["Tidings"]

_LUGGAGE = "holdfast_leaks"


class Tidings:
    """Collects what was found in all processes of the run, and tells of it at the end."""

    def __init__(self, config: pytest.Config, mode: Mode) -> None:
        self._config = config
        self._mode = mode
        self._all: list[Leak] = []
        self._new: list[Leak] = []
        # Of tests that have not failed for them, and under whose failure they do not stand.
        self._beside: list[Leak] = []
        self._ran: set[str] = set()
        self._not_checked: Counter[str] = Counter()
        self._uses: list[Use] = []
        self._stale: list[str] = []

    # --- on the way ----------------------------------------------------------------------------

    def packed(self, leaks: Iterable[Leak], new: Iterable[Leak], told: bool) -> dict[str, Any]:
        """The leaks of one test, as a report can carry them; `told` if its failure shows them."""
        return {
            "all": [to_data(leak) for leak in leaks],
            "new": [to_data(leak) for leak in new],
            "told": told,
        }

    def attach(self, report: pytest.TestReport, packed: dict[str, Any]) -> None:
        setattr(report, _LUGGAGE, packed)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        packed = getattr(report, _LUGGAGE, None)
        if packed is not None:
            self._ran.add(report.nodeid)
            self._all += map(from_data, packed["all"])
            new = list(map(from_data, packed["new"]))
            self._new += new
            self._beside += () if packed["told"] else new

    def add_not_checked(self, spots: Mapping[str, int]) -> None:
        self._not_checked.update(spots)

    def add_uses(self, uses: Iterable[Use]) -> None:
        self._uses += uses

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """A worker of xdist is done."""
        output = getattr(node, "workeroutput", {}).get(_LUGGAGE)
        if output:
            self.add_not_checked(output["not_checked"])
            self.add_uses(output["uses"])

    # --- at the end ----------------------------------------------------------------------------

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        output = getattr(self._config, "workeroutput", None)
        if output is not None:  # a worker: the process that started it tells
            output[_LUGGAGE] = {"not_checked": dict(self._not_checked), "uses": self._uses}
            return
        self._stale = stale(self._uses, reach(self._config))
        if self._stale and self._mode == "fail" and not session.exitstatus:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        path = baseline_to_write(self._config)
        if path is not None:
            Baseline.write(path, self._all, self._config.rootpath)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        lines = self._lines()
        if lines:
            terminalreporter.section("holdfast: what was left behind")
            for line in lines:
                terminalreporter.write_line(line)
        if on_github(os.environ):
            fails = self._mode == "fail"
            for line in github_lines(
                self._new, "error" if fails else "warning", self._config.rootpath
            ):
                terminalreporter.write_line(line)

    def _lines(self) -> list[str]:
        if self._mode == "report":
            lines = summary(self._new, self._not_checked)
            if not self._new:
                lines.insert(0, f"nothing, in {len(self._ran)} tests")
        else:
            lines = [*map(str, self._beside), *summary((), self._not_checked)]
        lines += self._stale
        return lines + self._about_baseline()

    def _about_baseline(self) -> list[str]:
        lines = []
        if path := baseline_to_write(self._config):
            lines.append(f"written to {path}: {len(self._all)} known leaks")
        if (path := baseline_to_read(self._config)) is not None:
            known = Baseline.load(path, self._config.rootpath)
            if len(self._all) > len(self._new):
                lines.append(f"known from the baseline: {len(self._all) - len(self._new)}")
            if gone := gone_in_words(known.gone(self._all, self._ran)):
                lines.append(gone)
        return lines
