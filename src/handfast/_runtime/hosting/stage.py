"""A stage: the generator of a stream that reads other streams, for `merge` and `Scope.map`.

The sources are hosted by owner tasks of their own, and requested by callbacks: a stage runs only
when its consumer requests an item, its sources may run meanwhile.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterable
from typing import Any, Generic, TypeVar

from handfast._origin import Origin
from handfast._runtime.arguments import CLOSE_TIMEOUT
from handfast._runtime.failure import is_cleanup, mark_operational, resurface
from handfast._runtime.hosting.stream import Host, Stream
from handfast._runtime.scope.tasks.task_registry import name_of
from handfast._runtime.uncancellable import cleanup_time

T = TypeVar("T")
R = TypeVar("R")

# For what a stage reads and runs, so that it ends before the deadline of the stage itself.
INNER_TIMEOUT = cleanup_time(cleanup_time(CLOSE_TIMEOUT))

# What `_next_item` returns when there are no more items.
END: Any = object()


class Source(Generic[T]):
    """A stream that a stage reads. One that the program has entered is left by the program."""

    __slots__ = ("_host", "_owned", "requested")

    def __init__(self, items: AsyncIterable[T], origin: Origin) -> None:
        self._owned = not (isinstance(items, Stream) and items._host is not None)
        self.requested = False
        if isinstance(items, Stream):
            self._host: Host[T] = items._enter() if self._owned else items._entered()
        else:
            self._host = Host(items, f"the stream of {name_of(items)}", origin, INNER_TIMEOUT)

    def request(self) -> asyncio.Future[None]:
        """Request an item. When the future is done, `take` has it, or the end, or the error."""
        request = self._host.request()
        self.requested = True
        return request

    def take(self) -> T:
        self.requested = False
        return self._host.take()

    def leave(self) -> None:
        """Begin to close it, or hand it back: an item that was requested is the next one."""
        if self._owned:
            self._host.leave()
        elif self.requested:
            self._host.withdraw()

    async def close(self) -> None:
        if self._owned:
            await self._host.close()


class Stage(ABC, Generic[R]):
    """Hands items over; when it ends, it closes what it reads and runs."""

    def __init__(self, origin: Origin) -> None:
        self._origin = origin
        self._sources: list[Source[Any]] = []
        self._closing = False
        self._changed = asyncio.Event()
        # Errors of the close.
        self._errors: list[BaseException] = []

    async def run(self) -> AsyncGenerator[R, None]:
        """The generator that is hosted."""
        failed = False
        try:
            self._open()
            while (item := await self._next_item()) is not END:
                yield item
        except (asyncio.CancelledError, GeneratorExit):
            raise
        except BaseException:
            failed = True
            raise
        finally:
            await self._finish(failed)

    async def _finish(self, failed: bool) -> None:
        """Close. One error is raised; those that the consumer will not get are reported."""
        self._closing = True
        try:
            await self._close()
        except asyncio.CancelledError:
            # A17: the consumer leaves while this stage ends with an error, which must not be lost.
            if not failed and not self._errors:
                raise
        errors, self._errors = self._errors, []
        for error in errors if failed else errors[1:]:
            self._report(error)
        try:
            if errors and not failed:
                resurface(errors[0])  # the cancel that has led here may be handled now
        finally:
            del errors  # they refer to this frame

    async def _close(self) -> None:
        """Close the sources, all at once. Not interrupted by a cancel, which is raised then."""
        for source in self._sources:
            source.leave()
        cancelled: asyncio.CancelledError | None = None
        for source in self._sources:
            try:
                await source.close()
            except asyncio.CancelledError as error:
                cancelled = error
            except BaseException as error:
                self._add_error(error)
        try:
            if cancelled is not None:
                raise cancelled
        finally:
            del cancelled  # it refers to this frame

    def _add_error(self, error: BaseException) -> None:
        if not is_cleanup(error):  # it came before the close, and was not requested yet
            mark_operational(error)
        self._errors.append(error)

    @abstractmethod
    def _open(self) -> None:
        """Open the sources, in the owner task."""

    @abstractmethod
    async def _next_item(self) -> R:
        """The next item, or END."""

    @abstractmethod
    def _report(self, error: BaseException) -> None:
        """Report an error that the consumer will not get: it has left, or has got another."""
