"""The swimlane timeline for the terminal: a lane for each task, time running downwards.

`render` is plain text; `styled` is the same with colours, if rich is installed. What the rows say
comes from `rows`; here they are only drawn.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from holdfast.catalogue import UnknownCode, kind
from holdfast.explore.folding import Fold, State, columns, fold, follow
from holdfast.explore.rows import Lines, Row, lay_out
from holdfast.explore.story import LOOP, OUTSIDE, Story
from holdfast.explore.verdicts import Verdict

if TYPE_CHECKING:
    from rich.text import Text

__all__ = ["render", "styled"]

# A line is a list of pieces, each with the name of its style; plain text forgets the names.
Piece = tuple[str, str]
Line = list[Piece]

_CELL = 3
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
_COLOURS = ("blue", "green", "magenta", "cyan", "bright_blue", "bright_green", "bright_magenta")
_STYLES = {
    "bad": "bold red",
    "departure": "bold yellow",
    "dim": "bright_black",
    "name": "bold",
    "code": "cyan",
    "": "",
    **{f"lane{n}": colour for n, colour in enumerate(_COLOURS)},
}
_AROUND = 3


def render(story: Story, verdict: Verdict | None, width: int = 100) -> str:
    """The timeline as plain text, `width` columns wide at most."""
    lines = _lines(story, verdict, max(width, _NARROWEST))
    return "\n".join("".join(text for text, _ in line).rstrip() for line in lines) + "\n"


def styled(story: Story, verdict: Verdict | None, width: int = 100) -> Text:
    """The same for a rich console. Without rich this is an ImportError."""
    from rich.text import Text

    text = Text(no_wrap=True, overflow="crop")
    for line in _lines(story, verdict, max(width, _NARROWEST)):
        for piece, style in line:
            text.append(piece, style=_STYLES[style])
        text.append("\n")
    return text


def _lines(story: Story, verdict: Verdict | None, width: int) -> Iterator[Line]:
    if not story.steps:
        yield [("nothing ran", "dim")]
        return
    rows = lay_out(story, verdict)
    shown = fold(rows)
    lanes = columns(story, shown, most=max(3, width * 2 // 5 // _CELL))
    drawing = _Drawing(story, shown, lanes, width)
    yield from _header(story, verdict, rows, width)
    yield []
    yield from drawing.names()
    yield from drawing.body()
    yield from _excerpts(story, rows, width)
    yield []
    yield from _key(story, shown, width)


# --- above and below ---------------------------------------------------------------------------


def _header(story: Story, verdict: Verdict | None, rows: list[Row], width: int) -> Iterator[Line]:
    if verdict is None:
        yield [("nothing went wrong in this run", "name")]
    else:
        yield [(verdict.code, "bad"), (f"  {_kind_name(verdict.code)}", "name")]
        for line in textwrap.wrap(verdict.message, width - 2):
            yield [(f"  {line}", "")]
        for where in verdict.where:
            yield [(_cut(f"  {where}", width), "dim")]
    departures = sum(row.departure for row in rows)
    seconds = story.steps[-1].time if story.steps else 0.0
    facts = (
        f"{_many(len(story.lanes), 'task')}, {_many(len(story.steps), 'step')}, "
        f"{seconds:.3f} s of virtual time, {_many(departures, 'departure')} from the plain order"
    )
    for line in textwrap.wrap(facts, width - 2):
        yield [(f"  {line}", "dim")]


def _kind_name(code: str) -> str:
    try:
        return kind(code).name
    except UnknownCode:
        return ""


def _excerpts(story: Story, rows: list[Row], width: int) -> Iterator[Line]:
    """The source around the failing line, or around where each stuck task waits."""
    seen: set[int] = set()
    for row in rows:
        if row.failing and row.place is not None and row.place not in seen and len(seen) < 3:
            seen.add(row.place)
            yield []
            yield from _excerpt(story, row.place, width)


def _excerpt(story: Story, index: int, width: int) -> Iterator[Line]:
    place = story.places[index]
    yield [(_cut(f"  {place.file}:{place.line} in {place.function}", width), "name")]
    for source in story.sources:
        if source.file != place.file or not 0 <= place.line - source.first < len(source.lines):
            continue
        first = max(place.line - _AROUND, place.first, source.first)
        last = max(place.line, min(place.line + _AROUND, place.last))
        lines = source.lines[first - source.first : last - source.first + 1]
        common = textwrap.dedent("\n".join(lines)).split("\n")
        for number, text in enumerate(common, first):
            here = number == place.line
            lead = f"  {'▶' if here else ' '} {number:>5} │ "
            yield [(_cut(lead + text, width), "bad" if here else "dim")]
        return


def _key(story: Story, shown: Sequence[Row | Fold], width: int) -> Iterator[Line]:
    """What the signs mean: only those that occur."""
    rows = [row for row in shown if isinstance(row, Row)]
    marks = {row.mark for row in rows}
    said = ["● runs, then waits"]
    said += ["■ returns"] if "returns" in marks else []
    said += ["✗ goes wrong"] if any(row.failing or row.mark == "fails" for row in rows) else []
    said += ["⊘ ends cancelled"] if "cancelled" in marks else []
    said += ["◆ timer or callback"] if marks & {"timer", "callback"} else []
    said += ["◇ comes from outside"] if "arrival" in marks else []
    said += ["┊ waits", "┃ in the queue: its turn is still to come"]
    said += ["─╮ starts"] if any(row.starts for row in rows) else []
    said += ["─▶ wakes"] if any(row.wakes for row in rows) else []
    said += ["─× cancels"] if "cancel" in marks or any(row.cancels for row in rows) else []
    said += ["» departs from the plain order"] if any(row.departure for row in rows) else []
    said.append(f"9 → 11 went on from line 9, waits at line 11 (of {Lines(story).home})")
    line = " "
    for item in said:
        if len(line) + len(item) + 2 > width and line.strip():
            yield [(line, "dim")]
            line = " "
        line += f" {item} "
    yield [(_cut(line, width), "dim")]


# --- the drawing -------------------------------------------------------------------------------


class _Drawing:
    """Lanes at the left, words at the right."""

    def __init__(
        self, story: Story, shown: Sequence[Row | Fold], lanes: list[int], width: int
    ) -> None:
        self._story = story
        self._shown = shown
        self._lanes = lanes
        self._at = {lane: _CELL * i for i, lane in enumerate(lanes)}
        rows = [row for row in shown if isinstance(row, Row)]
        number = len(str(max((row.step or 0 for row in rows), default=0) + 1))
        time = len(_clock(max((row.time for row in rows), default=0.0)))
        self._number, self._time = max(number, 4), max(time, 5)
        # Number, two blanks, time, two blanks.
        self._gutter = self._number + self._time + 5
        self._room = max(20, width - self._gutter - _CELL * len(lanes) - 1)
        self._width = width
        whos = [len(row.who) for row in rows if not row.departure]
        words = [len(row.words) for row in rows if row.place is not None and not row.departure]
        # The words come first: a name is also above its lane, the source also in the file.
        self._who = min(16, self._room // 4, max(whos, default=0))
        self._words = min(28, self._room - self._who - 4, max(words, default=0))
        self._state: dict[int, State] = {0: "ready"}

    # --- names of the lanes ----------------------------------------------------------------------

    def names(self) -> Iterator[Line]:
        rows = [row for row in self._shown if isinstance(row, Row)]
        spoken_of = {lane for r in rows for lane in (r.lane, *r.wakes, *r.starts, *r.cancels)}
        unseen = spoken_of - {*self._lanes, LOOP, OUTSIDE}
        if unseen:
            yield [
                (f"{' ' * self._gutter}{_many(len(unseen), 'task')} more, without a lane", "dim")
            ]
        for at, lane in enumerate(self._lanes):
            lead = "│  " * at + "╭─ "
            name, more = self._named(lane)
            gutter = " " * self._gutter
            if at == 0:
                gutter = f" {'step':>{self._number}}  {'time':>{self._time}}  "
            room = self._width - self._gutter - len(lead)
            yield [
                (gutter, "dim"),
                (lead, "dim"),
                (_cut(name, room), _hue(lane)),
                (_cut(more, max(0, room - len(name))), "dim"),
            ]

    def _named(self, lane: int) -> tuple[str, str]:
        if lane == LOOP:
            return "the loop", "  timers and callbacks"
        if lane == OUTSIDE:
            return "outside", "  what arrives from there"
        task = self._story.lanes[lane]
        place = task.birth
        if place is None:
            return task.name, "  the program itself" if lane == 0 else ""
        at = self._story.places[place]
        return task.name, f"  started at {at.file}:{at.line} in {at.function}"

    # --- rows --------------------------------------------------------------------------------

    def body(self) -> Iterator[Line]:
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
                yield self._aside("the program has ended; what is ready still runs")
            now = _clock(row.time)
            yield from self._row(row, now if now != time else "")
            time = now

    def _folded(self, row: Fold) -> Line:
        cells = "".join("⋮  " if self._state.get(lane) else "   " for lane in self._lanes)
        return [(f" {'⋮':>{self._number}}{'':{self._time + 4}}{cells} ", "dim"), (str(row), "dim")]

    def _aside(self, text: str) -> Line:
        return [(" " * self._gutter, ""), *self._between(), (f" {_cut(text, self._room)}", "dim")]

    def _row(self, row: Row, time: str) -> Iterator[Line]:
        gutter = self._leader(row, time)
        cells = self._cells(row, dict(self._state))
        follow(row, self._state)
        texts = list(self._texts(row))
        yield [gutter, *cells, (" ", ""), *texts[0]]
        for more in texts[1:]:
            yield [(" " * self._gutter, ""), *self._between(), (" ", ""), *more]

    def _leader(self, row: Row, time: str) -> Piece:
        if row.departure:
            # The arrow of a cancel comes from outside the lanes.
            blank = "─" if row.mark == "cancel" else " "
            return f"{f' » {row.mark} ':{blank}<{self._gutter}}", "departure"
        if row.mark == "stuck":
            return f"{' at the end':{self._gutter}}", "bad"
        number = "" if row.step is None else str(row.step + 1)
        style = "bad" if row.failing else "dim"
        return f" {number:>{self._number}}  {time:>{self._time}}  ", style

    def _texts(self, row: Row) -> Iterator[Line]:
        """The words of a row; a departure or a failure may take several lines."""
        if row.departure:
            for line in textwrap.wrap(f"{row.who} {row.words}".strip(), self._room):
                yield [(line, "departure")]
            return
        style = "bad" if row.failing else "dim" if row.lane == LOOP else ""
        hue = style or _hue(row.lane)
        who = f"{_cut(row.who, self._who):{self._who}}  "
        source = "" if row.place is None else self._story.places[row.place].text
        if row.lane in (LOOP, OUTSIDE) or not source:
            yield [(who, style), (_cut(row.words, self._room - len(who)), style)]
        else:
            ended = row.mark in ("returns", "cancelled") and not row.failing

            words = f"{_cut(row.words, self._room - len(who) - 2):{self._words}}  "
            yield [
                (who, hue),
                (words, style),
                (
                    _cut(source, self._room - len(who) - len(words)),
                    style or ("dim" if ended else "code"),
                ),
            ]
        if row.note and row.lane >= 0:
            for line in textwrap.wrap(row.note, self._room - len(who)):
                yield [(" " * len(who), ""), (line, "bad" if row.failing else "")]

    # --- cells -------------------------------------------------------------------------------

    def _between(self) -> Line:
        return [("".join(f"{_STATES[self._state.get(lane, '')]}  " for lane in self._lanes), "dim")]

    def _cells(self, row: Row, before: dict[int, State]) -> Line:
        """The lanes of one row: who is where, and an arrow to everyone whom this row touches."""
        chars = list("".join(f"{_STATES[before.get(lane, '')]}  " for lane in self._lanes))
        source = self._at.get(row.lane)
        if row.mark == "choice" or source is None:
            return [("".join(chars), "dim")]
        if row.mark == "cancel":
            _draw(chars, 0, source)
        heads = self._heads(row, source)
        for target in heads:
            _draw(chars, source, target)
        for target, head in heads.items():
            chars[target] = head
        chars[source] = _MARKS["fails" if row.failing else row.mark]
        style = "departure" if row.departure else "bad" if row.failing else _hue(row.lane)
        low, high = min((source, *heads)), max((source, *heads)) + 1
        if row.mark == "cancel":
            low = 0
        text = "".join(chars)
        return [(text[:low], "dim"), (text[low:high], style), (text[high:], "dim")]

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
    """0: an arrow goes on behind it; 1: the last one at the right; 2: the last one at the left."""
    if target > source:
        return 1 if target == max(heads) else 0
    return 2 if target == min(heads) else 0


def _draw(chars: list[str], source: int, target: int) -> None:
    for at in range(min(source, target), max(source, target)):
        chars[at] = "─" if chars[at] in " ─" else "┼"


def _hue(lane: int) -> str:
    return f"lane{lane % len(_COLOURS)}" if lane >= 0 else "dim"


def _clock(seconds: float) -> str:
    return f"{seconds:.3f}"


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def _cut(text: str, room: int) -> str:
    if len(text) <= room:
        return text
    return f"{text[: room - 1]}…" if room > 0 else ""
