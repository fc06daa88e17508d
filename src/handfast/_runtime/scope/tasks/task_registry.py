"""The registry of a scope: its live tasks, how they are created and where their errors go.

Used by `scope` (the public class) and `shutdown`. It is changed on the loop's own thread only.
Two invariants: every live task is in the registry, and every error is reported somewhere.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from asyncio import AbstractEventLoop, CancelledError, Task
from collections.abc import Callable, Iterable, Iterator
from contextvars import Context
from functools import partial
from typing import Any, TypeAlias

from handfast._asyncio_internals import (
    create_named_task,
    creates_plain_tasks,
    running_loop,
)
from handfast._origin import Origin
from handfast._runtime import fork
from handfast._runtime.cancel_reason import (
    ALL_OTHERS_ENDED,
    THE_PROGRAM,
    CancelReason,
    CancelRequest,
    failure_reason,
    held_by,
)
from handfast._runtime.covered_failure import covered_failure
from handfast._runtime.errors import ScopeClosed, WrongLoop
from handfast._runtime.failure import annotate, is_cleanup, mark_cleanup, mark_operational
from handfast._runtime.report import TaskEnd
from handfast._runtime.scope.ancestry import ancestors, registry_of, runs_inside
from handfast._runtime.scope.cancel_in_progress import (
    cancel_after_this_step,
    cancel_unless_in_progress,
)
from handfast._runtime.scope.failure_reports import (
    OnFailure,
    mark_read,
    report_failure,
)
from handfast._runtime.scope.gc_pause import gc_paused
from handfast._runtime.scope.shutdown_order import Member, waves
from handfast._runtime.scope.states import Event, State, step
from handfast._runtime.scope.tasks import task_creation
from handfast._runtime.scope.tasks.live_tasks import Hosted, LiveTasks
from handfast._runtime.scope.tasks.task_creation import TrackedTask, close_lost_wrapper, wrapper_of
from handfast._runtime.scope.tasks.task_ends import note_reason, record_of
from handfast._runtime.scope.tasks.task_wrapper import (
    FACTORY_FRAMES,
    AnyCoroutine,
    ShownCoroutine,
    enter,
    origin_and_start_time,
    require_stack,
    tracked,
)
from handfast._runtime.scope.tasks.turns import Turns

AnyTask: TypeAlias = Task[Any]

_EAGER_FACTORY = getattr(asyncio, "eager_task_factory", None)  # from 3.12 on


class TaskRegistry(LiveTasks):
    """The live tasks of one scope, and the state of that scope."""

    __slots__ = (
        "cancel_requested",
        "clock",
        "closed_by",
        "closing_tasks",
        "direct",
        "fast",
        "has_first_step",
        "host",
        "host_cancelled",
        "joiners",
        "last_origin",
        "limit",
        "name",
        "on_failure",
        "origin",
        "pid",
        "process",
        "reason",
        "start_time",
        "state",
        "stock",
        "turns",
        "wrappers",
    )

    # Set by bind(), before they can be used.
    clock: Callable[[], float]
    turns: Turns

    def __init__(self, name: str, origin: Origin, on_failure: OnFailure, limit: int | None) -> None:
        super().__init__()
        self.name = name
        self.origin = origin
        self.on_failure = on_failure
        # The failure that has closed the scope.
        self.closed_by: BaseException | None = None
        self.limit = limit
        # Changed by move() only.
        self.state = State.OPEN
        self.pid = 0
        self.process = fork.this_process
        # Which tasks were cancelled by us, when and why. Each is cancelled once: a second cancel
        # would interrupt the clean-up that the first has started.
        self.cancel_requested: dict[object, CancelRequest] = {}
        # Why the scope cancels its tasks. Changed by move() only.
        self.reason: CancelReason | None = None
        # The tasks that were alive when the scope stopped accepting work.
        self.closing_tasks: list[Member] = []
        # Our wrappers, for tasks that a task factory has put a coroutine of its own around.
        self.wrappers: dict[object, AnyCoroutine] = {}
        # The task in the body of `async with`, and whether a failed child has cancelled it.
        self.host: AnyTask | None = None
        self.host_cancelled = False
        # The tasks that wait for the end of the scope: the host until it has left the block, and
        # the closers.
        self.joiners: list[AnyTask] = []
        # Whether a task has to call after_first_step(): there is a limit or a task factory.
        self.has_first_step = limit is not None
        # Whether the loop has asyncio's own create_task, whether that or uvloop's only creates a
        # Task, and whether Scope.spawn may then take its short path. Kept here because spawn reads
        # them for every task.
        self.stock = False
        self.direct = False
        self.fast = False
        # Shared by the tasks that are spawned on one line.
        self.last_origin = origin
        # Shared by the tasks that are spawned before the first of them makes its first step: an
        # age is off by one iteration of the loop at most. None: read the clock for the next one.
        self.start_time: float | None = None

    def describe(self) -> str:
        name = f" {self.name!r}" if self.name else ""
        return f"scope{name} (created at {self.origin})"

    # --- the loop --------------------------------------------------------------------------

    def bind(self) -> AbstractEventLoop:
        """The scope's loop: the one on which it is first used."""
        running = running_loop()
        if running is None or (self.loop is not None and running is not self.loop):
            where = "no event loop runs here" if running is None else "this is another event loop"
            hint = "From another thread use scope.submit() and scope.close_from_thread()"
            if self.forked:
                where = f"its loop runs in process {self.pid}, and this process is a fork of it"
                hint = "Create a new scope in this process"
            raise WrongLoop(f"{self.describe()} cannot be used here: {where}. {hint}")
        if self.loop is None:
            self.loop = running
            self.pid = os.getpid()
            self.process = fork.this_process
            # `loop.time` of a stock loop is time.monotonic plus a Python frame.
            stock_clock = getattr(running.time, "__func__", None) is asyncio.BaseEventLoop.time
            self.clock = time.monotonic if stock_clock else running.time
            self.stock = type(running).create_task is asyncio.BaseEventLoop.create_task
            self.direct = creates_plain_tasks(running)
            if self.limit is not None:
                self.turns = Turns(self, self.limit)
            self._update_fast()
        return running

    def is_running(self) -> bool:
        """Whether the scope has a loop that runs. From any thread."""
        return self.loop is not None and self.loop.is_running() and not self.forked

    @property
    def forked(self) -> bool:
        """Whether this process is a fork of the one in which the scope's loop runs."""
        return self.loop is not None and self.pid != os.getpid()

    def _update_fast(self) -> None:
        self.fast = self.direct and self.state.takes_work

    def require_open(self, what: str) -> None:
        """Raise ScopeClosed if the scope accepts no new work from the running task."""
        if not self.state.takes_work and not self._is_insider():
            raise self.scope_closed(f"{what} refused: {self.describe()} is {self.state.value}")

    def _is_insider(self) -> bool:
        """Whether the scope is draining, and the running task is part of the work under way."""
        if self.state is not State.DRAINING:
            return False
        if runs_inside(self):
            return True
        task = asyncio.current_task(self.loop)
        return task is not None and self.waiting_task(task) is not None

    def waiting_task(self, task: AnyTask) -> AnyTask | None:
        """A task of this scope that is `task`, or cannot end before it."""
        return next((each for each in ancestors(task) if registry_of(each) is self), None)

    def scope_closed(self, message: str) -> ScopeClosed:
        """The error for work that comes too late, chained to the failure that closed the scope."""
        error = ScopeClosed(message)
        error.__cause__ = self.closed_by
        return error

    # --- creation --------------------------------------------------------------------------

    def start(
        self,
        coro: AnyCoroutine,
        name: str | None,
        origin: Origin,
        context: Context | None = None,
        shown: AnyCoroutine | None = None,
    ) -> AnyTask:
        """Start a tracked task that runs `coro`. The caller has checked the arguments."""
        wrapper = None
        try:
            wrapper = tracked(self, coro, origin, self.clock())
            shown = shown_of(coro) if shown is None else shown
            return self.create_task(coro, wrapper, name or name_of(coro), shown, context)
        except BaseException:  # of a task factory; RecursionError, MemoryError
            coro.close()
            if wrapper is not None:
                wrapper.close()
            raise

    def start_service(self, coro: AnyCoroutine, name: str, origin: Origin) -> AnyTask:
        """Start a task that does not end by itself and does not keep the scope open."""
        self.services.add(coro)
        try:
            task = self.start(coro, name, origin)
        except BaseException:
            self.services.discard(coro)
            raise
        self.wake_watchers()  # the scope does not wait for this task
        task.add_done_callback(lambda _: self.services.discard(coro))
        return task

    def start_owner(self, coro: AnyCoroutine, hosted: Hosted, name: str, origin: Origin) -> AnyTask:
        """Start the owner task of a resource. The caller calls `forget_owner` when it ends."""
        self.held[coro] = hosted
        try:
            task = self.start(coro, name, origin)
        except BaseException:
            del self.held[coro]
            raise
        self.wake_watchers()  # the scope does not wait for this task
        return task

    def forget_owner(self, coro: AnyCoroutine) -> None:
        self.held.pop(coro, None)

    def create_task(
        self,
        key: object,
        wrapper: AnyCoroutine,
        name: str,
        shown: AnyCoroutine | None,
        context: Context | None = None,
    ) -> AnyTask:
        """Create the task of a wrapper, and register it under `key`. It shows `shown`."""
        if self.state.takes_work:
            return self._create_task(key, wrapper, name, shown, context)
        # The scope is draining, and a task of it starts another one: that is closed too.
        created = origin_and_start_time(wrapper)
        task = self._create_task(key, wrapper, name, shown, context)
        self.closing_tasks.append(Member(key, task, *created))
        return task

    # One of the three functions that create tasks: see `task_creation`.
    def _create_task(
        self,
        key: object,
        wrapper: AnyCoroutine,
        name: str,
        shown: AnyCoroutine | None,
        context: Context | None = None,
    ) -> AnyTask:
        loop: Any = self.loop
        if self.direct and loop.get_task_factory() is None:
            task = self.live[key] = task_creation.new_task(
                wrapper, loop=loop, name=name, context=context
            )
            if shown is not None:
                task.shown = shown
            return task
        # A factory may run the task at once (eager), and the task may even end before the
        # factory returns it (#128550, #128588). So the key is registered first, and the task
        # adds itself on its first step. The stack is looked at before: the lines that take the key
        # back need some, too, for the function of a tracer such as coverage.
        require_stack(FACTORY_FRAMES)
        self.has_first_step = True
        self.live[key] = None
        self.wrappers[key] = wrapper
        try:
            enter(wrapper)
            made = self._create_by_factory(wrapper, name, shown, context)
        except BaseException:
            del self.wrappers[key]
            try:
                wrapper.close()
            finally:  # the wrapper removes the key itself if it was entered
                self.live.pop(key, None)
            raise
        if key not in self.live:
            del self.wrappers[key]
            return made
        self.live[key] = made
        if made.done():
            close_lost_wrapper(self, key, shown, made)
        else:
            made.add_done_callback(partial(close_lost_wrapper, self, key, shown))
        return made

    def _create_by_factory(
        self, wrapper: AnyCoroutine, name: str, shown: AnyCoroutine | None, context: Context | None
    ) -> AnyTask:
        loop: Any = self.loop
        factory = loop.get_task_factory()
        if self.direct and factory is _EAGER_FACTORY:
            eager: Any = task_creation.new_task  # `eager_start` came with 3.12
            made: AnyTask = eager(wrapper, loop=loop, name=name, context=context, eager_start=True)
            return made
        # A loop without a factory runs the very coroutine that it gets.
        coro = wrapper if factory is None else ShownCoroutine(wrapper, shown)
        return create_named_task(loop, coro, name, context)

    def register_running_task(self, key: object, shown: AnyCoroutine | None = None) -> None:
        """On its first step a task behind a factory adds itself."""
        if self.live[key] is None:
            task = self.live[key] = asyncio.current_task(self.loop)
            if isinstance(task, TrackedTask) and shown is not None:
                task.shown = shown_of(shown)

    async def after_first_step(self, key: object, coro: AnyCoroutine) -> Any:
        """Await `coro`: in a scope with a limit, when there is a place for it."""
        self.register_running_task(key, coro)
        # A service would occupy its place for ever.
        if self.limit is None or key in self.services or key in self.held:
            return await coro
        async with self.turns:
            return await coro

    # --- failure ---------------------------------------------------------------------------

    def on_task_failed(self, key: object, origin: Origin, *, awaited: bool = False) -> None:
        """The running task is about to end with an exception. It is still registered.

        `awaited`: callers of `KeyedTasks.share` wait for its error, so it is not the scope's.
        """
        error = sys.exception()
        if isinstance(error, CancelledError) and (
            error.__context__ is not None
            # If there will be a report, and the cancel is not the scope's own.
            or (not self.state.takes_work and error.args and error.args[0] is not self.reason)
        ):
            self._on_task_cancelled(key, origin, error)
        if error is None or isinstance(error, (CancelledError, GeneratorExit)):
            return
        task = asyncio.current_task(self.loop)
        if task is None:  # closed by hand or by the garbage collector, outside of a task
            return
        annotate(error, f"in task {task.get_name()!r} of {self.describe()}, created at {origin}")
        if task.cancelling():
            # If we have cancelled it, this was its clean-up. The count alone does not say so: a
            # task group that has failed leaves it too high on 3.11 and 3.12 (#116720).
            mark_cleanup(error, requested=key in self.cancel_requested)
        if is_cleanup(error, task):
            record_of(task).in_cleanup = True
        else:
            mark_operational(error)
        if awaited and isinstance(error, Exception):
            task.add_done_callback(mark_read)
        else:
            report_failure(self, key, task, TaskEnd(task.get_name(), origin, error))

    def _on_task_cancelled(self, key: object, origin: Origin, cancelled: CancelledError) -> None:
        """The running task is about to end with a cancel. It may have failed before."""
        task = asyncio.current_task(self.loop)
        failure = covered_failure(cancelled)
        if task is not None and failure is not None:
            self.on_failed_before_cancel(key, task, TaskEnd(task.get_name(), origin, failure))
        elif task is not None and not self.state.takes_work:
            note_reason(task, self.cancel_requested.get(key), cancelled)

    def on_failed_before_cancel(self, key: object, task: AnyTask, end: TaskEnd) -> None:
        """A task had failed when it was cancelled in its `finally`. Who awaits the task gets the
        cancel and not the error."""
        assert end.error is not None
        record_of(task).failure = end.error
        annotate(end.error, f"in task {end.name!r} of {self.describe()}, created at {end.origin}")
        mark_operational(end.error)
        report_failure(self, key, task, end)

    # --- closing ---------------------------------------------------------------------------

    def abort(self, end: TaskEnd) -> None:
        """After a failure: refuse new work, and cancel the siblings.

        Only tasks are cancelled: the closer of the scope leaves what it holds. A host that is
        still in the body of its `async with` is cancelled there.
        """
        if self.state.takes_work or self.state is State.DRAINING:
            assert end.error is not None
            self.closed_by = end.error
            self.cancel_all(failure_reason(f"task {end.name!r}", end.error))

    def cancel_all(self, reason: CancelReason, *, with_host: bool = True) -> None:
        """Refuse new work, and cancel the tasks and the host in its block, without waiting."""
        self.move(Event.CLOSE_NOW, reason)
        self.cancel_members(self.closing_waves()[0], reason)
        if with_host and self.host is not None and not self.host_cancelled:
            self.host_cancelled = True
            self.host.cancel(reason)

    def closing_waves(self) -> list[list[Member]]:
        """The tasks to cancel, and then what to leave. No one uses a resource that is still being
        entered: that is stopped together with the tasks."""
        held = {key for key, hosted in self.held.items() if hosted.held}
        return waves(self.closing_tasks, held)

    def cancel_members(self, members: Iterable[Member], reason: CancelReason | None) -> None:
        """Cancel tasks that a report will name, and note who was the first to do so."""
        request = CancelRequest(self.clock(), reason)
        for member in members:
            if (first := self._request_cancel(member.key, member.task, request)) is not None:
                member.reason = first.reason

    def request_cancel(
        self, key: object, task: AnyTask, reason: CancelReason | None = None
    ) -> None:
        """Cancel a task, or have its resource left, once.

        `Task.cancelling()` does not say whether this was done: it also counts the cancels of a
        timeout() or a TaskGroup inside the task, which the task may survive.
        """
        self._request_cancel(key, task, CancelRequest(self.clock(), reason))

    def _request_cancel(
        self, key: object, task: AnyTask, request: CancelRequest
    ) -> CancelRequest | None:
        """Returns the first request, which is another one if the task was cancelled already."""
        if key in self.cancel_requested or task.done():
            return self.cancel_requested.get(key)
        self.cancel_requested[key] = request
        if hosted := self.held.get(key):
            if hosted.inner is not None:
                hosted.inner.stop_waiting(held_by(self.name, request.reason))
            hosted.leave()
        elif task is asyncio.current_task(self.loop):
            cancel_after_this_step(task, request.reason)
        elif not cancel_unless_in_progress(task, request.reason):
            request = self.cancel_requested[key] = request._replace(reason=THE_PROGRAM)
        return request

    def move(self, event: Event, reason: CancelReason | None = None) -> None:
        """Change the state. The tasks to close are those alive when work is first refused."""
        before = self.state
        self.state = step(before, event)
        if before is not self.state and reason is not None:
            self.reason = reason
        if before.takes_work and not self.state.takes_work:
            with gc_paused(len(self.live)):
                self.closing_tasks = list(self.members())
            self._update_fast()
        if before is not self.state:
            self.wake_watchers()

    def members(self) -> Iterator[Member]:
        """The live tasks with their origins, in order of creation."""
        for key, task in list(self.live.items()):
            if task is not None:
                yield Member(key, task, *self.creation_of(key, task))

    def creation_of(self, key: object, task: AnyTask) -> tuple[Origin | None, float | None]:
        """Where and when a live task was created."""
        return origin_and_start_time(self.wrappers.get(key) or wrapper_of(task))

    def cancel_services(self) -> None:
        """Cancel the services: all other tasks of this scope have ended."""
        for key in self.services:
            if (task := self.live.get(key)) is not None:
                self.request_cancel(key, task, ALL_OTHERS_ENDED)


def name_of(coro: Any) -> str:
    """The name of a task that was given none: the name of what it runs."""
    coro = shown_of(coro)
    return getattr(coro, "__qualname__", None) or type(coro).__qualname__


def shown_of(coro: Any) -> Any:
    """The user's own object, for a coroutine of a class other than Python's."""
    return coro.shown if isinstance(coro, ShownCoroutine) else coro
