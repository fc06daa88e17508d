"""The reports that a run makes itself: one for each subtest, of pytest and of unittest.

They belong to a schedule and not to the suite, so no other plugin gets them. A subtest that fails
does not end its test, but the run has failed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest


class RunReports:
    """Stands for the hooks of an item, for as long as it runs."""

    def __init__(self, hooks: Any) -> None:
        self._hooks = hooks
        self._last: BaseException | None = None
        # The error of the first subtest that has failed.
        self.error: BaseException | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._hooks, name)

    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[Any]) -> Any:
        self._last = None if call.excinfo is None else call.excinfo.value
        return self._hooks.pytest_runtest_makereport(item=item, call=call)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and self.error is None:
            self.error = self._last

    def pytest_exception_interact(self, **_: Any) -> None:
        """A debugger is not wanted here."""


@contextmanager
def own_reports(item: pytest.Item) -> Iterator[RunReports]:
    """Keep the reports that are made meanwhile from all other plugins."""
    session: Any = item.session
    reports = RunReports(item.ihook)
    session.gethookproxy = lambda path: reports
    try:
        yield reports
    finally:
        del session.gethookproxy
