"""Report 5: the three programs do what the case says of them, and S4.1 to S4.8 hold for the last."""

from __future__ import annotations

import asyncio
import gc
import importlib
import logging
import threading
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError, Future
from concurrent.futures import wait as wait_for_futures
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

import aiohttp
import pytest

import handfast
from examples import show
from examples.cleanup import collect_garbage
from examples.example import AS_PROPOSED, AS_REPORTED, FIXED, Example
from examples.prefetch import as_meant, cleanup, explored, real
from examples.prefetch.fixed import Automator
from examples.prefetch.interfaces import Rows
from examples.prefetch.server import Server, serving
from examples.prefetch.session import HttpSession
from examples.prefetch.sheet import HttpSheet
from handfast import check
from handfast.explore import explore

EXAMPLE: Example = importlib.import_module("examples.prefetch").EXAMPLE
# No test waits for so long unless something is wrong.
LONG = 30


@pytest.fixture(autouse=True)
def nothing_stays() -> Iterator[None]:
    yield
    cleanup.close_all()


# --- the sections ------------------------------------------------------------------------------


@pytest.mark.parametrize(("version", "code"), [(AS_REPORTED, "HF101"), (AS_PROPOSED, "HF121")])
def test_check_reports_the_bug(version: str, code: str) -> None:
    section = show.what_check_says(EXAMPLE, version)
    assert code in section.text
    assert not section.ok


def test_check_finds_nothing_in_the_other_files() -> None:
    package = Path(EXAMPLE.module(AS_REPORTED).__file__ or "").parent
    rest = [path for path in package.glob("*.py") if path.stem not in (AS_REPORTED, AS_PROPOSED)]
    assert len(rest) > 8
    assert check.check(rest).clean


@pytest.mark.parametrize(
    ("version", "code", "error"),
    [
        (AS_REPORTED, "HF441", "['sport'] is still being fetched"),
        (AS_PROPOSED, "HF443", "a coroutine was expected"),
    ],
)
def test_the_explorer_finds_a_bug(version: str, code: str, error: str) -> None:
    section = show.what_explore_finds(EXAMPLE, version)
    assert section.text.startswith(code)
    assert error in section.text
    assert not section.ok


def test_the_explorer_finds_nothing_in_the_fixed_version() -> None:
    section = show.what_explore_finds(EXAMPLE, FIXED)
    assert section.ok, section.text
    assert section.text.startswith("nothing found\nall ")
    assert "random ones" in section.text


def test_a_cancel_of_the_program_leaks_nothing() -> None:
    exploration = explore(EXAMPLE.explored(FIXED), cancel="main", schedules=100)
    assert exploration.counterexample is None, str(exploration)


def test_the_fix_of_the_report_fails_even_without_the_type_error() -> None:
    """The `gather` is cancelled from another thread and not awaited."""
    found = explore(explored.as_meant, schedules=300).counterexample
    assert found is not None
    assert "['sport'] is still being fetched" in str(found.error)


def test_as_reported_a_channel_is_fetched_twice() -> None:
    found = explore(explored.as_reported_fetches_twice, schedules=300).counterexample
    assert found is not None
    assert "'sport', 'sport'" in str(found.error)


def test_as_reported_the_real_program_leaks_its_fetches_and_its_session() -> None:
    section = show.what_leaks(EXAMPLE, AS_REPORTED)
    assert section.text.count("HF102") == 2
    assert section.text.count("HF743") == 1
    assert "3 written rows; the sheet has 3" in section.text
    assert not section.ok


def test_as_proposed_the_real_program_copies_nothing() -> None:
    with collect_garbage():
        said = asyncio.run(real.as_proposed())
    assert "TypeError: a coroutine was expected" in said
    assert "; the sheet has 0" in said


def test_fixed_the_real_program_leaks_nothing() -> None:
    section = show.what_leaks(EXAMPLE, FIXED)
    assert "3 written rows; the sheet has 3" in section.text
    assert section.text.endswith("No leaks.")
    assert section.ok


def test_every_claim_names_an_existing_program() -> None:
    for claim in EXAMPLE.claims:
        name = claim.shown_by.rpartition(":")[2]
        assert hasattr(explored, name) or claim.shown_by == "python -m examples prefetch"


# --- S4, with a real server --------------------------------------------------------------------


class Place:
    """A server that holds back what comes next, and an automator on a loop in the background."""

    def __init__(self, background: handfast.BackgroundLoop, host: handfast.BackgroundLoop) -> None:
        self.background = background
        self._host = host
        channels = ("news", "sport", "weather")
        serves = serving(channels, held_back=channels[1:])
        self.server: Server = host.submit(host.scope.hold, serves).result(LONG)
        self.sessions: list[HttpSession] = []
        self.automator = Automator(self._connect, HttpSheet(self.server.url), background.scope)

    def _connect(self) -> HttpSession:
        self.sessions.append(HttpSession(self.server.url))
        return self.sessions[-1]

    def await_waiting(self, number: int) -> None:
        """Until so many requests are being held back."""
        for _ in range(number):
            self._host.submit(self.server.waiting.acquire).result(LONG)

    def let_go(self) -> None:
        async def let_go() -> None:
            self.server.let_go.set()

        self._host.submit(let_go).result(LONG)


@pytest.fixture
def place() -> Iterator[Place]:
    with handfast.BackgroundLoop("server") as host:
        background = handfast.BackgroundLoop("automator")
        try:
            yield Place(background, host)
        finally:
            background.close()


def test_s4_1_every_prefetch_is_tracked_by_itself(place: Place) -> None:
    """S4.1 Every child is tracked by itself, not as one bundle."""
    place.automator.process("news", upcoming=["sport", "weather"])
    names = [task.get_name() for task in place.background.scope.tasks]
    assert sorted(names) == ["Automator._fetch", "Automator._fetch", "hold session"]
    report = place.automator.cleanup()
    assert [ending.name for ending in report.cancelled] == ["Automator._fetch"] * 2


def test_s4_4_any_thread_may_close_and_several_at_once(place: Place) -> None:
    """S4.4 A blocking close that any thread may call, and bounded."""
    place.automator.process("news", upcoming=["sport", "weather"])
    reports: list[handfast.types.CloseReport] = []
    closers = [
        threading.Thread(target=lambda: reports.append(place.automator.cleanup())) for _ in range(3)
    ]
    for closer in closers:
        closer.start()
    for closer in closers:
        closer.join(LONG)
    assert [report.clean for report in reports] == [True] * 3
    assert place.sessions[0].closed
    with pytest.raises(handfast.errors.ScopeClosed):
        place.automator.process("sport")


def test_s4_4_on_its_own_thread_the_blocking_close_raises(place: Place) -> None:
    """S4.4: it says so, and does not wait for itself."""

    async def close() -> None:
        place.automator.cleanup()

    with pytest.raises(RuntimeError, match=r"await scope\.close"):
        place.background.submit(close).result(LONG)


def test_s4_6_a_second_request_joins_a_real_fetch(place: Place) -> None:
    """S4.6 A key is fetched once: who comes second joins the fetch under way."""
    place.automator.process("news", upcoming=["sport"])
    place.await_waiting(1)
    process = place.automator._process
    askers = [place.background.submit(process, "sport", ["sport"]) for _ in range(3)]
    place.let_go()
    assert [asker.result(LONG) for asker in askers] == [3, 3, 3]
    assert place.server.requested == {"news": 1, "sport": 1}


def test_s4_7_an_error_of_a_prefetch_is_reported(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    """S4.7 Errors are reported and the counts are true."""
    caplog.set_level(logging.ERROR, "asyncio")
    place.automator.process("news", upcoming=["gossip"])
    with pytest.raises(aiohttp.ClientResponseError, match="404"):
        place.automator.process("gossip")
    assert place.automator.cleanup().failed == ()
    (record,) = caplog.records
    assert record.exc_info is not None
    assert "Automator._fetch" in "".join(record.exc_info[1].__notes__)  # type: ignore[union-attr]


def test_s4_7_the_counts_are_right(place: Place) -> None:
    """S4.7: as many as were under way, neither bundles nor those that had ended before."""
    assert place.automator.process("news", upcoming=["sport", "weather"]) == 3
    place.await_waiting(2)
    report = place.automator.cleanup()
    assert (len(report.cancelled), len(report.failed), len(report.stragglers)) == (2, 0, 0)
    assert place.server.sheet == ["news 1", "news 2", "news 3"]


def test_as_meant_the_count_includes_fetches_that_keep_running(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Two fetches, of which the report's clean-up ends none and counts one: the loop has stopped."""
    session = Held()
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    automator = as_meant.Automator(lambda: session, Written(), loop)
    automator.process("news", upcoming=["sport", "weather"])
    loop.call_soon_threadsafe(loop.stop)
    thread.join(LONG)
    (bundle,) = automator.background_tasks
    automator.cleanup()
    assert "[CLEANUP] Cancelled 1 background tasks" in capsys.readouterr().out
    assert session.pending == ["sport", "weather"]
    loop.run_until_complete(asyncio.wait([bundle]))
    assert isinstance(bundle.exception(), asyncio.CancelledError)
    loop.close()


def test_s4_8_an_automator_that_is_dropped_is_named() -> None:
    """S4.8 An owner that goes away without close still gets a loud, named report."""
    session = Held()
    background = handfast.BackgroundLoop("automator")
    (thread,) = (each for each in threading.enumerate() if each.name == "automator")
    automator = Automator(lambda: session, Written(), background.scope)
    automator.process("news", upcoming=["sport"])
    with pytest.warns(ResourceWarning, match="'automator', created at .*without close.*_fetch"):
        del automator, background
        gc.collect()
    thread.join(LONG)
    assert not thread.is_alive()
    assert session.log == ["news ended", "sport ended", "session closed"]


# --- S4, with parts that take as long as a test wants ------------------------------------------


class Held(explored.SimulatedSession):
    """News come at once, all else when the gate opens."""

    def __init__(self, *, stubborn: bool = False) -> None:
        super().__init__()
        self.gate = asyncio.Event()
        self._stubborn = stubborn

    async def _answer(self, channel: str) -> None:
        while channel != "news" and not self.gate.is_set():
            try:
                await self.gate.wait()
            except asyncio.CancelledError:
                if not self._stubborn:
                    raise

    def open_gate(self) -> None:
        self._loop.call_soon_threadsafe(self.gate.set)

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await asyncio.to_thread(str)  # raises if the pool has been shut down
        await super().__aexit__(kind, error, traceback)


class Written(explored.SimulatedSheet):
    """A sheet that blocks until the gate opens."""

    def __init__(self, gate: threading.Event | None = None) -> None:
        super().__init__()
        self.begun = threading.Event()
        self._gate = gate

    def append(self, rows: Rows) -> int:
        self.begun.set()
        if self._gate is not None:
            assert self._gate.wait(LONG)
        return super().append(rows)


@contextmanager
def in_another_thread(automator: Automator, channel: str) -> Iterator[Future[int]]:
    """`process`, called by a thread that is joined at the end."""
    answer: Future[int] = Future()

    def call() -> None:
        try:
            answer.set_result(automator.process(channel))
        except BaseException as error:
            answer.set_exception(error)

    thread = threading.Thread(target=call)
    thread.start()
    try:
        yield answer
    finally:
        thread.join(LONG)


def test_s4_3_fetches_end_first_then_the_session_then_the_pool_and_the_loop() -> None:
    """S4.3 Tasks are closed before the session, the pool and the loop that they use."""
    session = Held()
    with handfast.BackgroundLoop("automator") as background:
        automator = Automator(lambda: session, Written(), background.scope)
        automator.process("news", upcoming=["sport", "weather"])
    assert session.log == ["news ended", "sport ended", "weather ended", "session closed"]
    assert background.closed


def test_s4_4_the_blocking_close_is_bounded_and_names_the_stragglers() -> None:
    """S4.4: one fetch swallows its cancel."""
    session = Held(stubborn=True)
    background = handfast.BackgroundLoop("automator")
    automator = Automator(lambda: session, Written(), background.scope)
    automator.process("news", upcoming=["sport"])
    began = time.monotonic()
    report = automator.cleanup(timeout=0.2)
    assert time.monotonic() - began < 5
    assert "Automator._fetch" in [straggler.name for straggler in report.stragglers]
    session.open_gate()
    assert background.close(timeout=LONG).stragglers == ()


def test_s4_5_a_write_that_has_begun_is_waited_for() -> None:
    """S4.5 Work in a thread pool is bounded or named as still running."""
    gate = threading.Event()
    sheet = Written(gate)
    with handfast.BackgroundLoop("automator") as background:
        automator = Automator(Held, sheet, background.scope)
        with in_another_thread(automator, "news") as answer:
            assert sheet.begun.wait(LONG)
            with in_another_thread_closed(automator) as closing:
                while not background.scope.closing:
                    time.sleep(0.001)
                assert not wait_for_futures([closing], timeout=0).done
                gate.set()
            assert closing.result(LONG).clean
            assert isinstance(answer.exception(LONG), CancelledError)
    assert sheet.rows == ["news"]


@contextmanager
def in_another_thread_closed(automator: Automator) -> Iterator[Future[handfast.types.CloseReport]]:
    """`cleanup`, called by a thread that is joined at the end."""
    report: Future[handfast.types.CloseReport] = Future()
    thread = threading.Thread(target=lambda: report.set_result(automator.cleanup(timeout=LONG)))
    thread.start()
    try:
        yield report
    finally:
        thread.join(LONG)


def test_s4_5_a_write_that_does_not_end_is_named_and_its_result_is_not_accepted() -> None:
    """S4.5: ... no result is accepted after close."""
    gate = threading.Event()
    sheet = Written(gate)
    background = handfast.BackgroundLoop("automator")
    automator = Automator(Held, sheet, background.scope)
    with in_another_thread(automator, "news") as answer:
        assert sheet.begun.wait(LONG)
        named = [each.name for each in background.close(timeout=0.3).stragglers]
        assert "Automator._process" in named
        # The thread at work; or, on a slow machine, the one that waits for it.
        assert any(name.startswith("thread automator") for name in named)
        refused = answer.exception(LONG)
        gate.set()
    assert isinstance(refused, (CancelledError, handfast.errors.HandfastError)), repr(refused)


# --- S4, under many schedules ------------------------------------------------------------------


async def closed_while_a_program_copies() -> None:
    session, sheet = explored.SimulatedSession(), explored.SimulatedSheet()
    scope = handfast.Scope("automator", on_failure="report")
    loop = asyncio.get_running_loop()
    made: asyncio.Future[Automator] = loop.create_future()

    def program() -> None:
        automator = Automator(lambda: session, sheet, scope)
        loop.call_soon_threadsafe(made.set_result, automator)
        try:
            automator.process("news", upcoming=["sport", "weather"])
        except (CancelledError, handfast.errors.ScopeClosed):
            pass

    copying = asyncio.create_task(asyncio.to_thread(program))
    automator = await made
    await asyncio.sleep(0.01)
    report = await automator.close()
    assert report.clean, str(report)
    assert not session.pending
    assert not session.open
    assert not scope.tasks
    await copying


def test_s4_2_after_an_async_close_nothing_is_pending() -> None:
    """S4.2 Async close cancels and joins; nothing is pending after it."""
    exploration = explore(closed_while_a_program_copies, schedules=200)
    assert exploration.counterexample is None, str(exploration)


async def three_threads_want_one_channel() -> None:
    session, sheet = explored.SimulatedSession(), explored.SimulatedSheet()
    async with handfast.Scope("automator", on_failure="report") as scope:
        automator = await asyncio.to_thread(Automator, lambda: session, sheet, scope)
        await asyncio.gather(
            *(asyncio.to_thread(automator.process, "sport", ["sport"]) for _ in range(3))
        )
        await automator.close()
    assert session.requested == ["sport"]
    assert sheet.rows == ["sport"] * 3


def test_s4_6_a_channel_is_fetched_once_for_all_requests() -> None:
    """S4.6 A key is fetched once: who comes second joins the fetch under way."""
    exploration = explore(three_threads_want_one_channel, schedules=100)
    assert exploration.counterexample is None, str(exploration)
