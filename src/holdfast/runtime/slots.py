"""One live task per key. Who holds a slot is told by identity, never guessed.

A slot is empty or has one task, and the entry goes at the very moment that task ends,
whichever way. Starting is one step, with no await between "empty?" and "mine": however many
starters interleave, there is never a second live task, nor one that nobody tracks.
"""

from __future__ import annotations

import asyncio
from asyncio import Task
from collections.abc import Callable, Coroutine, Hashable
from types import CoroutineType
from typing import Any, ParamSpec, TypeAlias, TypeVar

from holdfast.origin import Origin
from holdfast.runtime.closing import report_of
from holdfast.runtime.durations import seconds
from holdfast.runtime.errors import HoldfastError, ScopeClosed, SlotBusy, SlotCancelled, SlotStuck
from holdfast.runtime.patience import join_patiently
from holdfast.runtime.report import CloseReport
from holdfast.runtime.roster import AnyTask, name_of
from holdfast.runtime.scope import DEADLINE, Scope
from holdfast.runtime.stacks import await_chain
from holdfast.runtime.tracking import PAUSE, AnyCoroutine, certificate
from holdfast.runtime.waiting import Line, Onlookers
from holdfast.runtime.waves import Member

__all__ = ["Slots"]

T = TypeVar("T")
P = ParamSpec("P")

_running_loop = asyncio._get_running_loop


class Joint:
    """A coroutine that `keep` has started: its outcome is for all who wait there."""

    __slots__ = ("coro", "taken", "waiting")

    def __init__(self, coro: AnyCoroutine) -> None:
        self.coro = coro
        self.waiting = 1
        self.taken = False  # somebody has got the outcome

    def close(self) -> None:
        self.coro.close()

    def left(self, task: AnyTask) -> BaseException | None:
        """One who waited goes away. The error that now nobody will get, if there is one."""
        self.waiting -= 1
        if self.waiting or self.taken or not task.done() or task.cancelled():
            return None
        return task.exception()


# What stands in a slot and, with its task, on the roster.
Entry: TypeAlias = AnyCoroutine | Joint


# The key may be of any type, and `certificate` takes the last Origin and the last float that it
# finds in this frame: so the key stands before them.
async def slotted(slots: Slots, key: Hashable, entry: Entry, origin: Origin, birth: float) -> Any:
    """As `tracking.tracked`; and the slot's entry goes with the task: its own, and no other."""
    roster = slots._roster
    try:
        await PAUSE
        if roster.adopting:
            roster.adopt(entry)
        coro = entry.coro if isinstance(entry, Joint) else entry
        if roster.limit is None:
            return await coro
        async with roster.turns:
            return await coro
    except BaseException:
        entry.close()
        roster.fell(entry, origin, taken=isinstance(entry, Joint) and entry.waiting > 0)
        raise
    finally:
        del roster.live[entry]
        if slots._entries.get(key) is entry:  # not so if the key has changed its hash
            del slots._entries[key]
        if entry in roster.asked:
            del roster.asked[entry]
        slots._onlookers.wake(entry)
        if roster.watchers:
            roster.ended()


class Slots:
    """Tasks by key, in a scope.

    >>> async def capture(command):
    ...     await asyncio.sleep(3600)
    >>> async def main():
    ...     async with Scope("bot") as scope:
    ...         slots = Slots(scope)
    ...         first = await slots.replace("user-1", capture, "make")
    ...         second = await slots.replace("user-1", capture, "make test")
    ...         report = await slots.close()
    ...     return first.cancelled(), len(slots), str(report)
    >>> asyncio.run(main())
    (True, 0, "scope 'bot' closed: 1 cancelled")

    Parameters:
        scope: the owner of the tasks. Closing it closes them, too.
        deadline: how long a task that is replaced or cancelled may take to end. If it swallows
            its cancel, the next one fails with `SlotStuck`: there are never two at once.
    """

    __slots__ = (
        "_closed",
        "_deadline",
        "_entries",
        "_onlookers",
        "_queues",
        "_replacers",
        "_roster",
    )

    def __init__(self, scope: Scope, *, deadline: float = DEADLINE) -> None:
        if not isinstance(scope, Scope):
            raise TypeError(f"Slots() takes the scope that owns its tasks, not {scope!r}")
        self._roster = scope._roster
        self._deadline = seconds("deadline", deadline)
        self._entries: dict[Hashable, Entry] = {}
        # Those who wait for an entry or a line to go.
        self._onlookers = Onlookers()
        self._replacers: dict[Hashable, Line] = {}
        self._queues: dict[Hashable, Line] = {}
        self._closed = False

    def __len__(self) -> int:
        return len(self._entries)

    def __bool__(self) -> bool:
        return True  # slots without a task are still slots

    def __contains__(self, key: Hashable) -> bool:
        return key in self._entries

    # --- starting --------------------------------------------------------------------------
    # Plain functions that give a coroutine: so the origin is the line that called, even when
    # the coroutine is first stepped by a gather() or in a task of its own.

    def replace(
        self,
        key: Hashable,
        function: Callable[P, Coroutine[Any, Any, T]],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Coroutine[Any, Any, Task[T]]:
        """Cancel and join the present task, if any, then start the new one.

        When this returns, the one before has ended and has no further effect. Of several who
        replace at once each starts in its turn: the task of the last one stays.
        """
        return self._replace(key, function, args, kwargs, Origin.here(1))

    async def _replace(
        self, key: Hashable, function: Any, args: Any, kwargs: Any, origin: Origin
    ) -> AnyTask:
        _check_function(function)
        if self._entry_of_another(key) is None and key not in self._replacers:
            return self._start(key, function, args, kwargs, origin)
        self._require_open(key)  # or the present task would die for nothing
        async with self._replacers.get(key) or Line(self._replacers, key, self._onlookers):
            while (entry := self._entries.get(key)) is not None:
                await self._end(key, entry)
            return self._start(key, function, args, kwargs, origin)

    def queue(
        self,
        key: Hashable,
        function: Callable[P, Coroutine[Any, Any, T]],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Coroutine[Any, Any, Task[T]]:
        """Start the new task when the present one has ended by itself; first come, first served.

        Who replaces the present task goes before those who queue.
        """
        return self._queue(key, function, args, kwargs, Origin.here(1))

    async def _queue(
        self, key: Hashable, function: Any, args: Any, kwargs: Any, origin: Origin
    ) -> AnyTask:
        _check_function(function)
        self._entry_of_another(key)
        self._require_open(key)
        async with self._queues.get(key) or Line(self._queues, key, self._onlookers):
            while True:
                if (line := self._replacers.get(key)) is not None:
                    await self._onlookers.watch(line)
                elif (entry := self._entries.get(key)) is not None:
                    await self._onlookers.watch(entry)
                else:
                    return self._start(key, function, args, kwargs, origin)

    def reject(
        self,
        key: Hashable,
        function: Callable[P, Coroutine[Any, Any, T]],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Task[T]:
        """Start the new task if the slot is free; raise `SlotBusy` if it is not."""
        origin = Origin.here(1)
        _check_function(function)
        if self._entry(key) is not None or key in self._replacers or key in self._queues:
            raise SlotBusy(f"slot {key!r} is in use by {self._describe(key)}")
        return self._start(key, function, args, kwargs, origin)

    def keep(
        self,
        key: Hashable,
        function: Callable[P, Coroutine[Any, Any, T]],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Coroutine[Any, Any, T]:
        """The result of the task under way, or of a new one if there is none.

        All who ask while it runs get the same result or error. If one of them goes away, the
        task is not disturbed. A task that has been asked to end is not joined: the new one
        starts when it has ended.
        """
        return self._keep(key, function, args, kwargs, Origin.here(1))

    async def _keep(
        self, key: Hashable, function: Any, args: Any, kwargs: Any, origin: Origin
    ) -> Any:
        _check_function(function)
        self._entry_of_another(key)
        while True:
            if (line := self._replacers.get(key)) is not None:
                await self._onlookers.watch(line)
            elif (entry := self._entries.get(key)) is None:
                joint = Joint(self._call(key, function, args, kwargs))
                return await self._outcome(key, joint, self._launch(key, joint, origin), origin)
            elif entry in self._roster.asked:
                await self._end(key, entry)
            else:
                if isinstance(entry, Joint):
                    entry.waiting += 1
                task = self._task(entry)
                return await self._outcome(key, entry, task, self._certificate(entry, task)[0])

    async def _outcome(
        self, key: Hashable, entry: Entry, task: AnyTask, origin: Origin | None
    ) -> Any:
        """Wait for a task that others may wait for, too, and which belongs to none of them."""
        try:
            await asyncio.wait({task})
        except BaseException:
            if isinstance(entry, Joint) and (error := entry.left(task)) is not None:
                self._roster.mention(f"nobody took the error of slot {key!r}", error)
            raise
        if isinstance(entry, Joint):
            entry.waiting -= 1
            entry.taken = True
        if task.cancelled():
            raise SlotCancelled(
                f"{task.get_name()!r} of slot {key!r}, born at {origin}, was cancelled before it "
                "had a result; whoever still wants one asks again"
            )
        return task.result()

    # --- ending ----------------------------------------------------------------------------

    async def cancel(self, key: Hashable) -> bool:
        """Cancel the task of this slot and join it. False if there is none."""
        entry = self._entry_of_another(key)
        if entry is None:
            return False
        await self._end(key, entry)
        return True

    async def close(self) -> CloseReport:
        """Refuse new tasks, cancel all and join them; say how that went."""
        roster = self._roster
        loop = roster.bind()
        for key, entry in self._entries.items():
            self._refuse_own_task(key, entry)
        self._closed = True
        members = []
        for entry in self._entries.values():
            if (task := roster.live.get(entry)) is not None:
                members.append(Member(entry, task, *self._certificate(entry, task)))
                self._ask(entry)
        until = loop.time() + self._deadline
        cancelled = None
        for member in members:
            if not member.task.done():
                left = max(0.0, until - loop.time())
                cancelled = await join_patiently({member.task}, left) or cancelled
                if not member.task.done():
                    break  # time is up, for the others, too
        try:
            if cancelled is not None:
                raise cancelled
        finally:
            del cancelled  # it refers to this frame
        return report_of(roster.name, members, roster.clock)

    # --- inside: checks --------------------------------------------------------------------

    def _entry(self, key: Hashable) -> Entry | None:
        """What stands in this slot, asked for on the right loop and with a key that can be one."""
        roster = self._roster
        if not roster.fast or _running_loop() is not roster.loop:
            roster.bind()
        try:
            return self._entries.get(key)
        except TypeError as error:
            raise TypeError(f"the key of a slot must be hashable, not {key!r}") from error

    def _entry_of_another(self, key: Hashable) -> Entry | None:
        """The same for somebody who may have to wait for its end."""
        entry = self._entry(key)
        if entry is not None:
            self._refuse_own_task(key, entry)
        return entry

    def _refuse_own_task(self, key: Hashable, entry: Entry) -> None:
        if self._roster.live.get(entry) is asyncio.current_task():
            raise RuntimeError(
                f"{self._describe(key)}, is the task of slot {key!r} and cannot wait for its own "
                "end; let another task do this"
            )

    def _require_open(self, key: Hashable) -> None:
        if not self._roster.fast:
            self._roster.require_open(f"slot {key!r}")
        if self._closed:
            raise ScopeClosed(
                f"slot {key!r} refused: these slots of {self._roster.describe()} are closed"
            )

    # --- inside: birth ---------------------------------------------------------------------

    def _start(
        self, key: Hashable, function: Any, args: Any, kwargs: Any, origin: Origin
    ) -> AnyTask:
        """The slot is free. From here to the entry there is no await."""
        return self._launch(key, self._call(key, function, args, kwargs), origin)

    def _call(self, key: Hashable, function: Any, args: Any, kwargs: Any) -> AnyCoroutine:
        """The coroutine for a free slot. What is refused is refused before the call."""
        self._require_open(key)
        coro = function(*args, **kwargs)
        if type(coro) is not CoroutineType and not isinstance(coro, Coroutine):
            raise TypeError(f"slot {key!r} takes an async function, but its call gave {coro!r}")
        if coro in self._roster.live:
            raise HoldfastError(f"{coro!r} is already a task of {self._roster.describe()}")
        if key in self._entries:
            coro.close()
            raise SlotBusy(f"the call of {name_of(function)!r} for slot {key!r} has itself used it")
        return coro

    def _launch(self, key: Hashable, entry: Entry, origin: Origin) -> AnyTask:
        roster = self._roster
        wrapper = slotted(self, key, entry, origin, roster.clock())
        wrapper.send(None)  # primed: see tracking.primed
        self._entries[key] = entry
        coro = entry.coro if isinstance(entry, Joint) else entry
        return roster.launch(entry, wrapper, name_of(coro))

    # --- inside: end -----------------------------------------------------------------------

    def _task(self, entry: Entry) -> AnyTask:
        task = self._roster.live[entry]
        # Only code inside a task factory could come between an entry and its task.
        assert task is not None
        return task

    def _ask(self, entry: Entry) -> None:
        """Cancel, once: a second cancel would cut the clean-up that the first has set off.

        Task.cancelling() does not tell. It counts the cancels of a timeout() or a TaskGroup
        inside the task, too, which may well go on when they have come to their end.
        """
        roster = self._roster
        if entry not in roster.asked:
            roster.asked[entry] = roster.clock()
            self._task(entry).cancel()

    async def _end(self, key: Hashable, entry: Entry) -> None:
        """Have this entry end, and wait until it has."""
        roster = self._roster
        self._ask(entry)
        # Nearly every task ends in the turn after its cancel: no future and no timer for those.
        await PAUSE
        if entry in roster.live:
            left = roster.asked[entry] + self._deadline - roster.clock()
            await self._onlookers.watch(entry, left)
        if entry in roster.live:
            stands = " > ".join(await_chain(self._task(entry))) or "nowhere"
            raise SlotStuck(
                f"slot {key!r}: {self._describe(key)}, did not end within {self._deadline:g} s of "
                f"being cancelled; it stands at {stands}"
            )

    # --- inside: words ---------------------------------------------------------------------

    def _certificate(self, entry: Entry, task: AnyTask) -> tuple[Origin | None, float | None]:
        """For live tasks only: get_coro() of an eager one that has ended kills CPython 3.12.1."""
        return certificate(self._roster.wrappers.get(entry) or task.get_coro())

    def _describe(self, key: Hashable) -> str:
        entry = self._entries.get(key)
        task = None if entry is None else self._roster.live.get(entry)
        if entry is None or task is None:
            return "a task that is about to start"
        return f"{task.get_name()!r}, born at {self._certificate(entry, task)[0]}"


def _check_function(function: Any) -> None:
    if callable(function):
        return
    if isinstance(function, Coroutine):
        function.close()
    raise TypeError(
        "a slot takes an async function and its arguments, as in replace(key, fn, arg); "
        f"this is not a function: {function!r}"
    )
