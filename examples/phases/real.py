"""The three versions with real parts: a child that streams, and a search server on loopback."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress
from functools import partial

import handfast
from examples.phases import as_proposed as proposed
from examples.phases import as_reported as reported
from examples.phases import cli
from examples.phases import fixed as fixed_version
from examples.phases.analysis import analyze_taskgroup_error
from examples.phases.sdk import Sdk, command
from examples.phases.search import Search, Session
from examples.phases.tracking import verify_cleanup_completion
from examples.phases.web import search_engine

__all__ = [
    "agent",
    "as_proposed",
    "as_reported",
    "fixed",
    "search_as_reported",
    "timed_out",
]

_TIMEOUT = 0.05  # seconds, from the start of the search


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
    return f"A CLI failed: {failed['result']!r}. CLIs still running: {sdk.running}."


async def as_proposed() -> str:
    sdk = agent()
    async with search_engine() as search, handfast.Scope("users") as users:
        searching = asyncio.Event()
        orchestrator = proposed.PhaseOrchestrator(sdk, _notifying(search, searching.set))
        phase = users.spawn(orchestrator.run_phase("an endless search; be very slow to stop"))
        await searching.wait()
        phase.cancel()  # a timeout
        (conversation,) = orchestrator.resource_tracker.active_resources
        while not conversation.stream.ag_running:  # noqa: ASYNC110 - until clean-up has begun
            await asyncio.sleep(0)
        phase.cancel()  # a user who presses stop
    return f"A phase was cancelled twice and has ended. CLIs still running: {sdk.running}."


def _notifying(search: Search, notify: Callable[[], object]) -> Search:
    """A `search` that calls `notify` for each session."""

    def opened() -> AbstractAsyncContextManager[Session]:
        notify()
        return search()

    return opened


async def fixed() -> str:
    sdk = agent()
    async with search_engine() as search:
        orchestrator = fixed_version.PhaseOrchestrator(sdk, search)
        answered = await orchestrator.run_phase("answer, and be slow to stop")
        try:
            failed = repr(await orchestrator.run_phase("fail"))
        except ExceptionGroup as group:
            failed = repr(analyze_taskgroup_error(group)["operational_errors"])
        clean = await verify_cleanup_completion(orchestrator.resource_tracker)
    return (
        f"{answered['result']!r}. A CLI failed: {failed}. "
        f"CLIs still running: {sdk.running}. Clean-up verified: {clean}."
    )


async def search_as_reported() -> None:
    """A search with a timeout, as reported."""
    async with search_engine() as search:
        orchestrator = reported.PhaseOrchestrator(agent(), search)
        with suppress(TimeoutError):
            async with asyncio.timeout(_TIMEOUT):
                await orchestrator.web_search_operation("endless")


async def timed_out() -> None:
    """A phase that times out in its search, fixed: nothing may grow."""
    sdk = agent()
    async with search_engine() as search:
        limit = asyncio.timeout(None)
        begin = partial(_expires_soon, limit)
        orchestrator = fixed_version.PhaseOrchestrator(sdk, _notifying(search, begin))
        with suppress(TimeoutError):
            async with limit:
                await orchestrator.run_phase("an endless search")
        assert sdk.running == 0
        (await orchestrator.close()).raise_if_unclean()


def _expires_soon(limit: asyncio.Timeout) -> None:
    limit.reschedule(asyncio.get_running_loop().time() + _TIMEOUT)
