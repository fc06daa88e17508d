"""How many schedules the tests with `@pytest.mark.explore` ran: while they run, and at the end."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from handfast._explore.campaign import Progress

SCHEDULES = "handfast.schedules"
"""The property of a report that has the number of schedules; xdist sends it, too."""

# Seconds before the progress is shown, and between two updates of it.
_PATIENCE, _PAUSE = 1.0, 0.2
# How many tests with one schedule are named.
_NAMED = 5


class MarkedReporter:
    """Adds the number of schedules to the line of a test, and a summary."""

    def __init__(self) -> None:
        self._schedules: dict[str, int] = {}
        self._single: list[str] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(
        self, report: pytest.TestReport | pytest.CollectReport
    ) -> tuple[str, str, str] | None:
        schedules = dict(getattr(report, "user_properties", ())).get(SCHEDULES)
        if schedules is None or report.when != "call":
            return None
        self._schedules[report.nodeid] = schedules
        if schedules == 1 and report.passed:
            self._single.append(report.nodeid)
        # The word of a failure is the first of its line in the summary, which programs read.
        if not report.passed or hasattr(report, "wasxfail"):
            return None
        return "passed", ".", f"PASSED ({_count(schedules)})"

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self._schedules:
            return
        tests = len(self._schedules)
        count = "1 test" if tests == 1 else f"{tests:,} tests"
        terminalreporter.section("handfast: @pytest.mark.explore")
        terminalreporter.write_line(f"{count}, {_count(sum(self._schedules.values()))}")
        for name in self._single[:_NAMED]:
            terminalreporter.write_line(f"  only 1 schedule: {name}")
        if len(self._single) > _NAMED:
            terminalreporter.write_line(f"  and {len(self._single) - _NAMED:,} more")


class ProgressLine:
    """A line on the terminal that shows how far a long search is."""

    def __init__(self, item: pytest.Item) -> None:
        self._nodeid = item.nodeid
        plugins = item.config.pluginmanager
        self._terminal: Any = plugins.get_plugin("terminalreporter")
        self._capture: Any = plugins.get_plugin("capturemanager")
        self._shown_at = 0.0

    def show(self, progress: Progress) -> None:
        """Show it, if this is a terminal and the search takes long."""
        now = time.monotonic()
        if self._terminal is None or not self._terminal.isatty:
            return
        if progress.seconds < _PATIENCE or now < self._shown_at + _PAUSE:
            return
        if not self._shown_at:
            self._write(self._terminal.ensure_newline)
        self._shown_at = now
        line = f"{self._nodeid}: {_count(progress.schedules)}, {progress.seconds:.0f} s"
        self._rewrite(line)

    def clear(self) -> None:
        """Remove it."""
        if self._shown_at:
            self._rewrite("")

    def _rewrite(self, line: str) -> None:
        line = line[: self._terminal._tw.fullwidth - 1]
        self._write(lambda: self._terminal.rewrite(line, erase=True))

    def _write(self, write: Callable[[], None]) -> None:
        if self._capture is None:
            write()
            return
        with self._capture.global_and_fixture_disabled():
            write()


def _count(schedules: int) -> str:
    return "1 schedule" if schedules == 1 else f"{schedules:,} schedules"
