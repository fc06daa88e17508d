"""Programs for `explore`: a message that arrives during the clean-up, and one from a thread.

The graph is minimal, so that the timeline shows little but the bridge.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Protocol

from examples.reactive import as_proposed as proposed
from examples.reactive import as_reported as reported
from examples.reactive.graph import Graph, Message

__all__ = ["SlowGraph", "as_proposed", "as_reported", "fixed"]


class _Bridge(Protocol):
    def __init__(self, graph: Graph, loop: asyncio.AbstractEventLoop) -> None: ...
    def create_future_task(self, message: Message) -> Any: ...
    async def cleanup_tasks_async(self) -> object: ...


class SlowGraph:
    """A graph of one node that takes a minute, and a moment to end when it is cancelled."""

    def __init__(self) -> None:
        self.started = asyncio.Event()
        self.running = 0

    async def ainvoke(self, message: Message, *_: object, **__: object) -> Message:
        self.running += 1
        self.started.set()
        try:
            await asyncio.sleep(message["seconds"])
            return message
        finally:
            await asyncio.sleep(0.01)
            self.running -= 1

    def astream(self, *_: object, **__: object) -> AsyncIterator[Any]:
        raise NotImplementedError


async def _while_it_closes(kind: type[_Bridge]) -> None:
    """S2.5: closing joins all runs, also those that start while it waits."""
    graph = SlowGraph()
    bridge = kind(graph, asyncio.get_running_loop())

    async def send_another() -> None:
        await asyncio.sleep(0.005)
        try:
            bridge.create_future_task({"seconds": 60})
        except RuntimeError:
            pass  # refused: that is also correct

    try:
        bridge.create_future_task({"seconds": 60})
        await graph.started.wait()
        sending = asyncio.create_task(send_another())
        try:
            await bridge.cleanup_tasks_async()
            assert graph.running == 0, f"the clean-up is done, and {graph.running} run is active"
        finally:
            await sending
    finally:
        await bridge.cleanup_tasks_async()


async def _from_a_thread(kind: type[_Bridge]) -> None:
    """S2.1: a message from a thread starts promptly on an idle loop."""
    graph = SlowGraph()
    bridge = kind(graph, asyncio.get_running_loop())
    try:
        await asyncio.to_thread(bridge.create_future_task, {"seconds": 60})
        await asyncio.wait_for(graph.started.wait(), 1)
    finally:
        await bridge.cleanup_tasks_async()


async def as_reported() -> None:
    await _while_it_closes(reported.RxPyLangGraphBridge)


async def as_proposed() -> None:
    await _while_it_closes(proposed.RxPyLangGraphBridge)


async def fixed() -> None:
    # Imported here: it needs reactivex and langgraph, the other versions do not.
    from examples.reactive.fixed import RxPyLangGraphBridge

    await _while_it_closes(RxPyLangGraphBridge)
    await _from_a_thread(RxPyLangGraphBridge)
