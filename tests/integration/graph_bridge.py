"""Keywords: graphs that run concurrently through the bridge, and their leaks."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypedDict

import reactivex
from langgraph.graph import StateGraph
from reactivex import operators as ops
from reactivex.scheduler import ThreadPoolScheduler

import handfast
from examples.reactive.as_reported import RxPyLangGraphBridge
from examples.reactive.bridge import RxLangGraphBridge
from handfast import leaks

__all__ = [
    "leaks_of",
    "reported_bridge_closed_in_the_middle",
    "threads_and_a_close_in_the_middle",
    "through_a_pipeline",
]

_LONG = 30.0


class _State(TypedDict):
    n: int


async def _divide(state: _State) -> _State:
    """Fails for 0, and never ends for less."""
    if state["n"] < 0:
        await asyncio.sleep(3600)
    await asyncio.sleep(0)
    return {"n": 12 // state["n"]}


def _graph() -> Any:
    return StateGraph(_State).add_node("divide", _divide).set_entry_point("divide").compile()


def leaks_of(keyword: str, *arguments: int) -> list[str]:
    """Run one of the keywords below, and return its leaks as text."""
    program = {each.__name__: each for each in _PROGRAMS}[keyword.lower().replace(" ", "_")]

    async def main() -> list[str]:
        try:
            async with leaks.no_leaks():
                await program(*map(int, arguments))
        except leaks.LeakError as error:
            return [str(leak) for leak in error.leaks]
        return []

    return asyncio.run(main())


async def through_a_pipeline(messages: int) -> None:
    """Messages from a pool of threads, through the operator; every third fails."""
    pool = ThreadPoolScheduler(4)
    outcomes: list[Any] = []
    async with RxLangGraphBridge(_graph(), concurrency=8) as bridge:
        runs = bridge.runs()
        source = reactivex.from_iterable({"n": number % 3} for number in range(messages))
        with pool.executor:
            source.pipe(ops.subscribe_on(pool), runs).subscribe(outcomes.append)
            while len(outcomes) < messages:
                await asyncio.sleep(0.001)
        await runs.join()
        assert bridge.active_tasks == ()
    failed = sum(outcome.failed for outcome in outcomes)
    assert failed == len(range(0, messages, 3)), f"{failed} of {messages} have failed"


async def threads_and_a_close_in_the_middle(threads: int, messages: int) -> None:
    """Threads send messages, some of which never end by themselves, and the bridge is closed meanwhile."""
    bridge = RxLangGraphBridge(_graph())
    answers: list[Future[Any]] = []
    refused: list[BaseException] = []
    halfway = asyncio.Event()
    loop = asyncio.get_running_loop()

    def send() -> None:
        for number in range(messages):
            try:
                answers.append(bridge.submit({"n": number % 4 - 1}))
            except handfast.errors.ScopeClosed as error:
                refused.append(error)
            if number == messages // 2:
                loop.call_soon_threadsafe(halfway.set)

    senders = [asyncio.create_task(asyncio.to_thread(send)) for _ in range(threads)]
    await halfway.wait()
    report = await bridge.cleanup_tasks_async(grace=0)
    await asyncio.gather(*senders)
    assert report.stragglers == (), str(report)
    assert len(answers) + len(refused) == threads * messages
    assert all(answer.done() for answer in answers), "a message has no answer"
    assert bridge.active_tasks == ()


async def reported_bridge_closed_in_the_middle(messages: int) -> None:
    """The bridge of the report: a thread sends another message after the clean-up."""
    loop = asyncio.get_running_loop()
    bridge = RxPyLangGraphBridge(_graph(), loop)
    sent = threading.Event()

    def send() -> None:
        for _ in range(messages):
            bridge.create_future_task({"n": -1})
        sent.set()

    await bridge.cleanup_tasks_async()
    await asyncio.to_thread(send)
    assert sent.is_set()


_PROGRAMS: tuple[Callable[..., Any], ...] = (
    through_a_pipeline,
    threads_and_a_close_in_the_middle,
    reported_bridge_closed_in_the_middle,
)
