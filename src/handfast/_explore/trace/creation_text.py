"""Which line created a task that was left over: only a traced run knows it."""

from __future__ import annotations

from handfast._explore.trace.model import Trace

_WAITING = " waiting at "


def with_creation(lines: tuple[str, ...], trace: Trace) -> tuple[str, ...]:
    """The lines about pending tasks, such as `poll waiting at a.py:3 in poll`, with the line that
    created each of them."""
    pending = [lane for lane in trace.lanes if not lane.end]
    if len(pending) != len(lines):  # more than a report shows, or than a trace records
        return lines
    return tuple(
        line if lane.created_at is None else _with_place(line, trace, lane.created_at)
        for line, lane in zip(lines, pending, strict=True)
    )


def _with_place(line: str, trace: Trace, number: int) -> str:
    place = trace.places[number]
    created = f" created at {place.file}:{place.line} in {place.function},{_WAITING}"
    return line.replace(_WAITING, created, 1)
