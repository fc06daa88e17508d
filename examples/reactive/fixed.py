"""Fixed: a scope owns the runs, and only the loop's thread changes its registry."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from typing import Any

import handfast
from examples.reactive.bridge import RxLangGraphBridge
from examples.reactive.graph import Graph, Message

__all__ = ["RxPyLangGraphBridge"]


class RxPyLangGraphBridge:
    """Runs a graph for each message of a reactive pipeline: `bridge.RxLangGraphBridge` with the
    report's method names."""

    def __init__(self, graph: Graph, loop: asyncio.AbstractEventLoop) -> None:
        self.bridge = RxLangGraphBridge(graph)  # it uses the running loop

    @property
    def active_tasks(self) -> int:
        return len(self.bridge.active_tasks)

    def create_future_task(self, message: Message) -> Future[Any]:
        """Start a run for one message, from any thread."""
        return self.bridge.submit(message)

    def cleanup_tasks(self) -> handfast.types.CloseReport:
        """End all runs, from any thread but the loop's."""
        return self.bridge.cleanup_tasks(grace=0)

    async def cleanup_tasks_async(self) -> handfast.types.CloseReport:
        """End all runs, on the event loop."""
        return await self.bridge.cleanup_tasks_async(grace=0)
