"""An async generator in an owner task: its clean-up runs where it began.

A generator that is left early is finalised in some other task (#88684, #118944; PEP 789):
a task group or time-out inside it breaks, and may cancel an innocent host. Here an owner task
runs every line of it. The consumer, in whichever task, asks for items one at a time, so the
generator never runs ahead and no item is lost.
"""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import AsyncGenerator
from contextlib import suppress
from types import TracebackType
from typing import Any, Generic, TypeVar

from holdfast.origin import Origin
from holdfast.runtime.durations import seconds
from holdfast.runtime.errors import HoldfastError, StragglersLeft, StreamBroken, WrongLoop
from holdfast.runtime.failure import mark_cleanup, resurface
from holdfast.runtime.keeping import Owner
from holdfast.runtime.patience import Cut, strike_again
from holdfast.runtime.roster import name_of

__all__ = ["Stream", "stream"]

T = TypeVar("T")

# How often a generator may yield on its way out, against the rules, until it is given up.
_LAST_WORDS = 10


def stream(generator: AsyncGenerator[T, Any], *, deadline: float = 10.0) -> Stream[T]:
    """Host `generator` in a task of its own; leaving the block has it cleaned up there.

    `deadline` bounds that clean-up. What the generator raises comes out where the next item
    is asked for, or at the end of the block.

    >>> async def count():
    ...     for n in range(10):
    ...         yield n
    >>> async def main():
    ...     async with stream(count()) as numbers:
    ...         async for n in numbers:
    ...             if n == 3:
    ...                 return n
    >>> asyncio.run(main())
    3
    """
    if not all(hasattr(generator, name) for name in ("__anext__", "athrow", "aclose")):
        hint = "; call it: stream(fn())" if callable(generator) else ""
        if asyncio.iscoroutine(generator):
            generator.close()
            hint = "; it has no `yield`, or is to be awaited first"
        raise TypeError(f"stream() takes an async generator, not {generator!r}{hint}")
    return Stream(generator, seconds("deadline", deadline), Origin.here(1))


class Stream(Generic[T]):
    """The consumer's end: an async context manager that gives itself as the iterator."""

    __slots__ = ("__weakref__", "_deadline", "_generator", "_host", "_name", "_origin")

    def __init__(self, generator: AsyncGenerator[T, Any], deadline: float, origin: Origin) -> None:
        self._generator = generator
        self._name = name_of(generator)
        self._deadline = deadline
        self._origin = origin
        self._host: _Host[T] | None = None

    async def __aenter__(self) -> Stream[T]:
        if self._host is not None:
            raise StreamBroken(f"{self._described()} has been entered already")
        self._host = _Host(self._generator, self._described(), self._origin, self._deadline)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._entered().close()

    def __aiter__(self) -> Stream[T]:
        return self

    async def __anext__(self) -> T:
        return await self._entered().next_item()

    def _described(self) -> str:
        return f"the stream of {self._name}"

    def _entered(self) -> _Host[T]:
        if self._host is None:
            raise StreamBroken(f"enter {self._described()} first, with `async with`")
        if self._host.task.get_loop() is not asyncio.get_running_loop():
            raise WrongLoop(
                f"{self._described()}, made at {self._origin}, belongs to another event loop"
            )
        return self._host

    def __del__(self) -> None:
        host: _Host[T] | None = getattr(self, "_host", None)
        if host is None:
            return
        if not host.task.done():
            warnings.warn(
                f"{self._described()}, made at {self._origin}, was dropped without leaving its "
                "`async with`; it is closed now",
                ResourceWarning,
                source=self,
                stacklevel=2,
            )
        host.abandon()


class _Host(Owner, Generic[T]):
    """The owner task and the hand-over. It does not know the `Stream`, so that one can be
    collected, and say so, while the task lives."""

    __slots__ = (
        "_abandoned",
        "_asked",
        "_closers",
        "_cut",
        "_error",
        "_exhausted",
        "_generator",
        "_interrupted",
        "_items",
        "_reply",
        "_stepping",
        "_struck",
    )

    def __init__(
        self, generator: AsyncGenerator[T, Any], name: str, origin: Origin, deadline: float
    ) -> None:
        super().__init__(name, origin, deadline)
        loop = asyncio.get_running_loop()
        self._generator = generator
        # The consumer has asked for an item; the owner has answered.
        self._asked: asyncio.Future[None] = loop.create_future()
        self._reply: asyncio.Future[None] | None = None
        # What waits to be fetched: mostly one item, or none.
        self._items: list[T] = []
        # An error that nobody has seen yet, and how many closers are here to see it.
        self._error: BaseException | None = None
        self._closers = 0
        self._abandoned = False
        # The generator runs; it runs because of an interrupt; it has come to its own end.
        self._stepping = False
        self._interrupted = False
        self._exhausted = False
        self._cut: Cut | None = None
        self._struck = False  # our one cancel is under way
        task = loop.create_task(self._run(), name=f"stream {name_of(generator)}")
        task.add_done_callback(self._ended)
        self.keep(task)

    # --- the consumer's side ---------------------------------------------------------------

    async def next_item(self) -> T:
        if asyncio.current_task() is self.task:
            raise StreamBroken(f"{self.name} asks itself for an item")
        if self._reply is not None:
            raise StreamBroken(f"two tasks ask {self.name} for an item at once")
        if not self._items and self._error is None and not self.task.done():
            self._reply = asyncio.get_running_loop().create_future()
            if not self._stepping and not self._asked.done():
                self._asked.set_result(None)
            try:
                # Being cancelled here loses nothing: the item waits for the next call.
                await self._reply
            finally:
                self._reply = None
        if self._items:
            return self._items.pop(0)
        if self._error is not None:
            error, self._error = self._error, None
            resurface(error)
        raise self._no_more()

    def _no_more(self) -> Exception:
        if self._exhausted:
            return StopAsyncIteration()
        if self._leaving:
            return StreamBroken(f"{self.name} was closed before it came to its end")
        return StreamBroken(f"the task of {self.name} was ended by somebody else")

    async def close(self) -> None:
        """Have the generator cleaned up; what the consumer has not seen, it sees now."""
        self._closers += 1
        try:
            cancelled = await self.depart()
        except StragglersLeft:
            self._abandoned = True  # how it ends after all will interest somebody
            raise
        finally:
            self._closers -= 1
        error = self._error
        if not self._closers:  # all who came to close see it
            self._error = None
        self._items.clear()
        try:
            if error is not None:
                if cancelled is not None:
                    strike_again(cancelled)
                resurface(error, covering=True)
            if cancelled is not None:
                raise cancelled
        finally:
            del error, cancelled  # they refer to this frame

    def abandon(self) -> None:
        """Close without waiting, from wherever the garbage collector runs."""
        if self.task.done():
            self._report_unseen()
            return
        with suppress(RuntimeError):  # the loop is closed, and nothing will ever run there
            self.task.get_loop().call_soon_threadsafe(self._abandon)

    def _abandon(self) -> None:
        self._abandoned = True
        if self.task.done():
            self._report_unseen()
        self.leave()

    def _ask(self) -> None:
        task = self.task
        if task.done():
            return
        self._cut = Cut(task, f"closing {self.name}", self.deadline)
        if not self._stepping:
            if not self._asked.done():
                self._asked.set_result(None)
        elif not (self._interrupted and task.cancelling()):
            # Otherwise the generator is on its way out already: a task group of its own has
            # failed, and its clean-up may not be cut.
            self._struck = True
            task.cancel()

    def _ended(self, task: asyncio.Task[None]) -> None:
        if self._cut is not None:
            self._cut.call_off()
        if self._reply is not None and not self._reply.done():
            self._reply.set_result(None)
        if not task.cancelled():
            task.exception()  # KeyboardInterrupt or SystemExit, which goes its own way
        if self._abandoned:
            self._report_unseen()

    def _report_unseen(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            message = f"{self.name}, made at {self.origin}, failed and nobody was there to see it"
            self.task.get_loop().call_exception_handler({"message": message, "exception": error})

    # --- the owner's side ------------------------------------------------------------------

    async def _run(self) -> None:
        try:
            await self._serve()
            if not self._exhausted:
                await self._finish()
        except (KeyboardInterrupt, SystemExit):
            raise
        except asyncio.CancelledError as error:
            if self._cut is None:
                raise
            if self._cut.late:
                self._error = mark_cleanup(self._cut.error())
                self._error.__cause__ = error
            elif not self._struck:
                self._error = mark_cleanup(
                    HoldfastError(f"closing {self.name} was cancelled by somebody else")
                )
                self._error.__cause__ = error
        except BaseException as error:
            self._error = self._judged(error)
        finally:
            self.retire()

    def _judged(self, error: BaseException) -> BaseException | None:
        """The error without what the close itself has put in, and marked by its phase."""
        rest: BaseException | None = error
        if self._leaving and isinstance(error, BaseExceptionGroup):
            # A task group around the `yield` takes our GeneratorExit for one of its errors.
            rest = error.split(GeneratorExit)[1]
        if self._leaving and rest is not None:
            mark_cleanup(rest)
        return rest

    async def _serve(self) -> None:
        """Make items as they are asked for, until the generator ends or is to be closed."""
        while True:
            interrupt: asyncio.CancelledError | None = None
            try:
                if not self._leaving:
                    await self._asked
            except asyncio.CancelledError as error:
                # A time-out or task group around the generator's `yield` wants its host. The
                # generator shall see it, as if it were in this line.
                interrupt = error
            if self._leaving and interrupt is None:
                return
            self._asked = asyncio.get_running_loop().create_future()
            try:
                await self._step(interrupt)
            except StopAsyncIteration:
                self._exhausted = True
                return
            finally:
                del interrupt
            if self._reply is not None and not self._reply.done():
                self._reply.set_result(None)

    async def _step(self, interrupt: asyncio.CancelledError | None) -> None:
        self._stepping = True
        self._interrupted = interrupt is not None
        try:
            if interrupt is None:
                self._items.append(await self._generator.__anext__())
            else:
                self._items.append(await self._generator.athrow(interrupt))
        finally:
            self._stepping = self._interrupted = False

    async def _finish(self) -> None:
        self._struck = False
        generator = self._generator
        try:
            await generator.aclose()
        except RuntimeError:
            # One that yields on its way out, against the rules, cannot be closed any more, and
            # the rest of its clean-up would be lost: it goes on to its end here.
            with suppress(StopAsyncIteration, GeneratorExit):
                for _ in range(_LAST_WORDS):
                    if getattr(generator, "ag_frame", None) is None:
                        break
                    await generator.__anext__()
            raise
