"""An observer that writes down a run in full: every step with the lines between which it ran, and
who put it into the queue.

It looks and never touches: an error of a task is read without counting as looked at, so the
verdict of a run with a trace is the verdict of the run without.
"""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from holdfast.explore.places import Places
from holdfast.explore.roll import describe
from holdfast.explore.story import (
    LOOP,
    OUTSIDE,
    Cause,
    Ending,
    Event,
    Lane,
    Step,
    Story,
)

__all__ = ["Trace"]


class _Queued(NamedTuple):
    """Why a handle is in the queue. It holds the handle: an id alone could be given out again."""

    handle: Any
    cause: Cause
    by: int | None


class Trace:
    """Give it to `run` as its observer; afterwards `story()` is what happened.

    >>> import asyncio
    >>> from holdfast.explore.plan import Plan, Settings
    >>> from holdfast.explore.run import run
    >>> trace = Trace()
    >>> record = run(lambda: asyncio.sleep(1), Plan(), Settings(), observer=trace)
    >>> [(step.time, step.end) for step in trace.story().steps if step.lane == 0]
    [(0.0, ''), (1.0, 'returns')]
    """

    def __init__(self) -> None:
        self._story = Story()
        self._places = Places(self._story)
        # Weakly, as asyncio itself does: a run that is looked at must be the same run.
        self._names: dict[int, str] = {}
        self._numbers: WeakKeyDictionary[asyncio.Task[Any], int] = WeakKeyDictionary()
        self._queue: dict[int, _Queued] = {}
        self._step: Step | None = None
        # Where each task stood when it was last looked at, and how many cancels it had seen.
        self._stands: dict[int, int | None] = {}
        self._struck: dict[int, int] = {}
        # Those that have not taken a step yet: a queued handle of theirs is no wake-up.
        self._fresh: set[int] = set()
        # Those whose next step is in the queue.
        self._ready: set[int] = set()
        # The arrival whose handles are not in the queue yet.
        self._arriving: int | None = None
        self._loop: Any = None
        self._start = 0.0

    # --- what the loop tells -----------------------------------------------------------------

    def born(self, task: asyncio.Task[Any], number: int) -> None:
        if self._loop is None:
            self._loop = task.get_loop()
            self._start = self._loop.time()
        if self._over():
            return
        self._numbers[task] = number
        self._names[number] = describe(task)
        birth = self._places.caller(sys._getframe(1)) if number else None
        entry = self._places.stand(task)
        step = self._step
        born_in = None if step is None else step.number
        self._story.lanes.append(Lane(number, "", birth, born_in, entry))
        self._stands[number] = entry
        self._struck[number] = 0
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
        task = _task_of(handle)
        lane = LOOP if task is None else self._numbers.get(task, LOOP)
        story = self._story
        step = self._step = Step(len(story.steps), instant, self._now(), lane, why.cause, why.by)
        step.settling = self._loop.settling
        story.steps.append(step)
        if task is None:
            step.callback, step.internal = _named(handle)
            return
        if lane == LOOP:  # made without the loop, it has no number and so no lane
            step.callback = describe(task)
            return
        if lane in self._fresh:
            self._names[lane] = describe(task)  # some get their name only after they are made
        step.before = self._stands[lane]
        step.resumes_with = _thrown(task, handle)
        self._ready.discard(lane)

    def after(self, instant: int, handle: asyncio.Handle, ready: deque[asyncio.Handle]) -> None:
        step = self._step
        if step is None or self._over():
            return
        self._fresh.discard(step.lane)
        self._claim(ready, "step", step.number, step.wakes)
        step.cancels += [lane for lane in step.wakes if self._newly_struck(lane)]
        task = _task_of(handle)
        if task is not None and step.lane != LOOP:
            if task.done():
                step.end = self._ended(task, step)
            else:
                step.after = self._stands[step.lane] = self._places.stand(task)
            self._newly_struck(step.lane)
        self._step = None

    def cancelled(self, instant: int, task: asyncio.Task[Any]) -> None:
        lane = self._numbers[task]
        event = self._event("cancel", instant, lane, "", self._met(lane))
        self._claim(self._loop._ready, "cancel", len(self._story.events) - 1, event.wakes)
        self._newly_struck(lane)

    def chose(self, instant: int, kind: str, options: int, value: int, label: str) -> None:
        self._settle_arrival()
        lane = LOOP
        if kind == "wild":
            # By its number, since a task may still get its name.
            lane, label = (int(label), "") if label.isdigit() else (LOOP, label)
            label = f"{label} goes first, out of its turn".strip()
        self._event("choice", instant, lane, label, kind)

    def arrives(self, instant: int, channel: str, label: str) -> None:
        if self._over():
            return
        self._settle_arrival()
        self._event("arrival", instant, OUTSIDE, label, channel)
        self._arriving = len(self._story.events) - 1

    # --- what can be asked afterwards --------------------------------------------------------

    def story(self) -> Story:
        """What happened. The tasks are let go: from here on it is plain data."""
        if self._loop is not None:
            self._name_lanes()
            self._places.finish()
            self._numbers.clear()
            self._queue.clear()
            self._step = self._loop = None
        return self._story

    # --- how it is found out -----------------------------------------------------------------

    def _over(self) -> bool:
        """The verdict is spoken: what comes now is the explorer that clears away what is left."""
        return bool(self._loop.burying)

    def _now(self) -> float:
        return float(self._loop.time() - self._start)

    def _event(self, kind: Any, instant: int, lane: int, label: str, detail: str) -> Event:
        step = self._step
        inside = step is not None
        number = step.number if step is not None else len(self._story.steps)
        event = Event(kind, number, inside, instant, self._now(), lane, label, detail)
        self._story.events.append(event)
        return event

    def _claim(self, ready: deque[asyncio.Handle], cause: Cause, by: int, wakes: list[int]) -> None:
        """Write down who queued the handles that nobody has claimed yet: they are at the end."""
        for handle in _tail(ready, self._queue):
            task = _task_of(handle)
            if cause != "step" and isinstance(handle, asyncio.TimerHandle):
                self._claim_polled(handle)  # it was there already, put there by the same poll
            elif cause == "cancel" and self._arriving is not None and task is None:
                # So was this: a cancel queues the victim's next step, an arrival never does.
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
        """It has left the queue before anybody looked."""
        arrival = self._arriving
        if arrival is None or isinstance(handle, asyncio.TimerHandle):
            return _Queued(handle, _polled(handle), None)
        self._woken(_task_of(handle), self._story.events[arrival].wakes)
        return _Queued(handle, "outside", arrival)

    def _claim_polled(self, handle: asyncio.Handle) -> None:
        self._queue[id(handle)] = _Queued(handle, _polled(handle), None)

    def _settle_arrival(self) -> None:
        """What the last arrival has queued is in the queue by now."""
        at = self._arriving
        if at is not None:
            self._arriving = None
            event = self._story.events[at]
            event.time = self._now()
            self._claim(self._loop._ready, "outside", at, event.wakes)

    def _met(self, lane: int) -> str:
        """The state in which a cancel meets its victim."""
        if lane in self._fresh:
            return "new"
        return "woken" if lane in self._ready else "waits"

    def _newly_struck(self, lane: int) -> bool:
        task = self._loop.tasks.get(lane)
        if task is None:
            return False
        before, now = self._struck[lane], task.cancelling()
        self._struck[lane] = now
        return bool(now > before)

    def _ended(self, task: asyncio.Task[Any], step: Step) -> Ending:
        lane = self._story.lanes[step.lane]
        lane.ended_in = step.number
        self._names[step.lane] = describe(task)  # it may have been given another on the way
        # `task.exception()` would count as somebody looking at it.
        error = getattr(task, "_exception", None)
        if task.cancelled():
            lane.end = "cancelled"
        elif error is None:
            lane.end = "returns"
        else:
            lane.end = "fails"
            lane.error_type = type(error).__name__
            lane.error = _in_words(error)
            lane.raised_at = self._places.raised(error.__traceback__)
        return lane.end

    def _name_lanes(self) -> None:
        seen: dict[str, int] = {}
        for task, number in self._numbers.items():
            self._names[number] = describe(task)
        for number, called in self._names.items():
            name = called.rpartition("<locals>.")[2]
            seen[name] = again = seen.get(name, 0) + 1
            self._story.lanes[number].name = name if again == 1 else f"{name}#{again}"


def _tail(ready: deque[asyncio.Handle], known: dict[int, _Queued]) -> list[asyncio.Handle]:
    """The handles of which nobody knows yet who queued them. They are at the end, because each
    look takes in all that there are."""
    found: list[asyncio.Handle] = []
    for at in range(len(ready) - 1, -1, -1):
        if id(ready[at]) in known:
            break
        found.append(ready[at])
    return found[::-1]


def _polled(handle: asyncio.Handle) -> Cause:
    """What a poll has queued: a timer, unless it came from outside."""
    return "timer" if isinstance(handle, asyncio.TimerHandle) else "start"


def _task_of(handle: Any) -> asyncio.Task[Any] | None:
    owner = getattr(handle._callback, "__self__", None)
    return owner if isinstance(owner, asyncio.Task) else None


def _named(handle: Any) -> tuple[str, bool]:
    """A callback's name, and whether it is one of asyncio's own."""
    callback = handle._callback
    while hasattr(callback, "func"):  # functools.partial
        callback = callback.func
    name = str(getattr(callback, "__qualname__", type(callback).__qualname__))
    module = str(getattr(callback, "__module__", ""))
    internal = module.partition(".")[0] in ("asyncio", "_asyncio")
    return name.rpartition("<locals>.")[2] if not internal else name, internal


def _thrown(task: Any, handle: Any) -> str:
    """The error with which this step goes on, if it does."""
    if task._must_cancel:
        return "CancelledError"
    for waited in handle._args or ():
        if asyncio.isfuture(waited):
            if waited.cancelled():
                return "CancelledError"
            error = getattr(waited, "_exception", None)
            return type(error).__name__ if error is not None else ""
    return ""


def _in_words(error: BaseException) -> str:
    said = str(error).partition("\n")[0]
    return f"{type(error).__name__}: {said}" if said else type(error).__name__
