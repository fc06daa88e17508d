"""As it should be: a scope owns the runs, and only the loop's thread touches its registry."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from typing import Any

import holdfast
from holdfast.bridges.rx_langgraph import RxLangGraphBridge
from holdfast.casebook.reactive.graph import Graph, Message

__all__ = ["RxPyLangGraphBridge"]


class RxPyLangGraphBridge:
    """Runs a graph for each message of a reactive pipeline: the bridge of the house, under the
    names of the report."""

    def __init__(self, graph: Graph, loop: asyncio.AbstractEventLoop) -> None:
        self.bridge = RxLangGraphBridge(graph)  # it knows its loop

    @property
    def active_tasks(self) -> int:
        return len(self.bridge.active_tasks)

    def create_future_task(self, message: Message) -> Future[Any]:
        """What is called for each message, on whatever thread."""
        return self.bridge.submit(message)

    def cleanup_tasks(self) -> holdfast.CloseReport:
        """The pipeline ends, on any thread but the loop's."""
        return self.bridge.cleanup_tasks(grace=0)

    async def cleanup_tasks_async(self) -> holdfast.CloseReport:
        """The pipeline ends, on the loop."""
        return await self.bridge.cleanup_tasks_async(grace=0)
