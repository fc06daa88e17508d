"""The three programs with their real parts: a child that streams, a server and sessions on loopback."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress
from functools import partial

import holdfast
from holdfast.casebook.phases import as_it_should_be as should_be
from holdfast.casebook.phases import as_proposed as proposed
from holdfast.casebook.phases import as_reported as reported
from holdfast.casebook.phases import cli
from holdfast.casebook.phases.analysis import analyze_taskgroup_error
from holdfast.casebook.phases.sdk import Sdk, command
from holdfast.casebook.phases.search import Search, Session
from holdfast.casebook.phases.tracking import verify_cleanup_completion
from holdfast.casebook.phases.web import search_engine

__all__ = [
    "agent",
    "as_it_should_be",
    "as_proposed",
    "as_reported",
    "search_as_reported",
    "timed_out",
]

_TIME_OUT = 0.05  # seconds, from when a search begins


def agent() -> Sdk:
    """The SDK with a real CLI."""
    return Sdk(command(sys.executable, "-IS", cli.__file__))


async def as_reported() -> str:
    sdk = agent()
    async with search_engine() as search:
        orchestrator = reported.PhaseOrchestrator(sdk, search)
        failed = await orchestrator.run_phase("fail")
        await orchestrator.run_phase("answer, and be slow to stop")
        await orchestrator.close()
    return f"A CLI has failed: {failed['result']!r}. CLIs still running: {sdk.running}."


async def as_proposed() -> str:
    sdk = agent()
    async with search_engine() as search, holdfast.Scope("users") as users:
        asked = asyncio.Event()
        orchestrator = proposed.PhaseOrchestrator(sdk, _telling(search, asked.set))
        phase = users.spawn(orchestrator.run_phase("an endless search; be slow to stop"))
        await asked.wait()
        for _ in range(2):  # a time-out, and a user who presses stop
            phase.cancel()
            await _some_turns()
    return f"A phase was cancelled twice, and is over. CLIs still running: {sdk.running}."


def _telling(search: Search, told: Callable[[], object]) -> Search:
    """Opens sessions, and tells somebody."""

    def opened() -> AbstractAsyncContextManager[Session]:
        told()
        return search()

    return opened


async def _some_turns() -> None:
    for _ in range(100):
        await asyncio.sleep(0)


async def as_it_should_be() -> str:
    sdk = agent()
    async with search_engine() as search:
        orchestrator = should_be.PhaseOrchestrator(sdk, search)
        answered = await orchestrator.run_phase("answer, and be slow to stop")
        try:
            failed = repr(await orchestrator.run_phase("fail"))
        except ExceptionGroup as group:
            failed = repr(analyze_taskgroup_error(group)["operational_errors"])
        clean = await verify_cleanup_completion(orchestrator.resource_tracker)
    return (
        f"{answered['result']!r}. A CLI has failed: {failed}. "
        f"CLIs still running: {sdk.running}. Clean-up verified: {clean}."
    )


async def search_as_reported() -> None:
    """A search under a time-out, as the report has it."""
    async with search_engine() as search:
        orchestrator = reported.PhaseOrchestrator(agent(), search)
        with suppress(TimeoutError):
            async with asyncio.timeout(_TIME_OUT):
                await orchestrator.web_search_operation("endless")


async def timed_out() -> None:
    """A phase that is timed out in its search, as it should be: nothing may grow."""
    sdk = agent()
    async with search_engine() as search:
        limit = asyncio.timeout(None)
        begin = partial(_expires_soon, limit)
        orchestrator = should_be.PhaseOrchestrator(sdk, _telling(search, begin))
        with suppress(TimeoutError):
            async with limit:
                await orchestrator.run_phase("an endless search")
        assert sdk.running == 0
        (await orchestrator.close()).raise_if_unclean()


def _expires_soon(limit: asyncio.Timeout) -> None:
    limit.reschedule(asyncio.get_running_loop().time() + _TIME_OUT)
