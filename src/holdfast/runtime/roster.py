"""The roster: who is alive in a scope, how each is born and where its failure goes.

Bookkeeping for `scope` (the public face) and `closing` (the way down). It changes on the
loop's own thread only. The promise: no task is ever alive without standing here, and no
error passes by without going somewhere.
"""

from __future__ import annotations

import asyncio
import sys
import time
from asyncio import AbstractEventLoop, CancelledError, Task
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any, Literal, Protocol, TypeAlias

from holdfast.origin import Origin
from holdfast.runtime.collector import collector_paused
from holdfast.runtime.errors import ScopeClosed, WrongLoop
from holdfast.runtime.failure import annotate, mark_cleanup
from holdfast.runtime.lifecycle import Event, State, step
from holdfast.runtime.tracking import (
    AnyCoroutine,
    certificate,
    primed,
    resumed,
    tracked,
    tracked_in_turn,
)
from holdfast.runtime.waves import Member, next_wave

__all__ = [
    "AnyTask",
    "Chore",
    "FailureHandler",
    "Hosted",
    "OnFailure",
    "Roster",
    "Watcher",
    "name_of",
]

AnyTask: TypeAlias = Task[Any]
FailureHandler: TypeAlias = Callable[[BaseException], object]
OnFailure: TypeAlias = Literal["cancel", "report"] | FailureHandler


# Factories that make a task of the very coroutine that they are given.
_PLAIN_FACTORIES = (None, getattr(asyncio, "eager_task_factory", None))


class Chore(partial[object]):
    """A done callback of our own: bookkeeping, not somebody who will look at the task's error."""


class Hosted(Protocol):
    """A resource inside an owner task, as far as the roster knows it."""

    value: Any

    def leave(self) -> None: ...


class Watcher:
    """Its future is done once no more than `floor` tasks are alive."""

    __slots__ = ("floor", "future")

    def __init__(self, floor: int, future: asyncio.Future[None]) -> None:
        self.floor = floor
        self.future = future


class Roster:
    """The live tasks of one scope, and the state of that scope."""

    __slots__ = (
        "adopting",
        "asked",
        "clock",
        "fast",
        "held",
        "host",
        "host_cancelled",
        "last_birth",
        "last_origin",
        "limit",
        "live",
        "loop",
        "name",
        "on_failure",
        "origin",
        "roll",
        "services",
        "state",
        "stock",
        "turns",
        "uses",
        "watchers",
        "wrappers",
    )

    # Set by bind(), before anything can ask for them.
    clock: Callable[[], float]
    turns: asyncio.Semaphore

    def __init__(self, name: str, origin: Origin, on_failure: OnFailure, limit: int | None) -> None:
        self.name = name
        self.origin = origin
        self.on_failure = on_failure
        self.limit = limit
        self.state = State.OPEN
        self.loop: AbstractEventLoop | None = None
        # Whatever tells one task from another, mostly the user's coroutine -> its task, in
        # order of birth. No task yet: an eager one that has not come to its first line.
        self.live: dict[object, AnyTask | None] = {}
        self.services: set[object] = set()
        # The key of an owner task -> the resource that it hosts.
        self.held: dict[object, Hosted] = {}
        self.uses: dict[object, tuple[object, ...]] = {}
        # Who has been asked to end, and when: nobody is asked twice.
        self.asked: dict[object, float] = {}
        self.watchers: list[Watcher] = []
        # Everyone who was alive when new work was first refused.
        self.roll: list[Member] = []
        # Our coroutines, where a task factory stands between them and their tasks.
        self.wrappers: dict[object, AnyCoroutine] = {}
        # The task in the body of `async with`, while it is there.
        self.host: AnyTask | None = None
        self.host_cancelled = False
        self.adopting = False
        self.stock = False
        self.fast = False
        self.last_origin = origin
        self.last_birth = 0.0

    def describe(self) -> str:
        name = f" {self.name!r}" if self.name else ""
        return f"scope{name} (made at {self.origin})"

    # --- birth -----------------------------------------------------------------------------

    def bind(self) -> AbstractEventLoop:
        """The scope's loop: the one on which it is first used, and no other after that."""
        running = asyncio._get_running_loop()
        if running is None or (self.loop is not None and running is not self.loop):
            where = "no event loop runs here" if running is None else "this is another event loop"
            raise WrongLoop(
                f"{self.describe()} cannot be used here: {where}. "
                "From another thread use scope.submit() and scope.close_from_thread()"
            )
        if self.loop is None:
            self.loop = running
            # The stock clock without its Python frame.
            stock_clock = type(running).time is asyncio.BaseEventLoop.time
            self.clock = time.monotonic if stock_clock else running.time
            self.stock = type(running).create_task is asyncio.BaseEventLoop.create_task
            if self.limit is not None:
                self.turns = asyncio.Semaphore(self.limit)
            self.refresh()
        return running

    def is_running(self) -> bool:
        """Whether the scope has a loop that runs. From any thread."""
        return self.loop is not None and self.loop.is_running()

    def refresh(self) -> None:
        """Whether `Scope.spawn` may take its short way."""
        self.fast = self.stock and self.limit is None and self.state.takes_work

    def require_open(self, what: str) -> None:
        if not self.state.takes_work:
            raise ScopeClosed(f"{what} refused: {self.describe()} is {self.state.value}")

    def enlist(
        self, coro: AnyCoroutine, name: str | None, origin: Origin, *, in_turn: bool = True
    ) -> AnyTask:
        """A tracked task that runs `coro`. All checks have been made.

        What never ends by itself is not `in_turn`: it would take its place for ever.
        """
        around = tracked_in_turn if in_turn and self.limit is not None else tracked
        wrapper = primed(around(self, coro, origin, self.clock()))
        return self.launch(coro, wrapper, name or name_of(coro))

    def launch(self, key: object, wrapper: AnyCoroutine, name: str) -> AnyTask:
        """Start a primed tracking coroutine as a task, on the roster under `key`."""
        loop: Any = self.loop
        task: AnyTask
        if self.stock and loop._task_factory is None:
            task = self.live[key] = Task(wrapper, loop=loop, name=name)
            return task
        # A factory may start the task at once (eager): it may end before we have it in hand
        # (#128550, #128588). So the key goes on the roster first, and the task adopts it.
        self.adopting = True
        self.live[key] = None
        self.wrappers[key] = wrapper
        coro = wrapper if loop.get_task_factory() in _PLAIN_FACTORIES else resumed(wrapper)
        try:
            task = loop.create_task(coro, name=name)
        except BaseException:
            del self.wrappers[key]
            coro.close()
            wrapper.close()  # which takes the key off the roster
            raise
        if key in self.live:
            self.live[key] = task
            task.add_done_callback(Chore(_lost, self, key, coro))
        else:
            del self.wrappers[key]
        return task

    def adopt(self, key: object) -> None:
        """On its first step a task behind a factory puts itself on the roster."""
        if self.live[key] is None:
            self.live[key] = asyncio.current_task(self.loop)

    # --- end -------------------------------------------------------------------------------

    def fell(self, key: object, origin: Origin, *, taken: bool = False) -> None:
        """The running task is about to end with an exception. It still stands here.

        `taken`: there are those who wait for its error, so it is not the scope's.
        """
        error = sys.exception()
        if error is None or isinstance(error, (CancelledError, GeneratorExit)):
            return
        task = asyncio.current_task(self.loop)
        if task is None:  # closed by hand or by the garbage collector: there is no task
            return
        annotate(error, f"in task {task.get_name()!r} of {self.describe()}, born at {origin}")
        if task.cancelling():
            # We have asked it to end, so this was its clean-up. A task group that has failed
            # leaves the count too high on 3.11 and 3.12 (#116720): that alone says nothing.
            mark_cleanup(error, asked=key in self.asked)
        if taken and isinstance(error, Exception):
            task.add_done_callback(_retrieve)
        else:
            self.route(task, error)

    def route(self, task: AnyTask, error: BaseException) -> None:
        """Send an error to where it will be seen: a group or report, a handler, the loop."""
        if self.on_failure == "cancel" or not isinstance(error, Exception):
            task.add_done_callback(_retrieve)
            self.abort()
        elif not callable(self.on_failure):  # "report"
            if not _is_awaited(task):
                task.add_done_callback(self.tell_loop_if_unseen)
        else:
            task.add_done_callback(_retrieve)
            try:
                self.on_failure(error)
            except Exception as broken:
                self.tell_loop(f"the failure handler of {self.describe()} failed", broken, task)

    def tell_loop_if_unseen(self, task: AnyTask) -> None:
        """Report a failed task, unless somebody has taken its error meanwhile. An eager task
        fails before anybody can await it."""
        if getattr(task, "_log_traceback", True) and (error := task.exception()) is not None:
            self.tell_loop(f"a task of {self.describe()} failed", error, task)

    def tell_loop(self, message: str, error: BaseException, task: AnyTask) -> None:
        """Call the loop's exception handler, in the context of `task`."""
        loop = task.get_loop()
        context = {"message": message, "exception": error, "task": task}
        if task.done():
            loop.call_exception_handler(context)
        else:  # its context is in use as long as it runs
            task.add_done_callback(lambda _: loop.call_exception_handler(context))

    def mention(self, message: str, error: BaseException) -> None:
        """Report an error that ends nothing: a service that will be started again."""
        if callable(self.on_failure):
            try:
                self.on_failure(error)
                return
            except Exception as broken:
                message, error = f"the failure handler of {self.describe()} failed", broken
        if self.loop is not None:
            self.loop.call_exception_handler({"message": message, "exception": error})

    def abort(self) -> None:
        """After a failure: no new work, and the siblings are cancelled.

        What is further down the ladder waits for whoever closes the scope. A host that is
        still in the body of its `async with` is interrupted there.
        """
        if not self.state.takes_work:
            return
        self.move(Event.CLOSE_NOW)
        for member in next_wave(list(self.roll), self.held, self.uses):
            self.ask(member)
        if self.host is not None and not self.host_cancelled:
            self.host_cancelled = True
            self.host.cancel()

    def ask(self, member: Member) -> None:
        """Ask a member to end, once: a second cancel would cut its clean-up."""
        if member.key in self.asked or member.task.done():
            return
        self.asked[member.key] = self.clock()
        if hosted := self.held.get(member.key):
            hosted.leave()
        elif member.task is not asyncio.current_task(self.loop):
            member.task.cancel()

    def ended(self) -> None:
        """A task has just left the roster, and somebody waits for that."""
        count = len(self.live)
        for watcher in self.watchers:
            if count <= watcher.floor and not watcher.future.done():
                watcher.future.set_result(None)

    def rouse(self) -> None:
        """Wake all who watch: what they wait for has changed."""
        for watcher in self.watchers:
            if not watcher.future.done():
                watcher.future.set_result(None)

    def orphan(self, close: Callable[[], None]) -> None:
        """Nobody owns these tasks any more: `close` them, on their own loop; and no one will
        read of their failures in a report."""
        loop = self.loop
        if loop is None:
            return
        with suppress(RuntimeError):  # the loop is closed, and they will never run again
            loop.call_soon_threadsafe(close)
        for member in self.roll:
            task = member.task
            if task.done() and not task.cancelled() and (error := task.exception()) is not None:
                self.tell_loop(f"nobody closed {self.describe()}, where a task failed", error, task)

    # --- for those who close ---------------------------------------------------------------

    def move(self, event: Event) -> None:
        """Change the state. Whoever is alive when work is first refused is on the roll."""
        before = self.state
        self.state = step(before, event)
        if before.takes_work and not self.state.takes_work:
            with collector_paused(len(self.live)):
                self.roll = list(self.members())
            self.refresh()
            self.rouse()

    def members(self) -> Iterator[Member]:
        for key, task in list(self.live.items()):
            if task is not None:
                yield Member(key, task, *certificate(self.wrappers.get(key) or task.get_coro()))

    @property
    def standing(self) -> int:
        """How many never end by themselves: services, and owners of resources."""
        return sum(key in self.live for keys in (self.services, self.held) for key in keys)

    def watch(self, floor: int) -> Watcher:
        """Get to know when no more than `floor` are alive; end it with `unwatch`."""
        assert self.loop is not None
        watcher = Watcher(floor, self.loop.create_future())
        self.watchers.append(watcher)
        self.ended()
        return watcher

    def unwatch(self, watcher: Watcher) -> None:
        self.watchers.remove(watcher)


def name_of(coro: Any) -> str:
    """What a task is called when nobody has named it: by what it runs."""
    return getattr(coro, "__qualname__", None) or type(coro).__qualname__


def _retrieve(task: AnyTask) -> None:
    """The error has gone where it is seen: asyncio need not log it once more."""
    if not task.cancelled():
        task.exception()


def _lost(roster: Roster, key: object, coro: AnyCoroutine, task: AnyTask) -> None:
    """A task behind a factory is done. A factory that wraps our coroutine once more loses it
    when the task is cancelled before its first step: then it is ended here."""
    coro.close()
    wrapper = roster.wrappers.pop(key, None)
    if wrapper is not None and key in roster.live:
        wrapper.close()


def _is_awaited(task: AnyTask) -> bool:
    """Whether somebody waits for this task, and so will get its error."""
    callbacks = getattr(task, "_callbacks", None) or ()
    return any(not isinstance(callback, Chore) for callback, _ in callbacks)
