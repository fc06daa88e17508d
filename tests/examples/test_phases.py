"""Report 4, phases of an agent over a stream: each section comes out as promised, and S3.1 to S3.8
hold for the fixed program."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import runpy
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib import import_module
from typing import Any

import pytest

import handfast
from examples import show
from examples.example import AS_PROPOSED, AS_REPORTED, FIXED, VERSIONS
from examples.phases import as_reported, as_written, cli, explored
from examples.phases.analysis import analyze_taskgroup_error
from examples.phases.fixed import PhaseOrchestrator
from examples.phases.sdk import Output, Sdk, SdkError, command
from examples.phases.search import Session
from examples.phases.tracking import ResourceTracker, verify_cleanup_completion
from handfast import explore, scripted

EXAMPLE = import_module("examples.phases").EXAMPLE
MADE_UP = "Phase completed successfully (TaskGroup cleanup noise ignored)"


# --- the sections --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "codes"),
    [(AS_REPORTED, {"HF611", "HF612"}), (AS_PROPOSED, {"HF512"}), (FIXED, set())],
)
def test_check_finds_the_bugs_of_a_version(version: str, codes: set[str]) -> None:
    section = show.what_check_says(EXAMPLE, version)
    assert section.ok == (not codes)
    assert all(code in section.text for code in codes)


@pytest.mark.parametrize(
    ("version", "code", "said"),
    [
        (AS_REPORTED, "HF443", MADE_UP),
        (AS_PROPOSED, "HF441", "the phases have ended, and a CLI is still running"),
    ],
)
def test_the_explorer_breaks_it(version: str, code: str, said: str) -> None:
    section = show.what_explore_finds(EXAMPLE, version)
    assert not section.ok
    assert said in " ".join(section.text.split())
    assert section.text.startswith(code)


def test_the_explorer_finds_nothing_in_the_fixed_version() -> None:
    section = show.what_explore_finds(EXAMPLE, FIXED)
    assert section.ok, section.text


def test_with_real_parts_the_reported_program_hides_the_error_and_leaks_its_cli() -> None:
    pytest.importorskip("aiohttp")
    section = show.what_leaks(EXAMPLE, AS_REPORTED)
    assert not section.ok
    assert f"A CLI failed: {MADE_UP!r}. CLIs still running: 1." in section.text
    assert "HF701" in section.text


def test_with_real_parts_the_proposed_program_leaks_its_cli() -> None:
    pytest.importorskip("aiohttp")
    section = show.what_leaks(EXAMPLE, AS_PROPOSED)
    assert not section.ok
    assert "cancelled twice and has ended. CLIs still running: 1." in section.text
    assert "running _Conversation.cleanup" in section.text
    assert "HF701" in section.text


def test_with_real_parts_the_fixed_program_raises_the_error_and_leaks_nothing() -> None:
    pytest.importorskip("aiohttp")
    section = show.what_leaks(EXAMPLE, FIXED)
    assert section.ok, section.text
    assert "(SdkError('rate limited'),)" in section.text
    assert "CLIs still running: 0. Clean-up verified: True." in section.text


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (explored.tracker_as_written, "asynchronous context manager protocol"),
        (explored.verification_as_written, "no attribute 'get_active_resources'"),
        (explored.analysis_as_written, "rate limited, and the program may continue"),
    ],
)
def test_the_code_in_the_report_does_not_work(program: Callable[[], Any], said: str) -> None:
    found = explore.explore(program).counterexample
    assert found is not None
    assert said in str(found.error)


class Resource:
    """What the report takes for a resource: something with a `cleanup`."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error

    async def cleanup(self) -> None:
        if self.error is not None:
            raise self.error


def test_the_reports_tracker_drops_the_error_of_a_clean_up() -> None:
    async def program() -> None:
        tracker = as_written.ResourceTracker()
        async for _ in tracker.track_resource(Resource()):
            assert len(tracker.active_resources) == 1
        assert len(tracker.active_resources) == 0
        with pytest.raises(OSError, match="the disk is full"):
            async for _ in tracker.track_resource(Resource(OSError("the disk is full"))):
                pass
        await tracker.cleanup_all()
        assert len(tracker.active_resources) == 1

    asyncio.run(program())


def test_the_reports_verification_uses_a_set_and_not_the_resource() -> None:
    """Given the method that it lacks, it says that something is left which has gone."""

    class Completed(as_written.ResourceTracker):
        def get_active_resources(self) -> set[Any]:
            return self.active_resources

    async def program() -> None:
        tracker = Completed()
        assert await as_written.verify_cleanup_completion(tracker)
        tracker.active_resources.add(Resource())
        await tracker.cleanup_all()
        assert not await as_written.verify_cleanup_completion(tracker)

    asyncio.run(program())


def test_the_reports_analysis_finds_only_an_error_at_the_top_level() -> None:
    analysis = as_written.analyze_taskgroup_error(ExceptionGroup("", [SdkError("rate limited")]))
    assert not analysis["can_continue"]


def test_a_search_that_times_out_leaks_no_session_even_as_reported() -> None:
    pytest.importorskip("aiohttp")
    from examples.phases import real
    from handfast import leaks

    report = leaks.stress(real.search_as_reported, 10)
    assert report.clean, report.text()


def test_the_reported_program_keeps_the_last_half_of_its_messages() -> None:
    orchestrator = as_reported.PhaseOrchestrator(Sdk(command("agent")), session)
    for number in range(orchestrator.max_messages + 1):
        orchestrator._remember({"type": "text", "text": number})
    assert [message["text"] for message in orchestrator.messages] == list(range(51, 101))


def test_the_reported_program_takes_whatever_fails_in_the_group_for_noise() -> None:
    async def program() -> None:
        scripted.child("agent", scripted.Says(b"not json\n"), scripted.Waits())
        orchestrator = as_reported.PhaseOrchestrator(Sdk(command("agent")), session)
        assert (await orchestrator.run_phase("answer"))["result"] == MADE_UP

    survives(program, schedules=1)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_cli_that_cannot_be_started_is_an_error(version: str) -> None:
    async def program() -> None:
        orchestrator = EXAMPLE.module(version).PhaseOrchestrator(
            Sdk(command("/no/such/cli")), session
        )
        with pytest.raises(handfast.errors.ProcessStartError):
            await orchestrator.run_phase("answer")

    asyncio.run(program())


@pytest.mark.parametrize("version", VERSIONS)
def test_a_stream_without_a_result_is_an_error(version: str) -> None:
    async def program() -> None:
        scripted.child("agent", scripted.Says(b'{"type": "text"}\n'), scripted.Exits(0))
        orchestrator = EXAMPLE.module(version).PhaseOrchestrator(Sdk(command("agent")), session)
        with pytest.raises(LookupError):
            await orchestrator.run_phase("answer")

    survives(program, schedules=1)


def test_the_cli_prints_what_its_prompt_says(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cli, "_AT_MOST", 0)
    before = signal.getsignal(signal.SIGTERM)
    try:
        cli.main("slow")
        with pytest.raises(SystemExit) as stopped:
            signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert stopped.value.code == 0
    said = [json.loads(line)["type"] for line in capsys.readouterr().out.splitlines()]
    assert said == ["web_search", "result"]
    monkeypatch.setattr(sys, "argv", ["cli", "fail"])
    with pytest.raises(SystemExit, match="rate limited"):
        runpy.run_path(cli.__file__, run_name="__main__")


# --- what the tests put in -----------------------------------------------------------------------


class Engine:
    """A search engine that takes a second to answer, or fails."""

    async def find(self, query: str) -> str:
        await asyncio.sleep(1)
        if query == "forbidden":
            raise PermissionError("cleanup of the TaskGroup was cancelled")
        return f"about {query}"


@asynccontextmanager
async def session() -> AsyncIterator[Session]:
    yield Engine()


class Noting:
    """A program as a CLI; notes its pids, and in which tasks it is entered and left."""

    def __init__(self, *words: str) -> None:
        self.words = words
        self.tasks: list[Any] = []
        self.pids: list[int] = []

    @asynccontextmanager
    async def __call__(self, prompt: str) -> AsyncIterator[Output]:
        self.tasks.append(asyncio.current_task())
        try:
            async with handfast.Process(*self.words, prompt) as process:
                self.pids.append(process.pid)
                yield Output(process.stdout.lines(), process.stderr.lines())
        finally:
            self.tasks.append(asyncio.current_task())


class NotingSearch:
    """Opens sessions, and notes in which tasks they are entered and left."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.tasks: list[Any] = []
        self.failure = failure

    @asynccontextmanager
    async def __call__(self) -> AsyncIterator[Session]:
        self.tasks.append(asyncio.current_task())
        try:
            yield Engine()
        finally:
            await asyncio.sleep(0.1)
            self.tasks.append(asyncio.current_task())
            if self.failure is not None:
                raise self.failure


def asks(query: str, *rest: Any) -> None:
    """Script a CLI that asks for a search, and then does this."""
    said = b'{"type": "web_search", "query": "%s"}\n' % query.encode()
    scripted.child("agent", scripted.Says(said, whole=True), *rest)


ANSWERS = scripted.Says(b'{"type": "result", "result": "done"}\n', whole=True)
FAILS = scripted.Errs(b"cleanup of the TaskGroup was cancelled\n", whole=True)


def survives(program: Callable[[], Any], **options: Any) -> None:
    exploration = explore.explore(program, **{"schedules": 30, **options})
    assert exploration.counterexample is None, str(exploration.counterexample)


# --- S3.1 to S3.8 --------------------------------------------------------------------------------


async def breaks_out(orchestrator: PhaseOrchestrator) -> None:
    await orchestrator.run_phase("answer")


async def fails(orchestrator: PhaseOrchestrator) -> None:
    orchestrator.web_search_operation = _refuse  # type: ignore[method-assign]
    with pytest.raises(PermissionError):
        await orchestrator.run_phase("answer")


async def _refuse(query: str) -> str:
    raise PermissionError(query)


async def is_cancelled(orchestrator: PhaseOrchestrator) -> None:
    await explore.victim(orchestrator.run_phase("answer"))


async def times_out(orchestrator: PhaseOrchestrator) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.5):
            await orchestrator.run_phase("answer")


@pytest.mark.parametrize("end", [breaks_out, fails, is_cancelled, times_out])
def test_a_stream_and_a_session_are_left_where_they_were_entered(
    end: Callable[[PhaseOrchestrator], Awaitable[None]],
) -> None:
    """S3.1: a hosted stream or resource is entered and left in one owner task, for break, exception,
    cancel, timeout ..."""

    async def program() -> None:
        asks("news", ANSWERS, scripted.Waits())
        child, search = Noting("agent"), NotingSearch()
        await end(PhaseOrchestrator(Sdk(child), search))
        for tasks in (child.tasks, search.tasks):
            assert len(tasks) in (0, 2)
            assert len(set(map(id, tasks))) <= 1
            assert asyncio.current_task() not in tasks

    survives(program, cancel=end is is_cancelled)


def test_a_stream_that_is_dropped_is_left_where_it_was_entered() -> None:
    """S3.1: ... garbage collection, and a consumer in another task."""

    async def program() -> None:
        asks("news", ANSWERS, scripted.Waits())
        child = Noting("agent")
        sdk = Sdk(child)
        stream = handfast.stream(sdk.query("answer"))
        await stream.__aenter__()
        async with handfast.Scope("consumers") as consumers:
            first = consumers.spawn(_next(stream))
        assert first.result()["type"] == "web_search"
        with pytest.warns(ResourceWarning, match=r"the stream of Sdk\.query"):
            del stream
            gc.collect()
        while sdk.running:
            await asyncio.sleep(0.1)
        entered_in, left_in = child.tasks
        assert entered_in is left_in

    survives(program, schedules=1)


async def _next(stream: handfast.types.Stream[Any]) -> Any:
    return await anext(stream)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_phase_is_not_cancelled_when_the_group_of_its_stream_fails(version: str) -> None:
    """S3.2: the host task is never cancelled for it. (In the other two versions it is.)"""
    searched: list[str] = []

    async def program() -> None:
        searched.clear()
        asks("news", scripted.Waits(0.5), FAILS, scripted.Waits())
        orchestrator = EXAMPLE.module(version).PhaseOrchestrator(Sdk(command("agent")), session)
        outcome = await explore.victim(_phase_that_searches(orchestrator, searched))
        assert outcome.error is not None, "the phase was not cancelled by the test"
        (error,) = analyze_taskgroup_error(outcome.error)["operational_errors"]
        assert isinstance(error, SdkError)

    found = explore.explore(program, schedules=30).counterexample
    assert (found is None) == (version == FIXED), str(found)
    assert searched == (["about news"] if version == FIXED else [])


async def _phase_that_searches(orchestrator: Any, searched: list[str]) -> None:
    search = orchestrator.web_search_operation

    async def noted(query: str) -> None:
        searched.append(await search(query))

    orchestrator.web_search_operation = noted
    await orchestrator.run_phase("answer")


def test_a_phase_ends_after_its_cli() -> None:
    """S3.3: close returns only when what it closes is really gone, within its bound."""

    async def program() -> None:
        asks("news", scripted.Ignores(signal.SIGTERM), ANSWERS, scripted.Waits())
        child = Noting("agent")
        sdk = Sdk(child)
        began = asyncio.get_running_loop().time()
        await PhaseOrchestrator(sdk, session).run_phase("answer")
        assert sdk.running == 0
        with pytest.raises(ProcessLookupError):
            os.kill(child.pids[0], 0)
        assert asyncio.get_running_loop().time() - began < 10

    survives(program)


def test_a_real_cli_has_ended_when_its_phase_has() -> None:
    """S3.3, with a real child and a real server."""
    pytest.importorskip("aiohttp")
    from examples.phases.web import search_engine

    async def program() -> None:
        child = Noting(sys.executable, "-IS", cli.__file__)
        async with search_engine() as search:
            await PhaseOrchestrator(Sdk(child), search).run_phase("answer")
        with pytest.raises(ProcessLookupError):
            os.kill(child.pids[0], 0)

    asyncio.run(program())


def test_clean_up_completes_though_the_phase_is_cancelled_twice() -> None:
    """S3.4: clean-up completes despite repeated cancels, within its own deadline; then
    `CancelledError` propagates."""

    async def program() -> None:
        asks("news", ANSWERS, scripted.On(signal.SIGTERM, scripted.Waits(1), scripted.Exits(0)))
        sdk, search = Sdk(command("agent")), NotingSearch()
        outcome = await explore.victim(PhaseOrchestrator(sdk, search).run_phase("answer"))
        assert outcome.cancelled or outcome.finished
        assert sdk.running == 0
        assert len(search.tasks) in (0, 2), "a session was entered and not left"

    survives(program, cancel="double", schedules=120)


def test_a_session_is_closed_once_though_two_close_it() -> None:
    """S3.5: exactly one clean-up per resource, also when two closers overlap."""

    async def program() -> None:
        search = NotingSearch()
        tracker = ResourceTracker()
        async with handfast.Scope("closers") as closers, tracker.track_resource(search()):
            closers.spawn(tracker.cleanup_all())
            closers.spawn(tracker.cleanup_all())
            await asyncio.sleep(0.05)
        assert len(search.tasks) == 2
        assert await verify_cleanup_completion(tracker)

    survives(program)


def test_an_error_is_raised_whatever_its_text() -> None:
    """S3.6: operational errors always surface ... never by their text. Nothing ever turns an error
    into a success."""

    async def program() -> None:
        asks("news", FAILS, scripted.Exits(1))
        with pytest.raises(ExceptionGroup) as raised:
            await PhaseOrchestrator(Sdk(command("agent")), session).run_phase("answer")
        analysis = analyze_taskgroup_error(ExceptionGroup("cleanup", [raised.value]))
        assert analysis["has_operational_errors"]
        assert not analysis["can_continue"]
        assert [str(error) for error in analysis["operational_errors"]] == [
            "cleanup of the TaskGroup was cancelled"
        ]
        assert analysis["cleanup_errors"] == ()

    survives(program)


@pytest.mark.parametrize("query", ["news", "forbidden"])
def test_an_error_of_the_clean_up_is_known_by_where_it_was_raised(query: str) -> None:
    """S3.6: ... clean-up errors are attached to them, by provenance (in which phase they were
    raised)."""

    async def program() -> None:
        asks(query, ANSWERS, scripted.Waits())
        search = NotingSearch(failure=OSError("rate limited"))
        with pytest.raises(OSError, match="rate limited") as raised:
            await PhaseOrchestrator(Sdk(command("agent")), search).run_phase("answer")
        analysis = analyze_taskgroup_error(raised.value)
        assert [type(error) for error in analysis["operational_errors"]] == (
            [PermissionError] if query == "forbidden" else []
        )
        assert list(map(str, analysis["cleanup_errors"])) == ["rate limited"]
        assert analysis["can_continue"] == (query == "news")

    survives(program)


def test_verification_names_what_is_left(caplog: pytest.LogCaptureFixture) -> None:
    """S3.7: after close, say by name what is left (what, where it was created, where it waits), or
    that nothing is."""

    class Stubborn(AbstractAsyncContextManager[Session]):
        def __init__(self) -> None:
            self.gone = asyncio.Event()

        async def __aenter__(self) -> Session:
            return Engine()

        async def __aexit__(self, *_: object) -> None:
            while not self.gone.is_set():
                try:
                    await self.gone.wait()
                except asyncio.CancelledError:
                    pass

    async def program() -> None:
        tracker = ResourceTracker(timeout=0.05)
        stubborn = Stubborn()
        with pytest.raises(handfast.errors.StragglersLeft):
            async with tracker.track_resource(stubborn):
                assert tracker.get_active_resources() == (Stubborn.__qualname__,)
        assert not await verify_cleanup_completion(tracker)
        stubborn.gone.set()
        while not await verify_cleanup_completion(tracker):
            await asyncio.sleep(0)

    with caplog.at_level(logging.WARNING, logger="examples"):
        asyncio.run(program())
    message = caplog.messages[0]
    assert message.startswith("Resource cleanup incomplete: hold ")
    assert "Stubborn" in message
    assert "created at" in message
    assert "tracking.py" in message
    assert f"waiting at {__file__}" in message or "waiting at tests" in message


@pytest.mark.skipif(sys.platform == "win32", reason="children are of POSIX")
def test_timed_out_operations_leave_nothing_that_grows() -> None:
    """S3.8: a thousand cancelled operations: no growth in tasks, descriptors, children, threads. (Here
    thirty; `handfast stress examples.phases.real:timed_out -n 1000` runs all of them.)"""
    pytest.importorskip("aiohttp")
    from examples.phases import real
    from handfast import leaks

    report = leaks.stress(real.timed_out, 30)
    assert report.clean, report.text()


def test_versions_have_the_same_shape() -> None:
    shapes = [
        {name for name in vars(EXAMPLE.module(version).PhaseOrchestrator) if name[0] != "_"}
        - {"max_messages"}
        for version in VERSIONS
    ]
    assert shapes == [{"run_phase", "web_search_operation", "close"}] * 3
