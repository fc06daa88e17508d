# pyright: strict
"""What type checkers infer for each public call. mypy and pyright, both strict, check this file in the
nox session `types`, and each function runs here: what is inferred is what the call returns."""

from __future__ import annotations

import asyncio
import concurrent.futures
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import Any, assert_type

import handfast
from handfast.check import Finding, Report, check
from handfast.errors import KeyBusy, ProcessFailed
from handfast.explore import Counterexample, Exploration, explore, victim
from handfast.leaks import NoLeaks, no_leaks
from handfast.types import (
    CloseReport,
    ExitStatus,
    Failure,
    Outcome,
    ProcessResult,
    Straggler,
    Stream,
    TaskEnd,
)


async def length(word: str, times: int = 1) -> int:
    return len(word) * times


async def listen(ready: Callable[[int], None], host: str, *, backlog: int = 8) -> None:
    ready(len(host) + backlog)


@asynccontextmanager
async def session() -> AsyncGenerator[bytes, None]:
    yield b"session"


@contextmanager
def lock_file() -> Generator[float, None, None]:
    yield 1.5


@handfast.stream
async def letters(word: str) -> AsyncIterator[str]:
    for letter in word:
        yield letter


@handfast.stream(timeout=5)
async def numbers(count: int) -> AsyncGenerator[int, None]:
    for number in range(count):
        yield number


class Jobs(handfast.Scope):
    """A scope of the program's own class."""


def test_a_subclass_of_a_scope() -> None:
    async def main() -> None:
        async with Jobs("jobs") as jobs:
            assert_type(jobs, Jobs)

    asyncio.run(main())


def test_tasks_of_a_scope() -> None:
    async def main() -> None:
        async with handfast.Scope("usage", limit=8, grace=1, timeout=5) as scope:
            assert_type(scope, handfast.Scope)
            task = scope.spawn(length("four"), name="count")
            assert_type(task, asyncio.Task[int])
            assert_type(await task, int)
            assert_type(await scope.start(listen, "host", backlog=1), int)
            service = scope.supervise(length, "four", 2, restart=handfast.Restart("never"))
            assert_type(service, asyncio.Task[None])
            future = scope.submit(length, "four", times=2)
            assert_type(future, concurrent.futures.Future[int])
            assert_type(await asyncio.wrap_future(future), int)
            assert_type(scope.tasks, tuple[asyncio.Task[Any], ...])
        assert task.result() == 4

    asyncio.run(main())


def test_resources_of_a_scope() -> None:
    async def main() -> None:
        async with handfast.Scope() as scope:
            resource = session()
            assert_type(await scope.hold(resource), bytes)
            assert_type(await scope.hold(lock_file()), float)
            assert_type(await scope.hold(handfast.Scope("jobs")), handfast.Scope)
            assert_type(await scope.release(resource), bool)

    asyncio.run(main())


def test_the_report_of_a_close() -> None:
    async def main() -> None:
        ends: list[TaskEnd] = []
        scope = handfast.Scope(on_failure=ends.append)
        report = await scope.close(grace=0, timeout=5)
        assert_type(report, CloseReport)
        assert_type(report.failed, tuple[TaskEnd, ...])
        assert_type(report.stragglers, tuple[Straggler, ...])
        assert_type(report.cleanup_errors, tuple[Exception, ...])
        assert_type(report.clean, bool)
        assert_type(await scope.aclose(), CloseReport)

    asyncio.run(main())


def test_tasks_by_key() -> None:
    async def main() -> None:
        async with handfast.Scope() as scope:
            tasks = handfast.KeyedTasks(scope)
            assert_type(await tasks.replace("a", length, "four"), asyncio.Task[int])
            assert_type(await tasks.enqueue("a", length, "four", 2), asyncio.Task[int])
            assert_type(await tasks.share("b", length, "four", times=2), int)
            try:
                assert_type(tasks.start("c", length, "four"), asyncio.Task[int])
            except KeyBusy as busy:
                assert_type(busy, KeyBusy)
            assert_type(await tasks.cancel("c"), bool)
            assert_type(await tasks.close(), CloseReport)

    asyncio.run(main())


def test_functions() -> None:
    async def main() -> None:
        assert_type(await handfast.race(length("a"), length("b")), int)
        assert_type(await handfast.shielded(length("a"), timeout=1), int)
        failure = handfast.split_errors(ValueError())
        assert_type(failure, Failure)
        assert_type(failure.operational, tuple[BaseException, ...])

    assert_type(handfast.run(length("four")), int)
    assert_type(handfast.run(main, grace=1, timeout=5), None)


def test_streams() -> None:
    async def plain() -> AsyncIterator[bytes]:
        yield b"chunk"

    async def main() -> None:
        async with letters("four") as found:
            assert_type(found, Stream[str])
            async for letter in found:
                assert_type(letter, str)
        async with numbers(3) as counted:
            assert_type(await anext(counted), int)
        async with handfast.stream(plain(), timeout=1) as chunks:
            assert_type(chunks, Stream[bytes])

    asyncio.run(main())


def test_processes() -> None:
    async def main() -> None:
        result = await handfast.run_process(sys.executable, "-c", "print(1)", check=True)
        assert_type(result, ProcessResult)
        assert_type(result.stdout, bytes)
        async with handfast.Process(sys.executable, "-c", "print(1)") as process:
            assert_type(process, handfast.Process)
            async for line in process.stdout.lines():
                assert_type(line, bytes)
            status = await process.wait()
            assert_type(status, ExitStatus)
            assert_type(status.code, int | None)
        try:
            await handfast.run_process(sys.executable, "-c", "1 / 0", check=True)
        except ProcessFailed as failed:
            assert_type(failed.result, ProcessResult)

    asyncio.run(main())


def test_a_background_loop() -> None:
    with handfast.BackgroundLoop("usage") as background:
        assert_type(background, handfast.BackgroundLoop)
        assert_type(background.submit(length, "four").result(), int)
        assert_type(background.scope.submit(length, "four", 2).result(), int)
    assert_type(background.close(), CloseReport)


def test_the_tools() -> None:
    async def program() -> None:
        outcome = await victim(length("four"))
        assert_type(outcome, Outcome[str, int])
        assert_type(outcome.value, int | None)

    exploration = explore(program, schedules=2)
    assert_type(exploration, Exploration)
    assert_type(exploration.counterexample, Counterexample | None)
    with no_leaks() as watched:
        assert_type(watched, NoLeaks)
    report = check([__file__])
    assert_type(report, Report)
    for finding in report.findings:
        assert_type(finding, Finding)


def test_the_bridge_for_starlette() -> None:
    from starlette.applications import Starlette

    from handfast.bridges.starlette import app_scope, lifespan

    async def start(app: Starlette, scope: handfast.Scope) -> None:
        assert_type(app_scope(app), handfast.Scope)

    context = lifespan(start, on_failure="report")(Starlette())
    assert_type(context, AbstractAsyncContextManager[dict[str, Any], bool | None])

    async def main() -> None:
        async with context as state:
            assert_type(state, dict[str, Any])

    asyncio.run(main())
