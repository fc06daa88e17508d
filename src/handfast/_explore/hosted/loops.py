"""Explored loops for code that creates its own: `asyncio.run`, a runner of pytest-asyncio or anyio.

For the length of a run the factories of asyncio's own loops give `HostedLoop`s, on the thread of the
run. One of them can be in use at a time; one after the other share the steps and choices of the run.
"""

from __future__ import annotations

import asyncio
import sys
import time
from _thread import get_ident
from asyncio import base_events, runners
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

from handfast._asyncio_internals import mute_destroyed_warning, pending_tasks
from handfast._explore.hosted.cancelled_call import CancelledCalls
from handfast._explore.hosted.patches import Patch, patched
from handfast._explore.hosted.program import HostedProgram
from handfast._explore.hosted.source_files import is_test_file
from handfast._explore.loop import virtual_clock
from handfast._explore.loop.explored_loop import ExploredLoop
from handfast._explore.loop.stepping import Aborted, Deadlocked, Livelocked, Stepper
from handfast._explore.loop.unsupported import Uncontrolled
from handfast._explore.simulation.threads.replacements import REAL
from handfast._explorer_internals import current_loop_record, default_loop_policy

# The batches that a loop may run after its shutdown has begun, or after a deadlock.
_LAST_BATCHES = 5_000
# Real seconds for other threads after a plain run has come to a deadlock.
_OTHERS = 0.05
_ONE_LOOP = "run the parts that need their own loop in separate tests"
# The seconds from one reading of a clock to the next, if nothing else takes time.
_READING = 1e-6
# The name of a refusal; its reason says which clock.
OWN_CLOCK = "a clock of its own"
_MONOTONIC = virtual_clock.VIRTUAL["monotonic"]
_STEPPER_CANCEL: Any = Stepper._cancel.__code__
# anyio runs all tests and fixtures in one task.
_TEST_TASKS = ("_run_tests_and_fixtures",)


class HostedLoop(ExploredLoop):
    """An explored loop that is prepared when it is first used."""

    stepper: Stepper
    _debug = False

    def __init__(self, source: LoopSource) -> None:
        super().__init__()
        self._source = source
        self._now = source.time()
        self._last_batches = _LAST_BATCHES

    def __getattr__(self, name: str) -> Any:
        if name == "stepper":
            self._source.activate(self)
            return self.__dict__["stepper"]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def set_debug(self, enabled: bool) -> None:
        """Without effect: asyncio's debug mode makes a run forty times as slow."""

    def run_forever(self) -> None:
        self.stepper  # noqa: B018 - prepares the loop
        try:
            super().run_forever()
        except Aborted as error:
            self._source.aborted(self, error)
            raise

    def _run_once(self) -> None:
        if "time" in self.__dict__ or time.monotonic is not _MONOTONIC:
            replaced = "loop.time" if "time" in self.__dict__ else "time.monotonic"
            self._source.uncontrolled = Uncontrolled(OWN_CLOCK, replaced, "")
            raise self._source.uncontrolled
        if self.stepper.settling:
            self._last_batches -= 1
            if self._last_batches < 0:
                raise Livelocked
        super()._run_once()

    def create_task(self, coro: Any, **options: Any) -> asyncio.Task[Any]:
        source = self._source
        number = len(self.stepper.tasks)
        if is_main_task(self, coro):
            source.mains.add(number)
        if source.watches_cancels and self._task_factory is None:
            main = number in source.mains
            coro = source.calls.guard(number, coro, sys._getframe(1), main=main)
            task: asyncio.Task[Any] = _WatchedTask(coro, loop=self, **options)
            self.stepper.add_task(task, own=False)
        else:
            task = super().create_task(coro, **options)
        return task

    def clock_read(self, reader: FrameType) -> float:
        return self._source.clock_read(reader)

    def _time_read(self, caller: FrameType) -> None:
        self._source.note_reader(caller)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if not self.stepper.settling:
            super().call_exception_handler(context)
        if getattr(self, "_exception_handler", None) is None:
            # The test may look for it in the log.
            base_events.BaseEventLoop.call_exception_handler(self, context)

    def close(self) -> None:
        try:
            super().close()  # shuts the default executor down, which may be the program's own
        finally:
            self._source.closed(self)


class _WatchedTask(asyncio.Task[Any]):
    """A task that tells when the program cancels it."""

    def cancel(self, msg: Any = None) -> bool:
        if not self.done():
            loop: Any = self.get_loop()
            loop._source.cancels(loop, self, sys._getframe(1).f_code)
        return super().cancel(msg)


def is_main_task(loop: Any, coro: Any) -> bool:
    """Whether a new task is to run the test and its fixtures."""
    return not loop.is_running() or getattr(coro, "__name__", "") in _TEST_TASKS


class LoopSource:
    """The loops of one run, which share a stepper, and what the verdict needs of them."""

    virtual = True

    def __init__(
        self,
        program: HostedProgram,
        stepper: Stepper,
        judge_abort: Callable[[HostedLoop, Aborted], Any],
        calls: CancelledCalls,
    ) -> None:
        self.calls = calls
        self.stepper = stepper
        self.wall_offset = program.wall
        self.watches_cancels = stepper.settings.cancel != "no"
        self.used = False
        self.uncontrolled: Uncontrolled | None = None
        # The verdict on a run that was stopped, made while its tasks still waited.
        self.abort: tuple[Aborted, Any] | None = None
        # The numbers of the tasks that run the test and its fixtures.
        self.mains: set[int] = set()
        # The tasks that the program itself has cancelled, by number, and when it first did.
        self.cancelled: dict[int, int] = {}
        self.cancelled_tasks: dict[int, asyncio.Task[Any]] = {}
        # Those that the explorer has cancelled.
        self.injected: dict[int, asyncio.Task[Any]] = {}
        # Of all loops together.
        self.lateness = 0.0
        # Whether the code of a test, and not what it tests, looks at a clock.
        self.test_reads_clock = False
        self._readings = 0
        self._clock = program.clock
        self._plain = program.reference is None
        self._thread = get_ident()
        self._active: HostedLoop | None = None
        self._loops: list[HostedLoop] = []
        self._judge_abort = judge_abort

    # --- the clock of the run, also between two loops ----------------------------------------

    def time(self) -> float:
        return self._clock if self._active is None else self._active._now

    def clock_read(self, reader: FrameType) -> float:
        """What a clock of the `time` module reads beyond the time of the loop.

        On a machine, code takes time: of two readings around a sleep the difference is never less
        than the sleep. Virtual time has the error of floating point numbers instead.
        """
        self.note_reader(reader)
        self._readings += 1
        return self._readings * _READING

    def note_reader(self, reader: FrameType) -> None:
        """Record that a test looks at a clock."""
        self.test_reads_clock |= is_test_file(reader.f_code.co_filename)

    # --- loops ---------------------------------------------------------------------------------

    @property
    def in_use(self) -> bool:
        """Whether a loop was used and is not closed."""
        return self._active is not None

    def activate(self, loop: HostedLoop) -> None:
        """Prepare a loop at its first use."""
        if self._active is not None:
            # The tests of the loop that is in use go on with this error, and so does the run.
            self.uncontrolled = Uncontrolled(
                "a second event loop", "only one at a time can be explored", _ONE_LOOP
            )
            raise self.uncontrolled
        self.used = True
        self._active = loop
        loop.wall_offset = self.wall_offset  # type: ignore[attr-defined]
        loop._now = max(loop._now, self._clock)
        loop.prepare(self.stepper)
        self._loops.append(loop)

    def closed(self, loop: HostedLoop) -> None:
        """A loop was closed: the next one continues its clock."""
        if loop.uncontrolled is not None:
            self.uncontrolled = loop.uncontrolled
        if self.uncontrolled is not None or self.abort is not None:
            for task in pending_tasks(loop):
                # The explorer has stopped it. asyncio would report it in the log of a later test.
                mute_destroyed_warning(task)
        if loop is self._active:
            self._clock = loop._now
            self._active = None
            self.lateness += loop.lateness
            if self.abort is None:
                self.stepper.settling = False

    def aborted(self, loop: HostedLoop, error: Aborted) -> None:
        """A run was stopped: judge it now, and let the rest of it be clean-up."""
        if isinstance(error, Deadlocked) and self._plain:
            # What a thread outside the explorer is about to do explains it better.
            REAL["sleep"](_OTHERS)
        if self.abort is None and not self.stepper.settling:
            self.calls.waiting = any(
                not task.done() and self.in_call(task, number)
                for number, task in enumerate(self.stepper.tasks.numbered())
                if task is not None
            )
            self.abort = error, self._judge_abort(loop, error)
        self.begin_shutdown()

    def begin_shutdown(self) -> None:
        """From now on no choices and cancels, and errors do not count."""
        self.stepper.begin_shutdown()

    def cancels(self, loop: HostedLoop, task: asyncio.Task[Any], caller: Any) -> None:
        """The program, or the explorer, cancels a task."""
        if self.stepper.settling:
            return
        number = self.stepper.tasks.index(task)
        if caller is _STEPPER_CANCEL:
            if number in self.calls.planned:
                self.injected[number] = task
                self.calls.cancelled[number] = self.calls.call(task, number, self.mains)
            else:  # a task cancels the one that it awaits
                self.calls.requested.add(number)
            return
        self.calls.requested.add(number)
        if number >= 0 and number not in self.mains:
            self.cancelled.setdefault(number, self.stepper.instant)
            self.cancelled_tasks[number] = task

    def in_call(self, task: asyncio.Task[Any], number: int) -> bool:
        """Whether a task is inside a call of a library, in which it may be cancelled."""
        if not isinstance(task, _WatchedTask):
            return False  # a task factory has made it, and nobody sees who cancels it
        return self.calls.call(task, number, self.mains) is not None

    def running(self) -> int:
        """The number of the task that runs now; -1 if none does."""
        loop = self._active
        return -1 if loop is None else self.stepper.tasks.index(asyncio.current_task(loop))

    def close_all(self) -> None:
        """Close what the program has left open."""
        self.begin_shutdown()
        for loop in self._loops:
            if not loop.is_closed():
                loop._stopping = False
                with suppress(Exception):
                    loop.close()

    # --- patches -------------------------------------------------------------------------------

    def new_loop(self) -> asyncio.AbstractEventLoop | None:
        """A loop for this thread, None for another one."""
        return HostedLoop(self) if get_ident() == self._thread else None

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Replace the factories of asyncio's own loops, and the clock of this thread."""
        patches = [
            *factory_patches(self.new_loop),
            (runners, "_cancel_all_tasks", _noting_shutdown(self)),
        ]
        outer = virtual_clock.LOOPS.get(self._thread)
        virtual_clock.LOOPS[self._thread] = self
        try:
            with patched(patches), own_current_loop(self.new_loop):
                yield
        finally:
            if outer is None:
                virtual_clock.LOOPS.pop(self._thread, None)
            else:
                virtual_clock.LOOPS[self._thread] = outer


_POLICY = default_loop_policy()
STOCK: Any = vars(_POLICY)["_loop_factory"]


def factory_patches(new_loop: Callable[[], Any]) -> Iterator[Patch]:
    """The places from which asyncio, and code that names a loop class, create loops.

    `new_loop` returns None where asyncio's own is to be created.
    """

    def factory(*args: Any, **kwargs: Any) -> Any:
        # A loop with a selector of its own is not asyncio's usual one.
        loop = None if args or kwargs else new_loop()
        return STOCK(*args, **kwargs) if loop is None else loop

    # `EventLoop` is an alias of Python 3.13 and later.
    for name in ("SelectorEventLoop", "EventLoop"):
        if vars(asyncio).get(name) is STOCK:
            yield asyncio, name, factory
    if vars(_POLICY)["_loop_factory"] is STOCK:
        yield _POLICY, "_loop_factory", staticmethod(factory)


@contextmanager
def own_current_loop(new_loop: Callable[[], Any]) -> Iterator[None]:
    """Let a run have its own loop where `asyncio.get_event_loop` returns one.

    A loop that the code before has set and not closed is not the explorer's. One that a run sets is
    closed at its end, and the next run would not get another one.
    """
    record = current_loop_record()
    if record is None:
        yield
        return
    before = dict(record)
    current: Any = before.get("_loop")
    if type(current) is STOCK:
        record.clear()
        if not current.is_closed():
            record["_loop"] = new_loop()
    try:
        yield
    finally:
        if isinstance(loop := record.get("_loop"), HostedLoop) and "stepper" not in vars(loop):
            vars(loop)["_closed"] = True  # it was not used, and has nothing to close
        record.clear()
        record.update(before)


def _noting_shutdown(source: LoopSource) -> Callable[[Any], None]:
    cancel_all: Any = vars(runners)["_cancel_all_tasks"]

    def cancel_all_tasks(loop: Any) -> None:
        if isinstance(loop, HostedLoop):
            source.begin_shutdown()
        cancel_all(loop)

    return cancel_all_tasks
