"""Real graphs of langgraph, without models: what a run does is said by its message."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any, TypedDict, cast

from langgraph.graph import END, START, StateGraph

from handfast.bridges.langgraph import Graph


class State(TypedDict, total=False):
    do: str
    n: int


def graph_of(*nodes: Callable[[State], Awaitable[State]], **options: Any) -> Graph:
    """A compiled graph of these nodes, one after the other."""
    builder = StateGraph(State)
    names = [f"node {place}" for place in range(len(nodes))]
    for name, node in zip(names, nodes, strict=True):
        builder.add_node(name, cast(Any, node))
    for before, after in zip([START, *names], [*names, END], strict=True):
        builder.add_edge(before, after)
    graph: Graph = builder.compile(**options)
    return graph


async def adds(state: State) -> State:
    await asyncio.sleep(0)
    return {"n": state["n"] + 1}


async def fails(state: State) -> State:
    await asyncio.sleep(0)
    raise ValueError(state["n"])


async def waits(state: State) -> State:
    await asyncio.Event().wait()
    return {}


async def cleans_up(state: State) -> State:
    try:
        await asyncio.Event().wait()
    finally:
        await asyncio.sleep(0)
    return {}


WORK = {function.__name__: function for function in (adds, fails, waits, cleans_up)}


async def follows_state(state: State) -> State:
    return await WORK[state["do"]](state)


WORKING = graph_of(follows_state)


class Stuck:
    """A node that swallows its cancel until its gate is opened."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.gate = threading.Event()

    async def __call__(self, state: State) -> State:
        self.begun.set()
        while not self.gate.is_set():
            try:
                await asyncio.sleep(0.001)
            except asyncio.CancelledError:
                pass
        return {}
