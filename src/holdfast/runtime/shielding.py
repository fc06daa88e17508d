"""Clean-up that repeated cancels cannot cut, bounded by a deadline of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator
from inspect import CORO_CREATED, getcoroutinestate
from typing import Any, TypeVar

from holdfast.origin import Origin
from holdfast.runtime.durations import seconds
from holdfast.runtime.errors import StragglersLeft
from holdfast.runtime.failure import mark_cleanup, resurface
from holdfast.runtime.patience import Cut, join_patiently, out_of_reach, strike_again
from holdfast.runtime.report import Straggler
from holdfast.runtime.roster import name_of
from holdfast.runtime.stacks import await_chain

__all__ = ["shielded"]

T = TypeVar("T")

# Clean-up under way: the loop holds tasks weakly (#88831).
_under_way: set[asyncio.Task[Any]] = set()


def shielded(coro: Coroutine[Any, Any, T], *, deadline: float = 10.0) -> Coroutine[Any, Any, T]:
    """Await `coro` to its end, however often the caller is cancelled meanwhile.

    A CancelledError that came in goes on afterwards. What takes longer than `deadline`
    seconds is cancelled and raises TimeoutError; StragglersLeft, if it does not end even so. An
    error of the clean-up is raised in any case, marked as such (see `split`); a cancel that it
    stands in the way of strikes where the caller waits next.

    >>> async def main():
    ...     return await shielded(asyncio.sleep(0, "flushed"))
    >>> asyncio.run(main())
    'flushed'
    """
    if not asyncio.iscoroutine(coro):
        hint = "; call it: shielded(fn())" if callable(coro) else ""
        raise TypeError(f"shielded() takes a coroutine, not {coro!r}{hint}")
    try:
        return _Shielded(coro, seconds("deadline", deadline), Origin.here(1))
    except BaseException:
        coro.close()
        raise


class _Shielded(Coroutine[Any, Any, T]):
    """A coroutine that a cancel cannot keep from beginning.

    A task that is cancelled before its first step throws the cancel into its coroutine, and a
    plain one would never be entered. This one takes it as a cancel during the clean-up.
    """

    __slots__ = ("_cancelled", "_deadline", "_name", "_origin", "_outer", "_work")

    def __init__(self, work: Coroutine[Any, Any, T], deadline: float, origin: Origin) -> None:
        self._work = work
        self._name = name_of(work)
        self._deadline = deadline
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
            self._work.close()
        return self._outer.throw(error, *rest)

    def close(self) -> None:
        if self._unentered:
            self._work.close()
        self._outer.close()

    @property
    def _unentered(self) -> bool:
        return getcoroutinestate(self._outer) == CORO_CREATED

    def __getattr__(self, name: str) -> Any:
        """Its name, its frame and what it awaits, for whoever looks at it as a coroutine."""
        return getattr(self._outer, name)

    async def _run(self) -> T:
        task = self._start()
        cut = Cut(task, self._name, self._deadline)
        task.add_done_callback(lambda _: cut.call_off())
        cancelled = await join_patiently({task}, self._deadline)
        cancelled = self._cancelled or cancelled
        error = self._error_of(task, cut)
        try:
            # KeyboardInterrupt has flown through the loop by now; who is cancelled after that
            # need not send it off once more.
            if error is not None and (cancelled is None or isinstance(error, Exception)):
                if cancelled is not None:
                    strike_again(cancelled)
                resurface(error)
            if cancelled is not None:
                raise cancelled
        finally:
            del error, cancelled, self._cancelled  # they refer to this frame
        return task.result()

    def _start(self) -> asyncio.Task[T]:
        try:
            loop = asyncio.get_running_loop()
            task = loop.create_task(self._work, name=f"shielded {self._name}")
        except BaseException:
            self._work.close()
            raise
        out_of_reach(task)  # we join it
        _under_way.add(task)
        task.add_done_callback(_under_way.discard)
        return task

    def _error_of(self, task: asyncio.Task[T], cut: Cut) -> BaseException | None:
        if not task.done():
            straggler = Straggler(self._name, self._origin, self._deadline, await_chain(task))
            return mark_cleanup(
                StragglersLeft(f"not gone within {self._deadline:g} s: {straggler}")
            )
        if task.cancelled():
            return mark_cleanup(cut.error()) if cut.late else None
        error = task.exception()
        return None if error is None else mark_cleanup(error, whole=True)
