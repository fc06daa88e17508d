"""reactivex and langgraph together: messages from any thread, one run of a graph for each.

The bridge owns a scope, and adds nothing to its promises but names: who runs is what the scope
says, on the loop's thread alone, and cleaning up is closing it (S2.1 to S2.8).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from types import TracebackType
from typing import Any

from holdfast import CloseReport, Scope
from holdfast.bridges.langgraph import Graph, GraphRunner
from holdfast.bridges.reactivex import MapAsync, WhenFull, map_async

__all__ = ["RxLangGraphBridge"]


class RxLangGraphBridge:
    """Runs a compiled graph for each message that a reactive pipeline, or anybody else, sends.

    Make it where the event loop runs; use it from any thread.

    >>> import reactivex
    >>> from typing import TypedDict
    >>> from langgraph.graph import StateGraph
    >>> class State(TypedDict):
    ...     n: int
    >>> async def invert(state: State) -> State:
    ...     return {"n": 12 // state["n"]}
    >>> graph = StateGraph(State).add_node(invert).set_entry_point("invert").compile()
    >>> async def main():
    ...     async with RxLangGraphBridge(graph) as bridge:
    ...         runs = bridge.runs(ordered=True)
    ...         messages = reactivex.of({"n": 3}, {"n": 0}, {"n": 4})
    ...         messages.pipe(runs).subscribe(lambda run: print(run.value or run.error))
    ...         await runs.join()
    >>> asyncio.run(main())
    {'n': 4}
    integer division or modulo by zero
    {'n': 3}

    Parameters:
        graph: a compiled graph. Whoever holds its checkpointer holds the bridge after it:
            `await scope.hold(RxLangGraphBridge(graph))`. So it is closed before.
        concurrency: how many runs there are at once.
        timeout: seconds that a run may take.
        thread_id: a function that gives the thread id of a message, or None. Runs of one thread
            follow each other.
        name: what reports and errors call its scope.
    """

    def __init__(
        self,
        graph: Graph,
        *,
        concurrency: int = 16,
        timeout: float | None = None,
        thread_id: Callable[[Any], str | None] = lambda message: None,
        name: str = "bridge",
    ) -> None:
        self._loop = asyncio.get_running_loop()  # or an error: the scope needs one
        self._concurrency = concurrency
        self._thread_id = thread_id
        self._scope = Scope(name, on_failure="report", limit=concurrency)
        self._runner = GraphRunner(self._scope, graph, timeout=timeout)

    def submit(self, message: Any) -> Future[Any]:
        """Run the graph for one message, from any thread. The answer always comes: the last
        state, the error, or that the run was cancelled or refused."""
        return self._scope.submit(self._run, message)

    def runs(
        self, *, ordered: bool = False, buffer: int = 64, when_full: WhenFull[Any] = "block"
    ) -> MapAsync[Any, Any]:
        """An operator that turns messages into the outcomes of their runs. See `map_async`."""
        return map_async(
            self._scope,
            self._run,
            concurrency=self._concurrency,
            ordered=ordered,
            buffer=buffer,
            when_full=when_full,
        )

    async def _run(self, message: Any) -> Any:
        return await self._runner.run(message, thread_id=self._thread_id(message))

    @property
    def active_tasks(self) -> tuple[asyncio.Task[Any], ...]:
        """Who runs, or waits for a turn: a snapshot, from any thread."""
        return self._scope.tasks

    def cleanup_tasks(
        self, *, grace: float | None = None, timeout: float | None = None
    ) -> CloseReport:
        """Close from any thread but the loop's own: refuse new work, cancel what runs, join until
        nobody is left. Returns within `timeout`, and says how that went."""
        if asyncio._get_running_loop() is self._loop:
            raise RuntimeError(
                "cleanup_tasks() would block the very loop that has to end the runs; on this thread "
                "use: await bridge.cleanup_tasks_async()"
            )
        return self._scope.close_from_thread(grace=grace, timeout=timeout)

    async def cleanup_tasks_async(
        self, *, grace: float | None = None, deadline: float | None = None
    ) -> CloseReport:
        """The same on the loop."""
        return await self._scope.close(grace=grace, deadline=deadline)

    async def __aenter__(self) -> RxLangGraphBridge:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        report = await self.cleanup_tasks_async()
        if error is None:
            report.raise_if_unclean()
        elif not report.clean:
            error.add_note(str(report))
