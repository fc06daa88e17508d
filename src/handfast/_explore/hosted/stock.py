"""Repeat a finding on asyncio's own loop, with a real selector, real threads and the real clock.

The order is forced only in ways in which the outside can: a poll reports some of the ready
descriptors and in another order, a thread is slow, the loop or the code before a timer is late by
little more than the finding needs, and a task is cancelled before the step at which the explorer has
cancelled it. A run without any of that must pass before and after, else nothing is confirmed.
"""

from __future__ import annotations

import asyncio
import random
import selectors
import threading
import time
from asyncio import base_events
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from types import FrameType
from typing import Any, NamedTuple

from handfast._explore.hosted.accounting import Accounts
from handfast._explore.hosted.cancelled_call import cancel_requested
from handfast._explore.hosted.guarded import GuardedCoroutine
from handfast._explore.hosted.library_calls import call_of
from handfast._explore.hosted.loops import STOCK, factory_patches, is_main_task, own_current_loop
from handfast._explore.hosted.patches import Patch, patched
from handfast._explore.hosted.program import Ended, HostedProgram
from handfast._explore.loop.task_table import task_of
from handfast._explore.result import Counterexample
from handfast._explore.search.plan import Plan
from handfast._explore.search.run import run
from handfast._explore.simulation.threads.replacements import REAL
from handfast._explore.verdict.error_text import leaves
from handfast._explore.verdict.verdict import Verdict, failed_verdict
from handfast._explorer_internals import outside_running_loop

_TRIES = 40
_SECONDS = 6.0
# Real seconds without an event, a timer or another thread after which a loop hangs.
_HUNG, _HUNG_WITH_THREADS = 1.0, 8.0
_SLICE = 0.05
# How often the loop is late, and how much later than the explorer's.
_LATE, _MARGIN = 0.3, 0.001
_DELAYS = (0.0, 0.0, 0.0005, 0.002, 0.01)


class Confirmation(NamedTuple):
    """How many runs on asyncio's own loop showed the finding, and how many there were."""

    confirmed: int
    tries: int


class Hung(BaseException):
    """Nothing can wake the loop any more."""


class _Injection(NamedTuple):
    """Cancel the task with this number after so many steps; `woken`: what it awaits is done."""

    task: int
    steps: int
    woken: bool
    # The test does not cancel it itself.
    unexpected: bool


def confirm(
    program: HostedProgram, found: Counterexample, seconds: float = _SECONDS
) -> Confirmation:
    """Look for the finding on asyncio's own loop."""
    injections = _injections(program, found)
    ends = time.monotonic() + seconds
    if not passes(program):
        return Confirmation(0, 1)
    tries = 0
    while tries < _TRIES and (not tries or time.monotonic() < ends):
        # A cancel alone is often enough, so the first attempt has no other noise.
        noise = None if injections and not tries else random.Random(tries)
        stock = _Stock(noise, injections, found.stall)
        tries += 1
        if _shows(program, stock, found.verdict):
            return Confirmation(1 if passes(program) else 0, tries)
    return Confirmation(0, tries)


def _shows(program: HostedProgram, stock: _Stock, verdict: Verdict) -> bool:
    return program.isolated(lambda: _run(program, stock).shows(verdict))


def passes(program: HostedProgram) -> bool:
    """Whether a run on asyncio's own loop passes, without noise."""
    return program.isolated(lambda: _run(program, _Stock(None, (), 0.0)).ended is None)


# --- one run -----------------------------------------------------------------------------------


class _Stock:
    """The loops of one run, its noise and what happened."""

    def __init__(
        self, noise: random.Random | None, injections: tuple[_Injection, ...], lateness: float
    ) -> None:
        self.noise = noise
        self.lateness = lateness
        self.ended: Ended | None = None
        self.complaints: list[dict[str, Any]] = []
        self.lost: Verdict | None = None
        self.injected: list[asyncio.Task[Any]] = []
        self.cancels: list[_Cancels] = []
        # What has left the other tasks, if one is cancelled.
        self.escaped: list[BaseException] = []
        self.idle_threads = threading.active_count()
        self._injections = {each.task: each for each in injections}
        self._tasks = 0
        self._thread = threading.get_ident()

    def new_loop(self) -> Any:
        """An instance of asyncio's own loop class; None on a thread of the program."""
        if threading.get_ident() != self._thread:
            return None
        try:
            loop = STOCK(_Selector(self))
        except TypeError:  # on Windows the loop has no selector
            loop = STOCK()
        if self._injections:
            loop.set_task_factory(self._new_task)
        return loop

    def _new_task(self, loop: Any, coro: Any, **options: Any) -> asyncio.Task[Any]:
        injection = self._injections.get(self._tasks)
        self._tasks += 1
        if injection is None:
            if asyncio.iscoroutine(coro) and not is_main_task(loop, coro):
                coro = GuardedCoroutine(coro, self._note)
            return asyncio.Task(coro, loop=loop, **options)
        main = is_main_task(loop, coro)
        cancels = _Cancels(loop, injection, main=main)
        self.cancels.append(cancels)
        if not injection.steps:
            loop.call_soon(cancels.now)  # before the first step, which the task schedules below
        drops = injection.unexpected and not main

        def ends(error: BaseException) -> bool:
            return drops and cancels.injected and isinstance(error, asyncio.CancelledError)

        guarded = GuardedCoroutine(coro, ends, cancels.step_ended)
        task: asyncio.Task[Any] = asyncio.Task(guarded, loop=loop, **options)
        cancels.task = task
        self.injected.append(task)
        return task

    def _note(self, error: BaseException) -> bool:
        if not (isinstance(error, asyncio.CancelledError) and cancel_requested()):
            self.escaped.append(error)
        return False

    def sleep(self) -> None:
        """Delay the calling thread a little, or not."""
        if self.noise is not None:
            REAL["sleep"](self.noise.choice(_DELAYS))

    def be_late(self) -> None:
        """Delay the thread of the loop, or not, by about as much as the finding needs."""
        noise = self.noise
        if noise is not None and self.lateness and noise.random() < _LATE:
            # The explorer names the least lateness, at which two timers are due together.
            REAL["sleep"](self.lateness * noise.choice((0.6, 1.1, 1.2)) + _MARGIN)

    def shows(self, verdict: Verdict) -> bool:
        """Whether this run shows what the explorer has found."""
        if verdict.code == "HF431":
            return self.ended is not None and isinstance(self.ended.error, Hung)
        if verdict.code == "HF531":
            return self.lost is not None and self.lost.where == verdict.where
        if verdict.code == "HF501":
            return any(
                task.done() and not task.cancelled() and task.exception() is None
                for task in self.injected
            )
        errors = [
            task.exception() for task in self.injected if task.done() and not task.cancelled()
        ]
        errors += [context.get("exception") for context in self.complaints]
        expected = any(not each.unexpected for each in self._injections.values())
        if not expected:
            errors += self.escaped
            if self.ended is not None:
                errors += leaves(self.ended.error)
        return any(error is not None and _is_same(error, verdict) for error in errors)


def _is_same(error: BaseException, verdict: Verdict) -> bool:
    shown = failed_verdict(verdict.code, "", error)
    return shown.error_type == verdict.error_type and shown.where == verdict.where


def _run(program: HostedProgram, stock: _Stock) -> _Stock:
    accounts = Accounts()
    with ExitStack() as stack:
        for patch in (
            outside_running_loop(),
            patched(factory_patches(stock.new_loop)),
            own_current_loop(stock.new_loop),
            patched(_noise_patches(stock)),
            accounts.installed(),
        ):
            stack.enter_context(patch)
        stock.ended = program()
    unpaired = program.reference.unpaired if program.reference is not None else set()
    stock.lost = accounts.lost(unpaired, program.__code__)
    for cancels in stock.cancels:
        if cancels.frame is not None:
            stock.lost = stock.lost or accounts.lost(unpaired, within=cancels.frame)
    return stock


def _noise_patches(stock: _Stock) -> Iterator[Patch]:
    """Slow threads, timers that are started late, and a copy of what reaches the loop's exception handler."""
    submit: Any = vars(ThreadPoolExecutor)["submit"]
    call_soon: Any = vars(base_events.BaseEventLoop)["call_soon_threadsafe"]
    call_later: Any = vars(base_events.BaseEventLoop)["call_later"]
    handle: Any = vars(base_events.BaseEventLoop)["call_exception_handler"]
    thread = threading.get_ident()

    def slow_submit(executor: Any, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        def slow_job(*args: Any, **kwargs: Any) -> Any:
            stock.sleep()
            return fn(*args, **kwargs)

        return submit(executor, slow_job, *args, **kwargs)

    def slow_call_soon(loop: Any, *args: Any, **kwargs: Any) -> Any:
        if threading.get_ident() != thread:
            stock.sleep()
        return call_soon(loop, *args, **kwargs)

    def late_call(loop: Any, *args: Any, **kwargs: Any) -> Any:
        if threading.get_ident() == thread:
            stock.be_late()
        return call_later(loop, *args, **kwargs)

    def noting(loop: Any, context: dict[str, Any]) -> None:
        stock.complaints.append(context)
        handle(loop, context)

    if stock.noise is not None:
        yield ThreadPoolExecutor, "submit", slow_submit
        yield base_events.BaseEventLoop, "call_soon_threadsafe", slow_call_soon
        yield base_events.BaseEventLoop, "call_later", late_call
    yield base_events.BaseEventLoop, "call_exception_handler", noting


class _Selector(selectors.DefaultSelector):
    """A selector that may be late and report events in another order, and notices a hang."""

    def __init__(self, stock: _Stock) -> None:
        super().__init__()
        self._stock = stock

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        noise = self._stock.noise
        self._stock.be_late()
        events = self._wait(timeout)
        if noise is not None and len(events) > 1:
            noise.shuffle(events)
            # What is not reported now is ready again at the next poll.
            events = events[: noise.randint(1, len(events))]
        return events

    def _wait(self, timeout: float | None) -> list[tuple[selectors.SelectorKey, int]]:
        """In slices, so that a limit on the time of the run can end it."""
        began = REAL["monotonic"]()
        while True:
            waited = REAL["monotonic"]() - began
            left = _SLICE if timeout is None else min(_SLICE, max(0.0, timeout - waited))
            events = super().select(left)
            if events or (timeout is not None and waited >= timeout):
                return events
            others = threading.active_count() > self._stock.idle_threads
            if timeout is None and waited > (_HUNG_WITH_THREADS if others else _HUNG):
                raise Hung


# --- cancels -----------------------------------------------------------------------------------


def _injections(program: HostedProgram, found: Counterexample) -> tuple[_Injection, ...]:
    """Where the schedule cancels, in terms that hold on any loop."""
    plan = found.plan
    if not plan.cancels:
        return ()

    def observed() -> tuple[_Injection, ...]:
        expected = program.reference.cancelled if program.reference is not None else {}
        states = _CancelStates(expected)
        run(program, Plan(plan.choices, plan.cancels), found.settings, observer=states)
        return tuple(states.seen)

    return program.isolated(observed)


class _CancelStates:
    """An observer that notes how far a task is when it is cancelled."""

    def __init__(self, expected: Collection[int]) -> None:
        self.seen: list[_Injection] = []
        self._expected = expected
        self._numbers: dict[asyncio.Task[Any], int] = {}
        self._steps: Counter[asyncio.Task[Any]] = Counter()

    def task_created(self, task: asyncio.Task[Any], number: int) -> None:
        self._numbers[task] = number

    def before(self, instant: int, handle: asyncio.Handle, queued: int) -> None:
        """Counted when the step has ended."""

    def after(self, instant: int, handle: Any, ready: deque[asyncio.Handle]) -> None:
        task = task_of(handle)
        if task is not None:
            self._steps[task] += 1

    def cancelled(self, instant: int, task: Any) -> None:
        # asyncio sets this if there is no future to cancel, or if it is done already.
        number, woken = self._numbers[task], bool(task._must_cancel)
        unexpected = number not in self._expected
        self.seen.append(_Injection(number, self._steps[task], woken, unexpected))

    def chose(self, instant: int, kind: str, options: int, value: int, label: str) -> None:
        """Not needed."""

    def arrives(self, instant: int, channel: str, label: str) -> None:
        """Not needed."""


class _Cancels:
    """Cancels one task, once it has come far enough."""

    def __init__(self, loop: Any, injection: _Injection, *, main: bool) -> None:
        self.task: asyncio.Task[Any] | None = None
        self._loop = loop
        self._injection = injection
        self._steps = 0
        self._main = main
        # Whether it has cancelled, and the call that the task was in.
        self.injected = False
        self.frame: FrameType | None = None

    def now(self, _: object = None) -> None:
        if self.task is not None:
            self.frame = call_of(self.task, started_by_test=not self._main)
            self.injected = self.task.cancel()

    def step_ended(self, awaited: Any) -> None:
        self._steps += 1
        if self._steps == self._injection.steps:
            if self._injection.woken and asyncio.isfuture(awaited):
                # Called before the task's own wake-up, which asyncio adds after this step.
                awaited.add_done_callback(self.now)
            else:
                self._loop.call_soon(self.now)
