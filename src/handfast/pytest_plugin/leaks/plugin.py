"""The leak detector in pytest: when it checks, and what becomes of the leaks.

Registered only with `--handfast`. It checks after the fixtures of a test have been torn down, and
before an event loop closes. `handfast._leaks` finds the leaks; `reporting` prints them.
"""

from __future__ import annotations

from asyncio import AbstractEventLoop
from collections.abc import Generator
from contextlib import ExitStack
from typing import Any

import pytest

from handfast._baseline import BadBaseline, Baseline
from handfast._census import ON_REQUEST, owned_by, patch_late_imports, recording
from handfast._leaks import baseline
from handfast._leaks.audit import Audit, Finding
from handfast._leaks.leak import Leak, full_text
from handfast._leaks.loop_close_hook import before_close
from handfast.pytest_plugin.leaks.marker import LeakOptions, LeakSettings
from handfast.pytest_plugin.leaks.options import Mode, baseline_to_read
from handfast.pytest_plugin.leaks.owners import Owners, TestOwner
from handfast.pytest_plugin.leaks.reporting import FoundLeaks, LeakReporter, junit_properties

# Whether the test has failed by itself, whether it has a failure to show, and whether it ran.
_FAILED = pytest.StashKey[bool]()
_SHOWS = pytest.StashKey[bool]()
_RAN = pytest.StashKey[bool]()
_FOUND = pytest.StashKey[FoundLeaks]()
# The share of a test's time limit that a loop which closes inside the test may wait; and the seconds
# for the examples of Hypothesis, whose deadline may be short: a few turns of the loop.
_SHARE, _OF_AN_EXAMPLE = 0.1, 0.001
_EXPLORED = "leaks of explored tests: the explorer checks them itself"


class LeakPlugin:
    """Checks for leaks after each test."""

    def __init__(self, config: pytest.Config, mode: Mode, reporter: LeakReporter) -> None:
        self._mode = mode
        self._reporter = reporter
        self._options = LeakOptions(config)
        self._baseline = _baseline(config)
        self._owners = Owners()
        self._audit = Audit(str, cancel=mode == "fail", judged=self._owners.without_lazy_parts)
        self._owner: TestOwner | None = None
        self._settings = LeakSettings()
        # The most seconds that a loop which closes now may wait.
        self._hurry = float("inf")
        # Found on loops that have closed since the last check.
        self._on_closed_loops: list[Finding] = []
        self._recording: ExitStack | None = None
        self._deselected: list[pytest.Item] = []

    # --- owners --------------------------------------------------------------------------------

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        if item.get_closest_marker("explore"):
            self._audit.not_checked[_EXPLORED] += 1
            self._stop()
            return (yield)
        self._start()
        patch_late_imports()
        self._owner = TestOwner(item)
        # What a hook of another plugin creates belongs to that plugin, and has no owner here.
        with owned_by(None):
            return (yield)

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        self._hurry = _longest_wait(item)
        try:
            with owned_by(self._owner):
                return (yield)
        finally:
            self._hurry = float("inf")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        item.stash[_FAILED] = item.stash[_SHOWS] = item.stash[_RAN] = False
        try:
            self._settings = self._options.of(item)
        except ValueError as error:
            pytest.fail(f"@pytest.mark.leaks: {error}", pytrace=False)
        # Checks that only this test has were not made after the test before it.
        self._audit.remember([check for check in self._settings.checks if check in ON_REQUEST])

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Generator[None, Any, Any]:
        owner = self._owners.fixture(fixturedef, str(self._owner))
        with owned_by(owner or self._owner):
            try:
                return (yield)
            finally:
                if owner is not None:
                    # The finalizer that is added last runs first: before the fixture's own.
                    fixturedef.addfinalizer(lambda: owner.begin_teardown(owned_by(owner)))

    def pytest_fixture_post_finalizer(self, fixturedef: pytest.FixtureDef[Any]) -> None:
        self._owners.end(fixturedef)

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        self._deselected += items

    def _start(self) -> None:
        if self._recording is None:
            self._recording = ExitStack()
            self._recording.enter_context(recording())
            self._recording.enter_context(before_close(self._check_loop))
            self._audit.remember()

    def _stop(self) -> None:
        if self._recording is not None:
            self._recording.close()
            self._recording = None

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self._reporter.add_not_checked(self._audit.not_checked)
        items = getattr(session, "items", ())
        self._reporter.add_uses(self._options.uses([*items, *self._deselected]))

    def pytest_unconfigure(self) -> None:
        self._stop()

    # --- the check -----------------------------------------------------------------------------

    def _check_loop(self, loop: AbstractEventLoop) -> None:
        grace = min(self._settings.grace, self._hurry)
        self._on_closed_loops += self._audit.leaked_on(loop, self._settings.checks, grace)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, Any, Any]:
        if self._recording is None:
            return (yield)
        try:
            with owned_by(self._owner):
                result = yield
        except BaseException:
            item.stash[_FAILED] = item.stash[_SHOWS] = True
            self._check(item)
            raise
        new = self._check(item)
        if new and self._mode == "fail" and not item.stash[_FAILED]:
            pytest.fail(full_text(new), pytrace=False)
        return result

    def _check(self, item: pytest.Item) -> list[Leak]:
        """Find the leaks of a test, and return those that are not in the baseline."""
        owners = [self._owner, *self._owners.take_ended()]
        found = self._audit.leaked_by(owners, self._settings.checks, self._settings.grace)
        found = self._on_closed_loops + found
        self._on_closed_loops = []
        # Without a known creator: it was not there before this test, so the test created it.
        owned = [leak.replace(owner=leak.owner or item.nodeid) for _, leak in found]
        leaks = self._settings.without_ignored(owned)
        new = self._baseline.new(leaks) if self._baseline else leaks
        if item.stash[_RAN]:
            self._options.add_ran(item)
        failed = item.stash[_FAILED]
        item.user_properties += junit_properties(new)
        item.stash[_FOUND] = FoundLeaks(leaks, new, shown=not failed or item.stash[_SHOWS])
        if new and self._mode == "fail" and failed:
            item.add_report_section("teardown", "handfast", full_text(new))
        return new

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if report.failed or hasattr(report, "wasxfail"):
            item.stash[_FAILED] = True
        if call.when == "call":
            item.stash[_RAN] = not report.skipped
            item.stash[_SHOWS] = report.failed
        if call.when == "teardown" and _FOUND in item.stash:
            self._reporter.attach(report, item.stash[_FOUND])
            del item.stash[_FOUND]
        return report


def _longest_wait(item: pytest.Item) -> float:
    """The most seconds to wait inside the body of a test: it must pass as it does without us."""
    if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
        return _OF_AN_EXAMPLE
    marker = item.get_closest_marker("timeout")  # of pytest-timeout
    seconds = marker.kwargs.get("timeout", *marker.args[:1]) if marker else None
    return seconds * _SHARE if isinstance(seconds, int | float) and seconds > 0 else float("inf")


def _baseline(config: pytest.Config) -> Baseline[Leak] | None:
    path = baseline_to_read(config)
    try:
        return baseline.load(path, config.rootpath) if path else None
    except BadBaseline as error:
        raise pytest.UsageError(str(error)) from None
