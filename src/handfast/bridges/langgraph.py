"""langgraph: run a compiled graph on a scope, once for each message.

A run is a task of the scope: closing the scope cancels and joins it, before it closes a
checkpointer that it holds. Runs with the same thread id are made one after another: at once, they
would read the same checkpoint and overwrite each other's.
"""

from __future__ import annotations

import asyncio
from asyncio import Lock
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from concurrent.futures import CancelledError, Future
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, nullcontext
from functools import partial
from typing import Any, Protocol
from weakref import WeakValueDictionary

from handfast import Scope, stream
from handfast._missing_extra import missing_for_bridge
from handfast._outcome import settled
from handfast._runtime.arguments import seconds
from handfast._runtime.hosting.stream import Stream
from handfast._runtime.uncancellable import raise_outcome, wait_uncancelled

try:
    import langgraph as langgraph  # a namespace package: nothing is loaded
except ModuleNotFoundError as error:
    raise missing_for_bridge("langgraph", "langgraph") from error

__all__ = ["Graph", "GraphRunner"]


class Graph(Protocol):
    """The part of a compiled `StateGraph` that is used here."""

    @property
    def ainvoke(self) -> Callable[..., Awaitable[Any]]: ...

    @property
    def astream(self) -> Callable[..., AsyncIterator[Any]]: ...


class GraphRunner:
    """Runs a compiled graph on a scope, once for each message.

    >>> from typing import TypedDict
    >>> from langgraph.graph import StateGraph
    >>> class State(TypedDict):
    ...     n: int
    >>> async def double(state: State) -> State:
    ...     return {"n": 2 * state["n"]}
    >>> builder = StateGraph(State).add_node(double)
    >>> graph = builder.set_entry_point("double").compile()
    >>> async def main():
    ...     async with Scope("graphs") as scope:
    ...         return await GraphRunner(scope, graph).ainvoke({"n": 21})
    >>> asyncio.run(main())
    {'n': 42}

    Parameters:
        scope: the owner of the runs. Let it hold the graph's checkpointer before the first run:
            it closes in reverse order.
        graph: a compiled graph, or anything with its `ainvoke` and `astream`.
        timeout: seconds that a run may take, without the wait for other runs of its thread id;
            then it is cancelled, and TimeoutError is raised when it has ended.
        config: the config of every run; the thread id is added.
    """

    def __init__(
        self,
        scope: Scope,
        graph: Graph,
        *,
        timeout: float | None = None,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        if not hasattr(graph, "ainvoke"):
            hint = "; compile it first: builder.compile()" if hasattr(graph, "compile") else ""
            raise TypeError(f"GraphRunner takes a compiled graph, not {graph!r}{hint}")
        self._scope = scope
        self._graph = graph
        self._timeout = None if timeout is None else seconds("timeout", timeout)
        self._config = dict(config or {})
        # A lock lives as long as a run holds it or waits for it.
        self._turns: WeakValueDictionary[str, Lock] = WeakValueDictionary()

    async def ainvoke(
        self,
        message: Any,
        *,
        thread_id: str | None = None,
        timeout: float | None = None,
        **options: Any,
    ) -> Any:
        """Run the graph on the scope and return the last state. `options` are those of the graph.

        An error is raised here, and is no failure of the scope. If the caller is cancelled, the
        run is cancelled, and joined however often that happens. If the scope cancels the run,
        `concurrent.futures.CancelledError` is raised: the caller itself is not cancelled.
        """
        run = partial(self.run, message, thread_id=thread_id, timeout=timeout, **options)
        task = self._scope.spawn(settled(message, run), name=_title(thread_id))
        cancelled: asyncio.CancelledError | None = None
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
            task.cancel()
            await wait_uncancelled({task})
        try:
            raise_outcome(None if task.cancelled() else task.result().error, cancelled)
        finally:
            del cancelled  # it refers to this frame
        if task.cancelled():
            raise CancelledError(f"the {_title(thread_id)} was cancelled; its scope may be closing")
        return task.result().result()

    @asynccontextmanager
    async def astream(
        self,
        message: Any,
        *,
        thread_id: str | None = None,
        timeout: float | None = None,
        **options: Any,
    ) -> AsyncIterator[Stream[Any]]:
        """Run the graph on the scope, and read its stream: `async with` for the run, and
        `async for` for its chunks.

        Leaving the block early ends the run and joins it, and so does closing the scope.
        """
        chunks = stream(self._chunks(message, thread_id, timeout, options))
        name = f"the stream of the {_title(thread_id)}"
        held = await self._scope.hold(chunks, name=name)
        try:
            yield held
        finally:
            await self._scope.release(held)

    def submit(
        self,
        message: Any,
        *,
        thread_id: str | None = None,
        timeout: float | None = None,
        **options: Any,
    ) -> Future[Any]:
        """Run the graph on the scope, from any thread. The future is always resolved."""
        return self._scope.submit(
            self.run, message, thread_id=thread_id, timeout=timeout, **options
        )

    async def run(
        self,
        message: Any,
        *,
        thread_id: str | None = None,
        timeout: float | None = None,
        **options: Any,
    ) -> Any:
        """Run the graph in the current task, which the scope should own."""
        async with self._turn(thread_id), self._bounded(timeout, thread_id):
            return await self._graph.ainvoke(message, self._configured(thread_id), **options)

    async def _chunks(
        self, message: Any, thread_id: str | None, timeout: float | None, options: dict[str, Any]
    ) -> AsyncGenerator[Any, None]:
        async with self._turn(thread_id), self._bounded(timeout, thread_id):
            chunks: Any = self._graph.astream(message, self._configured(thread_id), **options)
            async with aclosing(chunks):
                async for chunk in chunks:
                    yield chunk  # noqa: HF541 (an owner task hosts it, see `astream`)

    def _turn(self, thread_id: str | None) -> AbstractAsyncContextManager[None]:
        return nullcontext() if thread_id is None else self._turns.setdefault(thread_id, Lock())

    @asynccontextmanager
    async def _bounded(self, timeout: float | None, thread_id: str | None) -> AsyncIterator[None]:
        allowed = self._timeout if timeout is None else seconds("timeout", timeout)
        clock = asyncio.timeout(allowed)
        try:
            async with clock:
                yield
        except TimeoutError as error:
            if not clock.expired():
                raise  # raised by the graph itself
            raise TimeoutError(f"the {_title(thread_id)} took more than {allowed:g} s") from error

    def _configured(self, thread_id: str | None) -> dict[str, Any]:
        if thread_id is None:
            return self._config
        inner = {**self._config.get("configurable", {}), "thread_id": thread_id}
        return {**self._config, "configurable": inner}


def _title(thread_id: str | None) -> str:
    return "run of the graph" if thread_id is None else f"run of the graph for thread {thread_id!r}"
