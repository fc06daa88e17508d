"""The real parts: a langgraph graph, and a reactivex pipeline that emits from a thread pool."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, TypedDict

import reactivex
from langgraph.graph import StateGraph
from reactivex import Observable
from reactivex import operators as ops
from reactivex.scheduler import ThreadPoolScheduler

from examples.reactive.graph import Graph, Message

__all__ = ["FOREVER", "Runs", "from_pool", "mapped"]

FOREVER = -1


class Runs:
    """A graph that divides, and an event that is set when its first run begins."""

    def __init__(self) -> None:
        self.began = asyncio.Event()

    def graph(self) -> Graph:
        """One node without a model; it fails for 0 and never ends for `FOREVER`."""

        class State(TypedDict):
            n: int

        async def divide(state: State) -> State:
            self.began.set()
            if state["n"] == FOREVER:
                await asyncio.sleep(3600)
            return {"n": 12 // state["n"]}

        builder = StateGraph(State).add_node("divide", divide).set_entry_point("divide")
        return builder.compile()


@contextmanager
def from_pool(*numbers: int, when: threading.Event) -> Iterator[Observable[Message]]:
    """Messages from a thread of a pool, as in the report, once `when` is set."""
    pool = ThreadPoolScheduler(1)

    def emit(_: object) -> Observable[Message]:
        when.wait()
        return reactivex.of(*({"n": number} for number in numbers))

    source = reactivex.defer(emit)
    with pool.executor:
        yield source.pipe(ops.subscribe_on(pool))


def mapped(
    create: Callable[[Message], asyncio.Future[Any] | Future[Any]],
) -> Callable[[Observable[Message]], Observable[Any]]:
    """The report's operator: it maps each message to the future of its run."""
    return ops.flat_map(lambda message: reactivex.from_future(create(message)))
