"""`merge`: the items of several streams, as they arrive."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterable
from functools import partial
from typing import Generic, TypeVar, cast

from handfast._origin import Origin
from handfast._runtime.arguments import CLOSE_TIMEOUT, wrong_type
from handfast._runtime.hosting.stage import END, Source, Stage
from handfast._runtime.hosting.stream import Stream
from handfast._runtime.scope.tasks.task_registry import name_of

T = TypeVar("T")


def merge(*sources: AsyncIterable[T]) -> Stream[T]:
    """Iterate over several async iterables at once; their items come as they arrive.

    Each runs in a task of its own, and at most one item ahead: none is lost, and none can push the
    others aside. It ends when all have ended. The first error is raised after the items that
    arrived before it, when the other sources are closed. At the end of the block all are closed,
    except streams that the program has entered itself.

    >>> import asyncio
    >>> async def ticks(name, seconds):
    ...     for n in range(2):
    ...         await asyncio.sleep(seconds)
    ...         yield f"{name}{n}"
    >>> async def main():
    ...     async with merge(ticks("slow", 0.05), ticks("fast", 0.01)) as merged:
    ...         return [tick async for tick in merged]
    >>> asyncio.run(main())
    ['fast0', 'fast1', 'slow0', 'slow1']
    """
    for source in sources:
        if not hasattr(source, "__aiter__"):
            raise wrong_type("merge", "async iterables", source)
    origin = Origin.here(1)
    return _MergedStream(_Merging(sources, origin), origin)


class _MergedStream(Stream[T]):
    __slots__ = ()

    _kind = "merge"

    def __init__(self, merging: _Merging[T], origin: Origin) -> None:
        super().__init__(merging.run(), CLOSE_TIMEOUT, origin)
        self._name = merging.name


class _Merging(Stage[T], Generic[T]):
    """The sources, and which of them have an item for the consumer."""

    def __init__(self, items: tuple[AsyncIterable[T], ...], origin: Origin) -> None:
        super().__init__(origin)
        self.name = ", ".join(map(name_of, items)) or "nothing"
        self._items = items
        # The sources that have an item or have failed, in the order in which that happened; and
        # those whose next item was not requested.
        self._arrived: deque[Source[T]] = deque()
        self._idle: list[Source[T]] = []
        self._running = 0  # sources that have not ended

    def _open(self) -> None:
        for items in self._items:
            self._sources.append(Source(items, self._origin))
        self._idle += self._sources
        self._running = len(self._sources)

    async def _next_item(self) -> T:
        while self._running:
            for source in self._idle:
                source.request().add_done_callback(partial(self._on_item, source))
            self._idle.clear()
            while not self._arrived:
                self._changed.clear()
                await self._changed.wait()
            source = self._arrived.popleft()
            try:
                item = source.take()
            except StopAsyncIteration:
                self._running -= 1
            else:
                self._idle.append(source)
                return item
        return cast("T", END)

    def _on_item(self, source: Source[T], _: object) -> None:
        if not self._closing:
            self._arrived.append(source)
            self._changed.set()

    def _report(self, error: BaseException) -> None:
        message = f"in the merge of {self.name}, created at {self._origin}"
        asyncio.get_running_loop().call_exception_handler({"message": message, "exception": error})
