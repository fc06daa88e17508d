"""As reported: the emitting thread creates the task and adds it to a plain set."""

from __future__ import annotations

import asyncio
from typing import Any

from examples.reactive.graph import Graph, Message

__all__ = ["RxPyLangGraphBridge"]


class RxPyLangGraphBridge:
    """Runs a graph for each message of a reactive pipeline."""

    def __init__(self, graph: Graph, loop: asyncio.AbstractEventLoop) -> None:
        self._graph = graph
        self._loop = loop
        self._active_tasks: set[asyncio.Task[Any]] = set()

    @property
    def active_tasks(self) -> int:
        return len(self._active_tasks)

    def create_future_task(self, message: Message) -> asyncio.Future[Any]:
        """Start a run for one message; `flat_map` calls it."""
        task = asyncio.ensure_future(self._execute(message), loop=self._loop)
        self._active_tasks.add(task)
        task.add_done_callback(lambda done: self._active_tasks.discard(done))
        return task

    async def _execute(self, message: Message) -> Any:
        return await self._graph.ainvoke(message)

    def cleanup_tasks(self) -> None:
        """End all runs, from any thread."""
        for task in self._active_tasks:
            task.cancel()
        self._active_tasks.clear()

    async def cleanup_tasks_async(self) -> None:
        """End all runs, on the event loop."""
        tasks = list(self._active_tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        late_tasks = self._active_tasks - set(tasks)
        for task in late_tasks:
            task.cancel()
        self._active_tasks.clear()
