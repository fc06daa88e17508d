"""Probes for HF6xx: who gets to see what failed."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from typing import Any

from tests.catalogue.probe import Bench, probe, steps


async def answers() -> str:
    return "answer"


async def fails() -> None:
    raise LookupError("the real reason")


@probe("HF601")
async def error_never_retrieved(bench: Bench, snippet: Any) -> str | None:
    refresher = snippet.Refresher(fails)
    await steps()
    try:
        await refresher.close()
    except LookupError:
        return None
    finally:
        del refresher
        gc.collect()
    return bench.loop.complaints[0] if bench.loop.complaints else "no trace at all"


@probe("HF602")
async def cancel_hides_error(bench: Bench, snippet: Any) -> str | None:
    jobs = snippet.Jobs([fails, asyncio.Event().wait])
    await steps()
    try:
        await jobs.close()
    except BaseExceptionGroup:
        return None
    finally:
        del jobs
        gc.collect()
    return None if bench.loop.complaints else "the error is gone without a trace"


@probe("HF603")
async def gather_results_unread(bench: Bench, snippet: Any) -> str | None:
    saved = []

    async def save(document: str) -> None:
        if document == "bad":
            raise OSError("disk full")
        saved.append(document)

    await snippet.save_all(save, ["good"])
    try:
        await snippet.save_all(save, ["bad", "good"])
    except BaseExceptionGroup as group:
        return None if group.subgroup(OSError) else "another error"
    return "one was not saved, and the caller does not know"


@probe("HF604")
async def callback_raises(bench: Bench, snippet: Any) -> str | None:
    async with asyncio.TaskGroup() as group:
        jobs = snippet.Jobs(group)
        jobs.start(answers)
        jobs.forget_all()
        await steps()
    return None if jobs.idle.is_set() else f"waiters sleep on: {bench.loop.complaints[0]}"


@probe("HF611")
async def judged_by_text(bench: Bench, snippet: Any) -> str | None:
    reports: list[Exception] = []

    async def noise() -> None:
        raise snippet.CleanupFailed("cleanup: already gone")

    async def failure() -> None:
        raise ValueError("cannot parse plan 'Cleanup of 2024'")

    await snippet.run(noise, reports.append)
    assert len(reports) == 1
    try:
        await snippet.run(failure, reports.append)
    except ValueError:
        return None
    return "a real failure passes for noise"


@probe("HF612")
async def success_made_up(bench: Bench, snippet: Any) -> str | None:
    assert await snippet.run(answers) == {"status": "success", "value": "answer"}
    outcome = await snippet.run(fails)
    return "a failure is reported as success" if outcome["status"] == "success" else None


@probe("HF621")
async def group_dropped(bench: Bench, snippet: Any) -> str | None:
    reports: list[str] = []

    async def times_out() -> None:
        raise TimeoutError

    await snippet.refresh([times_out], reports.append)
    assert reports == ["refresh timed out"]
    try:
        await snippet.refresh([times_out, fails], reports.append)
    except ExceptionGroup as group:
        return None if group.subgroup(LookupError) else "another error"
    return "a bug went with the time-out"


@probe("HF622")
async def first_of_group(bench: Bench, snippet: Any) -> str | None:
    reports: list[BaseException] = []

    async def fails_in_depth() -> None:
        raise ExceptionGroup("inner", [OSError("disk full"), ValueError("bad line")])

    await snippet.run([fails_in_depth, fails], reports.append)
    seen = {type(error) for error in reports}
    missed = {OSError, ValueError, LookupError} - seen
    return f"{len(missed)} of 3 errors not reported" if missed else None


@probe("HF631")
async def cleanup_hides_cause(bench: Bench, snippet: Any) -> str | None:
    class Connection:
        async def close(self) -> None:
            raise OSError("already closed")

    async def work(connection: Connection) -> None:
        await fails()

    try:
        await snippet.use(Connection(), work)
    except LookupError as error:
        attached = any("already closed" in note for note in error.__notes__)
        return None if attached else "the error of the clean-up is lost"
    except OSError as error:
        return f"instead of the cause: {error}"
    return "no error at all"


@probe("HF641")
async def one_failure_ends_all(bench: Bench, snippet: Any) -> str | None:
    handled = []
    reports = []

    async def messages() -> AsyncIterator[str]:
        for message in ("one", "bad", "three"):
            yield message

    async def handle(message: str) -> None:
        if message == "bad":
            raise ValueError(message)
        handled.append(message)

    serving = asyncio.create_task(
        snippet.serve(messages(), handle, lambda message, error: reports.append(message))
    )
    await asyncio.wait({serving})
    if serving.exception() is not None:
        return f"handled only {handled}"
    assert reports == ["bad"]
    return None
