"""A trace as rows of text: what each row says, which one failed, and which rows are folded.

The timeline of the terminal and the HTML page show the same rows.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from handfast._explore.trace.model import (
    LOOP,
    OUTSIDE,
    Lane,
    StackPosition,
    Step,
    Trace,
    TraceEvent,
)
from handfast._explore.verdict.verdict import Verdict

# The kind of a row; its symbol is drawn in the lane.
Mark = Literal[
    "step",
    "returns",
    "fails",
    "cancelled",
    "timer",
    "callback",
    "arrival",
    "cancel",
    "choice",
    "stuck",
]

# The state of a task between its rows. Empty: not started yet, or ended.
State = Literal["", "waits", "ready"]

# Up to this many rows, nothing is folded.
_SHORT = 40
# Rows that stay visible around a departure, at the beginning and before the end.
_BESIDE = 3
_FIRST = 4
_LAST = 8
# Departures whose rows stay visible if there are many: the last ones matter most.
_FIRST_DEPARTURES = 4
_LAST_DEPARTURES = 16

# Tasks that did not end are shown in a row at the end, with this text.
_UNFINISHED = {
    "HF101": "not referenced",
    "HF102": "still pending",
    "HF431": "waits forever",
    "HF432": "still running",
}
# Timers and generators have no lane.
_LEFT_OVER = ("HF721", "HF731")
_LINE = re.compile(r"([^\s:]+):(\d+)")


@dataclass(slots=True)
class Row:
    """One row: the task, what it did, and where."""

    mark: Mark
    lane: int
    # The number of the step; None for an event between two steps.
    step: int | None
    time: float
    who: str
    # `9 → 11`, or a description of what is not a step of a task.
    words: str
    # The line of this row, an index into `Trace.places`.
    place: int | None = None
    # The line from which the task continued.
    left: int | None = None
    # The await chain of `place`.
    chain: list[int] = field(default_factory=list)
    # The function of asyncio that it waits in.
    call: str = ""
    note: str = ""
    wakes: list[int] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    cancels: list[int] = field(default_factory=list)
    # Why it was in the queue.
    why: str = ""
    departure: bool = False
    failing: bool = False
    settling: bool = False


@dataclass(frozen=True, slots=True)
class _Blame:
    """What failed: a step and a line, the lanes that never ended, or what was left over."""

    step: int | None = None
    place: int | None = None
    stuck: tuple[int, ...] = ()
    unfinished: str = ""
    left_over: tuple[str, ...] = ()


class Lines:
    """The text for a line: only its number in the file where most positions are."""

    def __init__(self, trace: Trace) -> None:
        files = Counter(trace.places[position.place].file for position in trace.positions)
        self.home = files.most_common(1)[0][0] if files else ""
        self._places = trace.places

    def __call__(self, place: int) -> str:
        at = self._places[place]
        return str(at.line) if at.file == self.home else self.full(place)

    def full(self, place: int) -> str:
        at = self._places[place]
        return f"{_base(at.file)}:{at.line}"


# --- the rows ----------------------------------------------------------------------------------


def lay_out(trace: Trace, verdict: Verdict | None) -> list[Row]:
    """Every row, in order. Callbacks of asyncio that changed nothing are left out."""
    blame = _blame(trace, verdict)
    builder = RowBuilder(trace)
    rows: list[Row] = []
    at = 0
    for step in trace.steps:
        at = _events(trace, builder, rows, at, step.number, inside=False)
        if step.number == blame.step:
            rows.append(_blamed(builder.step(step), blame.place))
        elif not _idle(step):
            rows.append(builder.step(step))
        at = _events(trace, builder, rows, at, step.number, inside=True)
    _events(trace, builder, rows, at, len(trace.steps), inside=False)
    rows += [builder.stuck(trace.lanes[lane], blame.unfinished) for lane in blame.stuck]
    rows += [builder.left_over(line, _find(trace, line)) for line in blame.left_over]
    return rows


def _blamed(row: Row, place: int | None) -> Row:
    row.failing = True
    if place is not None and row.mark != "step":
        # The line that raised, and not the line where the task waited before.
        row.place, row.chain = place, [place]
    return row


def _events(
    trace: Trace, builder: RowBuilder, rows: list[Row], at: int, step: int, *, inside: bool
) -> int:
    events = trace.events
    while at < len(events) and (events[at].step, events[at].inside) <= (step, inside):
        rows.append(builder.event(at))
        at += 1
    return at


def _idle(step: Step) -> bool:
    quiet = not (step.wakes or step.starts or step.cancels)
    return step.internal and quiet and step.cause != "timer"


class RowBuilder:
    """Makes rows from steps and events, in the order of the run."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._line = Lines(trace)
        self._now = 0.0
        self._last: dict[int, int | None] = {lane.number: lane.entry for lane in trace.lanes}
        self._fresh = {lane.number for lane in trace.lanes}
        # Tasks that were cancelled and have not resumed since.
        self._cancelled: set[int] = set()
        # The arrivals that queued a callback.
        self._handed_over = {
            step.by for step in trace.steps if step.cause == "outside" and step.lane == LOOP
        }

    def step(self, step: Step) -> Row:
        self._now = step.time
        row = self._callback(step) if step.lane == LOOP else self._turn(step)
        row.wakes = [lane for lane in step.wakes if lane not in step.cancels]
        row.starts = step.starts
        row.cancels = step.cancels
        self._cancelled.update(step.cancels)
        row.why = self._why(step)
        row.settling = step.settling
        return row

    def event(self, index: int) -> Row:
        event = self._trace.events[index]
        self._now = max(self._now, event.time)
        if event.kind == "arrival":
            row = self._row("arrival", OUTSIDE, "outside", event.label)
            row.note = f"from “{event.detail}”"
        elif event.kind == "choice":
            who = self._trace.lanes[event.lane].name if event.lane >= 0 else ""
            row = self._row("choice", LOOP, who, event.label)
            row.departure = True
            row.note = f"a choice of kind “{event.detail}”"
        else:
            row = self._cancel(event)
        row.words = row.words.replace("<locals>.", "")
        row.wakes = event.wakes
        if index in self._handed_over:
            row.wakes = [*event.wakes, LOOP]
        return row

    def stuck(self, lane: Lane, unfinished: str) -> Row:
        row = self._row("stuck", lane.number, lane.name, unfinished)
        self._set_position(row, self._last[lane.number])
        if row.place is not None:
            row.words = f"{self._line(row.place)} → {unfinished}"
        row.failing = True
        return row

    def left_over(self, line: str, place: int | None) -> Row:
        row = self._row("stuck", LOOP, "left over", line)
        row.failing = True
        row.place = place
        return row

    # --- steps -------------------------------------------------------------------------------

    def _turn(self, step: Step) -> Row:
        lane = self._trace.lanes[step.lane]
        mark: Mark = step.end or "step"
        row = self._row(mark, step.lane, lane.name, "", step)
        before = self._position(step.before)
        first = step.lane in self._fresh
        self._fresh.discard(step.lane)
        origin = "starts" if first or before is None else self._line(before.place)
        if not first and before is not None:
            row.left = before.place
        self._last[step.lane] = step.after
        self._set_position(row, step.after)
        row.words = f"{origin} → {self._result(step, lane, row)}"
        if step.resumes_with and step.end in ("", "returns"):
            row.note = self._caught(step, origin)
        self._cancelled.discard(step.lane)
        return row

    def _caught(self, step: Step, origin: str) -> str:
        """What a task did with an exception that was thrown into it and did not end it."""
        line = f"line {origin}" if origin.isdigit() else origin
        # An awaited task that was cancelled raises CancelledError too.
        if step.resumes_with != "CancelledError" or step.lane not in self._cancelled:
            return f"caught {step.resumes_with} at {line}"
        return f"cancelled at {line}, {'returned normally' if step.end else 'still running'}"

    def _result(self, step: Step, lane: Lane, row: Row) -> str:
        if step.end == "fails":
            row.note = lane.error
            row.place = lane.raised_at
            row.chain = [] if row.place is None else [row.place]
            return "fails" if row.place is None else f"{self._line(row.place)} fails"
        if step.end:
            row.place = row.left
            return step.end
        return "?" if row.place is None else self._line(row.place)

    def _callback(self, step: Step) -> Row:
        mark: Mark = "timer" if step.cause == "timer" else "callback"
        name = _known_name(step.callback) if step.internal else step.callback
        who = "timer" if mark == "timer" else "callback"
        row = self._row(mark, LOOP, who, name, step)
        if step.callback == "_set_result_unless_cancelled":
            row.words = "sleep() ends" if mark == "timer" else "a future is done"
        for verb, lanes in (("wakes", step.wakes), ("starts", step.starts)):
            if lanes:
                said = "cancels" if step.cancels and verb == "wakes" else verb
                row.words += f", {said} {_and([self._trace.lanes[lane].name for lane in lanes])}"
        return row

    def _why(self, step: Step) -> str:
        if step.cause == "timer":
            return "it was due"
        if step.by is None:
            return "the run starts with it" if step.lane == 0 else "an external event queued it"
        if step.cause == "step":
            by = self._trace.steps[step.by]
            who = "a callback" if by.lane == LOOP else self._trace.lanes[by.lane].name
            return f"queued by {who} in step {step.by + 1}"
        event = self._trace.events[step.by]
        return "queued by the cancel" if step.cause == "cancel" else f"queued by {event.label}"

    # --- events ------------------------------------------------------------------------------

    def _cancel(self, event: TraceEvent) -> Row:
        lane = self._trace.lanes[event.lane]
        state = {
            "new": "is cancelled before its first step",
            "woken": "is cancelled after it was woken and before it resumed",
            "waits": "is cancelled while it waits",
        }[event.detail]
        row = self._row("cancel", event.lane, lane.name, state)
        row.departure = True
        self._cancelled.add(event.lane)
        self._set_position(row, self._last[event.lane])
        if row.place is not None and event.detail != "new":
            word = "from" if event.detail == "woken" else "at"
            row.words += f" {word} {self._line(row.place)}"
        return row

    def _row(self, mark: Mark, lane: int, who: str, words: str, step: Step | None = None) -> Row:
        return Row(mark, lane, None if step is None else step.number, self._now, who, words)

    def _position(self, index: int | None) -> StackPosition | None:
        return None if index is None else self._trace.positions[index]

    def _set_position(self, row: Row, index: int | None) -> None:
        position = self._position(index)
        if position is not None:
            row.place = position.place
            row.chain = position.chain
            row.call = position.call


# --- what failed -------------------------------------------------------------------------------


def _blame(trace: Trace, verdict: Verdict | None) -> _Blame:
    if verdict is None or not trace.steps:
        return _Blame()
    if verdict.code in _UNFINISHED:
        lanes = [lane.number for lane in trace.lanes if not lane.end]
        # The main task mostly waits for the others, so it comes last.
        lanes.sort(key=lambda number: (number == 0, number))
        return _Blame(stuck=tuple(lanes), unfinished=_UNFINISHED[verdict.code])
    if verdict.code in _LEFT_OVER:
        return _Blame(left_over=verdict.where or (verdict.message,))
    where = next(
        (place for line in verdict.where if (place := _find(trace, line)) is not None), None
    )
    if verdict.code == "HF501":
        return _Blame(_first_survived_cancel(trace))
    # An invariant fails outside any task, so no lane has its error.
    if verdict.code != "HF442":
        failed = [lane for lane in trace.lanes if lane.error_type == verdict.error_type != ""]
        # Several tasks may have failed with this type: prefer the one that raised at the line named.
        failed.sort(key=lambda lane: lane.raised_at != where)
        if failed:
            return _Blame(failed[0].ended_in, failed[0].raised_at)
    # Otherwise the verdict was reached in the last step that did something.
    last = next((step for step in reversed(trace.steps) if not _idle(step)), trace.steps[-1])
    return _Blame(last.number, where)


def _find(trace: Trace, line: str) -> int | None:
    """The place that a line of a verdict names."""
    named = _LINE.search(line)
    if named is not None:
        for index, place in enumerate(trace.places):
            if str(place.line) == named[2] and _base(place.file) == _base(named[1]):
                return index
    return None


def _first_survived_cancel(trace: Trace) -> int | None:
    """The step in which a cancelled task catches its cancellation."""
    cancelled = {event.lane for event in trace.events if event.kind == "cancel"}
    for step in trace.steps:
        if step.lane in cancelled and step.resumes_with == "CancelledError":
            if step.end in ("", "returns") and trace.lanes[step.lane].end == "returns":
                return step.number
    return None


def _known_name(callback: str) -> str:
    """The public name of a callback of asyncio, such as `gather` for `gather.<locals>._done_callback`."""
    whole, _, last = callback.rpartition(".")
    if whole and not last.startswith("_"):
        return callback
    return callback.partition(".")[0].lstrip("_")


def _base(file: str) -> str:
    return file.replace("\\", "/").rpartition("/")[2]


def _and(names: list[str]) -> str:
    if len(names) > 3:
        return f"{', '.join(names[:2])} and {len(names) - 2} more"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


# --- folding and lanes -------------------------------------------------------------------------


@dataclass(slots=True)
class Fold:
    """Consecutive rows that are not shown."""

    rows: list[Row]

    @property
    def departures(self) -> int:
        return sum(row.departure for row in self.rows)

    def __str__(self) -> str:
        steps = sum(row.step is not None for row in self.rows)
        said = f"{steps:,} steps"
        count = self.departures
        return f"{said} with {count:,} changes" if count else f"{said} in normal order"


def fold(rows: Sequence[Row]) -> list[Row | Fold]:
    """Fold the long sequences without a departure from the normal order."""
    if len(rows) <= _SHORT:
        return list(rows)
    keep = _visible(rows)
    shown: list[Row | Fold] = []
    hidden: list[Row] = []
    for at, row in enumerate(rows):
        if keep[at]:
            _append_fold(shown, hidden)
            hidden = []
            shown.append(row)
        else:
            hidden.append(row)
    _append_fold(shown, hidden)
    return shown


def _append_fold(shown: list[Row | Fold], hidden: list[Row]) -> None:
    # A fold takes a line itself, so folding one or two rows saves little.
    if len(hidden) > 2:
        shown.append(Fold(hidden))
    else:
        shown.extend(hidden)


def _visible(rows: Sequence[Row]) -> bytearray:
    size = len(rows)
    keep = bytearray(size)
    marked = [at for at, row in enumerate(rows) if row.departure]
    if len(marked) > _FIRST_DEPARTURES + _LAST_DEPARTURES:
        marked = marked[:_FIRST_DEPARTURES] + marked[-_LAST_DEPARTURES:]
    failing = [at for at, row in enumerate(rows) if row.failing][-_LAST_DEPARTURES:]
    for at in (*marked, *failing):
        for near in range(max(0, at - _BESIDE), min(size, at + _BESIDE + 1)):
            keep[near] = 1
    for at in (*range(_FIRST), *range(size - _LAST, size)):
        keep[at] = 1
    return keep


def columns(trace: Trace, rows: Iterable[Row | Fold], most: int) -> list[int]:
    """The lanes that get a column: those in the rows, the most relevant if there are more than
    `most`; tasks in the order of their creation, then the loop, then the outside."""
    weight: Counter[int] = Counter({0: 1_000_000} if trace.lanes else {})
    for row in rows:
        if isinstance(row, Row) and row.mark != "choice":  # a choice is drawn across all lanes
            # Tasks that failed or were cancelled must have a column, however many others are busy.
            weight[row.lane] += 1000 if row.failing or row.mark == "cancel" else 3
            weight.update((*row.wakes, *row.starts, *row.cancels))
    for lane in (LOOP, OUTSIDE):
        if weight[lane]:
            weight[lane] += 1_000_000
    chosen = {lane for lane, _ in weight.most_common(most)}
    tasks = sorted(lane for lane in chosen if lane >= 0)
    return [*tasks, *(lane for lane in (LOOP, OUTSIDE) if lane in chosen)]


def lane_title(trace: Trace, number: int) -> tuple[str, str]:
    """The name above a lane, and what is known of its origin."""
    if number == LOOP:
        return "the loop", "timers and callbacks"
    if number == OUTSIDE:
        return "outside", "external events"
    lane = trace.lanes[number]
    if lane.created_at is None:
        return lane.name, "the program" if number == 0 else ""
    at = trace.places[lane.created_at]
    return lane.name, f"started at {at.file}:{at.line} in {at.function}"


def follow(row: Row, state: dict[int, State]) -> None:
    """Update `state`, the state of each task, from before this row to after it."""
    for lane in (*row.wakes, *row.starts, *row.cancels):
        if lane >= 0:
            state[lane] = "ready"
    if row.mark in ("returns", "fails", "cancelled"):
        state[row.lane] = ""
    elif row.mark == "step":
        # A task that queues itself, as in sleep(0), is ready again at once.
        state[row.lane] = "ready" if row.lane in row.wakes else "waits"
