"""An observer that records a run as a `Trace`: every step with the lines between which it ran, and
what put it into the queue.

It changes nothing: the exception of a task is read without marking it as retrieved, so a run has
the same verdict with and without a tracer.
"""

from __future__ import annotations

import asyncio
import functools
import sys
from collections import deque
from types import FrameType
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from handfast._explore.loop.task_table import describe, task_of
from handfast._explore.trace.cancel_calls import CancelCalls
from handfast._explore.trace.model import (
    LOOP,
    OUTSIDE,
    Cancellation,
    Cause,
    Ending,
    Lane,
    Step,
    Trace,
    TraceEvent,
)
from handfast._explore.trace.source_lines import SourceLines
from handfast._explore.verdict.error_text import message_of, printable


class _Queued(NamedTuple):
    """Why a handle is in the queue. It keeps the handle, because a free id can be used again."""

    handle: Any
    cause: Cause
    by: int | None


class Tracer:
    """Pass it to `run` as the observer; afterwards `trace()` returns what happened.

    >>> import asyncio
    >>> from handfast._explore.search.plan import Plan, Settings
    >>> from handfast._explore.search.run import run
    >>> tracer = Tracer()
    >>> record = run(lambda: asyncio.sleep(1), Plan(), Settings(), observer=tracer)
    >>> [(step.time, step.end) for step in tracer.trace().steps if step.lane == 0]
    [(0.0, ''), (1.0, 'returns')]
    """

    def __init__(self) -> None:
        self._trace = Trace()
        self._places = SourceLines(self._trace)
        # Weak, as in asyncio: a reference from here would change when a dropped task is collected.
        self._names: dict[int, str] = {}
        self._numbers: WeakKeyDictionary[asyncio.Task[Any], int] = WeakKeyDictionary()
        self._queue: dict[int, _Queued] = {}
        self._step: Step | None = None
        # The last known position of each task, and its number of cancellation requests.
        self._positions: dict[int, int | None] = {}
        self._cancels_seen: dict[int, int] = {}
        # Tasks that have not run yet: their queued handle is not a wake-up.
        self._fresh: set[int] = set()
        # Tasks whose next step is in the queue.
        self._ready: set[int] = set()
        # The arrival whose handles are not in the queue yet.
        self._arriving: int | None = None
        self._loop: Any = None
        self._start = 0.0
        self._calls = CancelCalls(self._note_cancel)

    # --- calls from the loop -----------------------------------------------------------------

    def task_created(self, task: asyncio.Task[Any], number: int) -> None:
        if self._loop is None:
            self._loop = task.get_loop()
            self._start = self._loop.time()
            self._calls.start()
        if self._over():
            return
        self._numbers[task] = number
        self._names[number] = describe(task)
        created_at = self._places.caller(sys._getframe(1)) if number else None
        entry = self._places.position(task)
        step = self._step
        created_in = None if step is None else step.number
        self._trace.lanes.append(Lane(number, "", created_at, created_in, entry))
        self._positions[number] = entry
        self._cancels_seen[number] = 0
        self._fresh.add(number)
        self._ready.add(number)
        if step is not None:
            step.starts.append(number)

    def before(self, instant: int, handle: asyncio.Handle, queued: int) -> None:
        if self._over():
            return
        why = self._queue.pop(id(handle), None) or self._first_of_poll(handle)
        self._settle_arrival()
        for polled in _tail(self._loop._ready, self._queue):
            self._claim_polled(polled)
        task = task_of(handle)
        lane = LOOP if task is None else self._numbers.get(task, LOOP)
        trace = self._trace
        step = self._step = Step(len(trace.steps), instant, self._now(), lane, why.cause, why.by)
        step.settling = self._loop.settling
        trace.steps.append(step)
        if task is None:
            step.callback, step.internal = _named(handle)
            return
        if lane == LOOP:  # created without the loop, so it has no number and no lane
            step.callback = printable(describe(task))
            return
        if lane in self._fresh:
            self._names[lane] = describe(task)  # some get their name only after they are created
        step.before = self._positions[lane]
        step.resumes_with = _thrown(task, handle)
        self._ready.discard(lane)

    def after(self, instant: int, handle: asyncio.Handle, ready: deque[asyncio.Handle]) -> None:
        step = self._step
        if step is None or self._over():
            return
        self._fresh.discard(step.lane)
        self._claim(ready, "step", step.number, step.wakes)
        step.cancels += [lane for lane in step.wakes if self._is_newly_cancelled(lane)]
        if step.cancels:
            self._add_unseen(step)
        task = task_of(handle)
        if task is not None and step.lane != LOOP:
            if task.done():
                step.end = self._ended(task, step)
            else:
                step.after = self._positions[step.lane] = self._places.position(task)
            self._is_newly_cancelled(step.lane)
        self._step = None

    def cancelled(self, instant: int, task: asyncio.Task[Any]) -> None:
        lane = self._numbers[task]
        event = self._event("cancel", instant, lane, "", self._state(lane))
        self._claim(self._loop._ready, "cancel", len(self._trace.events) - 1, event.wakes)
        found = Cancellation(lane, None, "", None, self._waits_at(lane), event.step)
        self._trace.cancellations.append(found)
        self._is_newly_cancelled(lane)

    def chose(self, instant: int, kind: str, options: int, value: int, label: str) -> None:
        self._settle_arrival()
        self._event("choice", instant, LOOP, label, kind)

    def arrives(self, instant: int, channel: str, label: str) -> None:
        if self._over():
            return
        self._settle_arrival()
        self._event("arrival", instant, OUTSIDE, label, channel)
        self._arriving = len(self._trace.events) - 1

    # --- the result --------------------------------------------------------------------------

    def stop(self) -> None:
        """Record no more calls of `cancel()`."""
        self._calls.stop()

    def trace(self) -> Trace:
        """What happened. Releases the tasks and the loop."""
        if self._loop is not None:
            self._name_lanes()
            for event in self._trace.events:
                event.label = printable(event.label)
            self._places.finish()
            self._numbers.clear()
            self._queue.clear()
            self._step = self._loop = None
        return self._trace

    def _note_cancel(self, task: asyncio.Task[Any], frame: FrameType) -> None:
        step = self._step
        if step is not None and not self._over() and task in self._numbers:
            self._add_cancellation(step, self._numbers[task], self._places.caller(frame))

    def _add_unseen(self, step: Step) -> None:
        """Add what the hook has not seen: a call from C, as of a callback `task.cancel`."""
        seen = {each.lane for each in self._trace.cancellations if each.step == step.number}
        for lane in step.cancels:
            if lane not in seen:
                self._add_cancellation(step, lane, None)

    def _add_cancellation(self, step: Step, lane: int, place: int | None) -> None:
        waits_at = self._waits_at(lane)
        found = Cancellation(lane, step.lane, step.callback, place, waits_at, step.number)
        # What the shutdown of the loop cancels is no part of the program.
        if not self._loop.settling:
            self._trace.cancellations.append(found)

    def _waits_at(self, lane: int) -> int | None:
        position = self._positions[lane]
        return None if position is None else self._trace.positions[position].place

    # --- how the causes are found ------------------------------------------------------------

    def _over(self) -> bool:
        """Whether the verdict is known, and the explorer only ends what is left."""
        return bool(self._loop.stepper.cleaning_up)

    def _now(self) -> float:
        return float(self._loop.time() - self._start)

    def _event(self, kind: Any, instant: int, lane: int, label: str, detail: str) -> TraceEvent:
        step = self._step
        inside = step is not None
        number = step.number if step is not None else len(self._trace.steps)
        event = TraceEvent(kind, number, inside, instant, self._now(), lane, label, detail)
        self._trace.events.append(event)
        return event

    def _claim(self, ready: deque[asyncio.Handle], cause: Cause, by: int, wakes: list[int]) -> None:
        """Record what queued the handles at the end of the queue that have no cause yet."""
        for handle in _tail(ready, self._queue):
            task = task_of(handle)
            if cause != "step" and isinstance(handle, asyncio.TimerHandle):
                self._claim_polled(handle)  # the same poll queued it before
            elif cause == "cancel" and self._arriving is not None and task is None:
                # Queued by the arrival: a cancel queues the next step of its task and nothing else.
                self._queue[id(handle)] = _Queued(handle, "outside", self._arriving)
            else:
                self._queue[id(handle)] = _Queued(handle, cause, by)
                self._woken(task, wakes)

    def _woken(self, task: asyncio.Task[Any] | None, wakes: list[int]) -> None:
        lane = self._numbers.get(task) if task is not None else None
        if lane is not None and lane not in self._fresh:
            wakes.append(lane)
            self._ready.add(lane)

    def _first_of_poll(self, handle: asyncio.Handle) -> _Queued:
        """The cause of a handle that left the queue before it got one."""
        arrival = self._arriving
        if arrival is None or isinstance(handle, asyncio.TimerHandle):
            return _Queued(handle, _polled(handle), None)
        self._woken(task_of(handle), self._trace.events[arrival].wakes)
        return _Queued(handle, "outside", arrival)

    def _claim_polled(self, handle: asyncio.Handle) -> None:
        self._queue[id(handle)] = _Queued(handle, _polled(handle), None)

    def _settle_arrival(self) -> None:
        """Claim the handles of the last arrival: they are in the queue by now."""
        at = self._arriving
        if at is not None:
            self._arriving = None
            event = self._trace.events[at]
            event.time = self._now()
            self._claim(self._loop._ready, "outside", at, event.wakes)

    def _state(self, lane: int) -> str:
        """The state of a task that is cancelled."""
        if lane in self._fresh:
            return "new"
        return "woken" if lane in self._ready else "waits"

    def _is_newly_cancelled(self, lane: int) -> bool:
        task = self._loop.tasks.get(lane)
        if task is None:
            return False
        before, now = self._cancels_seen[lane], task.cancelling()
        self._cancels_seen[lane] = now
        return bool(now > before)

    def _ended(self, task: asyncio.Task[Any], step: Step) -> Ending:
        lane = self._trace.lanes[step.lane]
        lane.ended_in = step.number
        self._names[step.lane] = describe(task)  # it may have been renamed meanwhile
        # `task.exception()` would mark the error as retrieved.
        error = getattr(task, "_exception", None)
        if task.cancelled():
            lane.end = "cancelled"
        elif error is None:
            lane.end = "returns"
        else:
            lane.end = "fails"
            lane.error_type = type(error).__name__
            lane.error = _text(error)
            lane.raised_at = self._places.raised(error.__traceback__)
        return lane.end

    def _name_lanes(self) -> None:
        seen: dict[str, int] = {}
        for task, number in self._numbers.items():
            self._names[number] = describe(task)
        for number, called in self._names.items():
            name = printable(called.rpartition("<locals>.")[2])
            seen[name] = again = seen.get(name, 0) + 1
            self._trace.lanes[number].name = name if again == 1 else f"{name}#{again}"


def _tail(ready: deque[asyncio.Handle], known: dict[int, _Queued]) -> list[asyncio.Handle]:
    """The handles without a recorded cause. They are at the end, because every look at the queue
    claims all handles in it."""
    found: list[asyncio.Handle] = []
    for at in range(len(ready) - 1, -1, -1):
        if id(ready[at]) in known:
            break
        found.append(ready[at])
    return found[::-1]


def _polled(handle: asyncio.Handle) -> Cause:
    """The cause of a handle that a poll queued."""
    return "timer" if isinstance(handle, asyncio.TimerHandle) else "start"


def _named(handle: Any) -> tuple[str, bool]:
    """A callback's name, and whether it is one of asyncio's own."""
    callback = handle._callback
    while isinstance(callback, functools.partial):
        callback = callback.func
    name = str(getattr(callback, "__qualname__", type(callback).__qualname__))
    module = str(getattr(callback, "__module__", ""))
    internal = module.partition(".")[0] in ("asyncio", "_asyncio")
    return printable(name.rpartition("<locals>.")[2] if not internal else name), internal


def _thrown(task: Any, handle: Any) -> str:
    """The type of the exception that is thrown into the task by this step, if one is."""
    if task._must_cancel:
        return "CancelledError"
    for waited in handle._args or ():
        if asyncio.isfuture(waited):
            if waited.cancelled():
                return "CancelledError"
            error = getattr(waited, "_exception", None)
            return type(error).__name__ if error is not None else ""
    return ""


def _text(error: BaseException) -> str:
    said = message_of(error).partition("\n")[0]
    return f"{type(error).__name__}: {said}" if said else type(error).__name__
