"""reactivex and langgraph together: messages from any thread, and a run of a graph for each.

The bridge owns a scope and gives its guarantees the report's names (S2.1 to S2.8): the runs are the
tasks of the scope, and cleaning up closes the scope.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from types import TracebackType
from typing import Any

from handfast import Scope
from handfast.bridges.langgraph import Graph, GraphRunner
from handfast.bridges.reactivex import MapAsync, WhenFull, map_async
from handfast.types import CloseReport

__all__ = ["RxLangGraphBridge"]


class RxLangGraphBridge:
    """Runs a compiled graph for each message of a reactive pipeline or of any other caller.

    Create it on the event loop; use it from any thread.

    >>> import reactivex
    >>> from typing import TypedDict
    >>> from langgraph.graph import StateGraph
    >>> class State(TypedDict):
    ...     n: int
    >>> async def invert(state: State) -> State:
    ...     return {"n": int(12 / state["n"])}
    >>> graph = StateGraph(State).add_node(invert).set_entry_point("invert").compile()
    >>> async def main():
    ...     async with RxLangGraphBridge(graph) as bridge:
    ...         runs = bridge.runs(ordered=True)
    ...         messages = reactivex.of({"n": 3}, {"n": 0}, {"n": 4})
    ...         messages.pipe(runs).subscribe(lambda run: print(run.value or run.error))
    ...         await runs.join()
    >>> asyncio.run(main())
    {'n': 4}
    division by zero
    {'n': 3}

    Parameters:
        graph: a compiled graph. If a scope holds its checkpointer, let it hold the bridge after
            that: `await scope.hold(RxLangGraphBridge(graph))`. So the bridge is closed first.
        concurrency: the maximum number of concurrent runs.
        timeout: seconds that a run may take.
        thread_id: a function that returns the thread id of a message, or None. Runs of one
            thread id are serialized.
        name: the name of its scope in reports and errors.
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
        self._loop = asyncio.get_running_loop()  # raises if there is none: the scope needs it
        self._concurrency = concurrency
        self._thread_id = thread_id
        self._scope = Scope(name, on_failure="report", limit=concurrency)
        self._runner = GraphRunner(self._scope, graph, timeout=timeout)

    def submit(self, message: Any) -> Future[Any]:
        """Run the graph for one message, from any thread. The future always completes: with the
        last state, with an error, or as cancelled or refused."""
        return self._scope.submit(self._run, message)

    def runs(
        self, *, ordered: bool = False, buffer: int = 64, when_full: WhenFull[Any] = "block"
    ) -> MapAsync[Any, Any]:
        """An operator that maps messages to the outcomes of their runs. See `map_async`."""
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
        """The tasks that run or wait for their turn: a snapshot, from any thread."""
        return self._scope.tasks

    def cleanup_tasks(
        self, *, grace: float | None = None, timeout: float | None = None
    ) -> CloseReport:
        """Close from any thread but the loop's: refuse new messages, then cancel and join all runs.
        Returns a report within `timeout`."""
        if asyncio._get_running_loop() is self._loop:
            raise RuntimeError(
                "cleanup_tasks() would block the loop that has to end the runs; on this thread "
                "use: await bridge.cleanup_tasks_async()"
            )
        return self._scope.close_from_thread(grace=grace, timeout=timeout)

    async def cleanup_tasks_async(
        self, *, grace: float | None = None, timeout: float | None = None
    ) -> CloseReport:
        """Close on the event loop."""
        return await self._scope.close(grace=grace, timeout=timeout)

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
