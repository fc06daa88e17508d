"""Phases on the explored loop: a CLI that fails, and one that is left as soon as there is a result.

Where it fails, the error comes out. Where it is left, it is gone when the phase is over, however that
has ended. The CLI and the search engine are small here, so that the timeline shows the phase and
little else.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Protocol

import holdfast
from holdfast import explore
from holdfast.casebook.phases import as_it_should_be as should_be
from holdfast.casebook.phases import as_proposed as proposed
from holdfast.casebook.phases import as_reported as reported
from holdfast.casebook.phases import as_written
from holdfast.casebook.phases.analysis import analyze_taskgroup_error
from holdfast.casebook.phases.sdk import Message, Output, Sdk, SdkError
from holdfast.casebook.phases.search import Search

__all__ = [
    "analysis_as_written",
    "as_it_should_be",
    "as_proposed",
    "as_reported",
    "tracker_as_written",
    "verification_as_written",
]


class _Orchestrator(Protocol):
    def __init__(self, sdk: Sdk, search: Search) -> None: ...
    async def run_phase(self, prompt: str) -> Message: ...
    async def close(self) -> object: ...


class _Engine:
    """A session with a search engine that takes its time."""

    async def find(self, query: str) -> str:
        await asyncio.sleep(0.01)
        return f"about {query}"


@asynccontextmanager
async def _session() -> AsyncIterator[_Engine]:
    yield _Engine()


class _Lines:
    """What comes out of a pipe: a line every now and then, and no end of it."""

    def __init__(self, *lines: bytes) -> None:
        self._lines = list(lines)

    def __aiter__(self) -> _Lines:
        return self

    async def __anext__(self) -> bytes:
        await asyncio.sleep(0.01 if self._lines else 3600)
        return self._lines.pop(0)


@asynccontextmanager
async def _cli(prompt: str) -> AsyncIterator[Output]:
    """Fails, or asks for a search, answers, and goes on. Told to stop, it takes a moment."""
    asks = b'{"type": "web_search", "query": "news"}'
    answers = b'{"type": "result", "result": "done"}'
    try:
        if prompt == "fail":
            yield Output(_Lines(), _Lines(b"rate limited"))
        else:
            yield Output(_Lines(asks, answers), _Lines())
    finally:
        await holdfast.shielded(asyncio.sleep(0.05))


async def _phases(kind: type[_Orchestrator], *prompts: str) -> None:
    """Phases side by side: one for each prompt, and any of them may be cancelled."""
    sdk = Sdk(_cli)
    orchestrator = kind(sdk, _session)
    phases = [_victim(orchestrator, prompt) for prompt in prompts]
    outcomes = [await phase for phase in phases]
    assert sdk.running == 0, "the phases are over, and a CLI is still there"
    for prompt, outcome in zip(prompts, outcomes, strict=True):
        _judge(prompt, outcome)
    await orchestrator.close()


def _victim(orchestrator: _Orchestrator, prompt: str) -> explore.Victim[Message]:
    return explore.victim(orchestrator.run_phase(prompt), name=f"phase {prompt}")


def _judge(prompt: str, outcome: explore.Outcome[Message]) -> None:
    if prompt == "answer":
        assert outcome.cancelled or outcome.value == {"type": "result", "result": "done"}
        return
    said = outcome.value and outcome.value["result"]
    assert not said, f"the CLI has failed; the phase says: {said}"
    assert outcome.cancelled or isinstance(_only_error(outcome), SdkError)


def _only_error(outcome: explore.Outcome[Message]) -> BaseException:
    assert outcome.error is not None
    (error,) = analyze_taskgroup_error(outcome.error)["operational_errors"]
    return error


async def as_reported() -> None:
    await _phases(reported.PhaseOrchestrator, "fail")


async def as_proposed() -> None:
    await _phases(proposed.PhaseOrchestrator, "answer")


async def as_it_should_be() -> None:
    await _phases(should_be.PhaseOrchestrator, "fail", "answer")


async def tracker_as_written() -> None:
    """The report's tracker, used for a resource."""
    tracker: Any = as_written.ResourceTracker()
    async with tracker.track_resource(_session()):
        pass


async def verification_as_written() -> None:
    """The report's tracker, asked what is left."""
    assert await as_written.verify_cleanup_completion(as_written.ResourceTracker())


async def analysis_as_written() -> None:
    """The report's analysis of an error that has come through two task groups."""
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(_group_that_fails())
    except BaseExceptionGroup as error:
        analysis = as_written.analyze_taskgroup_error(error)
        assert not analysis["can_continue"], "rate limited, and the program may continue"


async def _group_that_fails() -> None:
    async with asyncio.TaskGroup():
        raise SdkError("rate limited")
