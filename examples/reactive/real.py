"""The bridge with real parts: three messages from a thread, one of which fails; then the clean-up,
and a message after it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any, Protocol

from reactivex import Observable

import handfast
from examples.reactive import as_proposed as proposed
from examples.reactive import as_reported as reported
from examples.reactive import fixed as fixed_version
from examples.reactive.graph import Graph, Message
from examples.reactive.pipeline import FOREVER, Runs, from_pool, mapped

__all__ = ["as_proposed", "as_reported", "fixed"]

Operator = Callable[[Observable[Message]], Observable[Any]]


class _Bridge(Protocol):
    def __init__(self, graph: Graph, loop: asyncio.AbstractEventLoop) -> None: ...
    def create_future_task(self, message: Message) -> Any: ...
    async def cleanup_tasks_async(self) -> object: ...


async def _three_messages(kind: type[_Bridge], operator_of: Callable[[Any], Operator]) -> str:
    loop = asyncio.get_running_loop()
    runs = Runs()
    bridge = kind(runs.graph(), loop)
    over = asyncio.Event()
    answers: list[object] = []

    def end(*_: object) -> None:
        loop.call_soon_threadsafe(over.set)

    idle = threading.Event()
    loop.call_later(0.05, idle.set)  # by then the loop is idle
    with from_pool(3, 0, 4, when=idle) as messages:
        pipeline = messages.pipe(operator_of(bridge))
        pipeline.subscribe(on_next=answers.append, on_error=end, on_completed=end)
        woken = await _is_set_within(0.5, runs.began)
        await over.wait()
    await bridge.cleanup_tasks_async()
    try:
        await asyncio.to_thread(bridge.create_future_task, {"n": FOREVER})
        after = "taken"
    except handfast.errors.ScopeClosed:
        after = "refused"
    return (
        f"{len(answers)} of 3 messages answered, the idle loop {'' if woken else 'not '}woken for "
        f"the first; one after the clean-up {after}"
    )


async def _is_set_within(seconds: float, event: asyncio.Event) -> bool:
    waiting = asyncio.create_task(event.wait())
    # No other timer is due earlier, so only a submission that wakes the loop is in time.
    done, _ = await asyncio.wait({waiting}, timeout=seconds)
    was_set = bool(done) and event.is_set()
    await waiting
    return was_set


async def as_reported() -> str:
    return await _three_messages(
        reported.RxPyLangGraphBridge, lambda bridge: mapped(bridge.create_future_task)
    )


async def as_proposed() -> str:
    return await _three_messages(
        proposed.RxPyLangGraphBridge, lambda bridge: mapped(bridge.create_future_task)
    )


async def fixed() -> str:
    return await _three_messages(
        fixed_version.RxPyLangGraphBridge, lambda bridge: bridge.bridge.runs()
    )
