"""One process as a table of places, and the list of the processes, as plain text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from handfast._watch.snapshot import LoopState, Snapshot
from handfast._watch.views.cells import (
    age,
    count_of,
    fit,
    milliseconds,
    printable,
    signed,
    width_of,
)
from handfast._watch.views.place_rows import PlaceRow, finding_rows, place_rows

_NARROWEST = 60


class Column(NamedTuple):
    """A column of numbers, and how wide it is."""

    title: str
    width: int


_NUMBERS = [Column("alive", 7), Column("+/1k", 6), Column("created", 10), Column("oldest", 6)]


def table(snapshot: Snapshot, width: int = 80, most: int = 30) -> str:
    """Return the state of a process: a headline, the loops that are held up, and `most` places.

    >>> from handfast.watch import WatchedProcess
    >>> taken = Snapshot(WatchedProcess(4711, "bot.py", "3.13.0", "0.2.0", 60.0), taken_at=0.0)
    >>> print(table(taken), end="")
    4711  bot.py   alive 0   watched for 1m00   Python 3.13.0
    No task is alive.
    """
    rows = place_rows(snapshot)
    lines = [fit(headline(snapshot), width).rstrip(), *held_up(snapshot)]
    if rows:
        lines += draw(rows[:most], width)
        if len(rows) > most:
            lines.append(f"and {count_of(len(rows) - most, 'more place')}")
    else:
        lines.append("No task is alive.")
    lines += [f"not checked: {printable(each)}" for each in snapshot.not_checked]
    return "\n".join(lines) + "\n"


def headline(snapshot: Snapshot) -> str:
    """Return the process, its loops, and how many tasks are alive, in one line."""
    process = snapshot.process
    parts = [f"{process.pid}  {printable(process.program, 40)}"]
    if snapshot.loops:
        parts.append(_lag(snapshot.loops))
    growing = any(each.growth is not None for each in snapshot.places)
    parts.append(f"alive {snapshot.alive:,}{' ▲' if growing else ''}")
    if kept := sum(each.count for each in snapshot.kept):
        parts.append(f"kept {kept:,}")
    if never := sum(each.count for each in snapshot.never_wakes):
        parts.append(f"never wake {never:,}")
    # What matters least comes last, where a narrow terminal cuts it.
    parts += [f"watched for {age(process.watched_for)}", f"Python {printable(process.python)}"]
    return "   ".join(parts)


def _lag(loops: Sequence[LoopState]) -> str:
    worst = max(loops, key=lambda each: each.lag_p99 or 0.0)
    noun = "loop" if len(loops) == 1 else f"{len(loops)} loops, slowest"
    if worst.lag_p50 is None:
        return f"{noun} not measured yet"
    return f"{noun} {milliseconds(worst.lag_p50)}, p99 {milliseconds(worst.lag_p99)}"


def held_up(snapshot: Snapshot) -> list[str]:
    """Return a line for each loop that a callback holds up now."""
    return [
        f"BLOCKED for {age(each.blocked_for)}: thread {printable(each.thread)}"
        + (f" at {printable(each.blocked_at[-1])}" if each.blocked_at else "")
        for each in snapshot.loops
        if each.blocked_for
    ]


# --- places --------------------------------------------------------------------------------------


def draw(rows: Sequence[PlaceRow], width: int) -> list[str]:
    """Return the rows under their titles, each in `width` columns."""
    width = max(width, _NARROWEST)
    # What was created at all is left out first.
    numbers = [each for each in _NUMBERS if width >= 100 or each.title != "created"]
    left = width - 8 - sum(each.width + 2 for each in numbers)
    created_at = min(left * 48 // 100, max(10, *(width_of(row.created_at) for row in rows)))
    waiting = left - created_at - 2
    titles = [f"{'':7} {fit('created at', created_at)}"]
    titles += [each.title.rjust(each.width) for each in numbers]
    lines = ["  ".join([*titles, "waiting at"])]
    for row in rows:
        cells = [f"{_mark(row):7} {fit(row.created_at, created_at)}"]
        cells += [number(row, each.title).rjust(each.width) for each in numbers]
        lines.append("  ".join([*cells, fit(row.waiting, waiting)]).rstrip())
    return lines


def number(row: PlaceRow, title: str) -> str:
    """Return the text of a column of numbers."""
    if title == "alive":
        return f"{row.alive:,}"
    if title == "oldest":
        return age(row.oldest)
    if title == "created":
        return "-" if row.created is None else f"{row.created:,}"
    return "-" if row.per_thousand is None else signed(row.per_thousand)


def _mark(row: PlaceRow) -> str:
    return f"{row.code} ▲" if row.per_thousand is not None else row.code


# --- processes -----------------------------------------------------------------------------------


def processes_table(snapshots: Sequence[Snapshot], width: int = 80) -> str:
    """Return a line for each process, and under it what was found in it."""
    name = max([7, *(width_of(printable(each.process.program, 40)) for each in snapshots)])
    name = min(name, max(12, width - 50))
    head = f"{'PID':>7}  {fit('program', name)}  {'python':8}{'loops':>6}{'tasks':>9}"
    lines = [f"{head}{'p99':>9}  watched"]
    for each in snapshots:
        lines += _process_lines(each, name, width)
    return "\n".join(lines) + "\n"


def _process_lines(snapshot: Snapshot, name: int, width: int) -> list[str]:
    process = snapshot.process
    lag = max((each.lag_p99 or 0.0 for each in snapshot.loops), default=None)
    line = (
        f"{process.pid:>7}  {fit(printable(process.program, 40), name)}"
        f"  {fit(printable(process.python), 8)}{len(snapshot.loops):>6}{snapshot.alive:>9,}"
        f"{milliseconds(lag):>9}  {age(process.watched_for)}"
    )
    found = [
        fit(
            f"         {_mark(row)}  {row.created_at}: {row.alive:,}, {row.waiting}", width
        ).rstrip()
        for row in finding_rows(snapshot)
    ]
    return [line, *(f"         {each}" for each in held_up(snapshot)), *found]
