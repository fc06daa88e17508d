"""A test as a program of the explorer: each run is its set-up, its call and its teardown.

Fixtures of function scope are new in each run, as when a plugin runs a test again after a failure.
Wider fixtures stay, unless they keep an event loop open: then everything is torn down each time.
"""

from __future__ import annotations

import inspect
import math
import threading
import time
import unittest
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal, TypeAlias

import pytest
from _pytest.config import apply_warning_filters, parse_warning_filter

from handfast._explore.hosted.patches import Patch, patched
from handfast._explore.hosted.program import Ended, HostedProgram
from handfast._explore.simulation.threads.locks import MEMBERS
from handfast.pytest_plugin.explore.suite.run_reports import own_reports

Phase: TypeAlias = Literal["setup", "call", "teardown"]
# Raised by a test on purpose: such a schedule is not judged.
_OUTCOMES = (pytest.skip.Exception, pytest.xfail.Exception)
_STOPS = (KeyboardInterrupt, pytest.exit.Exception)
# What the explorer ends before its time warns when it is collected, in any later run.
_NOT_OURS = (
    pytest.PytestUnraisableExceptionWarning,
    pytest.PytestUnhandledThreadExceptionWarning,
    ResourceWarning,
)

# What makes the text of a failure, in pytest's reports.
_TEXTS = ("repr_failure", "_repr_failure_py")
_SLICE = 0.05
_real_join = threading.Thread.join


class Sibling:
    """Stands for the next test in the same place, so that wider fixtures are kept."""

    def __init__(self, item: pytest.Item) -> None:
        self._parents = item.listchain()[:-1]

    def listchain(self) -> list[Any]:
        return [*self._parents, self]


class ItemRun:
    """Runs an item from set-up to teardown."""

    def __init__(self, item: pytest.Item) -> None:
        self.item = item
        self.sibling = Sibling(item)
        # Whether wider fixtures are torn down after each run.
        self.tears_down_all = _has_wider_async_fixtures(item)

    def program(self, body: Callable[[], Ended | None]) -> HostedProgram:
        """The item for the explorer, which calls `body` for each run."""
        # A whole number: what the sums of delays are rounded to does not depend on the machine.
        now = float(math.ceil(time.monotonic()))
        return HostedProgram(
            body,
            self.item.nodeid,
            getattr(self.item, "function", None) or getattr(self.item, "obj", None),
            clock=now,
            wall=time.time() - now,
        )

    def run(self) -> Ended | None:
        """Run the item once; how it ended, None if it passed or skipped itself."""
        item: Any = self.item
        _renew(item)
        hooks = item.ihook
        with _warning_filters(item), patched(_JOIN), own_reports(item) as reports:
            ended = self._phase("setup", lambda: hooks.pytest_runtest_setup(item=item))
            # A wider fixture that has failed keeps its error until it is torn down.
            following = None if self.tears_down_all or ended is not None else self.sibling
            if ended is None:
                ended = self._phase("call", lambda: hooks.pytest_runtest_call(item=item))
            if reports.error is not None:
                ended = ended or Ended(reports.error, "call")
            torn_down = self._phase("teardown", lambda: self._tear_down(following))
        item._report_sections.clear()
        ended = ended or torn_down
        item._request = False
        item.funcargs = None
        return None if ended is None or isinstance(ended.error, _OUTCOMES) else ended

    def _phase(self, name: Phase, call: Callable[[], None]) -> Ended | None:
        """Run a phase as pytest does. Plugins note its outcome when the report is made: tmp_path
        keeps the folder of a failed test, and unittest has the failures of its tests there."""
        info = pytest.CallInfo.from_call(call, name, reraise=_STOPS)
        with _without_text(self.item):
            self.item.ihook.pytest_runtest_makereport(item=self.item, call=info)
        return None if info.excinfo is None else Ended(info.excinfo.value, name)

    def _tear_down(self, following: Any) -> None:
        item = self.item
        item.ihook.pytest_runtest_teardown(item=item, nextitem=following)

    def finish(self, following: Sibling | None) -> None:
        """Tear down the wider fixtures that the next test does not need."""
        state: Any = self.item.session._setupstate
        with _warning_filters(self.item), patched(_JOIN):
            pytest.CallInfo.from_call(
                lambda: state.teardown_exact(following), "teardown", reraise=_STOPS
            )


def _has_wider_async_fixtures(item: Any) -> bool:
    """Whether a fixture of wider scope needs an event loop, which then outlives a test.

    That loop is closed at the end of a run. Its fixtures have to be torn down before that.
    """
    info = getattr(item, "_fixtureinfo", None)
    known = info.name2fixturedefs.values() if info is not None else ()
    wider = (each for defined in known for each in defined if each.scope != "function")
    return any(
        inspect.iscoroutinefunction(each.func) or inspect.isasyncgenfunction(each.func)
        for each in wider
    )


@contextmanager
def _without_text(item: Any) -> Iterator[None]:
    """Reports without a text: nobody reads it, and it takes longer than the whole run."""
    own = item.__dict__
    before = {name: own[name] for name in _TEXTS if name in own}
    own.update(dict.fromkeys(_TEXTS, _no_text))
    try:
        yield
    finally:
        for name in _TEXTS:
            del own[name]
        own.update(before)


def _no_text(*_: Any, **__: Any) -> str:
    return ""


def _join(thread: threading.Thread, timeout: float | None = None) -> None:
    """`Thread.join` in slices, so that a limit on the time of the run can end it.

    A thread that has blocked outside the explorer, or whose run was cut, may never end.
    """
    if timeout is not None or threading.get_ident() in MEMBERS:
        _real_join(thread, timeout)
        return
    while thread.is_alive():
        _real_join(thread, _SLICE)


_JOIN: tuple[Patch, ...] = ((threading.Thread, "join", _join),)


def _renew(item: Any) -> None:
    """Give the item a new request and, in a class, a new instance, as for its first run."""
    if hasattr(item, "_request"):
        item._initrequest()
    parent = item.parent
    if isinstance(parent, pytest.Class) and not issubclass(parent.obj, unittest.TestCase):
        defined = getattr(parent.obj, item.originalname or item.name, None)
        if getattr(item.obj, "__func__", None) is defined and defined is not None:
            item.__dict__.pop("_instance", None)
            item._obj = None


@contextmanager
def _warning_filters(item: pytest.Item) -> Iterator[None]:
    """The filters that pytest has for this item, without what the explorer itself causes."""
    config = item.config
    with warnings.catch_warnings(record=True):
        apply_warning_filters(
            config.getini("filterwarnings"), config.known_args_namespace.pythonwarnings or []
        )
        for mark in item.iter_markers("filterwarnings"):
            for argument in mark.args:
                warnings.filterwarnings(*parse_warning_filter(argument, escape=False))
        warnings.filterwarnings("ignore", "coroutine .* was never awaited", RuntimeWarning)
        for category in _NOT_OURS:
            warnings.simplefilter("ignore", category)
        yield
