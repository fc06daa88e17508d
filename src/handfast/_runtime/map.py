"""`Scope.map`: call a function for each item, several calls at once, with back-pressure.

A stage hands the results over. It is hosted as every stream is, by an owner task of the scope; the
calls are tasks of an inner scope, which the stage closes when it ends. New calls are started by
callbacks, not by the stage: it runs only when the consumer requests a result.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    Awaitable,
    Callable,
    Generator,
    Iterable,
    Iterator,
)
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from handfast._origin import Origin
from handfast._runtime.arguments import CLOSE_TIMEOUT, require_function, whole_number, wrong_type
from handfast._runtime.cancel_reason import CancelReason
from handfast._runtime.errors import HandfastError
from handfast._runtime.failure import mark_cleanup
from handfast._runtime.hosting.stage import END, INNER_TIMEOUT, Source, Stage
from handfast._runtime.hosting.stream import Host, Stream
from handfast._runtime.report import TaskEnd
from handfast._runtime.scope.failure_reports import report_error
from handfast._runtime.scope.tasks.task_registry import TaskRegistry, name_of

if TYPE_CHECKING:
    from handfast._runtime.scope.scope import Scope

T = TypeVar("T")
R = TypeVar("R")


def map_in(
    registry: TaskRegistry,
    calls: Scope,
    function: Callable[[T], Awaitable[R]],
    items: Iterable[T] | AsyncIterable[T],
    limit: int,
    ordered: bool,
    origin: Origin,
) -> Stream[R]:
    """The stream of the results, owned by `registry`; `calls` is the scope for the calls."""
    require_function("map(fn, items)", function)
    if not hasattr(items, "__aiter__") and not hasattr(items, "__iter__"):
        raise wrong_type("map", "an iterable of items, async or plain", items)
    whole_number("limit", limit, at_least=1)
    mapping = _Mapping(registry, calls, function, items, limit, ordered, origin)
    return _MapStream(registry, mapping.run(), name_of(function), origin)


class _MapStream(Stream[R]):
    """Starts when the first result is requested; its scope closes it if its consumer does not."""

    __slots__ = ("_registry",)

    _kind = "map"

    def __init__(
        self, registry: TaskRegistry, results: AsyncGenerator[R, None], name: str, origin: Origin
    ) -> None:
        super().__init__(results, CLOSE_TIMEOUT, origin)
        self._name = name
        self._registry = registry

    def _open(self) -> Host[R]:
        self._registry.bind()
        self._registry.require_open(f"map({self._name})")
        return Host(
            self._source, self._described(), self._origin, self._timeout, registry=self._registry
        )

    def _entered(self) -> Host[R]:
        if self._host is None:
            self._host = self._open()
        return super()._entered()

    def _warn_dropped(self) -> None:
        """Nothing is leaked: the scope joins it."""


class _Call(Generic[R]):
    """One call of the function, or an error of the source in the place of a call."""

    __slots__ = ("cancelled", "done", "error", "value")

    value: R

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error
        self.done = error is not None
        self.cancelled = False  # by other code

    def result(self) -> R:
        try:
            if self.error is not None:
                raise self.error
            return self.value
        finally:
            self.error = None  # it refers to this frame


class _Mapping(Stage[R], Generic[T, R]):
    """The calls under way, and their results until the consumer has taken them."""

    def __init__(
        self,
        registry: TaskRegistry,
        calls: Scope,
        function: Callable[[T], Awaitable[R]],
        items: Iterable[T] | AsyncIterable[T],
        limit: int,
        ordered: bool,
        origin: Origin,
    ) -> None:
        super().__init__(origin)
        self._registry = registry
        self._scope = calls
        self._function = function
        self._items = items
        self._limit = limit
        self._ordered = ordered
        self._iterator: Iterator[T] = iter(())
        self._source: Source[T] | None = None  # of async items
        self._no_more_items = False
        self._under_way: dict[_Call[R], None] = {}
        self._unread = 0  # calls whose result the consumer has not taken
        # All unread calls in the order of the items, or the completed ones.
        self._queue: deque[_Call[R]] = deque()

    # --- in the owner task -----------------------------------------------------------------

    def _open(self) -> None:
        self._scope._registry.bind()
        if isinstance(self._items, AsyncIterable):
            self._source = Source(self._items, self._origin)
            self._sources.append(self._source)
        else:
            self._iterator = iter(self._items)

    async def _next_item(self) -> R:
        while True:
            self._fill()
            if self._queue and self._queue[0].done:
                self._unread -= 1
                self._fill()  # the next calls run while the consumer has this result
                return self._queue.popleft().result()
            if self._no_more_items and not self._under_way:
                return cast("R", END)
            self._changed.clear()
            await self._changed.wait()

    async def _close(self) -> None:
        """End the calls, then the source that they may use."""
        self._no_more_items = True
        try:
            reason = CancelReason("the end of map()", self._origin)
            report = await self._scope._close(0.0, INNER_TIMEOUT, reason)
            self._errors += report.straggler_errors()
        finally:
            # Those that have just failed are under way until the next step of the loop.
            for call in dict.fromkeys([*self._queue, *self._under_way]):
                if call.error is not None and not call.cancelled:
                    self._report(call.error)
            self._queue.clear()
            self._close_plain_generator()
            await super()._close()

    def _close_plain_generator(self) -> None:
        """As an async source is closed: what it has open must not wait for the garbage collector."""
        if isinstance(self._iterator, Generator):
            try:
                self._iterator.close()
            except Exception as error:
                self._add_error(mark_cleanup(error))

    def _report(self, error: BaseException) -> None:
        name = name_of(self._function)
        message = f"in the map of {name}, created at {self._origin}"
        report_error(self._registry, message, TaskEnd(f"map {name}", self._origin, error))

    # --- starting calls, also from callbacks -----------------------------------------------

    def _fill(self) -> None:
        """Take items as long as there is a place for their calls and for their results."""
        try:
            while (
                len(self._under_way) < self._limit
                and self._unread < 2 * self._limit
                and not self._no_more_items
                and not (self._source is not None and self._source.requested)
            ):
                self._fetch()
        except Exception as error:
            self._fail(error)

    def _fetch(self) -> None:
        if self._source is not None:
            self._source.request().add_done_callback(self._on_item)
            return
        item = next(self._iterator, END)
        if item is END:
            self._no_more_items = True
        else:
            self._start(item)

    def _on_item(self, _: object) -> None:
        if self._closing or self._source is None:
            return
        try:
            self._start(self._source.take())
        except StopAsyncIteration:
            self._no_more_items = True
        except BaseException as error:
            self._fail(error)
        self._fill()
        self._changed.set()

    def _fail(self, error: BaseException) -> None:
        """An error of the source; in order of the items it comes after the results before it."""
        self._no_more_items = True
        self._unread += 1
        self._queue.append(_Call(error))

    def _start(self, item: T) -> None:
        call = _Call[R]()
        awaitable = self._function(item)
        coro: Any = self._run(call, awaitable)
        coro.__qualname__ = name_of(self._function)
        shown = awaitable if asyncio.iscoroutine(awaitable) else None
        task = self._scope._registry.start(coro, None, self._origin, shown=shown)
        self._under_way[call] = None
        self._unread += 1
        if self._ordered:
            self._queue.append(call)
        if shown is not None:  # it was not entered if it is cancelled before its first step
            task.add_done_callback(lambda _: shown.close())
        task.add_done_callback(partial(self._on_done, call))

    async def _run(self, call: _Call[R], awaitable: Awaitable[R]) -> None:
        try:
            call.value = await awaitable
        except (asyncio.CancelledError, GeneratorExit, KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            if self._closing:
                raise  # in its clean-up: the inner scope reports it
            call.error = error

    def _on_done(self, call: _Call[R], task: asyncio.Task[None]) -> None:
        del self._under_way[call]
        if not self._closing and (task.cancelled() or task.exception() is not None):
            call.cancelled = True
            name = name_of(self._function)
            call.error = HandfastError(f"a call of {name!r} was cancelled by other code")
        call.done = True
        if not self._ordered:
            self._queue.append(call)
        if call.error is not None:
            self._no_more_items = True
        self._fill()
        self._changed.set()
