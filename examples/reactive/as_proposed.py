"""With the report's fix: a lock around every access to the set."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

from examples.reactive.graph import Graph, Message

__all__ = ["RxPyLangGraphBridge"]


class RxPyLangGraphBridge:
    """Runs a graph for each message of a reactive pipeline."""

    def __init__(self, graph: Graph, loop: asyncio.AbstractEventLoop) -> None:
        self._graph = graph
        self._loop = loop
        self._active_tasks: set[asyncio.Task[Any]] = set()
        self._tasks_lock = threading.Lock()

    @property
    def active_tasks(self) -> int:
        with self._tasks_lock:
            return len(self._active_tasks)

    def create_future_task(self, message: Message) -> asyncio.Future[Any]:
        """Start a run for one message; `flat_map` calls it."""
        task = asyncio.ensure_future(self._execute(message), loop=self._loop)
        with self._tasks_lock:
            self._active_tasks.add(task)
        task.add_done_callback(self._remove_task)
        return task

    def _remove_task(self, task: asyncio.Task[Any]) -> None:
        with self._tasks_lock:
            self._active_tasks.discard(task)

    async def _execute(self, message: Message) -> Any:
        return await self._graph.ainvoke(message)

    def cleanup_tasks(self) -> None:
        """End all runs, from any thread."""
        with self._tasks_lock:
            tasks = list(self._active_tasks)
            self._active_tasks.clear()
        for task in tasks:
            task.cancel()

    async def cleanup_tasks_async(self) -> None:
        """End all runs, on the event loop."""
        with self._tasks_lock:
            tasks = list(self._active_tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        with self._tasks_lock:
            late_tasks = self._active_tasks - set(tasks)
            self._active_tasks.clear()
        for task in late_tasks:
            task.cancel()
