"""The bridge on the explored loop: a message that comes while it closes, and one from a thread.

The graph is small here, so that the timeline shows the bridge and little else.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Protocol

from holdfast.casebook.reactive import as_proposed as proposed
from holdfast.casebook.reactive import as_reported as reported
from holdfast.casebook.reactive.graph import Graph, Message

__all__ = ["as_it_should_be", "as_proposed", "as_reported"]


class _Bridge(Protocol):
    def __init__(self, graph: Graph, loop: asyncio.AbstractEventLoop) -> None: ...
    def create_future_task(self, message: Message) -> Any: ...
    async def cleanup_tasks_async(self) -> object: ...


class _Steps:
    """A graph of one node that takes a minute, and a moment to be cancelled."""

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
    """S2.5: closing joins until nobody is left, whoever comes meanwhile included."""
    graph = _Steps()
    bridge = kind(graph, asyncio.get_running_loop())
    bridge.create_future_task({"seconds": 60})
    await graph.started.wait()

    async def send_another() -> None:
        await asyncio.sleep(0.005)
        try:
            bridge.create_future_task({"seconds": 60})
        except RuntimeError:
            pass  # refused: also an answer

    sending = asyncio.create_task(send_another())
    await bridge.cleanup_tasks_async()
    assert graph.running == 0, f"cleaned up, and {graph.running} run goes on"
    await sending


async def _from_a_thread(kind: type[_Bridge]) -> None:
    """S2.1: a message that a thread sends starts promptly, though the loop has nothing to do."""
    graph = _Steps()
    bridge = kind(graph, asyncio.get_running_loop())
    await asyncio.to_thread(bridge.create_future_task, {"seconds": 60})
    await asyncio.wait_for(graph.started.wait(), 1)
    await bridge.cleanup_tasks_async()


async def as_reported() -> None:
    await _while_it_closes(reported.RxPyLangGraphBridge)


async def as_proposed() -> None:
    await _while_it_closes(proposed.RxPyLangGraphBridge)


async def as_it_should_be() -> None:
    # Here, because it needs reactivex and langgraph, and the others do not.
    from holdfast.casebook.reactive.as_it_should_be import RxPyLangGraphBridge

    await _while_it_closes(RxPyLangGraphBridge)
    await _from_a_thread(RxPyLangGraphBridge)
