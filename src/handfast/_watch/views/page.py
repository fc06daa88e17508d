"""A snapshot as one self-contained HTML file: no network, no server, no other file.

The tables and the tree are in the file as HTML, so that a browser without scripts shows them too. The
script sorts and filters.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from importlib.resources import files
from typing import NamedTuple

from handfast._watch.snapshot import CreationPlace, LoopState, Snapshot
from handfast._watch.views.cells import age, count_of, milliseconds, printable
from handfast._watch.views.place_rows import MEANING, PlaceRow, finding_rows, place_rows
from handfast._watch.views.table import held_up, number
from handfast._watch.views.tree import tree_lines

_NONE = "No place is known to grow, no task to be kept, and none to wait in vain."
_NONE_YET = (
    "Nothing was found yet. It takes more than an hour of load until a place is known to grow."
)
_DECIDED = 5400.0
"""After so many seconds a place that leaks steadily is known to grow."""

_MOST_LINES = 20_000
"""A longer tree is cut: a browser would be slow."""


class Cell(NamedTuple):
    """A cell of a table."""

    text: str
    value: float | None = None
    """What a column of numbers is sorted by."""
    title: str = ""
    markup: str = ""
    """HTML to show instead of the text."""


def page(snapshot: Snapshot) -> str:
    """Return the whole file as text."""
    process = snapshot.process
    program = printable(process.program)
    parts = {
        "title": f"{_text(program)} {process.pid}: {count_of(snapshot.alive, 'task')}",
        "program": _text(program),
        "process": f"process {process.pid}",
        "taken": _text(
            f"{_moment(snapshot.taken_at)}, watched for {age(process.watched_for)}, "
            f"Python {printable(process.python)}, handfast {printable(process.handfast)}"
        ),
        "facts": _facts(snapshot),
        "blocked": _blocked(snapshot),
        "findings": _findings(snapshot),
        "places": _places(snapshot),
        "loops": _loops(snapshot.loops),
        "slow": _slow(snapshot.loops),
        "tree": _tree(snapshot),
        "unchecked": _unchecked(snapshot),
    }
    return _filled(
        files("handfast._watch.views").joinpath("page.html").read_text(encoding="utf-8"), parts
    )


def _filled(template: str, parts: dict[str, str]) -> str:
    # Split before filling in, so that a `{{` inside a part is not taken for a slot.
    first, *rest = template.split("{{")
    filled = [first]
    for piece in rest:
        slot, _, tail = piece.partition("}}")
        filled += [parts[slot], tail]
    return "".join(filled)


def _text(text: str) -> str:
    return html.escape(printable(text))


def _moment(seconds: float) -> str:
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (ValueError, OverflowError, OSError):
        return "at an unknown time"


# --- above the tables ----------------------------------------------------------------------------


def _facts(snapshot: Snapshot) -> str:
    lag = max((each.lag_p99 or 0.0 for each in snapshot.loops), default=None)
    facts = [
        ("alive", snapshot.alive, False),
        ("growing places", sum(each.growth is not None for each in snapshot.places), True),
        ("never wake", sum(each.count for each in snapshot.never_wakes), True),
        ("finished, but kept", sum(each.count for each in snapshot.kept), True),
        ("scopes", len(snapshot.scopes), False),
    ]
    shown = [_fact(name, f"{count:,}", bad and count > 0) for name, count, bad in facts]
    return "".join([*shown, _fact("loop lag, p99", milliseconds(lag), False)])


def _fact(name: str, value: str, bad: bool) -> str:
    style = ' class="bad"' if bad else ""
    return f"<div><dt>{_text(name)}</dt><dd{style}>{_text(value)}</dd></div>"


def _blocked(snapshot: Snapshot) -> str:
    shown = "".join(f'<p class="blocked">{_text(each)}</p>' for each in held_up(snapshot))
    for loop in snapshot.loops:
        if loop.blocked_at:
            shown += f"<pre>{_lines(loop.blocked_at)}</pre>"
    return shown


def _unchecked(snapshot: Snapshot) -> str:
    if not snapshot.not_checked:
        return ""
    items = "".join(f"<li>{_text(each)}</li>" for each in snapshot.not_checked)
    return f"<h2>Not checked</h2><ul>{items}</ul>"


def _lines(lines: Iterable[str]) -> str:
    return "\n".join(map(_text, lines))


# --- tables --------------------------------------------------------------------------------------


def _table(
    titles: Sequence[str], rows: Iterable[Sequence[Cell]], marked: int = 0, name: str = ""
) -> str:
    """A table; columns whose cells have a value are numbers, and the first `marked` rows findings."""
    listed = list(rows)
    numeric = [
        any(row[column].value is not None for row in listed) for column in range(len(titles))
    ]
    head = "".join(
        f"<th{' class=number' if is_number else ''}><button>{_text(title)}</button></th>"
        for title, is_number in zip(titles, numeric, strict=True)
    )
    body = "".join(
        f"<tr{' class=finding' if index < marked else ''}>"
        + "".join(_cell(cell, is_number) for cell, is_number in zip(row, numeric, strict=True))
        + "</tr>"
        for index, row in enumerate(listed)
    )
    return (
        f'<table class="sortable" id="{name}"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table>"
    )


def _cell(cell: Cell, is_number: bool) -> str:
    value = cell.value if cell.value is not None else -1
    sort = f' class="number" data-value="{value!r}"' if is_number else ""
    title = f' title="{_text(cell.title)}"' if cell.title else ""
    return f"<td{sort}{title}>{cell.markup or _text(cell.text)}</td>"


def _findings(snapshot: Snapshot) -> str:
    rows = finding_rows(snapshot)
    if not rows:
        return f"<p>{_NONE if snapshot.process.watched_for > _DECIDED else _NONE_YET}</p>"
    items = []
    for code in sorted({each.code for each in rows}):
        places = sum(each.code == code for each in rows)
        items.append(f"<li><b>{_text(code)}</b> {_text(MEANING[code])} ({places})</li>")
    return f"<ul>{''.join(items)}</ul>"


def _places(snapshot: Snapshot) -> str:
    by_id = {each.id: each for each in snapshot.places}
    rows = place_rows(snapshot)
    cells = [_place_cells(row, None if row.place is None else by_id.get(row.place)) for row in rows]
    titles = ("code", "created at", "alive", "+/1k", "created", "oldest", "ages", "waiting at")
    return _table(titles, cells, marked=sum(bool(row.code) for row in rows), name="places")


def _place_cells(row: PlaceRow, place: CreationPlace | None) -> list[Cell]:
    ages = place.ages if place is not None and row.code in ("", "HF102") else ()
    return [
        Cell(row.code),
        Cell(row.created_at, title=row.file),
        Cell(f"{row.alive:,}", row.alive),
        Cell(number(row, "+/1k"), row.per_thousand),
        Cell(number(row, "created"), row.created),
        Cell(age(row.oldest), row.oldest),
        Cell("", markup=_bars(ages), title=_ages_in_words(ages)),
        Cell(row.waiting),
    ]


def _bars(ages: Sequence[int]) -> str:
    """The ages as bars, the youngest first, without the empty ends."""
    most = max(ages, default=0)
    if most <= 0:
        return "&nbsp;"
    used = [index for index, count in enumerate(ages) if count]
    bars = "".join(
        f'<i style="height:{max(0, 100 * count // most)}%"></i>'
        for count in ages[used[0] : used[-1] + 1]
    )
    return f'<span class="ages">{bars}</span>'


def _ages_in_words(ages: Sequence[int]) -> str:
    last = len(ages) - 1
    return ", ".join(
        f"{count:,} {'older' if index == last else f'below {age(2.0 ** (index - 6))}'}"
        for index, count in enumerate(ages)
        if count
    )


def _loops(loops: Iterable[LoopState]) -> str:
    lag: list[Callable[[LoopState], float | None]] = [
        lambda each: each.lag_p50,
        lambda each: each.lag_p99,
        lambda each: each.lag_worst,
    ]
    rows = [
        [
            Cell(each.kind),
            Cell(each.thread),
            Cell("running" if each.running else "not running"),
            Cell(f"{each.tasks:,}", each.tasks),
            *(Cell(milliseconds(part(each)), part(each)) for part in lag),
        ]
        for each in loops
    ]
    return _table(("loop", "thread", "state", "tasks", "lag p50", "p99", "worst"), rows)


def _slow(loops: Iterable[LoopState]) -> str:
    rows = [
        [
            Cell(slow.line),
            Cell(f"{slow.count:,}", slow.count),
            Cell(milliseconds(slow.worst), slow.worst),
        ]
        for each in loops
        for slow in each.slow
    ]
    if not rows:
        return ""
    return (
        f'<h2>Slow callbacks</h2><div class="wide">{_table(("line", "times", "worst"), rows)}</div>'
    )


def _tree(snapshot: Snapshot) -> str:
    lines = tree_lines(snapshot)
    shown = "\n".join(html.escape(each) for each in lines[:_MOST_LINES])
    if len(lines) > _MOST_LINES:
        shown += f"\nand {count_of(len(lines) - _MOST_LINES, 'more line')}"
    return shown
