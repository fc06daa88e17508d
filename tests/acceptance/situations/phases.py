"""What may happen to the phases of an agent, and what is seen of it. (Report 4.)

The CLI of the SDK and the search engine are simulated. The stream and the sessions note in which task
they are entered and left.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import handfast
from examples.phases.explored import SlowEngine
from examples.phases.real import agent
from examples.phases.sdk import Message, Output, Sdk, command
from examples.phases.search import Search, Session
from examples.phases.web import search_engine
from handfast import explore, scripted

__all__ = [
    "CLEANUP_WORDS",
    "Kind",
    "Seen",
    "Tracked",
    "closed_by_two",
    "failing",
    "group_fails_meanwhile",
    "left_in",
    "nested",
    "searched",
    "stubborn_resource",
    "tracked",
    "two_failures",
]

CLEANUP_WORDS = "cleanup of the TaskGroup was cancelled"
_ASKS = scripted.Says(b'{"type": "web_search", "query": "news"}\n', whole=True)
_ANSWERS = scripted.Says(b'{"type": "result", "result": "done"}\n', whole=True)
_FAILS = scripted.Errs(CLEANUP_WORDS.encode() + b"\n", whole=True)
_SLOW_TO_END = scripted.On(signal.SIGTERM, scripted.Waits(1), scripted.Exits(0))


class _Orchestrator(Protocol):
    async def run_phase(self, prompt: str) -> Message: ...
    async def web_search_operation(self, query: str) -> str: ...
    async def close(self) -> object: ...


Kind = Callable[[Sdk, Search], _Orchestrator]


@dataclass
class Seen:
    """What a situation has shown."""

    value: Any = None
    error: BaseException | None = None
    cancelled: bool = False
    running: int = 0
    """CLIs that were there when the phase was over."""
    tasks: list[list[int]] = field(default_factory=list)
    """For the stream, then for the sessions: the tasks of each entry and exit."""
    seconds: float = 0.0
    descriptors: int = 0
    """How many more there are than before."""


class _Cli:
    """Starts the CLI, and notes in which tasks its stream is entered and left."""

    def __init__(self) -> None:
        self.tasks: list[Any] = []

    @asynccontextmanager
    async def __call__(self, prompt: str) -> AsyncIterator[Output]:
        self.tasks.append(asyncio.current_task())
        try:
            async with command("agent")(prompt) as output:
                yield output
        finally:
            self.tasks.append(asyncio.current_task())


class _Search:
    """Opens sessions, and notes in which tasks they are entered and left."""

    def __init__(self, *, forbidden: bool = False, failure: Exception | None = None) -> None:
        self.tasks: list[Any] = []
        self._forbidden = forbidden
        self._failure = failure

    @asynccontextmanager
    async def __call__(self) -> AsyncIterator[Session]:
        self.tasks.append(asyncio.current_task())
        try:
            yield SlowEngine(1, forbidden=self._forbidden)
        finally:
            await asyncio.sleep(0.1)
            self.tasks.append(asyncio.current_task())
            if self._failure is not None:
                raise self._failure


async def _phase(kind: Kind, search: _Search, timeout: float | None = None) -> Seen:
    """One phase, which the explorer may cancel; and what is there when it is over."""
    cli = _Cli()
    sdk = Sdk(cli)
    orchestrator = kind(sdk, search)
    began = asyncio.get_running_loop().time()

    async def timed() -> Message:
        async with asyncio.timeout(timeout):
            return await orchestrator.run_phase("answer")

    outcome = await explore.victim(timed(), name="phase")
    seen = Seen(outcome.value, outcome.error, outcome.cancelled, sdk.running)
    seen.seconds = asyncio.get_running_loop().time() - began
    while sdk.running:  # as reported, the collector ends it some time later
        await asyncio.sleep(1)
    await orchestrator.close()
    seen.tasks = [[id(task) for task in each.tasks] for each in (cli, search)]
    return seen


async def failing(kind: Kind) -> Seen:
    """The CLI asks for a search, and fails, in words that look like clean-up."""
    scripted.child("agent", _ASKS, scripted.Waits(3), _FAILS, scripted.Exits(1))
    return await _phase(kind, _Search())


async def group_fails_meanwhile(kind: Kind) -> Seen:
    """The CLI fails while the phase searches."""
    scripted.child("agent", _ASKS, scripted.Waits(0.5), _FAILS, scripted.Waits())
    return await _phase(kind, _Search())


async def left_in(kind: Kind, way: str) -> Seen:
    """The phase is over in one of the ways in which a stream is left, and the CLI would go on."""
    scripted.child("agent", _SLOW_TO_END, _ASKS, _ANSWERS, scripted.Waits())
    search = _Search(forbidden=way == "an error")
    return await _phase(kind, search, timeout=0.5 if way == "a time-out" else None)


async def two_failures(kind: Kind, *, in_the_work: bool) -> Seen:
    """Leaving a session fails, and, if so said, its use has failed before."""
    scripted.child("agent", _ASKS, _ANSWERS, scripted.Waits())
    search = _Search(forbidden=in_the_work, failure=OSError("rate limited"))
    return await _phase(kind, search)


async def nested() -> BaseExceptionGroup[Any]:
    """An error that has come through two task groups."""

    async def inner() -> None:
        async with asyncio.TaskGroup():
            raise PermissionError(CLEANUP_WORDS)

    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(inner())
    except BaseExceptionGroup as error:
        return error
    raise AssertionError("the groups have swallowed it")


# --- what the report offers --------------------------------------------------------------------


@dataclass
class Tracked:
    """What a tracker has done, and what it says of it."""

    while_in_use: int = 0
    closed: int = 0
    verified: bool | None = None
    """None: the verification raised an error."""
    said: list[str] = field(default_factory=list)
    error: BaseException | None = None


class _Resource:
    """A resource with a context manager and a clean-up method, for any tracker."""

    def __init__(self, *, stubborn: bool = False) -> None:
        self.closed = 0
        self.gone = asyncio.Event()
        self._stubborn = stubborn

    async def cleanup(self) -> None:
        while self._stubborn and not self.gone.is_set():
            try:
                await self.gone.wait()
            except asyncio.CancelledError:
                pass
        await asyncio.sleep(0.1)
        self.closed += 1

    async def __aenter__(self) -> _Resource:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.cleanup()


Verify = Callable[[Any], Awaitable[bool]]


async def tracked(tracker: Any, verify: Verify) -> Tracked:
    """A resource is used, as the report says; then the verification runs."""
    seen, resource = Tracked(), _Resource()
    try:
        async with tracker.track_resource(resource):
            seen.while_in_use = len(tracker.active_resources)
        seen.closed = resource.closed
        seen.verified = await verify(tracker)
    except (TypeError, AttributeError) as error:
        seen.error = error
    return seen


async def closed_by_two(tracker: Any) -> Tracked:
    """Two closers overlap, while it is in use."""
    resource = _Resource()
    async with handfast.Scope("closers") as closers:  # noqa: SIM117 (it outlives the resource)
        async with tracker.track_resource(resource):
            closers.spawn(tracker.cleanup_all())
            closers.spawn(tracker.cleanup_all())
            await asyncio.sleep(0.05)
    return Tracked(closed=resource.closed)


async def stubborn_resource(tracker: Any, verify: Verify) -> Tracked:
    """It cannot be closed within the tracker's deadline."""
    seen, resource = Tracked(), _Resource(stubborn=True)
    try:
        async with tracker.track_resource(resource):
            pass
    except handfast.errors.StragglersLeft as error:
        seen.error = error
    with _listening() as seen.said:
        seen.verified = await verify(tracker)
    resource.gone.set()
    while not await verify(tracker):
        await asyncio.sleep(0)
    return seen


@contextmanager
def _listening() -> Iterator[list[str]]:
    """What the case logs meanwhile, whatever else is heard of it."""
    said: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("examples")
    level, logger.propagate = logger.level, False
    logger.setLevel(logging.WARNING)
    logger.addHandler(handler)
    try:
        yield said
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
        logger.propagate = True


# --- with real parts ---------------------------------------------------------------------------


async def searched(kind: Kind, times: int) -> Seen:
    """Searches on a real server, the last of them under a time-out; descriptors are counted."""
    async with search_engine() as search:
        orchestrator = kind(agent(), search)
        await orchestrator.web_search_operation("news")
        before = _descriptors()
        for _ in range(times):
            await orchestrator.web_search_operation("news")
        try:
            async with asyncio.timeout(0.05):
                await orchestrator.web_search_operation("endless")
        except TimeoutError:
            pass
        await _server_has_heard_of_it(before)
        seen = Seen(descriptors=_descriptors() - before)
        await orchestrator.close()
    return seen


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


async def _server_has_heard_of_it(expected: int) -> None:
    """The server, in this very process, has its own end of each connection to close."""
    for _ in range(200):
        if _descriptors() <= expected:
            return
        await asyncio.sleep(0.01)
