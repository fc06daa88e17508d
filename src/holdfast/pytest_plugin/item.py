"""A test that is explored: an item of its own kind, so that no other plugin runs it.

It decides what to run, what to raise and what to print. How a schedule is found, shrunk and told
is the business of `holdfast.explore`.
"""

from __future__ import annotations

import functools
import inspect
import os
import re
import shlex
import shutil
import unittest
import zlib
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, NoReturn

import pytest

from holdfast.explore import (
    BadToken,
    Campaign,
    Counterexample,
    Divergence,
    Exploration,
    Uncontrolled,
    WorkersNeedImport,
    replay,
)
from holdfast.explore.results import line_of
from holdfast.pytest_plugin.fixtures import Recipe, Recipes, cooked, too_wide
from holdfast.pytest_plugin.marker import arguments
from holdfast.pytest_plugin.quiet import forget_output, forgetting, mute_loop, sheltered

__all__ = ["Explored", "take_over"]

_TITLE = "holdfast explore"
# What a test says of itself, and not of its code.
_OUTCOMES = (pytest.skip.Exception, pytest.xfail.Exception, pytest.exit.Exception)


def take_over(session: pytest.Session) -> None:
    """Put an explored item in the place of each function that is marked."""
    for at, item in enumerate(session.items):
        if isinstance(item, pytest.Function) and item.get_closest_marker("explore"):
            session.items[at] = Explored.in_place_of(item)
    if session.config.getoption("holdfast_replay"):
        _only_one([item for item in session.items if isinstance(item, Explored)])
    session.config.pluginmanager.register(Recipes(Explored), "holdfast-recipes")


def _only_one(items: list[Explored]) -> None:
    if len(items) > 1:
        raise pytest.UsageError(
            f"--holdfast-replay is for one test, and {len(items)} explored tests are selected: "
            f"name the one that it belongs to, such as {items[0].nodeid}"
        )


class Explored(pytest.Function):
    """An async test that runs under many schedules."""

    # The counterexample's text, for the error that is being shown.
    _told: tuple[BaseException, str] | None = None

    @classmethod
    def in_place_of(cls, item: pytest.Function) -> Explored:
        """The same test, with all that is known of it until now."""
        assert item.parent is not None
        explored: Explored = cls.from_parent(
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
        self._told = None
        self._check_backend()
        self._check_use()
        super().setup()

    def runtest(self) -> None:
        # A frame that pytest shows only where there is no better one.
        __tracebackhide__ = _is_error
        with sheltered():
            found, size = self._look()
            if found is None:
                forget_output(self)
                self.add_report_section("call", "holdfast", size)
                return
            error = self._shown(found, size)
        raise error

    def repr_failure(  # type: ignore[override]
        self, excinfo: pytest.ExceptionInfo[BaseException]
    ) -> Any:
        shown: Any = super().repr_failure(excinfo)
        if self._told is not None and excinfo.value is self._told[0]:
            shown.addsection(_TITLE, self._told[1])
        return shown

    # --- wrong use ---------------------------------------------------------------------------

    def _check_use(self) -> None:
        if isinstance(self.parent, pytest.Class) and issubclass(self.parent.obj, unittest.TestCase):
            self._refuse(
                "it cannot explore a unittest.TestCase: write the test as a plain function"
            )
        if not inspect.iscoroutinefunction(self.obj):
            self._refuse(f"it needs an async test, and {self.originalname} is not async")
        for name, scope in too_wide(self):
            self._refuse(
                f"the async fixture {name!r} has scope {scope!r}, and a loop lasts for one schedule: "
                "give it scope 'function', or make it a sync fixture"
            )
        wrong = self._wrong_arguments()
        if wrong is not None:
            self._refuse(wrong)

    def _wrong_arguments(self) -> str | None:
        try:
            Campaign(self.obj, **arguments(self))
        except (ValueError, TypeError) as error:
            return str(error)
        return None

    def _refuse(self, what: str) -> NoReturn:
        pytest.fail(f"usage error: @pytest.mark.explore: {what}", pytrace=False)

    def _check_backend(self) -> None:
        backend = self.callspec.params.get("anyio_backend") if hasattr(self, "callspec") else None
        name = backend[0] if isinstance(backend, tuple) else backend
        if name not in (None, "asyncio"):
            pytest.skip(f"the explorer has a loop for asyncio only, and this is for {name}")

    # --- what runs ---------------------------------------------------------------------------

    def _program(self) -> Callable[[], Coroutine[Any, Any, Any]]:
        test = self.obj
        given = {name: self.funcargs[name] for name in self._fixtureinfo.argnames}
        recipes = [value for value in self.funcargs.values() if isinstance(value, Recipe)]
        forget = forgetting(self)

        @functools.wraps(test)
        def program() -> Any:
            forget()
            if not recipes:
                return test(**given)
            coroutine: Any = cooked(test, given, recipes)
            coroutine.__qualname__ = test.__qualname__  # so is the task called
            return coroutine

        return program

    def _look(self) -> tuple[Counterexample | None, str]:
        """What breaks the test, if something does, and how much was tried."""
        program = self._program()
        token = self.config.getoption("holdfast_replay")
        with mute_loop():
            if token:
                return self._again(program, token), "replayed from its token"
            exploration = self._controlled(program)
        self.user_properties.append(("holdfast.explored", exploration.summary))
        if exploration.unrepeated and exploration.counterexample is None:
            self.warn(pytest.PytestWarning(_unrepeated(exploration.unrepeated)))
        return exploration.counterexample, _size(exploration)

    def _controlled(self, program: Callable[[], Coroutine[Any, Any, Any]]) -> Exploration:
        try:
            return self._explore(program)
        except Uncontrolled as error:
            refused = _refused(error)
        pytest.fail(refused, pytrace=False)

    def _explore(self, program: Callable[[], Coroutine[Any, Any, Any]]) -> Exploration:
        asked = arguments(self)
        campaign = Campaign(program, **asked)
        try:
            campaign.run()
        except WorkersNeedImport:
            # This process has threads, as a worker of xdist has. One finds what several find.
            asked["workers"] = 1
            campaign = Campaign(program, **asked)
            campaign.run()
        return campaign.result()

    def _again(self, program: Callable[[], Coroutine[Any, Any, Any]], token: str) -> Counterexample:
        try:
            return replay(program, token)
        except BadToken as error:
            wrong = str(error)
        except Divergence as error:
            wrong = f"the token does not fit: {error}"
        except Uncontrolled as error:
            wrong = _refused(error)
        pytest.fail(f"--holdfast-replay: {wrong}", pytrace=False)

    # --- what is shown -----------------------------------------------------------------------

    def _shown(self, found: Counterexample, size: str) -> BaseException:
        """The error to raise, from a last run whose log and output are kept."""
        if isinstance(found.error, _OUTCOMES):
            return found.error
        with mute_loop():
            text = self._text(found, size)
        forget_output(self)
        try:
            verdict = found.replay()
        except Divergence:
            verdict = found.verdict
        self.user_properties.append(("holdfast.code", found.code))
        self.user_properties.append(("holdfast.token", found.token))
        error = verdict.error
        if error is None:
            lines = "\n".join([f"{found.code} {verdict.message}", *verdict.where])
            error = pytest.fail.Exception(lines, pytrace=False)
        self._told = (error, text)
        return error

    def _text(self, found: Counterexample, size: str) -> str:
        line = self._replay_line(found)
        text = found.report(line, size, width=shutil.get_terminal_size((100, 24)).columns)
        folder = self.config.getoption("holdfast_html")
        if folder:
            page = Path(folder) / _file_name(self.nodeid)
            page.parent.mkdir(parents=True, exist_ok=True)
            page.write_text(found.to_html(line), encoding="utf-8")
            text += f"\npage: {page}"
        return text

    def _replay_line(self, found: Counterexample) -> str:
        _, colons, name = self.nodeid.partition("::")
        file = os.path.relpath(self.path, self.config.invocation_params.dir)
        test = f"{file}{colons}{name}"
        return f"pytest {shlex.quote(test)} --holdfast-replay={found.token}"


def _refused(error: Uncontrolled) -> str:
    line = line_of(error)
    return f"{error}\n    called at {line}" if line else str(error)


def _size(exploration: Exploration) -> str:
    return "\n".join(
        [exploration.summary, *(f"not checked: {what}" for what in exploration.not_checked)]
    )


def _unrepeated(count: int) -> str:
    times = "one schedule" if count == 1 else f"{count} schedules"
    return (
        f"{times} went wrong once and not again: something outlives a run, such as a global, a "
        "module's cache, or a sync fixture, which all schedules share"
    )


def _file_name(nodeid: str) -> str:
    """A name for every test: the mark at the end keeps those apart that look the same."""
    plain = re.sub(r"[^\w.-]+", "-", nodeid).strip("-")[-100:]
    return f"{plain}-{zlib.crc32(nodeid.encode()):08x}.html"


def _is_error(excinfo: pytest.ExceptionInfo[BaseException]) -> bool:
    return not isinstance(excinfo.value, pytest.fail.Exception)
