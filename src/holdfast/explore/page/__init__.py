"""The timeline as one HTML file that needs nothing else: no network, no server, no other file.

The rows are those of the terminal's timeline; `timeline.js` draws them, `style.css` dresses them,
and `template.html` is what surrounds both. A reader without scripts gets the plain text.
"""

from __future__ import annotations

import html
import json
from importlib.resources import files
from typing import Any

from holdfast.catalogue import UnknownCode, kind
from holdfast.explore.folding import Fold, State, columns, fold, follow
from holdfast.explore.rows import Lines, Row, lay_out
from holdfast.explore.story import LOOP, OUTSIDE, Story
from holdfast.explore.timeline import render
from holdfast.explore.verdicts import Verdict

__all__ = ["page"]

_MOST_LANES = 14
# What is folded can be opened again, unless there is more of it than a browser draws with ease.
_MOST_FOLDED = 4_000


def page(story: Story, verdict: Verdict | None, token: str, replay_line: str) -> str:
    """The whole file as text. `replay_line` is the command that shows the same run again."""
    parts = {
        "title": html.escape(_title(verdict)),
        "style": _part("style.css"),
        "data": _inert(_data(story, verdict, token, replay_line)),
        "script": _part("timeline.js"),
        "plain": html.escape(render(story, verdict, 110)),
    }
    # Split first, so that nothing inside a part is ever taken for a slot.
    first, *rest = _part("template.html").split("{{")
    filled = [first]
    for piece in rest:
        slot, _, tail = piece.partition("}}")
        filled += [parts[slot], tail]
    return "".join(filled)


def _part(name: str) -> str:
    return files(__name__).joinpath(name).read_text(encoding="utf-8")


def _title(verdict: Verdict | None) -> str:
    return "a run that went well" if verdict is None else f"{verdict.code} {verdict.message}"


def _inert(data: dict[str, Any]) -> str:
    """JSON that cannot end the script element around it."""
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")


def _data(story: Story, verdict: Verdict | None, token: str, replay_line: str) -> dict[str, Any]:
    rows = lay_out(story, verdict)
    shown = fold(rows)
    few = len(story.lanes) + 2 <= _MOST_LANES
    lanes = columns(story, rows if few else shown, most=_MOST_LANES)
    folded = sum(len(item.rows) for item in shown if isinstance(item, Fold))
    row_data = _Rows(lanes)
    return {
        "verdict": None if verdict is None else _verdict(verdict),
        "token": token,
        "replay": replay_line,
        "home": Lines(story).home,
        "facts": {
            "tasks": len(story.lanes),
            "steps": len(story.steps),
            "seconds": story.steps[-1].time if story.steps else 0.0,
            "departures": sum(row.departure for row in rows),
        },
        "lanes": [_lane(story, lane) for lane in lanes],
        "unseen": len({row.lane for row in rows if row.lane >= 0} - set(lanes)),
        "items": [
            row_data.folded(item, openable=folded <= _MOST_FOLDED)
            if isinstance(item, Fold)
            else row_data.row(item)
            for item in shown
        ],
        "places": [
            {"file": p.file, "line": p.line, "function": p.function, "text": p.text}
            for p in story.places
        ],
        "sources": [{"file": s.file, "first": s.first, "lines": s.lines} for s in story.sources],
    }


def _verdict(verdict: Verdict) -> dict[str, Any]:
    try:
        known = kind(verdict.code)
    except UnknownCode:
        name = summary = ""
    else:
        name, summary = known.name, known.summary
    return {
        "code": verdict.code,
        "name": name,
        "summary": summary,
        "message": verdict.message,
        "where": list(verdict.where),
    }


def _lane(story: Story, number: int) -> dict[str, Any]:
    if number == LOOP:
        return {"name": "the loop", "kind": "loop", "born": "timers and callbacks"}
    if number == OUTSIDE:
        return {"name": "outside", "kind": "outside", "born": "what arrives from there"}
    lane = story.lanes[number]
    born = "the program itself" if number == 0 else ""
    if lane.birth is not None:
        place = story.places[lane.birth]
        born = f"started at {place.file}:{place.line} in {place.function}"
    return {"name": lane.name, "kind": "task", "born": born}


def _empty(value: Any) -> bool:
    """Zero is a lane, a place and a time."""
    return value is None or value is False or value == "" or value == []


class _Rows:
    """Rows as the script wants them: lanes by their column, empty things left out."""

    def __init__(self, lanes: list[int]) -> None:
        self._columns = {lane: column for column, lane in enumerate(lanes)}
        self._state: dict[int, State] = {0: "ready"}

    def folded(self, item: Fold, *, openable: bool) -> dict[str, Any]:
        for row in item.rows:
            follow(row, self._state)
        after = [self._state.get(lane, "") for lane in self._columns]
        rows = [self._bare(row) for row in item.rows] if openable else []
        # What is not in the file cannot be followed by the script: it is told what came of it.
        return {"fold": rows, "open": openable, "says": str(item), "after": after}

    def row(self, row: Row) -> dict[str, Any]:
        follow(row, self._state)
        return self._bare(row)

    def _bare(self, row: Row) -> dict[str, Any]:
        data: dict[str, Any] = {
            "mark": row.mark,
            "lane": self._columns.get(row.lane, -1),
            "step": None if row.step is None else row.step + 1,
            "time": round(row.time, 6),
            "who": row.who,
            "words": row.words,
            "place": row.place,
            "left": row.left,
            "chain": row.chain,
            "call": row.call,
            "note": row.note,
            "why": row.why,
            "wakes": self._seen(row.wakes),
            "starts": self._seen(row.starts),
            "cancels": self._seen(row.cancels),
            "departure": row.departure,
            "failing": row.failing,
            "settling": row.settling,
        }
        return {name: value for name, value in data.items() if not _empty(value)}

    def _seen(self, lanes: list[int]) -> list[int]:
        return [self._columns[lane] for lane in lanes if lane in self._columns]
