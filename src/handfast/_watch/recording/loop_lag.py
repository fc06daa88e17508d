"""How late the event loops are, and what holds them up.

The agent's thread posts a callback to each running loop a few times a second, and the callback notes when
it ran. While it has not run, the frames of the loop's thread show what blocks it; they are counted by
line, once for each time that the loop is blocked.
"""

from __future__ import annotations

import sys
import threading
import time
import weakref
from asyncio import AbstractEventLoop
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from types import FrameType

from handfast._asyncio_internals import loop_codes, thread_of_loop
from handfast._code_owner import code_owner, is_asyncio
from handfast._watch.recording.event_loops import kind_of
from handfast._watch.recording.shown_text import LineTexts, clean
from handfast._watch.snapshot import LoopState, SlowCallback

PERIOD = 0.25
"""Seconds between two callbacks on a loop."""

BLOCKED = 0.05
"""A loop that is later than this is looked at."""

_KEPT = 1200
_SLOW_LINES = 100
_DEEPEST = 50
_LOOP_CODES = {id(code): code for code in loop_codes()}


class LoopLag:
    """What is known of one loop."""

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop = weakref.ref(loop)
        self._posted: float | None = None
        self._number = 0
        self._thread = 0
        self._lags: deque[float] = deque(maxlen=_KEPT)
        self._worst = 0.0
        # The line at which the loop was first seen blocked, until it runs again.
        self._line = ""
        self._slow: dict[str, SlowCallback] = {}
        self.reported_hang = False

    def post(self) -> None:
        """Post a callback, unless the last one has not run yet."""
        loop = self._loop()
        if loop is None or not loop.is_running():
            self._posted = None  # it stopped: how long it then waits to be run again is no lag
            return
        if self._posted is None:
            self._number += 1
            self._line, self.reported_hang = "", False
            self._posted = time.monotonic()
            with suppress(RuntimeError):  # closed
                loop.call_soon_threadsafe(self._ran, self._number)

    def _ran(self, number: int) -> None:
        """On the loop."""
        posted = self._posted
        if posted is None or number != self._number:
            return
        lag = time.monotonic() - posted
        self._thread = threading.get_ident()
        self._lags.append(lag)
        self._worst = max(self._worst, lag)
        if self._line:
            self._count_slow(self._line, lag)
        self._posted = None

    def late_for(self) -> float:
        """For how many seconds the callback has been waiting to run."""
        posted = self._posted
        return 0.0 if posted is None else time.monotonic() - posted

    def blocked_at(self, lines: LineTexts) -> tuple[str, ...]:
        """The stack of what the loop runs now; empty if it waits for events."""
        loop = self._loop()
        thread = self._thread or (thread_of_loop(loop) if loop is not None else 0)
        return stack_in_loop(sys._current_frames().get(thread or 0), lines)

    def sample(self, lines: LineTexts) -> None:
        """Note what blocks the loop, if it is late."""
        if not self._line and self.late_for() >= BLOCKED:
            stack = self.blocked_at(lines)
            if self._posted is not None and stack:
                self._line = stack[-1]

    def _count_slow(self, line: str, lag: float) -> None:
        known = self._slow.get(line)
        if known is None and len(self._slow) >= _SLOW_LINES:
            return
        count, worst = (known.count, known.worst) if known is not None else (0, 0.0)
        self._slow[line] = SlowCallback(line, count + 1, max(worst, lag * 1000))

    def state(self, tasks: int, lines: LineTexts) -> LoopState | None:
        """The loop as a snapshot shows it."""
        loop = self._loop()
        if loop is None:
            return None
        lags = sorted(self._lags.copy())
        late = self.late_for()
        stack = self.blocked_at(lines) if late >= BLOCKED else ()
        slow = sorted(self._slow.copy().values(), key=lambda each: -each.worst)
        return LoopState(
            id(loop),
            kind_of(loop),
            _name_of_thread(self._thread or thread_of_loop(loop)),
            loop.is_running(),
            tasks,
            _percentile(lags, 0.5),
            _percentile(lags, 0.99),
            self._worst * 1000 if lags else None,
            late if stack else 0.0,
            stack,
            tuple(slow[:20]),
        )


def stack_in_loop(frame: FrameType | None, lines: LineTexts) -> tuple[str, ...]:
    """The lines from the callback of a loop to `frame`, the innermost last, up to the innermost line
    that is not the standard library's. Empty if the loop runs no callback."""
    shown: list[str] = []
    own = False
    while frame is not None and id(frame.f_code) not in _LOOP_CODES:
        owner = code_owner(frame.f_code.co_filename)
        own = own or owner in ("program", "library")
        if own and not is_asyncio(frame.f_code.co_filename) and len(shown) < _DEEPEST:
            shown.append(lines.of(frame.f_code, frame.f_lasti))
        frame = frame.f_back
    return tuple(reversed(shown))


def _percentile(ordered: list[float], part: float) -> float | None:
    """In milliseconds."""
    return ordered[min(int(len(ordered) * part), len(ordered) - 1)] * 1000 if ordered else None


def _name_of_thread(ident: int | None) -> str:
    for thread in threading.enumerate():
        if thread.ident == ident:
            return clean(thread.name)
    return ""


class LoopLags:
    """All loops. Used in the agent's thread; `states` in any."""

    def __init__(self) -> None:
        self._lags: weakref.WeakKeyDictionary[AbstractEventLoop, LoopLag] = (
            weakref.WeakKeyDictionary()
        )
        self._lines = LineTexts()
        self._lock = threading.Lock()

    def post(self, loops: Iterable[AbstractEventLoop]) -> None:
        """Post a callback to each loop that runs."""
        self._lines = LineTexts()  # code made by exec() would add up
        for lag in self._of(loops):
            lag.post()

    def sample(self) -> list[LoopLag]:
        """Note what blocks the loops that are late; these are returned."""
        with self._lock:
            lags = list(self._lags.values())
        for lag in lags:
            lag.sample(self._lines)
        return [lag for lag in lags if lag.late_for() >= BLOCKED]

    def states(self, loops: Iterable[AbstractEventLoop]) -> dict[int, LoopState]:
        """Each loop as a snapshot shows it, by id."""
        lines = LineTexts()
        states = [lag.state(0, lines) for lag in self._of(loops)]
        return {state.id: state for state in states if state is not None}

    def _of(self, loops: Iterable[AbstractEventLoop]) -> list[LoopLag]:
        with self._lock:
            return [self._lags.setdefault(loop, LoopLag(loop)) for loop in loops]
