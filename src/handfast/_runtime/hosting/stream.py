"""`stream`: an async generator that runs and is cleaned up in one owner task.

A generator that is left early is finalised in some other task (#88684, #118944; PEP 789):
a task group or time-out inside it breaks, and may cancel an unrelated task. Here an owner task
runs every line of it. The consumer, in any task, requests items one at a time, so the generator
never runs ahead and no item is lost.
"""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import AsyncIterable, Callable
from contextlib import suppress
from functools import partial, wraps
from inspect import iscoroutinefunction
from typing import Any, Generic, ParamSpec, Self, TypeVar, overload

from handfast._asyncio_internals import create_named_task
from handfast._origin import Origin
from handfast._runtime.arguments import CLOSE_TIMEOUT, seconds, wrong_type
from handfast._runtime.covered_failure import covered_failure
from handfast._runtime.errors import HandfastError, StragglersLeft, StreamBroken, WrongLoop
from handfast._runtime.failure import mark_cleanup, resurface
from handfast._runtime.hosting.nested_generators import NestedGenerators
from handfast._runtime.hosting.owner_task import Owner
from handfast._runtime.scope.tasks.live_tasks import HeldScope
from handfast._runtime.scope.tasks.task_registry import TaskRegistry, name_of
from handfast._runtime.uncancellable import (
    CleanupDeadline,
    raise_outcome,
    redeliver_cancel,
    survived_cancels,
)

T = TypeVar("T")
P = ParamSpec("P")

# How often a generator may yield during aclose(), which is not allowed, until we stop it.
_MAX_LATE_YIELDS = 10

_MISSING = object()


@overload
def stream(source: AsyncIterable[T], /, *, timeout: float = ...) -> Stream[T]: ...


@overload
def stream(
    source: Callable[P, AsyncIterable[T]], /, *, timeout: float = ...
) -> Callable[P, Stream[T]]: ...


@overload
def stream(
    *, timeout: float = ...
) -> Callable[[Callable[P, AsyncIterable[T]]], Callable[P, Stream[T]]]: ...


def stream(source: Any = _MISSING, /, *, timeout: float = CLOSE_TIMEOUT) -> Any:
    """Host an async generator in a task of its own; it is cleaned up there at the end of the block.

    `timeout` bounds that clean-up. An error of the generator is raised where the next item is
    requested, or at the end of the block. Any other async iterable is hosted in the same way.

    >>> import asyncio
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

    As a decorator, `@stream` or `@stream(timeout=5)`, it does so for every call of the function.

    >>> @stream
    ... async def letters(word):
    ...     for letter in word:
    ...         yield letter
    >>> async def first():
    ...     async with letters("keys") as found:
    ...         return await anext(found)
    >>> asyncio.run(first())
    'k'
    """
    timeout = seconds("timeout", timeout)
    if source is _MISSING:
        return partial(stream, timeout=timeout)
    if callable(source) and not hasattr(source, "__aiter__"):
        return _decorated(source, timeout)
    return _hosted(source, timeout, Origin.here(1))


def _hosted(source: Any, timeout: float, origin: Origin) -> Stream[Any]:
    """The stream of an async iterable, or an error that says what is wrong with it."""
    if not hasattr(source, "__aiter__"):
        no_yield = asyncio.iscoroutine(source)
        hint = "it has no `yield`, or must be awaited first" if no_yield else ""
        raise wrong_type("stream", "an async generator", source, hint)
    if isinstance(source, Stream):
        raise wrong_type("stream", "an async generator", source, "it is a stream already")
    return Stream(source, timeout, origin)


def _decorated(function: Callable[P, Any], timeout: float) -> Callable[P, Stream[Any]]:
    if iscoroutinefunction(function):
        raise wrong_type("stream", "an async generator function", function, "it has no `yield`")

    @wraps(function)
    def streamed(*args: P.args, **kwargs: P.kwargs) -> Stream[Any]:
        return _hosted(function(*args, **kwargs), timeout, Origin.here(1))

    return streamed


class Stream(Generic[T]):
    """The consumer's side: an async context manager that is also the iterator."""

    __slots__ = ("__weakref__", "_host", "_name", "_origin", "_source", "_survived", "_timeout")

    _kind = "stream"

    def __init__(self, source: AsyncIterable[T], timeout: float, origin: Origin) -> None:
        self._source = source
        self._name = name_of(source)
        self._timeout = timeout
        self._origin = origin
        self._host: Host[T] | None = None
        # The task that has entered it, and how many cancels that had survived then.
        self._survived = 0, 0

    async def __aenter__(self) -> Self:
        self._enter()
        self._survived = id(asyncio.current_task()), survived_cancels()
        return self

    def _enter(self) -> Host[T]:
        if self._host is not None:
            raise StreamBroken(f"{self._described()} has been entered already")
        self._host = self._open()
        return self._host

    def _open(self) -> Host[T]:
        return Host(self._source, self._described(), self._origin, self._timeout)

    async def __aexit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        entered_by, survived = self._survived
        known = survived if entered_by == id(asyncio.current_task()) else None
        try:
            await self._entered().close(known)
        except Exception:
            # Both came at once, and the error replaces the cancel.
            if isinstance(error, asyncio.CancelledError):
                redeliver_cancel(error, known)
            raise

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        return await self._entered().next_item()

    def _described(self) -> str:
        return f"the {self._kind} of {self._name}"

    def _entered(self) -> Host[T]:
        if self._host is None:
            raise StreamBroken(f"enter {self._described()} first, with `async with`")
        if self._host.task.get_loop() is not asyncio.get_running_loop():
            raise WrongLoop(
                f"{self._described()}, created at {self._origin}, belongs to another event loop"
            )
        return self._host

    def __del__(self) -> None:
        host: Host[T] | None = getattr(self, "_host", None)
        if host is None:
            return
        if not host.task.done():
            self._warn_dropped()
        host.on_dropped()

    def _warn_dropped(self) -> None:
        warnings.warn(
            f"{self._described()}, created at {self._origin}, was dropped without leaving its "
            "`async with`; it is closed now",
            ResourceWarning,
            source=self,
            stacklevel=3,
        )


class Host(Owner, Generic[T]):
    """The owner task, and the hand-over of items. It has no reference to the `Stream`, so that a
    dropped one is collected, and warns, while the task lives."""

    __slots__ = (
        "_cancelled_by_us",
        "_cleanup",
        "_closers",
        "_dropped",
        "_error",
        "_exhausted",
        "_generator",
        "_interrupted",
        "_items",
        "_nested",
        "_reply",
        "_requested",
        "_stepping",
    )

    held = False  # a scope closes it together with its tasks, which may be its consumers
    inner: HeldScope | None = None

    def __init__(
        self,
        source: AsyncIterable[T],
        name: str,
        origin: Origin,
        timeout: float,
        registry: TaskRegistry | None = None,
    ) -> None:
        super().__init__(name, origin, timeout)
        loop = asyncio.get_running_loop()
        self._generator: Any = aiter(source)
        # Done when the consumer has requested an item, and when the owner has replied.
        self._requested: asyncio.Future[None] = loop.create_future()
        self._reply: asyncio.Future[None] | None = None
        # Items that were not fetched yet: at most one, unless a consumer was cancelled.
        self._items: list[T] = []
        # An error that was not raised yet, and how many closers wait for it.
        self._error: BaseException | None = None
        self._closers = 0
        # The consumer has gone: a later error is reported to the loop.
        self._dropped = False
        # The generator runs; it runs to handle a cancel; it has ended by itself.
        self._stepping = False
        self._interrupted = False
        self._exhausted = False
        self._cleanup: CleanupDeadline | None = None
        self._nested = NestedGenerators()
        # Our one cancel was sent, and the generator has not reacted yet.
        self._cancelled_by_us = False
        self.install_stand_in(self._start(registry))

    def _start(self, registry: TaskRegistry | None) -> asyncio.Task[None]:
        """Create the owner task: one of a scope, or one of its own."""
        coro = self._run()
        name = self.name.removeprefix("the ").replace(" of ", " ", 1)
        if registry is None:
            task = create_named_task(asyncio.get_running_loop(), coro, name)
        else:
            task = registry.start_owner(coro, self, name, self.origin)
            task.add_done_callback(lambda _: registry.forget_owner(coro))
        task.add_done_callback(self._on_ended)
        return task

    # --- called by the consumer ------------------------------------------------------------

    async def next_item(self) -> T:
        if asyncio.current_task() is self.task:
            raise StreamBroken(f"{self.name} requests an item from itself")
        reply = self.request()
        try:
            await reply
        finally:
            self.withdraw()  # a cancel loses nothing: the next call gets the item
        return self.take()

    def withdraw(self) -> None:
        """Take back a request. The item is kept for the next one."""
        self._reply = None

    def request(self) -> asyncio.Future[None]:
        """Request an item. When the future is done, `take` has it, or the end, or the error."""
        if self._reply is not None:
            raise StreamBroken(f"two tasks request an item from {self.name} at once")
        self._reply = reply = asyncio.get_running_loop().create_future()
        if self._items or self._error is not None or self.task.done():
            reply.set_result(None)
        elif not self._stepping and not self._requested.done():
            self._requested.set_result(None)
        return reply

    def take(self) -> T:
        """The item that was requested."""
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
            return StreamBroken(f"{self.name} was closed before it reached its end")
        return StreamBroken(f"the task of {self.name} was ended by other code")

    async def close(self, survived: int | None = None) -> None:
        """Have the generator cleaned up, and raise an error that was not raised yet."""
        self._closers += 1
        try:
            cancelled = await self.leave_and_join()
        except StragglersLeft:
            self._dropped = True  # so that a later error is reported to the loop
            raise
        finally:
            self._closers -= 1
        error = self._error
        if not self._closers:  # every closer raises it
            self._error = None
        self._items.clear()
        try:
            raise_outcome(error, cancelled, survived=survived, covering=True)
        finally:
            del error, cancelled  # they refer to this frame

    def on_dropped(self) -> None:
        """Close without waiting, in any thread: the garbage collector calls this."""
        if self.task.done():
            self._report_unread_error()
            return
        with suppress(RuntimeError):  # the loop is closed: nothing will ever run there
            self.task.get_loop().call_soon_threadsafe(self._close_dropped)

    def _close_dropped(self) -> None:
        self._dropped = True
        if self.task.done():
            self._report_unread_error()
        self.leave()

    def _request_exit(self) -> None:
        task = self.task
        if task.done():
            return
        self._cleanup = CleanupDeadline(task, f"closing {self.name}", self.timeout)
        if not self._stepping:
            if not self._requested.done():
                self._requested.set_result(None)
        elif not (self._interrupted and task.cancelling()):
            # Otherwise the generator is ending already: a task group of its own has failed, and
            # its clean-up must not be interrupted.
            self._cancelled_by_us = True
            task.cancel()

    def _on_ended(self, task: asyncio.Task[None]) -> None:
        if self._cleanup is not None:
            self._cleanup.stop()
        if self._reply is not None and not self._reply.done():
            self._reply.set_result(None)
        if not task.cancelled():
            task.exception()  # KeyboardInterrupt or SystemExit: the loop has raised it already
        if self._dropped:
            self._report_unread_error()

    def _report_unread_error(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            self._report(
                f"{self.name}, created at {self.origin}, failed after it was dropped", error
            )

    def _report(self, message: str, error: BaseException) -> None:
        self.task.get_loop().call_exception_handler({"message": message, "exception": error})

    # --- in the owner task -----------------------------------------------------------------

    async def _run(self) -> None:
        try:
            try:
                await self._serve()
                if not self._exhausted:
                    await self._finish()
            finally:
                await self._nested.close()
        except (KeyboardInterrupt, SystemExit):
            raise
        except asyncio.CancelledError as error:
            self._error = self._error_of_cancel(error)
            if self._error is None and self._cleanup is None:
                raise
        except BaseException as error:
            self._error = self._own_error(error)
        finally:
            self._nested.end()
            self._add_nested_errors()
            self.remove_stand_in()

    def _add_nested_errors(self) -> None:
        """One error is raised to the consumer, the others are reported."""
        for error in self._nested.errors:
            if self._error is None:
                self._error = error
            else:
                self._report(f"closing a generator inside {self.name} failed", error)
        self._nested.errors.clear()

    def _error_of_cancel(self, cancelled: asyncio.CancelledError) -> BaseException | None:
        """The error for a generator that a cancel has ended. None if that was our cancel, and for
        one of other code that came before the close."""
        error: BaseException | None
        if self._cleanup is not None and self._cleanup.expired:
            error = self._cleanup.error()
        elif (error := covered_failure(cancelled)) is not None:
            return error
        elif self._cleanup is None or self._cancelled_by_us:
            return None
        else:
            error = HandfastError(f"closing {self.name} was cancelled by other code")
        error.__cause__ = cancelled
        return mark_cleanup(error)

    def _own_error(self, error: BaseException) -> BaseException | None:
        """The error without the GeneratorExit of the close, and marked by its phase."""
        rest: BaseException | None = error
        if self._leaving and isinstance(error, BaseExceptionGroup):
            # A task group around the `yield` puts our GeneratorExit into its group of errors.
            rest = error.split(GeneratorExit)[1]
        if self._leaving and rest is not None:
            mark_cleanup(rest)
        return rest

    async def _serve(self) -> None:
        """Produce items on request, until the generator ends or is closed."""
        while True:
            interrupt: asyncio.CancelledError | None = None
            try:
                await self._nested.close()
                if not self._leaving:
                    await self._requested
            except asyncio.CancelledError as error:
                # A time-out or task group around the generator's `yield` cancels its host task.
                # The generator gets the cancel, as if it were running.
                interrupt = error
            if self._leaving and interrupt is None:
                return
            self._requested = asyncio.get_running_loop().create_future()
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
                self._items.append(await self._nested.run(self._generator.__anext__()))
            elif hasattr(self._generator, "athrow"):
                self._items.append(await self._nested.run(self._generator.athrow(interrupt)))
            else:  # an iterator that is no generator: it is not running, and cannot react
                raise interrupt
        finally:
            self._stepping = self._interrupted = False

    async def _finish(self) -> None:
        self._cancelled_by_us = False
        generator = self._generator
        if not hasattr(generator, "aclose"):
            return
        try:
            await self._nested.run(generator.aclose())
        except RuntimeError:
            # "async generator ignored GeneratorExit": it has yielded in its clean-up. It cannot
            # be closed again, and the rest of its clean-up would be lost, so iterate to its end.
            with suppress(StopAsyncIteration, GeneratorExit):
                for _ in range(_MAX_LATE_YIELDS):
                    if getattr(generator, "ag_frame", None) is None:
                        break
                    await self._nested.run(generator.__anext__())
            raise
