"""`--handfast-explore`: after the tests, explore the async ones that have passed.

The normal run is not touched: the schedules run when it has ended, so that what they do to module
globals changes no outcome. First each test runs three times in the plain order, which shows whether
it can be repeated and whether anything in it can be reordered. At least half of the time goes to
those that can, the most promising first.
"""

from __future__ import annotations

import asyncio
import gc
import inspect
import threading
import time
from asyncio import events
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
from _pytest import fixtures as pytest_fixtures
from _pytest import runner as pytest_runner

from handfast._explore.loop.determinism import steady
from handfast._explore.search.watchdog import TooLong, Watchdog
from handfast.pytest_plugin.explore import output
from handfast.pytest_plugin.explore.suite.explored import Explored
from handfast.pytest_plugin.explore.suite.item_explorer import RUN_SECONDS, ItemExplorer, Looked
from handfast.pytest_plugin.explore.suite.options import SuiteOptions
from handfast.pytest_plugin.explore.suite.summary import SuiteReporter

_FAILED_BEFORE = "handfast/explore-findings"
# The least and the most of its fair share that a test gets, in seconds and as a factor.
_LEAST, _SHARE = 0.1, 1.5
cpu_seconds = time.process_time


@dataclass(eq=False)
class _Seen:
    """What the normal run of one item has shown."""

    item: pytest.Item
    loops: set[type] = field(default_factory=set)
    passed: bool = False
    failed: bool = False
    # Of processor time. Sleeps do not count: on the explorer's loop they take none.
    seconds: float = 0.0


class SuiteExplorer:
    """The plugin that `--handfast-explore` registers."""

    def __init__(self, config: pytest.Config, options: SuiteOptions, reporter: SuiteReporter):
        self._config = config
        self._options = options
        self._reporter = reporter
        self._seen: dict[str, _Seen] = {}
        self._now: _Seen | None = None

    # --- the normal run ------------------------------------------------------------------------

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        if item.get_closest_marker("explore"):
            return (yield)
        seen = self._now = self._seen[item.nodeid] = _Seen(item)
        began = cpu_seconds()
        with _running_loops(seen.loops):
            try:
                return (yield)
            finally:
                seen.seconds = cpu_seconds() - began
                self._now = None

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        seen = self._now
        if seen is not None and report.nodeid == seen.item.nodeid:
            plain = report.passed and not hasattr(report, "wasxfail")
            seen.passed = seen.passed or (report.when == "call" and plain)
            seen.failed = seen.failed or not plain

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, Any, Any]:
        result = yield
        if not (session.config.option.collectonly or session.shouldfail or session.shouldstop):
            self._explore_all(session)
        return result

    # --- the schedules -------------------------------------------------------------------------

    def _explore_all(self, session: pytest.Session) -> None:
        candidates = [each for each in self._seen.values() if _is_candidate(each)]
        if not candidates:
            return
        self._reporter.begin(len(candidates), self._options.budget)
        if self._options.cluster is not None:
            self._explore_on_cluster(session, {each.item.nodeid: each.item for each in candidates})
            return
        # A fork is killed from outside, and a thread would only be in its way.
        watchdog = None if self._options.isolated else Watchdog(RUN_SECONDS)
        try:
            with (
                all_outcomes(),
                output.without_cleanup_warnings(),
                steady(partial(_collect, watchdog)),
            ):
                self._explore(session, candidates, watchdog)
        finally:
            if watchdog is not None:
                watchdog.close()
            self._reporter.end_progress()

    def _explore_on_cluster(self, session: pytest.Session, items: dict[str, pytest.Item]) -> None:
        from handfast.pytest_plugin.explore.suite.cluster import explore_on_cluster

        found = set()
        for result in explore_on_cluster(self._config, self._options, list(items)):
            self._reporter.add(result)
            item = items.get(result.nodeid)
            if result.finding is not None and item is not None:
                found.add(result.nodeid)
                self._reporter.log(item, result)
            if _is_over(session):
                break
        _remember(self._config, found)

    def _explore(
        self, session: pytest.Session, candidates: list[_Seen], watchdog: Watchdog | None
    ) -> None:
        """Look at the tests for half of the time, and explore these; then one by one.

        A test that takes more than its share of that time comes last.
        """
        failed_before = _failed_before(self._config)
        candidates = self._without_other_loops(candidates)
        half = self._options.budget / 2
        share = half / max(1, len(candidates))
        candidates.sort(
            key=lambda each: (each.item.nodeid not in failed_before, each.seconds > share)
        )
        ends = time.monotonic() + self._options.budget
        found: set[str] = set()
        while candidates and not _is_over(session):
            if time.monotonic() > ends:
                for seen in candidates:
                    self._reporter.add(Explored(seen.item.nodeid, "budget"))
                break
            queue = self._look(session, candidates, ends - half, watchdog)
            queue.sort(key=lambda each: (each[1].nodeid not in failed_before, -each[1].promise))
            found |= self._search(session, queue, ends, waiting=len(candidates))
        _remember(self._config, found)

    def _without_other_loops(self, candidates: list[_Seen]) -> list[_Seen]:
        """Those that run on asyncio. A limit cannot end a test on trio, for example, cleanly."""
        reason = "brings its own event loop (a loop that is not asyncio's)"
        for seen in candidates:
            if not seen.loops:
                self._reporter.add(Explored(seen.item.nodeid, "refused", reason))
        return [each for each in candidates if each.loops]

    def _look(
        self,
        session: pytest.Session,
        candidates: list[_Seen],
        until: float,
        watchdog: Watchdog | None,
    ) -> list[tuple[ItemExplorer, Looked]]:
        """Take one or more, run them in the plain order; return those that can be reordered."""
        queue: list[tuple[ItemExplorer, Looked]] = []
        explorer = None
        while candidates and not _is_over(session):
            seen = candidates.pop(0)
            self._reporter.progress("looking at", seen.item.nodeid)
            explorer = ItemExplorer(seen.item, self._options, watchdog)
            looked = explorer.look(own_loop=_own_loop(seen))
            if looked.result is not None:
                self._reporter.add(looked.result)
            else:
                queue.append((explorer, looked))
            if time.monotonic() > until:
                break
        if explorer is not None:
            explorer.finish()
        return queue

    def _search(
        self,
        session: pytest.Session,
        queue: list[tuple[ItemExplorer, Looked]],
        ends: float,
        waiting: int,
    ) -> set[str]:
        """Explore these, while others wait for their share of the time; which break."""
        found = set()
        for at, (explorer, looked) in enumerate(queue):
            if _is_over(session):
                break
            left = ends - time.monotonic()
            self._reporter.progress("exploring", looked.nodeid)
            if left <= 0:
                self._reporter.add(Explored(looked.nodeid, "budget"))
                continue
            share = max(_LEAST, left / (len(queue) - at + waiting) * _SHARE)
            try:
                result = explorer.search(min(self._options.per_test, share))
            except KeyboardInterrupt:
                if explorer.interrupted is not None:
                    self._reporter.add(explorer.interrupted)
                raise
            self._reporter.add(result)
            if result.finding is not None:
                found.add(looked.nodeid)
                self._reporter.log(explorer.item, result)
        if queue:
            queue[0][0].finish()
        return found


def _collect(watchdog: Watchdog | None) -> None:
    """Collect garbage. What the runs have left may have a finalizer that waits for ever, as a context
    of pyzmq has whose sockets were not closed before."""
    if watchdog is None:
        gc.collect()
        return
    with suppress(TooLong), watchdog.limit():
        gc.collect()


def _is_over(session: pytest.Session) -> bool:
    return bool(session.shouldfail or session.shouldstop)


def _is_candidate(seen: _Seen) -> bool:
    if not seen.passed or seen.failed:
        return False
    return bool(seen.loops) or inspect.iscoroutinefunction(getattr(seen.item, "obj", None))


def _own_loop(seen: _Seen) -> str:
    """The class of a loop that the test brings itself; empty if it uses asyncio's."""
    for loop in seen.loops:
        if not loop.__module__.startswith("asyncio."):
            return f"{loop.__module__}.{loop.__qualname__}"
    return ""


def _failed_before(config: pytest.Config) -> frozenset[str]:
    cache = getattr(config, "cache", None)
    known = cache.get(_FAILED_BEFORE, []) if cache is not None else []
    return frozenset(each for each in known if isinstance(each, str))


def _remember(config: pytest.Config, found: set[str]) -> None:
    cache = getattr(config, "cache", None)
    if cache is not None and not hasattr(config, "workerinput"):
        cache.set(_FAILED_BEFORE, sorted(found))


@contextmanager
def _running_loops(seen: set[type]) -> Iterator[None]:
    """Record the classes of the loops that run on this thread."""
    real: Any = events._set_running_loop
    thread = threading.get_ident()

    def note(loop: asyncio.AbstractEventLoop | None) -> None:
        if loop is not None and threading.get_ident() == thread:
            seen.add(type(loop))
        real(loop)

    events._set_running_loop = note
    try:
        yield
    finally:
        if events._set_running_loop is note:
            events._set_running_loop = real


@contextmanager
def all_outcomes() -> Iterator[None]:
    """Let pytest run the remaining finalizers of a test after an error that is no Exception.

    The explorer stops a deadlocked run with one, and monkeypatch has to be undone all the same. A
    fixture whose set-up is cancelled can be set up again only if it is torn down before.
    """
    modules: tuple[Any, ...] = (pytest_runner, pytest_fixtures)
    before = modules[0].TEST_OUTCOME
    for module in modules:
        module.TEST_OUTCOME = (*before, BaseException)
    try:
        yield
    finally:
        for module in modules:
            module.TEST_OUTCOME = before
