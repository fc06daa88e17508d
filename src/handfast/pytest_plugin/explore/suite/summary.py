"""What `--handfast-explore` reports: failures for confirmed findings, and a summary of the suite.

Workers of xdist send their results when they end; the process that started them prints.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest

from handfast._baseline import BadBaseline, Baseline, BaselineFile
from handfast.pytest_plugin.explore.failed_report import failed_report
from handfast.pytest_plugin.explore.suite.explored import Explored
from handfast.pytest_plugin.explore.suite.options import SuiteOptions

_KEY = "handfast_explored"
# The reasons for refusals, and the findings that are not confirmed, that the summary lists.
_REASONS = 5
_LISTED = 10
# The characters of a message there.
_WIDTH = 200


class _Known(NamedTuple):
    """An entry of the baseline: no line number, so that an edit above it changes nothing."""

    test: str
    code: str


_FILE = BaselineFile(
    "findings", _Known._fields, "rewrite it with --handfast-explore-write-baseline"
)


class SuiteReporter:
    """Collects the results of all processes, and prints them at the end."""

    def __init__(self, config: pytest.Config, options: SuiteOptions) -> None:
        self._config = config
        self._options = options
        self._results: list[Explored] = []
        self._known: Baseline[Explored] | None = None
        if options.baseline is not None:
            try:
                self._known = Baseline.load(_FILE, options.baseline, _entry)
            except BadBaseline as error:
                raise pytest.UsageError(str(error)) from None
        self._baselined: set[str] = set()
        self._terminal: Any = None
        self._progressed = False
        # How many are to be explored by this process.
        self._tests = 0
        # Why a file could not be written.
        self._trouble = ""

    # --- from the explorer ---------------------------------------------------------------------

    def begin(self, tests: int, budget: float) -> None:
        """Say what follows."""
        self._tests = tests
        self._terminal = self._config.pluginmanager.get_plugin("terminalreporter")
        if self._terminal is not None and not hasattr(self._config, "workerinput"):
            self._terminal.ensure_newline()
            self._terminal.write_line(
                f"handfast: exploring {_tests(tests)}, for up to {budget:g} s"
            )

    def progress(self, what: str, nodeid: str) -> None:
        """Show which test is next, on a terminal."""
        if self._terminal is not None and self._terminal.isatty:
            self._progressed = True
            line = f"handfast: {len(self._results)} of {self._tests} done, {what} {nodeid}"
            self._terminal.rewrite(line[: self._terminal._tw.fullwidth - 1], erase=True)

    def end_progress(self) -> None:
        if self._progressed:
            self._terminal.rewrite("", erase=True)

    def add(self, result: Explored) -> None:
        """Add the result for one test."""
        self._results.append(result)

    def log(self, item: pytest.Item, result: Explored) -> None:
        """Report a finding as a failure of its test, if it is confirmed and not known."""
        finding = result.finding
        assert finding is not None
        if self._known is not None and not self._known.new([result]):
            self._baselined.add(result.nodeid)
            return
        if not finding.confirmed or self._options.write_baseline is not None:
            return
        self.end_progress()
        report = failed_report(
            item,
            f"{finding.text}\n{finding.evidence}",
            [("handfast.code", finding.code), ("handfast.token", finding.token)],
        )
        with _as_running(item):
            item.ihook.pytest_runtest_logreport(report=report)

    # --- between processes ---------------------------------------------------------------------

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        for data in getattr(node, "workeroutput", {}).get(_KEY, ()):
            result = Explored.from_data(dict(data))
            self._results.append(result)
            if self._known is not None and result.finding and not self._known.new([result]):
                self._baselined.add(result.nodeid)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        sent = getattr(self._config, "workeroutput", None)
        if sent is not None:
            sent[_KEY] = [result.to_data() for result in self._results]
            return
        try:
            self._write_files()
        except OSError as error:
            self._trouble = f"not written: {error.filename}: {error.strerror}"
            session.exitstatus = session.exitstatus or pytest.ExitCode.USAGE_ERROR

    def _write_files(self) -> None:
        if self._options.write_baseline is not None:
            found = [result for result in self._results if result.finding]
            Baseline.write(_FILE, self._options.write_baseline, found, _entry)
        if self._options.json is not None:
            data = {"tests": [result.to_data() for result in self._results]}
            self._options.json.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")

    # --- the summary ---------------------------------------------------------------------------

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self._results and not self._tests and not self._trouble:
            return
        terminalreporter.section("handfast: explored schedules")
        for line in self.lines():
            terminalreporter.write_line(line)

    def lines(self) -> list[str]:
        """The summary."""
        by_extent: Counter[str] = Counter(result.extent for result in self._results)
        schedules = sum(result.schedules for result in self._results)
        seconds = sum(result.seconds for result in self._results)
        lines = [
            f"{_tests(len(self._results))}, {schedules:,} schedules, {seconds:.1f} s: "
            f"{by_extent['all']:,} explored to the end, {by_extent['sampled']:,} sampled, "
            f"{by_extent['single']:,} with one schedule only"
        ]
        lines += self._refused(by_extent["refused"])
        if on_time := sum(result.on_time for result in self._results):
            lines.append(f"{on_time:,} without lateness: the test looks at a clock")
        if by_extent["budget"]:
            lines.append(f"{by_extent['budget']:,} not explored: the time was over")
        if self._tests > len(self._results):
            lines.append(f"{self._tests - len(self._results):,} not explored: stopped before")
        if not self._options.cancel:
            lines.append("not checked: other points of cancellation (--handfast-explore-cancel)")
        return lines + self._findings()

    def _refused(self, count: int) -> list[str]:
        if not count:
            return []
        reasons = Counter(each.reason for each in self._results if each.extent == "refused")
        shown = [f"{number} {reason}" for reason, number in reasons.most_common(_REASONS)]
        if len(reasons) > _REASONS:
            shown.append(f"{len(reasons) - _REASONS} other reasons")
        lines = [f"{count:,} not explored: {'; '.join(shown)}"]
        if self._config.option.verbose > 0:
            refused = (each for each in self._results if each.extent == "refused")
            lines += [f"  {each.nodeid}: {each.reason}" for each in refused]
        return lines

    def _findings(self) -> list[str]:
        found = [result for result in self._results if result.finding]
        lines = []
        confirmed = [each for each in found if each.finding and each.finding.confirmed]
        kinds = Counter(each.finding.code for each in confirmed if each.finding)
        text = ", ".join(f"{count} {code}" for code, count in sorted(kinds.items()))
        lines.append(f"findings: {text or 'none'}")
        for result in found[:_LISTED]:
            assert result.finding is not None
            known = "known from the baseline" if result.nodeid in self._baselined else ""
            if result.finding.confirmed and not known:
                continue  # its failure shows it
            # The message of an assertion has several lines.
            message = result.finding.message.partition("\n")[0][:_WIDTH]
            lines.append(f"  {result.nodeid}: {result.finding.code} {message}")
            lines.append(f"    {known or result.finding.evidence}; {result.finding.replay}")
        if self._trouble:
            lines.append(self._trouble)
        elif self._options.write_baseline is not None:
            lines.append(f"written to {self._options.write_baseline}: {len(found)} findings")
        return lines


@contextmanager
def _as_running(item: pytest.Item) -> Iterator[None]:
    """In a worker of xdist, let this be the item that runs: it sends no report of another one."""
    plugins = item.config.pluginmanager.get_plugins()
    worker: Any = next((each for each in plugins if hasattr(each, "item_index")), None)
    if worker is None:
        yield
        return
    before = worker.item_index
    worker.item_index = item.session.items.index(item)
    try:
        yield
    finally:
        worker.item_index = before


def _tests(count: int) -> str:
    return "1 async test" if count == 1 else f"{count:,} async tests"


def _entry(result: Explored) -> _Known:
    assert result.finding is not None
    return _Known(result.nodeid, result.finding.code)
