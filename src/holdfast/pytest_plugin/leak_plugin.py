"""Leaks inside pytest: who is at work, when it is looked, and what becomes of what is found.

Registered only where `--holdfast` asks for it. The look comes after the fixtures of a test have
been torn down, and before each loop that closes. `holdfast.leaks` finds; `leak_tidings` tells.
"""

from __future__ import annotations

from asyncio import AbstractEventLoop
from collections.abc import Generator
from contextlib import ExitStack
from typing import Any

import pytest

from holdfast.census import ON_REQUEST, catch_up, owned_by, recording
from holdfast.leaks.audit import Audit, Finding
from holdfast.leaks.baseline import BadBaseline, Baseline
from holdfast.leaks.finding import Leak, in_full
from holdfast.leaks.meeting import before_close
from holdfast.pytest_plugin.leak_annotations import properties
from holdfast.pytest_plugin.leak_marker import Asked, Asking
from holdfast.pytest_plugin.leak_options import Mode, baseline_to_read
from holdfast.pytest_plugin.leak_owners import Owners, TestOwner
from holdfast.pytest_plugin.leak_tidings import Tidings

__all__ = ["LeakPlugin"]

# Whether the test has failed by itself, and has a failure to show; whether it has run at all.
_FAILED = pytest.StashKey[bool]()
_SHOWS = pytest.StashKey[bool]()
_RAN = pytest.StashKey[bool]()
_FOUND = pytest.StashKey[dict[str, Any]]()
_EXPLORED = "what explored tests leave behind: the explorer judges that itself"


class LeakPlugin:
    """Looks after each test."""

    def __init__(self, config: pytest.Config, mode: Mode, tidings: Tidings) -> None:
        self._mode = mode
        self._tidings = tidings
        self._asking = Asking(config)
        self._baseline = _baseline(config)
        self._audit = Audit(str, cancel=mode == "fail")
        self._owners = Owners()
        self._owner: TestOwner | None = None
        self._asked = Asked()
        # What was found on loops that have closed since the last look.
        self._met: list[Finding] = []
        self._within: ExitStack | None = None
        self._deselected: list[pytest.Item] = []

    # --- who is at work ------------------------------------------------------------------------

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        if item.get_closest_marker("explore"):
            self._audit.not_checked[_EXPLORED] += 1
            self._stop()
            return (yield)
        self._start()
        catch_up()
        self._owner = TestOwner(item)
        # What a hook of another plugin makes is that plugin's: nobody owns it here.
        with owned_by(None):
            return (yield)

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_call(self) -> Generator[None, Any, Any]:
        with owned_by(self._owner):
            return (yield)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        item.stash[_FAILED] = item.stash[_SHOWS] = item.stash[_RAN] = False
        try:
            self._asked = self._asking.of(item)
        except ValueError as error:
            pytest.fail(f"@pytest.mark.leaks: {error}", pytrace=False)
        # What only this test asks for was not looked at after the one before it.
        self._audit.remember([check for check in self._asked.checks if check in ON_REQUEST])

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Generator[None, Any, Any]:
        owner = self._owners.fixture(fixturedef, str(self._owner))
        with owned_by(owner or self._owner):
            try:
                return (yield)
            finally:
                if owner is not None:
                    # The last that is added is the first that runs: before the fixture's own.
                    fixturedef.addfinalizer(lambda: owner.leaving(owned_by(owner)))

    def pytest_fixture_post_finalizer(self, fixturedef: pytest.FixtureDef[Any]) -> None:
        self._owners.end(fixturedef)

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        self._deselected += items

    def _start(self) -> None:
        if self._within is None:
            self._within = ExitStack()
            self._within.enter_context(recording())
            self._within.enter_context(before_close(self._meet))
            self._audit.remember()

    def _stop(self) -> None:
        if self._within is not None:
            self._within.close()
            self._within = None

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self._tidings.add_not_checked(self._audit.not_checked)
        items = getattr(session, "items", ())
        self._tidings.add_uses(self._asking.uses(items, self._deselected))

    def pytest_unconfigure(self) -> None:
        self._stop()

    # --- the look ------------------------------------------------------------------------------

    def _meet(self, loop: AbstractEventLoop) -> None:
        self._met += self._audit.left_on(loop, self._asked.checks, self._asked.grace)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, Any, Any]:
        if self._within is None:
            return (yield)
        try:
            with owned_by(self._owner):
                result = yield
        except BaseException:
            item.stash[_FAILED] = item.stash[_SHOWS] = True
            self._look(item)
            raise
        new = self._look(item)
        if new and self._mode == "fail" and not item.stash[_FAILED]:
            pytest.fail(in_full(new), pytrace=False)
        return result

    def _look(self, item: pytest.Item) -> list[Leak]:
        """The leaks that nobody knows of yet."""
        owners = [self._owner, *self._owners.take_ended()]
        found = self._audit.left_by(owners, self._asked.checks, self._asked.grace)
        met, self._met = self._met, []
        told = [leak for _, leak in met + found]
        for leak in told:
            leak.owner = (
                leak.owner or item.nodeid
            )  # nobody saw it being made: it is new, so it is ours
        leaks = self._asked.sift(told)
        new = self._baseline.sift(leaks) if self._baseline else leaks
        if item.stash[_RAN]:
            self._asking.ran(item)
        failed = item.stash[_FAILED]
        item.user_properties += properties(new)
        item.stash[_FOUND] = self._tidings.packed(leaks, new, not failed or item.stash[_SHOWS])
        if new and self._mode == "fail" and failed:
            item.add_report_section("teardown", "holdfast", in_full(new))
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
            self._tidings.attach(report, item.stash[_FOUND])
            del item.stash[_FOUND]
        return report


def _baseline(config: pytest.Config) -> Baseline | None:
    path = baseline_to_read(config)
    try:
        return Baseline.load(path, config.rootpath) if path else None
    except BadBaseline as error:
        raise pytest.UsageError(str(error)) from None
