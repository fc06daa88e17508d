"""`shielded`: clean-up that cancels do not interrupt, bounded by a timeout of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator
from inspect import CORO_CREATED, getcoroutinestate
from typing import Any, TypeVar

from handfast._asyncio_internals import coroutine_function
from handfast._origin import Origin
from handfast._runtime.arguments import CLOSE_TIMEOUT, close_unstarted, require_coroutine, seconds
from handfast._runtime.failure import mark_cleanup
from handfast._runtime.report import Straggler, straggler_error
from handfast._runtime.scope.tasks.task_registry import name_of
from handfast._runtime.uncancellable import (
    CleanupDeadline,
    keep_alive,
    raise_outcome,
    run_uncancelled,
    survived_cancels,
    wait_uncancelled,
)

T = TypeVar("T")


@coroutine_function
def shielded(
    coro: Coroutine[Any, Any, T], *, timeout: float = CLOSE_TIMEOUT
) -> Coroutine[Any, Any, T]:
    """Await `coro` until it ends, even if the caller is cancelled meanwhile.

    A CancelledError that arrives is raised afterwards. What takes longer than `timeout`
    seconds is cancelled and raises TimeoutError; StragglersLeft if it does not end even then. An
    error of the clean-up is raised in any case, marked as such (see `split_errors`); a cancel that
    arrived before it is then delivered at the caller's next await.

    >>> import asyncio
    >>> async def main():
    ...     return await shielded(asyncio.sleep(0, "flushed"))
    >>> asyncio.run(main())
    'flushed'
    """
    require_coroutine("shielded", coro)
    try:
        return _Shielded(coro, seconds("timeout", timeout), Origin.here(1))
    except BaseException:
        coro.close()
        raise


class _Shielded(Coroutine[Any, Any, T]):
    """A coroutine that starts even if its task is cancelled before the first step.

    asyncio throws that cancel into the coroutine, and a plain one would never be entered. This
    one treats it as a cancel during the clean-up.
    """

    __slots__ = ("_cancelled", "_name", "_origin", "_outer", "_timeout", "_work")

    def __init__(self, work: Coroutine[Any, Any, T], timeout: float, origin: Origin) -> None:
        self._work = work
        self._name = name_of(work)
        self._timeout = timeout
        self._origin = origin
        self._cancelled: asyncio.CancelledError | None = None
        outer: Any = self._run()
        outer.__qualname__ = f"shielded({self._name})"
        self._outer: Coroutine[Any, Any, T] = outer

    def __await__(self) -> Generator[Any, Any, T]:
        return self._outer.__await__()

    def send(self, value: Any, /) -> Any:
        return self._outer.send(value)

    def throw(self, error: Any, /, *rest: Any) -> Any:
        if self._unentered:
            if isinstance(error, asyncio.CancelledError):
                self._cancelled = error
                return self._outer.send(None)
            close_unstarted(self._work)
        return self._outer.throw(error, *rest)

    def close(self) -> None:
        if self._unentered:
            close_unstarted(self._work)
        self._outer.close()

    @property
    def _unentered(self) -> bool:
        return getcoroutinestate(self._outer) == CORO_CREATED

    def __getattr__(self, name: str) -> Any:
        """The name, the frame and the awaited object, for code that inspects coroutines."""
        return getattr(self._outer, name)

    async def _run(self) -> T:
        task = self._start()
        survived: int | None = survived_cancels()
        limit = CleanupDeadline(task, self._name, self._timeout)
        task.add_done_callback(lambda _: limit.stop())
        cancelled = await wait_uncancelled({task}, self._timeout)
        if self._cancelled is not None:
            cancelled, survived = self._cancelled, None
        error = self._error_of(task, limit)
        try:
            # KeyboardInterrupt has already left through the loop; a caller that was cancelled
            # after that need not raise it a second time.
            if cancelled is not None and not isinstance(error, Exception):
                error = None
            raise_outcome(error, cancelled, survived=survived)
        finally:
            del error, cancelled, self._cancelled  # they refer to this frame
        return task.result()

    def _start(self) -> asyncio.Task[T]:
        try:
            task = run_uncancelled(self._work, f"shielded {self._name}")
        except BaseException:
            close_unstarted(self._work)
            raise
        keep_alive(task)  # the caller may be collected before it
        return task

    def _error_of(self, task: asyncio.Task[T], limit: CleanupDeadline) -> BaseException | None:
        if not task.done():
            straggler = Straggler.of(task, self._origin, self._timeout, self._name)
            return mark_cleanup(straggler_error(straggler, self._timeout))
        if task.cancelled():
            return mark_cleanup(limit.error()) if limit.expired else None
        error = task.exception()
        return None if error is None else mark_cleanup(error, whole=True)
