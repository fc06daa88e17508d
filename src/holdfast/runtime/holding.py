"""A resource in an owner task: entered and left there, whoever holds or closes it.

An async context manager with a task group or a cancel scope inside breaks when it is left in
another task than it was entered in. Here the task that has entered it waits to be told, and
leaves it: once, with a deadline of its own, and no cancel cuts that short.
"""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar

from holdfast.origin import Origin
from holdfast.runtime.errors import HoldfastError, ScopeClosed
from holdfast.runtime.failure import mark_cleanup, resurface
from holdfast.runtime.keeping import Owner
from holdfast.runtime.patience import Cut, join_patiently, strike_again
from holdfast.runtime.roster import AnyTask, Roster

__all__ = ["hold_in", "release_from"]

T = TypeVar("T")


class Held(Owner):
    """One resource, its owner task and what the two sides tell each other."""

    __slots__ = (
        "_asked",
        "_cancels",
        "_resource",
        "entered",
        "entry_error",
        "exit_error",
        "heirs",
        "value",
    )

    def __init__(
        self,
        resource: AbstractAsyncContextManager[Any],
        name: str,
        origin: Origin,
        deadline: float,
    ) -> None:
        super().__init__(name, origin, deadline)
        loop = asyncio.get_running_loop()
        self._resource = resource
        self._asked: asyncio.Future[None] = loop.create_future()
        self._cancels = 0  # how many the owner had got before it began to wait
        self.entered: asyncio.Future[None] = loop.create_future()
        self.value: Any = None
        # How many wait here for an error of the owner. Where nobody does, it goes to the scope.
        self.heirs = 1
        self.entry_error: BaseException | None = None
        self.exit_error: Exception | None = None

    @property
    def held(self) -> bool:
        return self.entered.done() and self.entry_error is None

    @property
    def leaving(self) -> bool:
        return self._leaving

    def _ask(self) -> None:
        if not self.entered.done():
            self.task.cancel()  # it is still entering, and shall give that up
        if not self._asked.done():  # an interrupt cancels it
            self._asked.set_result(None)

    async def host(self) -> None:
        """The life of the owner task."""
        current = asyncio.current_task()
        assert current is not None
        self.task = current  # an eager task is here before its holder has it in hand
        try:
            await self._enter_and_leave()
        finally:
            self.retire()

    async def _enter_and_leave(self) -> None:
        try:
            self.value = await type(self._resource).__aenter__(self._resource)
        except BaseException as error:
            self.entry_error = mark_cleanup(error) if self._leaving else error
            if not (self.heirs and isinstance(error, Exception)):
                raise
            return  # the holder raises it
        finally:
            self.entered.set_result(None)
        interrupt: asyncio.CancelledError | None = None
        self._cancels = self.task.cancelling()
        try:
            await self._asked
        except asyncio.CancelledError as error:
            # A task group or a time-out inside the resource wants its host. That is for the
            # resource to see, as in `async with`.
            interrupt = error
        try:
            await self._leave(interrupt)
        except Exception as error:
            if not self.heirs:
                raise
            self.exit_error = error  # they raise it, and so it is no failure of the scope
        finally:
            del interrupt  # it refers to this frame

    async def _leave(self, interrupt: asyncio.CancelledError | None) -> None:
        cut = Cut(self.task, f"leaving {self.name}", self.deadline)
        kind = None if interrupt is None else type(interrupt)
        traceback = None if interrupt is None else interrupt.__traceback__
        try:
            swallowed = await type(self._resource).__aexit__(
                self._resource, kind, interrupt, traceback
            )
        except BaseException as error:
            self._judge(error, cut, interrupt)
            raise
        finally:
            cut.call_off()
        if interrupt is not None and not swallowed:
            raise interrupt

    def _judge(
        self, error: BaseException, cut: Cut, interrupt: asyncio.CancelledError | None
    ) -> None:
        """Note in which phase the resource has failed; name the failure if it has no name."""
        if cut.late:
            mark_cleanup(error, whole=True)
            raise mark_cleanup(cut.error()) from error
        if interrupt is None:
            mark_cleanup(error, whole=True)
            if isinstance(error, asyncio.CancelledError):
                cut_short = HoldfastError(f"leaving {self.name} was cancelled by somebody else")
                raise mark_cleanup(cut_short) from error
        elif self.task.cancelling() > self._cancels:
            # What interrupted was no part of the resource, which would have taken it back.
            mark_cleanup(error)


async def hold_in(
    roster: Roster,
    resource: AbstractAsyncContextManager[T],
    name: str | None,
    deadline: float,
    origin: Origin,
) -> T:
    """Enter `resource` in an owner task on the roster, and give back its value."""
    _check(resource)
    held = Held(resource, name or type(resource).__qualname__, origin, deadline)
    coro = held.host()
    roster.held[coro] = held
    try:
        task = roster.enlist(coro, f"hold {held.name}", origin, in_turn=False)
    except BaseException:
        del roster.held[coro]
        raise

    def gone(task: AnyTask) -> None:
        roster.held.pop(coro, None)
        if not held.entered.done():  # cancelled before its first step
            held.entry_error = asyncio.CancelledError()
            held.entered.set_result(None)

    task.add_done_callback(gone)
    held.keep(task)
    cancelled: asyncio.CancelledError | None = None
    try:
        await asyncio.wait({held.entered})
    except asyncio.CancelledError as error:
        cancelled = error
        held.leave()
        await join_patiently({held.task}, deadline)
    finally:
        held.heirs -= 1
    try:
        value: T = _outcome(roster, held, cancelled)
        return value
    finally:
        del cancelled  # it refers to this frame


def _check(resource: Any) -> None:
    kind = type(resource)
    if hasattr(kind, "__aenter__") and hasattr(kind, "__aexit__"):
        return
    hint = ""
    if asyncio.iscoroutine(resource):
        resource.close()
        hint = "; await it first"
    elif callable(resource):
        hint = "; call it: hold(fn())"
    elif hasattr(kind, "__enter__"):
        hint = "; `with` will do for this one"
    raise TypeError(f"hold() takes an async context manager, not {resource!r}{hint}")


def _outcome(roster: Roster, held: Held, cancelled: asyncio.CancelledError | None) -> Any:
    """What entering has come to, for the one who holds."""
    error = held.entry_error if held.exit_error is None else held.exit_error
    if isinstance(error, Exception):
        if cancelled is not None:
            strike_again(cancelled)
        resurface(error)
    if cancelled is not None:
        raise cancelled
    if held.leaving:
        raise ScopeClosed(f"{roster.describe()} closed while {held.name} was being entered")
    if error is not None:
        raise HoldfastError(f"entering {held.name} was cancelled by somebody else") from error
    return held.value


async def release_from(roster: Roster, value: object) -> bool:
    """Leave the resource with this value. False if the roster does not hold it (any more)."""
    for held in roster.held.values():
        if isinstance(held, Held) and held.held and held.value is value:
            break
    else:
        return False
    held.heirs += 1
    try:
        cancelled = await held.depart()
    finally:
        held.heirs -= 1
    try:
        if held.exit_error is not None:
            if cancelled is not None:
                strike_again(cancelled)
            resurface(held.exit_error)
        if cancelled is not None:
            raise cancelled
    finally:
        del cancelled  # it refers to this frame
    return True
