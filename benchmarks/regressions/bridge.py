"""Runs of a graph, created from several threads at once through the bridge, and cleaned up.

Needs reactivex and langgraph; where they are missing, ASV skips it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from benchmarks.foreign_loop import foreign_loop
from benchmarks.work import no_op, wait_forever

if TYPE_CHECKING:
    from examples.reactive.bridge import RxLangGraphBridge
    from handfast.bridges.langgraph import Graph

THREADS = 4
EACH = 250
LIVE = 2_000


class StandIn:
    """No graph, to measure only the bridge."""

    def __init__(self, work: Any) -> None:
        self._work = work

    async def ainvoke(self, message: Any, config: Any) -> Any:
        return await self._work()

    async def astream(self, message: Any, config: Any) -> AsyncIterator[Any]:
        yield await self._work()


def one_node() -> Graph:
    """The smallest real graph."""
    from langgraph.graph import StateGraph

    async def node(state: dict[str, Any]) -> dict[str, Any]:
        await no_op()
        return {}

    builder: Any = StateGraph(dict)
    graph: Graph = builder.add_node("node", node).set_entry_point("node").compile()
    return graph


def bridge_on(stack: ExitStack, graph: Graph, concurrency: int) -> RxLangGraphBridge:
    """Open a bridge on a loop in another thread; the stack closes it."""
    loop = stack.enter_context(foreign_loop())

    async def make() -> RxLangGraphBridge:
        from examples.reactive.bridge import RxLangGraphBridge

        return RxLangGraphBridge(graph, concurrency=concurrency)

    bridge = asyncio.run_coroutine_threadsafe(make(), loop).result()
    stack.callback(bridge.cleanup_tasks, timeout=60.0)
    return bridge


def require_libraries() -> None:
    try:
        import examples.reactive.bridge  # noqa: F401
    except ImportError as error:
        raise NotImplementedError(str(error)) from None


class Runs:
    """Send messages from several threads, and wait for all results."""

    params = ("stand-in", "langgraph")
    param_names = ("graph",)

    def setup(self, graph: str) -> None:
        require_libraries()
        self.stack = ExitStack()
        made = one_node() if graph == "langgraph" else StandIn(no_op)
        self.bridge = bridge_on(self.stack, made, concurrency=16)

    def teardown(self, graph: str) -> None:
        self.stack.close()

    def time_submitted(self, graph: str) -> None:
        each = EACH if graph == "stand-in" else EACH // 10
        senders = [threading.Thread(target=self.send, args=(each,)) for _ in range(THREADS)]
        for sender in senders:
            sender.start()
        for sender in senders:
            sender.join()

    def send(self, count: int) -> None:
        for answer in [self.bridge.submit({"n": 1}) for _ in range(count)]:
            answer.result()

    def time_streamed(self, graph: str) -> None:
        import reactivex

        count = THREADS * (EACH if graph == "stand-in" else EACH // 10)
        runs = self.bridge.runs(ordered=True)
        reactivex.repeat_value({"n": 1}, count).pipe(runs).subscribe()
        runs.join_from_thread(timeout=60.0)


class CleanUp:
    """Close the bridge with many active runs."""

    # A bridge that is closed cannot be closed again: each sample needs its own set-up.
    number = 1
    warmup_time = 0

    def setup(self) -> None:
        require_libraries()
        self.stack = ExitStack()
        self.bridge = bridge_on(self.stack, StandIn(wait_forever), concurrency=LIVE)
        for _ in range(LIVE):
            self.bridge.submit({"n": 1})
        while len(self.bridge.active_tasks) < LIVE:
            threading.Event().wait(0.001)

    def teardown(self) -> None:
        self.stack.close()

    def time_live(self) -> None:
        self.bridge.cleanup_tasks(timeout=60.0)
