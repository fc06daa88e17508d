"""The timeline as one self-contained HTML file: no network, no server, no other file.

The rows are those of the terminal's timeline. `timeline.js` draws them, with `style.css` and
`template.html`. A browser without scripts shows the plain text.
"""

from __future__ import annotations

import html
import json
from importlib.resources import files
from typing import Any

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
from handfast._explore.render.timeline import render
from handfast._explore.trace.model import LOOP, OUTSIDE, Trace
from handfast._explore.verdict.verdict import Verdict
from handfast.catalogue import UnknownCode, kind

__all__ = ["page"]

_MOST_LANES = 14
_LANE_KINDS = {LOOP: "loop", OUTSIDE: "outside"}
# More folded rows than this are left out of the file: a browser would draw them too slowly.
_MOST_FOLDED = 4_000


def page(trace: Trace, verdict: Verdict | None, token: str, replay_line: str) -> str:
    """The whole file as text. `replay_line` is the command that replays the run."""
    parts = {
        "title": html.escape(_title(verdict)),
        "style": _part("style.css"),
        "data": _inert(_data(trace, verdict, token, replay_line)),
        "script": _part("timeline.js"),
        "plain": html.escape(render(trace, verdict, 110)),
    }
    # Split before filling in, so that a `{{` inside a part is not taken for a slot.
    first, *rest = _part("template.html").split("{{")
    filled = [first]
    for piece in rest:
        slot, _, tail = piece.partition("}}")
        filled += [parts[slot], tail]
    return "".join(filled)


def _part(name: str) -> str:
    return files(__name__).joinpath(name).read_text(encoding="utf-8")


def _title(verdict: Verdict | None) -> str:
    return "no finding in this run" if verdict is None else f"{verdict.code} {verdict.message}"


def _inert(data: dict[str, Any]) -> str:
    """JSON that cannot end the script element that contains it."""
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")


def _data(trace: Trace, verdict: Verdict | None, token: str, replay_line: str) -> dict[str, Any]:
    rows = lay_out(trace, verdict)
    shown = fold(rows)
    # If all tasks fit, folded rows count too: they can be opened in the page.
    few = len(trace.lanes) + 2 <= _MOST_LANES
    lanes = columns(trace, rows if few else shown, most=_MOST_LANES)
    folded = sum(len(item.rows) for item in shown if isinstance(item, Fold))
    # One object for all items: it follows the state of the tasks from row to row.
    row_data = _Rows(lanes)
    return {
        "verdict": None if verdict is None else _verdict(verdict),
        "token": token,
        "replay": replay_line,
        "home": Lines(trace).home,
        "facts": {
            "tasks": len(trace.lanes),
            "steps": len(trace.steps),
            "seconds": trace.steps[-1].time if trace.steps else 0.0,
            "departures": sum(row.departure for row in rows),
        },
        "lanes": [_lane(trace, lane) for lane in lanes],
        "unseen": len({row.lane for row in rows if row.lane >= 0} - set(lanes)),
        "items": [
            row_data.folded(item, openable=folded <= _MOST_FOLDED)
            if isinstance(item, Fold)
            else row_data.row(item)
            for item in shown
        ],
        "places": [
            {"file": p.file, "line": p.line, "function": p.function, "text": p.text}
            for p in trace.places
        ],
        "sources": [{"file": s.file, "first": s.first, "lines": s.lines} for s in trace.sources],
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
        "where": [*verdict.where, *verdict.cancelled],
        "advice": verdict.advice,
    }


def _lane(trace: Trace, number: int) -> dict[str, Any]:
    name, created = lane_title(trace, number)
    return {"name": name, "kind": _LANE_KINDS.get(number, "task"), "created": created}


def _empty(value: Any) -> bool:
    """Whether a value can be left out. Not zero, which is a lane, a place and a time."""
    return value is None or value is False or value == "" or value == []


class _Rows:
    """Rows as the script expects them: lanes by column, empty values left out."""

    def __init__(self, lanes: list[int]) -> None:
        self._columns = {lane: column for column, lane in enumerate(lanes)}
        self._state: dict[int, State] = {0: "ready"}

    def folded(self, item: Fold, *, openable: bool) -> dict[str, Any]:
        for row in item.rows:
            follow(row, self._state)
        after = [self._state.get(lane, "") for lane in self._columns]
        rows = [self._bare(row) for row in item.rows] if openable else []
        # The script cannot follow rows that are not in the file, so it gets the states after them.
        return {"fold": rows, "open": openable, "says": str(item), "after": after}

    def row(self, row: Row) -> dict[str, Any]:
        follow(row, self._state)
        return self._bare(row)

    def _bare(self, row: Row) -> dict[str, Any]:
        data: dict[str, Any] = {
            "mark": row.mark,
            "lane": self._columns.get(row.lane, -1),
            "step": None if row.step is None else row.step + 1,
            # Virtual times are sums of floats; more digits would only be noise.
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
