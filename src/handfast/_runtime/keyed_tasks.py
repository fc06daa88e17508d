"""`KeyedTasks`: one live task per key, recognised by identity.

A key is free or has one task, and its entry is removed at the moment that task ends. There is
no await between the check that a key is free and the entry of the new task: however the callers
interleave, there is never a second live task, nor one that is not tracked.
"""

from __future__ import annotations

import asyncio
from asyncio import Task
from collections.abc import Callable, Coroutine, Hashable
from types import CoroutineType
from typing import Any, ParamSpec, TypeAlias, TypeVar

from handfast._asyncio_internals import coroutine_function, running_loop
from handfast._await_stack import await_chain
from handfast._origin import Origin
from handfast._runtime.arguments import (
    CLOSE_TIMEOUT,
    close_unstarted,
    is_started,
    require_function,
    seconds,
    wrong_type,
)
from handfast._runtime.cancel_reason import CLOSE, CancelReason, reason_here
from handfast._runtime.errors import HandfastError, KeyBusy, KeyCancelled, KeyStuck, ScopeClosed
from handfast._runtime.key_queue import KeyQueue, Waiters
from handfast._runtime.report import CloseReport, TaskEnd
from handfast._runtime.scope.failure_reports import report_error
from handfast._runtime.scope.scope import Scope
from handfast._runtime.scope.shutdown import report_of
from handfast._runtime.scope.shutdown_order import Member
from handfast._runtime.scope.tasks.task_registry import AnyTask, name_of
from handfast._runtime.scope.tasks.task_wrapper import (
    YIELD_ONCE,
    AnyCoroutine,
    ShownCoroutine,
    task_wrapper,
)
from handfast._runtime.uncancellable import raise_outcome, wait_uncancelled

T = TypeVar("T")
P = ParamSpec("P")

_running_loop = running_loop


class SharedTask:
    """A coroutine that `share` has started: all callers that wait for it get its outcome."""

    __slots__ = ("coro", "taken", "waiting")

    def __init__(self, coro: AnyCoroutine) -> None:
        self.coro = coro
        self.waiting = 1
        self.taken = False  # a caller has got the outcome

    def close(self) -> None:
        close_unstarted(self.coro)

    def on_caller_cancelled(self, task: AnyTask) -> BaseException | None:
        """A caller was cancelled. Returns the error that no caller will get now, if any."""
        self.waiting -= 1
        if self.waiting or self.taken or not task.done() or task.cancelled():
            return None
        return task.exception()


# The entry of a key; the registry has the task under it.
Entry: TypeAlias = AnyCoroutine | SharedTask


# `origin_and_start_time` takes the last Origin of this frame, with the float directly after it.
# The key may be of any type, a float among them, so it comes before those two.
@task_wrapper
async def tracked_by_key(
    keyed: KeyedTasks, key: Hashable, entry: Entry, origin: Origin, start_time: float
) -> Any:
    """As `task_wrapper.tracked`, and removes the entry of the key: its own, and no other."""
    registry = keyed._registry
    try:
        await YIELD_ONCE
        coro = entry.coro if isinstance(entry, SharedTask) else entry
        if registry.has_first_step:
            return await registry.after_first_step(entry, coro)
        return await coro
    except BaseException:
        entry.close() if isinstance(entry, SharedTask) else close_unstarted(entry)
        awaited = isinstance(entry, SharedTask) and entry.waiting > 0
        registry.on_task_failed(entry, origin, awaited=awaited)
        raise
    finally:
        registry.live.pop(entry, None)  # absent if its task could not be created
        if keyed._entries.get(key) is entry:  # false if the hash of the key has changed
            del keyed._entries[key]
        if entry in registry.cancel_requested:
            del registry.cancel_requested[entry]
        keyed._waiters.wake(entry)
        if len(registry.live) <= registry.floor:
            registry.on_task_ended()


class KeyedTasks:
    """Tasks by key, in a scope.

    >>> import asyncio
    >>> from handfast import Scope, KeyedTasks
    >>> async def capture(command):
    ...     await asyncio.sleep(3600)
    >>> async def main():
    ...     async with Scope("bot") as scope:
    ...         tasks = KeyedTasks(scope)
    ...         first = await tasks.replace("user-1", capture, "make")
    ...         second = await tasks.replace("user-1", capture, "make test")
    ...         report = await tasks.close()
    ...     return first.cancelled(), len(tasks), str(report)
    >>> asyncio.run(main())
    (True, 0, "scope 'bot' closed: 1 cancelled")

    Parameters:
        scope: the owner of the tasks. Closing it closes them too.
        timeout: seconds that a task may take to end when it is replaced or cancelled. If it
            swallows its cancel, the next one fails with `KeyStuck`: there are never two at once.
    """

    __slots__ = (
        "__weakref__",
        "_closed",
        "_entries",
        "_queues",
        "_registry",
        "_replacers",
        "_timeout",
        "_waiters",
    )

    def __init__(self, scope: Scope, *, timeout: float = CLOSE_TIMEOUT) -> None:
        if not isinstance(scope, Scope):
            raise wrong_type("KeyedTasks", "the scope that owns its tasks", scope, "pass a Scope")
        self._registry = scope._registry
        self._timeout = seconds("timeout", timeout)
        self._entries: dict[Hashable, Entry] = {}
        # The callers that wait until an entry or a queue is removed.
        self._waiters = Waiters()
        self._replacers: dict[Hashable, KeyQueue] = {}
        self._queues: dict[Hashable, KeyQueue] = {}
        self._closed = False

    def __len__(self) -> int:
        return len(self._entries)

    def __bool__(self) -> bool:
        return True  # also without a task

    def __contains__(self, key: Hashable) -> bool:
        return key in self._entries

    # --- starting --------------------------------------------------------------------------
    # Plain functions that return a coroutine: so the origin is the line of the call, even if
    # the coroutine is first stepped by a gather() or in a task of its own.

    @coroutine_function
    def replace(
        self,
        key: Hashable,
        function: Callable[P, Coroutine[Any, Any, T]],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Coroutine[Any, Any, Task[T]]:
        """Cancel and join the present task, if any, then start the new one.

        When this returns, the old task has ended and has no further effect. Several callers that
        replace at once start one after the other: the task of the last one stays.
        """
        return self._replace(key, function, args, kwargs, Origin.here(1))

    async def _replace(
        self, key: Hashable, function: Any, args: Any, kwargs: Any, origin: Origin
    ) -> AnyTask:
        require_function("replace(key, fn, arg)", function)
        if self._entry_of_another(key) is None and key not in self._replacers:
            return self._start(key, function, args, kwargs, origin)
        self._require_open(key)  # otherwise the present task would be cancelled for nothing
        async with self._replacers.get(key) or KeyQueue(self._replacers, key, self._waiters):
            while (entry := self._entries.get(key)) is not None:
                await self._end(key, entry, CancelReason("replace()", origin))
            return self._start(key, function, args, kwargs, origin)

    @coroutine_function
    def enqueue(
        self,
        key: Hashable,
        function: Callable[P, Coroutine[Any, Any, T]],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Coroutine[Any, Any, Task[T]]:
        """Start the new task when the present one has ended by itself; first come, first served.

        Callers of `replace` come before callers of `enqueue`.
        """
        return self._enqueue(key, function, args, kwargs, Origin.here(1))

    async def _enqueue(
        self, key: Hashable, function: Any, args: Any, kwargs: Any, origin: Origin
    ) -> AnyTask:
        require_function("enqueue(key, fn, arg)", function)
        self._entry_of_another(key)
        self._require_open(key)
        async with self._queues.get(key) or KeyQueue(self._queues, key, self._waiters):
            while True:
                if (replacers := self._replacers.get(key)) is not None:
                    await self._waiters.until_removed(replacers)
                elif (entry := self._entries.get(key)) is not None:
                    await self._waiters.until_removed(entry)
                else:
                    return self._start(key, function, args, kwargs, origin)

    def start(
        self,
        key: Hashable,
        function: Callable[P, Coroutine[Any, Any, T]],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Task[T]:
        """Start the new task if the key is free; raise `KeyBusy` if it is not."""
        origin = Origin.here(1)
        require_function("start(key, fn, arg)", function)
        if self._entry(key) is not None or key in self._replacers or key in self._queues:
            raise KeyBusy(f"key {key!r} is in use by {self._describe(key)}")
        return self._start(key, function, args, kwargs, origin)

    @coroutine_function
    def share(
        self,
        key: Hashable,
        function: Callable[P, Coroutine[Any, Any, T]],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Coroutine[Any, Any, T]:
        """The result of the running task, or of a new one if there is none.

        All callers that come while it runs get the same result or error. The task is not affected
        if one of them is cancelled. A task that was cancelled is not joined: a new one starts
        when it has ended.
        """
        return self._share(key, function, args, kwargs, Origin.here(1))

    async def _share(
        self, key: Hashable, function: Any, args: Any, kwargs: Any, origin: Origin
    ) -> Any:
        require_function("share(key, fn, arg)", function)
        self._entry_of_another(key)
        while True:
            if (replacers := self._replacers.get(key)) is not None:
                await self._waiters.until_removed(replacers)
            elif (entry := self._entries.get(key)) is None:
                shared = SharedTask(self._call(key, function, args, kwargs))
                task = self._create_task(key, shared, origin)
                return await self._outcome(key, shared, task, origin)
            elif entry in self._registry.cancel_requested:
                await self._end(key, entry, None)  # it is cancelled already
            else:
                if isinstance(entry, SharedTask):
                    entry.waiting += 1
                task = self._task(entry)
                created_at, _ = self._registry.creation_of(entry, task)
                return await self._outcome(key, entry, task, created_at)

    async def _outcome(
        self, key: Hashable, entry: Entry, task: AnyTask, origin: Origin | None
    ) -> Any:
        """Wait for a task that other callers may wait for too, without cancelling it."""
        try:
            await asyncio.wait({task})
        except BaseException:
            if (
                isinstance(entry, SharedTask)
                and (error := entry.on_caller_cancelled(task)) is not None
            ):
                end = TaskEnd(task.get_name(), origin, error)
                report_error(self._registry, f"no caller got the error of key {key!r}", end)
            raise
        if isinstance(entry, SharedTask):
            entry.waiting -= 1
            entry.taken = True
        if task.cancelled():
            raise KeyCancelled(
                f"{task.get_name()!r} of key {key!r}, created at {origin}, was cancelled before it "
                "had a result; call share() again if you still need one"
            )
        return task.result()

    # --- ending ----------------------------------------------------------------------------

    async def cancel(self, key: Hashable) -> bool:
        """Cancel the task of this key and join it. False if there is none."""
        entry = self._entry_of_another(key)
        if entry is None:
            return False
        await self._end(key, entry, reason_here("cancel()"))
        return True

    async def close(self) -> CloseReport:
        """Refuse new tasks, cancel all and join them; return a report."""
        reason = reason_here(CLOSE)
        registry = self._registry
        loop = registry.bind()
        for key, entry in self._entries.items():
            self._refuse_own_task(key, entry)
        self._closed = True
        members = [
            Member(entry, task, *registry.creation_of(entry, task))
            for entry in self._entries.values()
            if (task := registry.live.get(entry)) is not None
        ]
        registry.cancel_members(members, reason)
        until = loop.time() + self._timeout
        cancelled = None
        for member in members:
            if not member.task.done():
                left = max(0.0, until - loop.time())
                cancelled = await wait_uncancelled({member.task}, left) or cancelled
                if not member.task.done():
                    break  # the deadline is the same for all of them
        if any(member.task.done() and member.key in registry.live for member in members):
            # Behind a task factory, a done callback removes what has never started.
            removed = loop.create_future()
            loop.call_soon(removed.set_result, None)
            cancelled = await wait_uncancelled({removed}) or cancelled
        try:
            raise_outcome(None, cancelled)
        finally:
            del cancelled  # it refers to this frame
        return report_of(registry.name, members, registry.clock, reason.origin)

    # --- checks ----------------------------------------------------------------------------

    def _entry(self, key: Hashable) -> Entry | None:
        """The entry of this key, after a check of the loop and of the key."""
        registry = self._registry
        if not registry.fast or _running_loop() is not registry.loop:
            registry.bind()
        try:
            return self._entries.get(key)
        except TypeError as error:
            raise TypeError(f"a key must be hashable, not {key!r}") from error

    def _entry_of_another(self, key: Hashable) -> Entry | None:
        """The same for a caller that may have to wait for its end."""
        entry = self._entry(key)
        if entry is not None:
            self._refuse_own_task(key, entry)
        return entry

    def _refuse_own_task(self, key: Hashable, entry: Entry) -> None:
        if self._registry.live.get(entry) is asyncio.current_task():
            raise RuntimeError(
                f"{self._describe(key)}, is the task of key {key!r} and cannot wait for its own "
                "end; do this in another task"
            )

    def _require_open(self, key: Hashable) -> None:
        if not self._registry.fast:
            self._registry.require_open(f"key {key!r}")
        if self._closed:
            raise ScopeClosed(
                f"key {key!r} refused: these keyed tasks of {self._registry.describe()} are closed"
            )

    # --- creation --------------------------------------------------------------------------

    def _start(
        self, key: Hashable, function: Any, args: Any, kwargs: Any, origin: Origin
    ) -> AnyTask:
        """Start the task of a key that is free. There is no await from here to the entry."""
        return self._create_task(key, self._call(key, function, args, kwargs), origin)

    def _call(self, key: Hashable, function: Any, args: Any, kwargs: Any) -> AnyCoroutine:
        """The coroutine for a free key. All checks that need no coroutine come first."""
        self._require_open(key)
        coro: AnyCoroutine = function(*args, **kwargs)
        if type(coro) is not CoroutineType or coro.cr_suspended:
            if not isinstance(coro, Coroutine):
                raise TypeError(f"key {key!r} takes an async function, but its call gave {coro!r}")
            if is_started(coro):
                raise RuntimeError(
                    f"key {key!r} takes a coroutine that has not started, not {coro!r}"
                )
            coro = ShownCoroutine(coro)  # see Scope.spawn
        if coro in self._registry.live:
            raise HandfastError(f"{coro!r} is already a task of {self._registry.describe()}")
        if key in self._entries:
            close_unstarted(coro)
            raise KeyBusy(
                f"calling {name_of(function)!r} for key {key!r} has started a task for it"
            )
        return coro

    def _create_task(self, key: Hashable, entry: Entry, origin: Origin) -> AnyTask:
        registry = self._registry
        wrapper = tracked_by_key(self, key, entry, origin, registry.clock())
        wrapper.send(None)  # see task_wrapper.advance_to_pause
        self._entries[key] = entry
        coro = entry.coro if isinstance(entry, SharedTask) else entry
        try:
            task = registry.create_task(entry, wrapper, name_of(coro), coro)
        except BaseException:
            self._forget_lost(key, entry)
            raise
        if task.done():
            self._forget_lost(key, entry)
        return task

    def _forget_lost(self, key: Hashable, entry: Entry) -> None:
        """Remove an entry whose wrapper had no stack to do so."""
        if entry not in self._registry.live and self._entries.get(key) is entry:
            del self._entries[key]

    # --- end -------------------------------------------------------------------------------

    def _task(self, entry: Entry) -> AnyTask:
        task = self._registry.live[entry]
        # Only code inside a task factory could see an entry before its task.
        assert task is not None
        return task

    async def _end(self, key: Hashable, entry: Entry, reason: CancelReason | None) -> None:
        """Cancel the task of this entry and wait until it has ended."""
        registry = self._registry
        registry.request_cancel(entry, self._task(entry), reason)
        # Nearly every task ends in the step after its cancel: no future and no timer for those.
        await YIELD_ONCE
        if entry in registry.live:
            left = registry.cancel_requested[entry].time + self._timeout - registry.clock()
            await self._waiters.until_removed(entry, left)
        if entry in registry.live:
            where = " > ".join(await_chain(self._task(entry))) or "an unknown line"
            raise KeyStuck(
                f"key {key!r}: {self._describe(key)}, did not end within {self._timeout:g} s of "
                f"being cancelled; it is waiting at {where}"
            )

    def _describe(self, key: Hashable) -> str:
        entry = self._entries.get(key)
        task = None if entry is None else self._registry.live.get(entry)
        if entry is None or task is None:
            return "a task that is about to start"
        return f"{task.get_name()!r}, created at {self._registry.creation_of(entry, task)[0]}"
