"""The swimlane timeline for the terminal: a lane for each task, time running downwards.

The text of the rows comes from `rows`; this module draws it.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence

from handfast._explore.render.rows import (
    Fold,
    Lines,
    Row,
    State,
    columns,
    fold,
    follow,
    lane_title,
    lay_out,
)
from handfast._explore.trace.choice_text import counted
from handfast._explore.trace.model import LOOP, OUTSIDE, Trace
from handfast._explore.verdict.verdict import Verdict

_CELL = 3
# Narrower than this the lanes leave no space for text.
_NARROWEST = 60
_MARKS = {
    "step": "●",
    "returns": "■",
    "fails": "✗",
    "cancelled": "⊘",
    "timer": "◆",
    "callback": "◆",
    "arrival": "◇",
    "cancel": "×",
    "stuck": "✗",
}
_STATES: dict[State, str] = {"": " ", "waits": "┊", "ready": "┃"}
_AROUND = 3


def render(trace: Trace, verdict: Verdict | None, width: int = 100) -> str:
    """The timeline as plain text, `width` columns wide at most."""
    lines = _lines(trace, verdict, max(width, _NARROWEST))
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _lines(trace: Trace, verdict: Verdict | None, width: int) -> Iterator[str]:
    if not trace.steps:
        yield "nothing ran"
        return
    rows = lay_out(trace, verdict)
    shown = fold(rows)
    # At most two fifths of the width for lanes, so that the text stays readable.
    lanes = columns(trace, shown, most=max(3, width * 2 // 5 // _CELL))
    drawing = _Drawing(trace, shown, lanes, width)
    yield from _header(trace, verdict, rows, width)
    yield ""
    yield from drawing.names()
    yield from drawing.body()
    yield from _excerpts(trace, rows, width)
    yield ""
    yield from _key(trace, shown, width)


# --- above and below ---------------------------------------------------------------------------


def _header(trace: Trace, verdict: Verdict | None, rows: list[Row], width: int) -> Iterator[str]:
    if verdict is None:
        yield "no finding in this run"
    else:
        what, error = verdict.message, ""
        if verdict.error_type:
            what, _, rest = verdict.message.partition(f": {verdict.error_type}")
            error = verdict.error_type + rest
        first, *more = textwrap.wrap(what, width - len(verdict.code) - 2) or [""]
        yield f"{verdict.code}  {first}"
        for line in (*more, *textwrap.wrap(error, width - 2)):
            yield f"  {line}"
        for where in (*verdict.where, *verdict.cancelled):
            yield _cut(f"  {where}", width)
        if verdict.advice:
            yield _cut(f"  {verdict.advice}", width)
    departures = sum(row.departure for row in rows)
    seconds = trace.steps[-1].time if trace.steps else 0.0
    facts = (
        f"{counted(len(trace.lanes), 'task')}, {counted(len(trace.steps), 'step')}, "
        f"{seconds:.3f} s of virtual time, {counted(departures, 'change')} to the normal order"
    )
    for line in textwrap.wrap(facts, width - 2):
        yield f"  {line}"


def _excerpts(trace: Trace, rows: list[Row], width: int) -> Iterator[str]:
    """The source around the failing line, or around the lines where tasks are stuck."""
    seen: set[int] = set()
    for row in rows:
        if row.failing and row.place is not None and row.place not in seen and len(seen) < 3:
            seen.add(row.place)
            yield ""
            yield from _excerpt(trace, row.place, width)


def _excerpt(trace: Trace, index: int, width: int) -> Iterator[str]:
    place = trace.places[index]
    yield _cut(f"  {place.file}:{place.line} in {place.function}", width)
    for source in trace.sources:
        if source.file != place.file or not 0 <= place.line - source.first < len(source.lines):
            continue
        first = max(place.line - _AROUND, place.first, source.first)
        last = max(place.line, min(place.line + _AROUND, place.last))
        lines = source.lines[first - source.first : last - source.first + 1]
        # Dedented as a block, so that relative indentation stays.
        common = textwrap.dedent("\n".join(lines)).split("\n")
        for number, text in enumerate(common, first):
            lead = f"  {'▶' if number == place.line else ' '} {number:>5} │ "
            yield _cut(lead + text, width)
        return


def _key(trace: Trace, shown: Sequence[Row | Fold], width: int) -> Iterator[str]:
    """The meaning of the symbols that occur."""
    rows = [row for row in shown if isinstance(row, Row)]
    marks = {row.mark for row in rows}
    said = ["● runs, then waits"]
    said += ["■ returns"] if "returns" in marks else []
    said += ["✗ fails"] if any(row.failing or row.mark == "fails" for row in rows) else []
    said += ["⊘ is cancelled"] if "cancelled" in marks else []
    said += ["◆ timer or callback"] if marks & {"timer", "callback"} else []
    said += ["◇ external event"] if "arrival" in marks else []
    said += ["┊ waits", "┃ ready, not yet resumed"]
    said += ["─╮ starts"] if any(row.starts for row in rows) else []
    said += ["─▶ wakes"] if any(row.wakes for row in rows) else []
    said += ["─× cancels"] if "cancel" in marks or any(row.cancels for row in rows) else []
    said += ["» differs from a normal run"] if any(row.departure for row in rows) else []
    said.append(f"9 → 11 resumed at line 9, waits at line 11 (of {Lines(trace).home})")
    line = " "
    for item in said:
        if len(line) + len(item) + 2 > width and line.strip():
            yield line
            line = " "
        line += f" {item} "
    yield _cut(line, width)


# --- the drawing -------------------------------------------------------------------------------


class _Drawing:
    """Lanes on the left, text on the right."""

    def __init__(
        self, trace: Trace, shown: Sequence[Row | Fold], lanes: list[int], width: int
    ) -> None:
        self._trace = trace
        self._shown = shown
        self._lanes = lanes
        self._at = {lane: _CELL * i for i, lane in enumerate(lanes)}
        rows = [row for row in shown if isinstance(row, Row)]
        number = len(str(max((row.step or 0 for row in rows), default=0) + 1))
        time = len(_clock(max((row.time for row in rows), default=0.0)))
        self._number, self._time = max(number, 4), max(time, 5)
        # Number, two blanks, time, two blanks.
        self._gutter = self._number + self._time + 5
        self._text_width = max(20, width - self._gutter - _CELL * len(lanes) - 1)
        self._width = width
        whos = [len(row.who) for row in rows if not row.departure]
        words = [len(row.words) for row in rows if row.place is not None and not row.departure]
        # The text comes first: a name is also above its lane, and the source is in the file.
        self._who = min(16, self._text_width // 4, max(whos, default=0))
        self._words = min(28, self._text_width - self._who - 4, max(words, default=0))
        self._state: dict[int, State] = {0: "ready"}

    # --- names of the lanes ----------------------------------------------------------------------

    def names(self) -> Iterator[str]:
        rows = [row for row in self._shown if isinstance(row, Row)]
        spoken_of = {lane for r in rows for lane in (r.lane, *r.wakes, *r.starts, *r.cancels)}
        # These tasks did something in the rows shown and have no column.
        unseen = spoken_of - {*self._lanes, LOOP, OUTSIDE}
        if unseen:
            yield f"{' ' * self._gutter}{counted(len(unseen), 'task')} more without a lane"
        for at, lane in enumerate(self._lanes):
            lead = "│  " * at + "╭─ "
            name, more = lane_title(self._trace, lane)
            gutter = " " * self._gutter
            if at == 0:
                gutter = f" {'step':>{self._number}}  {'time':>{self._time}}  "
            width = self._width - self._gutter - len(lead)
            more = _cut(f"  {more}" if more else "", max(0, width - len(name)))
            yield gutter + lead + _cut(name, width) + more

    # --- rows --------------------------------------------------------------------------------

    def body(self) -> Iterator[str]:
        time = ""
        settling = False
        for row in self._shown:
            if isinstance(row, Fold):
                yield self._folded(row)
                for hidden in row.rows:
                    follow(hidden, self._state)
                time = ""
                continue
            if row.settling and not settling:
                settling = True
                yield self._aside("the program has ended; tasks that are ready still run")
            now = _clock(row.time)
            yield from self._row(row, now if now != time else "")
            time = now

    def _folded(self, row: Fold) -> str:
        cells = "".join("⋮  " if self._state.get(lane) else "   " for lane in self._lanes)
        return f" {'⋮':>{self._number}}{'':{self._time + 4}}{cells} {row}"

    def _aside(self, text: str) -> str:
        return f"{' ' * self._gutter}{self._between()} {_cut(text, self._text_width)}"

    def _row(self, row: Row, time: str) -> Iterator[str]:
        gutter = self._leader(row, time)
        cells = self._cells(row, dict(self._state))
        follow(row, self._state)
        texts = list(self._texts(row))
        yield f"{gutter}{cells} {texts[0]}"
        for more in texts[1:]:
            yield f"{' ' * self._gutter}{self._between()} {more}"

    def _leader(self, row: Row, time: str) -> str:
        if row.departure:
            # The arrow of a cancel starts outside the lanes.
            blank = "─" if row.mark == "cancel" else " "
            return f"{f' » {row.mark} ':{blank}<{self._gutter}}"
        if row.mark == "stuck":
            return f"{' at the end':{self._gutter}}"
        number = "" if row.step is None else str(row.step + 1)
        return f" {number:>{self._number}}  {time:>{self._time}}  "

    def _texts(self, row: Row) -> Iterator[str]:
        """The text of a row; a departure or a failure may take several lines."""
        if row.departure:
            yield from textwrap.wrap(f"{row.who} {row.words}".strip(), self._text_width)
            return
        who = f"{_cut(row.who, self._who):{self._who}}  "
        source = "" if row.place is None else self._trace.places[row.place].text
        if row.lane in (LOOP, OUTSIDE) or not source:
            yield who + _cut(row.words, self._text_width - len(who))
        else:
            words = f"{_cut(row.words, self._text_width - len(who) - 2):{self._words}}  "
            yield who + words + _cut(source, self._text_width - len(who) - len(words))
        if row.note and row.lane >= 0:
            for line in textwrap.wrap(row.note, self._text_width - len(who)):
                yield " " * len(who) + line

    # --- cells -------------------------------------------------------------------------------

    def _between(self) -> str:
        return "".join(f"{_STATES[self._state.get(lane, '')]}  " for lane in self._lanes)

    def _cells(self, row: Row, before: dict[int, State]) -> str:
        """The lanes of one row: the state of each task, and an arrow to each task that it changes."""
        chars = list("".join(f"{_STATES[before.get(lane, '')]}  " for lane in self._lanes))
        source = self._at.get(row.lane)
        # A choice belongs to no task; a task without a column cannot be drawn.
        if row.mark == "choice" or source is None:
            return "".join(chars)
        if row.mark == "cancel":
            _draw(chars, 0, source)
        heads = self._heads(row, source)
        for target in heads:
            _draw(chars, source, target)
        for target, head in heads.items():
            chars[target] = head
        # Last, so that no arrow overwrites the mark of the row itself.
        chars[source] = _MARKS["fails" if row.failing else row.mark]
        return "".join(chars)

    def _heads(self, row: Row, source: int) -> dict[int, str]:
        """The end of each arrow, by its place in the row."""
        heads: dict[int, str] = {}
        for lane in (*row.wakes, *row.starts, *row.cancels):
            target = self._at.get(lane)
            if target is not None and target != source:
                heads[target] = "▶" if target > source else "◀"
        started = [self._at[lane] for lane in row.starts if lane in self._at]
        for target in started:
            heads[target] = ("┬", "╮", "╭")[_corner(target, source, heads)]
        for lane in row.cancels:
            if lane in self._at:
                heads[self._at[lane]] = "×"
        return heads


def _corner(target: int, source: int, heads: Iterable[int]) -> int:
    """0: an arrow continues behind it; 1: the last one on the right; 2: the last one on the left."""
    if target > source:
        return 1 if target == max(heads) else 0
    return 2 if target == min(heads) else 0


def _draw(chars: list[str], source: int, target: int) -> None:
    for at in range(min(source, target), max(source, target)):
        chars[at] = "─" if chars[at] in " ─" else "┼"


def _clock(seconds: float) -> str:
    return f"{seconds:.3f}"


def _cut(text: str, width: int) -> str:
    if len(text) <= width:
        return text
    return f"{text[: width - 1]}…" if width > 0 else ""
