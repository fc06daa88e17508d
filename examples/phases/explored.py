"""Programs for `explore`: a CLI that fails, and one whose reader stops at the first result.

If the CLI fails, the phase must raise its error. In any case the CLI must have ended when the phase
has. The CLI and the search engine are minimal, so that the timeline shows little but the phase.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Protocol

import handfast
from examples.phases import as_proposed as proposed
from examples.phases import as_reported as reported
from examples.phases import as_written
from examples.phases import fixed as fixed_version
from examples.phases.analysis import analyze_taskgroup_error
from examples.phases.sdk import Message, Output, Sdk, SdkError
from examples.phases.search import Search
from handfast import explore
from handfast.types import Outcome, Victim

__all__ = [
    "SlowEngine",
    "analysis_as_written",
    "as_proposed",
    "as_reported",
    "fixed",
    "tracker_as_written",
    "verification_as_written",
]


class _Orchestrator(Protocol):
    def __init__(self, sdk: Sdk, search: Search) -> None: ...
    async def run_phase(self, prompt: str) -> Message: ...
    async def close(self) -> object: ...


class SlowEngine:
    """A session with a slow search engine."""

    def __init__(self, seconds: float = 0.01, *, forbidden: bool = False) -> None:
        self._seconds = seconds
        self._forbidden = forbidden

    async def find(self, query: str) -> str:
        await asyncio.sleep(self._seconds)
        if self._forbidden:
            raise PermissionError(query)
        return f"about {query}"


@asynccontextmanager
async def _session() -> AsyncIterator[SlowEngine]:
    yield SlowEngine()


class _Lines:
    """The output of a pipe: some lines, and no EOF."""

    def __init__(self, *lines: bytes) -> None:
        self._lines = list(lines)

    def __aiter__(self) -> _Lines:
        return self

    async def __anext__(self) -> bytes:
        await asyncio.sleep(0.01 if self._lines else 3600)
        return self._lines.pop(0)


@asynccontextmanager
async def _cli(prompt: str) -> AsyncIterator[Output]:
    """Fails, or requests a search, answers, and keeps running. It takes a moment to stop."""
    asks = b'{"type": "web_search", "query": "news"}'
    answers = b'{"type": "result", "result": "done"}'
    try:
        if prompt == "fail":
            yield Output(_Lines(), _Lines(b"rate limited"))
        else:
            yield Output(_Lines(asks, answers), _Lines())
    finally:
        await handfast.shielded(asyncio.sleep(0.05))


async def _phases(kind: type[_Orchestrator], *prompts: str) -> None:
    """Concurrent phases, one for each prompt; `explore` may cancel any of them."""
    sdk = Sdk(_cli)
    orchestrator = kind(sdk, _session)
    phases = [_victim(orchestrator, prompt) for prompt in prompts]
    try:
        outcomes = [await phase for phase in phases]
    except asyncio.CancelledError:
        for phase in phases:
            phase.task.cancel()
        await asyncio.wait([phase.task for phase in phases])
        raise
    assert sdk.running == 0, "the phases have ended, and a CLI is still running"
    for prompt, outcome in zip(prompts, outcomes, strict=True):
        _judge(prompt, outcome)
    await orchestrator.close()


def _victim(orchestrator: _Orchestrator, prompt: str) -> Victim[Message]:
    return explore.victim(orchestrator.run_phase(prompt), name=f"phase {prompt}")


def _judge(prompt: str, outcome: Outcome[str, Message]) -> None:
    if prompt == "answer":
        assert outcome.cancelled or outcome.value == {"type": "result", "result": "done"}
        return
    said = outcome.value and outcome.value["result"]
    assert not said, f"the CLI failed; the phase returned: {said}"
    assert outcome.cancelled or isinstance(_only_error(outcome), SdkError)


def _only_error(outcome: Outcome[str, Message]) -> BaseException:
    assert outcome.error is not None
    (error,) = analyze_taskgroup_error(outcome.error)["operational_errors"]
    return error


async def as_reported() -> None:
    await _phases(reported.PhaseOrchestrator, "fail")


async def as_proposed() -> None:
    await _phases(proposed.PhaseOrchestrator, "answer")


async def fixed() -> None:
    await _phases(fixed_version.PhaseOrchestrator, "fail", "answer")


async def tracker_as_written() -> None:
    """Use the report's tracker for a resource."""
    tracker: Any = as_written.ResourceTracker()
    async with tracker.track_resource(_session()):
        pass


async def verification_as_written() -> None:
    """Verify the clean-up with the report's tracker."""
    assert await as_written.verify_cleanup_completion(as_written.ResourceTracker())


async def analysis_as_written() -> None:
    """Analyse an error inside two task groups with the report's function."""
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(_group_that_fails())
    except BaseExceptionGroup as error:
        analysis = as_written.analyze_taskgroup_error(error)
        assert not analysis["can_continue"], "rate limited, and the program may continue"


async def _group_that_fails() -> None:
    async with asyncio.TaskGroup():
        raise SdkError("rate limited")
