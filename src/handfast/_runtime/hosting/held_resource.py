"""A held resource: entered and left in one owner task, whichever task holds or closes it.

A context manager with a task group or a cancel scope inside breaks when it is left in another
task than the one that entered it. Here the task that has entered it waits for a request and leaves
it: once, with a deadline of its own, and not interrupted by cancels.
"""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from types import TracebackType
from typing import Any, TypeAlias, TypeVar

from handfast._origin import Origin
from handfast._runtime.arguments import wrong_type
from handfast._runtime.errors import HandfastError
from handfast._runtime.failure import mark_cleanup
from handfast._runtime.hosting.owner_task import Owner
from handfast._runtime.scope.tasks.live_tasks import HeldScope
from handfast._runtime.scope.tasks.task_registry import AnyTask, TaskRegistry
from handfast._runtime.uncancellable import (
    CleanupDeadline,
    raise_outcome,
    survived_cancels,
    wait_uncancelled,
)

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

AnyContextManager: TypeAlias = AbstractAsyncContextManager[T_co] | AbstractContextManager[T_co]


class HeldResource(Owner):
    """One resource, its owner task, and the state that owner and holder share."""

    __slots__ = (
        "_cancels",
        "_exit_requested",
        "entered",
        "entry_error",
        "error_receivers",
        "exit_error",
        "inner",
        "resource",
        "value",
    )

    def __init__(
        self,
        resource: AnyContextManager[Any],
        name: str,
        origin: Origin,
        timeout: float,
        inner: HeldScope | None = None,
    ) -> None:
        super().__init__(name, origin, timeout)
        loop = asyncio.get_running_loop()
        self.resource = resource
        # The resource, if it is a scope.
        self.inner = inner
        self._exit_requested: asyncio.Future[None] = loop.create_future()
        self._cancels = 0  # the owner's cancelling() when it began to wait
        self.entered: asyncio.Future[None] = loop.create_future()
        self.value: Any = None
        # How many callers wait for an error of the owner. If none do, it is a failure of the scope.
        self.error_receivers = 1
        self.entry_error: BaseException | None = None
        self.exit_error: Exception | None = None

    @property
    def held(self) -> bool:
        return self.entered.done() and self.entry_error is None

    @property
    def leaving(self) -> bool:
        return self._leaving

    def _request_exit(self) -> None:
        if not self.entered.done():
            self.task.cancel()  # it is still entering: stop that
        if not self._exit_requested.done():  # a cancel of the owner cancels this future
            self._exit_requested.set_result(None)

    async def host(self) -> None:
        """The coroutine of the owner task."""
        current = asyncio.current_task()
        assert current is not None
        self.task = current  # an eager task runs this before its creator gets the task
        try:
            await self._enter_and_leave()
        finally:
            self.remove_stand_in()

    async def _enter_and_leave(self) -> None:
        try:
            self.value = await _enter(self.resource)
        except BaseException as error:
            self.entry_error = mark_cleanup(error) if self._leaving else error
            if not (self.error_receivers and isinstance(error, Exception)):
                raise
            return  # `hold_in` raises it
        finally:
            self.entered.set_result(None)
        interrupt: asyncio.CancelledError | None = None
        self._cancels = self.task.cancelling()
        try:
            await self._exit_requested
        except asyncio.CancelledError as error:
            # A task group or a time-out inside the resource cancels its host task. The resource
            # gets that error in `__aexit__`, as in `async with`.
            interrupt = error
        try:
            await self._leave(interrupt)
        except Exception as error:
            if not self.error_receivers:
                raise
            self.exit_error = error  # the receivers raise it: it is not a failure of the scope
        finally:
            del interrupt  # it refers to this frame

    async def _leave(self, interrupt: asyncio.CancelledError | None) -> None:
        limit = CleanupDeadline(self.task, f"leaving {self.name}", self.timeout)
        kind = None if interrupt is None else type(interrupt)
        traceback = None if interrupt is None else interrupt.__traceback__
        try:
            swallowed = await _exit(self.resource, kind, interrupt, traceback)
        except BaseException as error:
            self._mark_exit_error(error, limit, interrupt)
            raise
        finally:
            limit.stop()
        if interrupt is not None and not swallowed:
            raise interrupt

    def _mark_exit_error(
        self,
        error: BaseException,
        limit: CleanupDeadline,
        interrupt: asyncio.CancelledError | None,
    ) -> None:
        """Mark the phase of an error in `__aexit__`; replace a bare cancel by an error with text."""
        if limit.expired:
            mark_cleanup(error, whole=True)
            raise mark_cleanup(limit.error()) from error
        if interrupt is None:
            mark_cleanup(error, whole=True)
            if isinstance(error, asyncio.CancelledError):
                cancelled = HandfastError(f"leaving {self.name} was cancelled by other code")
                raise mark_cleanup(cancelled) from error
        elif self.task.cancelling() > self._cancels:
            # The cancel came from outside: the resource would have taken back one of its own.
            mark_cleanup(error)


def _is_async(kind: type[Any]) -> bool:
    return hasattr(kind, "__aenter__") and hasattr(kind, "__aexit__")


async def _enter(resource: Any) -> Any:
    """As `async with`, or as `with` if the resource is a plain context manager."""
    kind = type(resource)
    return await kind.__aenter__(resource) if _is_async(kind) else kind.__enter__(resource)


async def _exit(
    resource: Any,
    error_type: type[BaseException] | None,
    error: BaseException | None,
    traceback: TracebackType | None,
) -> Any:
    kind = type(resource)
    if _is_async(kind):
        return await kind.__aexit__(resource, error_type, error, traceback)
    return kind.__exit__(resource, error_type, error, traceback)


async def hold_in(
    registry: TaskRegistry,
    resource: AnyContextManager[T],
    name: str | None,
    timeout: float,
    origin: Origin,
    inner: HeldScope | None = None,
) -> T:
    """Enter `resource` in an owner task of the registry, and return its value."""
    _check(resource)
    held = HeldResource(resource, name or type(resource).__qualname__, origin, timeout, inner)
    coro = held.host()
    task = registry.start_owner(coro, held, f"hold {held.name}", origin)

    def on_ended(task: AnyTask) -> None:
        registry.forget_owner(coro)
        if not held.entered.done():  # cancelled before its first step
            held.entry_error = asyncio.CancelledError()
            held.entered.set_result(None)

    task.add_done_callback(on_ended)
    held.install_stand_in(task)
    survived = survived_cancels()
    cancelled: asyncio.CancelledError | None = None
    try:
        await asyncio.wait({held.entered})
    except asyncio.CancelledError as error:
        cancelled = error
        held.leave()
        await wait_uncancelled({held.task}, timeout)
    finally:
        held.error_receivers -= 1
    try:
        value: T = _outcome(registry, held, cancelled, survived)
        return value
    finally:
        del cancelled  # it refers to this frame


def _check(resource: Any) -> None:
    kind = type(resource)
    if _is_async(kind) or (hasattr(kind, "__enter__") and hasattr(kind, "__exit__")):
        return
    hint = "await it first" if asyncio.iscoroutine(resource) else ""
    raise wrong_type("hold", "a context manager, async or plain", resource, hint)


def _outcome(
    registry: TaskRegistry,
    held: HeldResource,
    cancelled: asyncio.CancelledError | None,
    survived: int,
) -> Any:
    """The value of the resource, or the error for the caller of `hold`."""
    error = held.entry_error if held.exit_error is None else held.exit_error
    error_to_raise = error if isinstance(error, Exception) else None
    raise_outcome(error_to_raise, cancelled, survived=survived)
    if held.leaving:
        raise registry.scope_closed(
            f"{registry.describe()} closed while {held.name} was being entered"
        )
    if error is not None:
        raise HandfastError(f"entering {held.name} was cancelled by other code") from error
    return held.value


async def release_from(registry: TaskRegistry, resource: object) -> bool:
    """Leave this resource. False if the scope does not hold it, or no longer."""
    held = _find(registry, resource)
    if held is None:
        return False
    survived = survived_cancels()
    held.error_receivers += 1
    try:
        cancelled = await held.leave_and_join()
    finally:
        held.error_receivers -= 1
    try:
        raise_outcome(held.exit_error, cancelled, survived=survived)
    finally:
        del cancelled  # it refers to this frame
    return True


def _find(registry: TaskRegistry, resource: object) -> HeldResource | None:
    """The newest hold of this object; or the only one with this value, if it is no resource."""
    present = [h for h in registry.held.values() if isinstance(h, HeldResource) and h.held]
    if same := [held for held in present if held.resource is resource]:
        return same[-1]
    with_value = [held for held in present if held.value is resource]
    # None is the value of many resources: a caller that passes it cannot mean one of them.
    if len(with_value) > 1 or (with_value and resource is None):
        names = ", ".join(held.name for held in with_value)
        raise ValueError(
            f"release({resource!r}) does not say which resource to leave ({names}): pass the one "
            "that was given to hold()"
        )
    return with_value[0] if with_value else None
