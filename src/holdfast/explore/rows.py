"""A story line by line: what each row says, and in which one it went wrong.

The terminal's timeline and the page show the same rows; how they look is no business of this file.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

from holdfast.explore.story import LOOP, OUTSIDE, Event, Lane, Stand, Step, Story
from holdfast.explore.verdicts import Verdict

__all__ = ["Lines", "Row", "lay_out"]

# What a row is about: its mark stands in the lane.
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

# What waits for ever, or stays, is shown at the end of its lane.
_UNFINISHED = {
    "HF101": "dropped here",
    "HF102": "still there",
    "HF431": "waits for ever",
    "HF432": "takes no end",
}
# Timers and generators have no lane of their own.
_LEFT_OVER = ("HF721", "HF731")
_LINE = re.compile(r"([^\s:]+):(\d+)")


@dataclass(slots=True)
class Row:
    """One line: who, what, and where."""

    mark: Mark
    lane: int
    # The number of the step; None for what happened between two steps.
    step: int | None
    time: float
    who: str
    # `9 → 11`, or what there is to say where no line is left behind.
    words: str
    # The line that this row is about, an index into `Story.places`.
    place: int | None = None
    # The line that the task has left, if it has.
    left: int | None = None
    # The whole await chain of `place`, and more to say in the page.
    chain: list[int] = field(default_factory=list)
    # The call of asyncio's that it waits in.
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
    """Where it went wrong: a step and a line, the lanes that never ended, or what was left over."""

    step: int | None = None
    place: int | None = None
    stuck: tuple[int, ...] = ()
    stays: str = ""
    left_over: tuple[str, ...] = ()


class Lines:
    """How lines are called: by their number alone in the file in which most of it happens."""

    def __init__(self, story: Story) -> None:
        files = Counter(story.places[stand.place].file for stand in story.stands)
        self.home = files.most_common(1)[0][0] if files else ""
        self._places = story.places

    def __call__(self, place: int) -> str:
        at = self._places[place]
        return str(at.line) if at.file == self.home else self.full(place)

    def full(self, place: int) -> str:
        at = self._places[place]
        return f"{_base(at.file)}:{at.line}"


# --- the rows ----------------------------------------------------------------------------------


def lay_out(story: Story, verdict: Verdict | None) -> list[Row]:
    """Every row, in order. Callbacks of asyncio's own that changed nothing are left out."""
    blame = _blame(story, verdict)
    teller = _Teller(story)
    rows: list[Row] = []
    at = 0
    for step in story.steps:
        at = _events(story, teller, rows, at, step.number, inside=False)
        if step.number == blame.step:
            rows.append(_blamed(teller.step(step), blame.place))
        elif not _idle(step):
            rows.append(teller.step(step))
        at = _events(story, teller, rows, at, step.number, inside=True)
    _events(story, teller, rows, at, len(story.steps), inside=False)
    rows += [teller.stuck(story.lanes[lane], blame.stays) for lane in blame.stuck]
    rows += [teller.left_over(line, _find(story, line)) for line in blame.left_over]
    return rows


def _blamed(row: Row, place: int | None) -> Row:
    row.failing = True
    if place is not None and row.mark != "step":
        row.place, row.chain = place, [place]
    return row


def _events(
    story: Story, teller: _Teller, rows: list[Row], at: int, step: int, *, inside: bool
) -> int:
    events = story.events
    while at < len(events) and (events[at].step, events[at].inside) <= (step, inside):
        rows.append(teller.event(at))
        at += 1
    return at


def _idle(step: Step) -> bool:
    quiet = not (step.wakes or step.starts or step.cancels)
    return step.internal and quiet and step.cause != "timer"


class _Teller:
    """Puts steps and events into words."""

    def __init__(self, story: Story) -> None:
        self._story = story
        self._line = Lines(story)
        self._now = 0.0
        self._last: dict[int, int | None] = {lane.number: lane.entry for lane in story.lanes}
        self._fresh = {lane.number for lane in story.lanes}
        # The arrivals that have put a callback into the queue.
        self._handed_over = {
            step.by for step in story.steps if step.cause == "outside" and step.lane == LOOP
        }

    def step(self, step: Step) -> Row:
        self._now = step.time
        row = self._callback(step) if step.lane == LOOP else self._turn(step)
        row.wakes = [lane for lane in step.wakes if lane not in step.cancels]
        row.starts = step.starts
        row.cancels = step.cancels
        row.why = self._why(step)
        row.settling = step.settling
        return row

    def event(self, index: int) -> Row:
        event = self._story.events[index]
        self._now = max(self._now, event.time)
        if event.kind == "arrival":
            row = self._row("arrival", OUTSIDE, "outside", event.label)
            row.note = f"by way of “{event.detail}”"
        elif event.kind == "choice":
            who = self._story.lanes[event.lane].name if event.lane >= 0 else ""
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

    def stuck(self, lane: Lane, stays: str) -> Row:
        row = self._row("stuck", lane.number, lane.name, stays)
        self._stands_at(row, self._last[lane.number])
        if row.place is not None:
            row.words = f"{self._line(row.place)} → {stays}"
        row.failing = True
        return row

    def left_over(self, line: str, place: int | None) -> Row:
        row = self._row("stuck", LOOP, "left over", line)
        row.failing = True
        row.place = place
        return row

    # --- steps -------------------------------------------------------------------------------

    def _turn(self, step: Step) -> Row:
        lane = self._story.lanes[step.lane]
        mark: Mark = step.end or "step"
        row = self._row(mark, step.lane, lane.name, "", step)
        before = self._stand(step.before)
        first = step.lane in self._fresh
        self._fresh.discard(step.lane)
        origin = "starts" if first or before is None else self._line(before.place)
        if not first and before is not None:
            row.left = before.place
        self._last[step.lane] = step.after
        self._stands_at(row, step.after)
        row.words = f"{origin} → {self._came_to(step, lane, row)}"
        if step.resumes_with and step.end in ("", "returns"):
            row.note = f"{step.resumes_with} came in at {origin}, and it went on"
        return row

    def _came_to(self, step: Step, lane: Lane, row: Row) -> str:
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
        name = _told(step.callback) if step.internal else step.callback
        who = "timer" if mark == "timer" else "callback"
        row = self._row(mark, LOOP, who, name, step)
        if step.callback == "_set_result_unless_cancelled":
            row.words = "a sleep is over" if mark == "timer" else "a future is done"
        for verb, lanes in (("wakes", step.wakes), ("starts", step.starts)):
            if lanes:
                said = "cancels" if step.cancels and verb == "wakes" else verb
                row.words += f", {said} {_and([self._story.lanes[lane].name for lane in lanes])}"
        return row

    def _why(self, step: Step) -> str:
        if step.cause == "timer":
            return "its time had come"
        if step.by is None:
            return "the run began with it" if step.lane == 0 else "it came from outside"
        if step.cause == "step":
            by = self._story.steps[step.by]
            who = "a callback" if by.lane == LOOP else self._story.lanes[by.lane].name
            return f"queued by {who} in step {step.by + 1}"
        event = self._story.events[step.by]
        return "queued by the cancel" if step.cause == "cancel" else f"queued by {event.label}"

    # --- events ------------------------------------------------------------------------------

    def _cancel(self, event: Event) -> Row:
        lane = self._story.lanes[event.lane]
        met = {
            "new": "is cancelled before its first step",
            "woken": "is cancelled: woken already, not yet resumed",
            "waits": "is cancelled while it waits",
        }[event.detail]
        row = self._row("cancel", event.lane, lane.name, met)
        row.departure = True
        self._stands_at(row, self._last[event.lane])
        if row.place is not None and event.detail != "new":
            word = "from" if event.detail == "woken" else "at"
            row.words += f" {word} {self._line(row.place)}"
        return row

    def _row(self, mark: Mark, lane: int, who: str, words: str, step: Step | None = None) -> Row:
        return Row(mark, lane, None if step is None else step.number, self._now, who, words)

    def _stand(self, index: int | None) -> Stand | None:
        return None if index is None else self._story.stands[index]

    def _stands_at(self, row: Row, index: int | None) -> None:
        stand = self._stand(index)
        if stand is not None:
            row.place = stand.place
            row.chain = stand.chain
            row.call = stand.call


# --- where it went wrong -----------------------------------------------------------------------


def _blame(story: Story, verdict: Verdict | None) -> _Blame:
    if verdict is None or not story.steps:
        return _Blame()
    if verdict.code in _UNFINISHED:
        lanes = [lane.number for lane in story.lanes if not lane.end]
        # Whoever merely waits for the others says the least: the program itself comes last.
        lanes.sort(key=lambda number: (number == 0, number))
        return _Blame(stuck=tuple(lanes), stays=_UNFINISHED[verdict.code])
    if verdict.code in _LEFT_OVER:
        return _Blame(left_over=verdict.where or (verdict.message,))
    where = next(
        (place for line in verdict.where if (place := _find(story, line)) is not None), None
    )
    if verdict.code == "HF501":
        return _Blame(_went_on(story))
    if verdict.code != "HF442":
        failed = [lane for lane in story.lanes if lane.error_type == verdict.error_type != ""]
        failed.sort(key=lambda lane: lane.raised_at != where)
        if failed:
            return _Blame(failed[0].ended_in, failed[0].raised_at)
    last = next((step for step in reversed(story.steps) if not _idle(step)), story.steps[-1])
    return _Blame(last.number, where)


def _find(story: Story, line: str) -> int | None:
    """The place that a line of a verdict names."""
    named = _LINE.search(line)
    if named is not None:
        for index, place in enumerate(story.places):
            if str(place.line) == named[2] and _base(place.file) == _base(named[1]):
                return index
    return None


def _went_on(story: Story) -> int | None:
    """The step in which a cancelled task goes on, as if nothing had been."""
    struck = {event.lane for event in story.events if event.kind == "cancel"}
    for step in story.steps:
        if step.lane in struck and step.resumes_with == "CancelledError":
            if step.end in ("", "returns") and story.lanes[step.lane].end == "returns":
                return step.number
    return None


def _told(callback: str) -> str:
    """A callback of asyncio's own under a name that people know: `gather` for what it hides."""
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
