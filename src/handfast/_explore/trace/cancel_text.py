"""Who cancelled what, and where, as lines of a report."""

from __future__ import annotations

from handfast._explore.trace.model import LOOP, Cancellation, Trace

# The lines that a report can use.
_MOST = 5
# Callbacks of asyncio, by their class.
_CALLBACKS = {"Timeout": "its timeout", "TaskGroup": "its task group"}


def cancel_lines(trace: Trace) -> tuple[str, ...]:
    """A line for each task that was cancelled, in the order of time.

    A cancel that repeats another one, as at each level of nested task groups, is left out.
    """
    lines = list(dict.fromkeys(_line(trace, each) for each in trace.cancellations))
    if len(lines) > _MOST:
        lines[_MOST:] = [f"and {len(lines) - _MOST:,} other calls of cancel()"]
    return tuple(lines)


def _line(trace: Trace, cancel: Cancellation) -> str:
    line = f"{trace.lanes[cancel.lane].name} was cancelled by {_who(trace, cancel)}"
    if cancel.place is not None:
        return f"{line} at {_place(trace, cancel.place)}"
    if cancel.waits_at is not None:
        return f"{line} while it waited at {_place(trace, cancel.waits_at)}"
    return line


def _who(trace: Trace, cancel: Cancellation) -> str:
    if cancel.by is None:
        return "the explorer"
    if cancel.by == cancel.lane:
        # Without a line it is a callback, `loop.call_later(1, task.cancel)`.
        return "itself" if cancel.place is not None else "a callback"
    if cancel.by != LOOP:
        return trace.lanes[cancel.by].name
    return _CALLBACKS.get(cancel.callback.partition(".")[0], f"the callback {cancel.callback}")


def _place(trace: Trace, number: int) -> str:
    place = trace.places[number]
    return f"{place.file}:{place.line} in {place.function}"
