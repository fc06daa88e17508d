"""The item of an explored test: a class of its own, so that no other plugin runs it.

It decides what to run, what to raise and what to print. `handfast.explore` searches, shrinks and
describes the schedules.
"""

from __future__ import annotations

import functools
import inspect
import shutil
import unittest
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any, NoReturn

import pytest

from handfast._explore.campaign import Campaign
from handfast._explore.replay import line_of
from handfast._explore.search.workers import WorkersNeedImport
from handfast.explore import BadToken, Counterexample, Divergence, Exploration, Uncontrolled, replay
from handfast.pytest_plugin.explore import fixtures, output
from handfast.pytest_plugin.explore.finding_output import replay_line, with_page
from handfast.pytest_plugin.explore.fixtures import FixtureFactory, FixtureHook
from handfast.pytest_plugin.explore.marked_tests import SCHEDULES, ProgressLine
from handfast.pytest_plugin.explore.options import options_of
from handfast.pytest_plugin.explore.suite.explored import SuiteFinding

Program = Callable[[], Coroutine[Any, Any, Any]]
_TITLE = "handfast explore"
# Raised by a test on purpose: they are no findings.
_OUTCOMES = (pytest.skip.Exception, pytest.xfail.Exception, pytest.exit.Exception)


def replace_items(session: pytest.Session) -> None:
    """Replace each marked function by an explored item."""
    for at, item in enumerate(session.items):
        if isinstance(item, pytest.Function) and item.get_closest_marker("explore"):
            session.items[at] = ExploredItem.in_place_of(item)
    if session.config.getoption("handfast_replay"):
        _require_one([item for item in session.items if isinstance(item, ExploredItem)])
    session.config.pluginmanager.register(FixtureHook(ExploredItem), "handfast-fixtures")


def _require_one(items: list[ExploredItem]) -> None:
    if len(items) > 1:
        raise pytest.UsageError(
            f"--handfast-replay is for one test, and {len(items)} explored tests are selected: "
            f"name the test of the token, such as {items[0].nodeid}"
        )


class ExploredItem(pytest.Function):
    """An async test that runs under many schedules."""

    # The error that pytest is to show, and the text of its counterexample.
    _shown_error: tuple[BaseException, str] | None = None
    # For an audit: how many schedules have run, and what was found.
    schedules = 0
    finding: SuiteFinding | None = None

    @classmethod
    def in_place_of(cls, item: pytest.Function) -> ExploredItem:
        """Return an explored item for the same test."""
        assert item.parent is not None
        explored: ExploredItem = cls.from_parent(
            item.parent,
            name=item.name,
            callspec=getattr(item, "callspec", None),
            callobj=item.obj,
            fixtureinfo=item._fixtureinfo,
            keywords=item.keywords,
            originalname=item.originalname,
        )
        explored.own_markers = item.own_markers
        explored.user_properties = item.user_properties
        explored.stash = item.stash
        return explored

    def setup(self) -> None:
        self._shown_error = self.finding = None
        self._check_backend()
        self._check_use()
        super().setup()

    def runtest(self) -> None:
        # Hide this frame if the error has frames of the test.
        __tracebackhide__ = _is_error
        with output.without_cleanup_warnings():
            found, size = self._find()
            if found is None:
                output.discard(self)
                self.add_report_section("call", "handfast", size)
                return
            error = self._error(found, size)
        raise error

    def repr_failure(  # type: ignore[override]
        self, excinfo: pytest.ExceptionInfo[BaseException]
    ) -> Any:
        shown: Any = super().repr_failure(excinfo)
        if self._shown_error is not None and excinfo.value is self._shown_error[0]:
            shown.addsection(_TITLE, self._shown_error[1])
        return shown

    # --- wrong use ---------------------------------------------------------------------------

    def _check_use(self) -> None:
        if isinstance(self.parent, pytest.Class) and issubclass(self.parent.obj, unittest.TestCase):
            self._refuse(
                "a unittest.TestCase cannot be explored: write the test as a plain function"
            )
        if not inspect.iscoroutinefunction(self.obj):
            self._refuse(
                f"{self.originalname} is not async, and only an async test can be explored"
            )
        for name, scope in fixtures.wide_async_fixtures(self):
            self._refuse(
                f"the async fixture {name!r} has scope {scope!r}, but each schedule has its own "
                "event loop: give it scope 'function', or make it a sync fixture"
            )
        wrong = self._wrong_arguments()
        if wrong is not None:
            self._refuse(wrong)

    def _wrong_arguments(self) -> str | None:
        try:
            Campaign(self.obj, options_of(self))
        except (ValueError, TypeError) as error:
            return str(error)
        return None

    def _refuse(self, what: str) -> NoReturn:
        pytest.fail(f"usage error: @pytest.mark.explore: {what}", pytrace=False)

    def _check_backend(self) -> None:
        backend = self.callspec.params.get("anyio_backend") if hasattr(self, "callspec") else None
        name = backend[0] if isinstance(backend, tuple) else backend
        if name not in (None, "asyncio"):
            pytest.skip(f"the explorer supports only asyncio, and this test is for {name}")

    # --- the runs ----------------------------------------------------------------------------

    def _program(self) -> Program:
        test = self.obj
        given = {name: self.funcargs[name] for name in self._fixtureinfo.argnames}
        factories = [value for value in self.funcargs.values() if isinstance(value, FixtureFactory)]
        clear = output.clear_before_each_run(self)

        @functools.wraps(test)
        def program() -> Any:
            clear()
            if not factories:
                return test(**given)
            coroutine: Any = fixtures.run_with_fixtures(test, given, factories)
            coroutine.__qualname__ = test.__qualname__  # the timeline names the task after it
            return coroutine

        return program

    def _find(self) -> tuple[Counterexample | None, str]:
        """Return a counterexample if there is one, and how much was explored."""
        program = self._program()
        token = self.config.getoption("handfast_replay")
        with output.mute_asyncio_log():
            if token:
                return self._replay(program, token), "replayed from its token"
            exploration = self._explore(program)
        self.schedules = exploration.schedules
        self.user_properties.append((SCHEDULES, exploration.schedules))
        self.user_properties.append(("handfast.explored", exploration.summary))
        if exploration.unrepeated and exploration.counterexample is None:
            self.warn(pytest.PytestWarning(_unrepeated(exploration.unrepeated)))
        return exploration.counterexample, _size(exploration)

    def _explore(self, program: Program) -> Exploration:
        try:
            return self._search(program)
        except Uncontrolled as error:
            message = _with_line(error)
        pytest.fail(message, pytrace=False)

    def _search(self, program: Program) -> Exploration:
        options = options_of(self)
        campaign = Campaign(program, options)
        line = ProgressLine(self)
        try:
            campaign.run(line.show)
        except WorkersNeedImport:
            # This process has threads, as a worker of xdist has, and cannot be forked.
            campaign = Campaign(program, replace(options, workers=1))
            campaign.run(line.show)
        finally:
            line.clear()
        return campaign.result()

    def _replay(self, program: Program, token: str) -> Counterexample:
        try:
            return replay(program, token)
        except BadToken as error:
            wrong = str(error)
        except Divergence as error:
            wrong = f"the token does not fit: {error}"
        except Uncontrolled as error:
            wrong = _with_line(error)
        pytest.fail(f"--handfast-replay: {wrong}", pytrace=False)

    # --- the output ------------------------------------------------------------------------

    def _error(self, found: Counterexample, size: str) -> BaseException:
        """Return the error to raise, from a last run whose log and output are kept."""
        if isinstance(found.error, _OUTCOMES):
            return found.error
        with output.mute_asyncio_log():
            text = self._text(found, size)
        output.discard(self)
        try:
            verdict = found.replay()
        except Divergence:
            verdict = found.verdict
        self.user_properties.append(("handfast.code", found.code))
        self.user_properties.append(("handfast.token", found.token))
        error = verdict.error
        if error is None:
            lines = "\n".join([f"{found.code} {verdict.message}", *verdict.where])
            error = pytest.fail.Exception(lines, pytrace=False)
        self._shown_error = (error, text)
        where = verdict.where[0] if verdict.where else ""
        line = replay_line(self, found.token)
        self.finding = SuiteFinding(found.code, verdict.message, where, found.token, line, text)
        return error

    def _text(self, found: Counterexample, size: str) -> str:
        line = replay_line(self, found.token)
        text = found.report(line, size, width=shutil.get_terminal_size((100, 24)).columns)
        return with_page(self, found, line, text)


def _with_line(error: Uncontrolled) -> str:
    line = line_of(error)
    return f"{error}\n    called at {line}" if line else str(error)


def _size(exploration: Exploration) -> str:
    return "\n".join([exploration.summary, *exploration.not_checked])


def _unrepeated(count: int) -> str:
    times = "one schedule" if count == 1 else f"{count} schedules"
    return (
        f"{times} failed once and did not fail again: something is shared by the runs, such as a "
        "global, a cache of a module, or a sync fixture"
    )


def _is_error(excinfo: pytest.ExceptionInfo[BaseException]) -> bool:
    return not isinstance(excinfo.value, pytest.fail.Exception)
