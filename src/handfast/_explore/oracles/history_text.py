"""A history that no order explains, in few lines."""

from __future__ import annotations

import asyncio
import reprlib
from collections.abc import Sequence
from typing import Any

from handfast._explore.oracles.operation import ANYTHING, Operation
from handfast._explore.oracles.ordering import Found, Refusal, WouldBlock
from handfast._explore.verdict.error_text import printable

# The operations, and the reasons, that are listed.
_OPERATIONS, _REASONS = 40, 5
_short = reprlib.Repr()
_short.maxstring = _short.maxother = 40


def describe_history(what: str, operations: Sequence[Operation], found: Found) -> str:
    """The operations in the order of their invocation, with the longest order that fits."""
    listed = sorted(operations, key=lambda each: each.began)
    width = max((len(each.task) for each in listed), default=0)
    lines = [f"{what}: no order of these {len(listed)} operations gives these results"]
    # Dense numbers: 1 to twice the number of operations.
    times = sorted({time for each in listed for time in (each.began, each.ended)})
    when = {time: number for number, time in enumerate(times, start=1)}
    lines += [_line(each, width, when) for each in listed[:_OPERATIONS]]
    if len(listed) > _OPERATIONS:
        lines.append(f"  and {len(listed) - _OPERATIONS:,} more")
    if found.longest:
        steps = [call_text(each) for each in found.longest]
        more = f"{len(steps) - _OPERATIONS:,} before; " if len(steps) > _OPERATIONS else ""
        lines.append(f"longest order that fits: {more}{'; '.join(steps[-_OPERATIONS:])}")
    lines += [f"  then {_refusal(each)}" for each in found.refusals[:_REASONS]]
    if not found.refusals:
        lines.append("  then the final state is another one")
    return "\n".join(lines)


def call_text(operation: Operation) -> str:
    """The call as a user would write it."""
    words = [_text(each) for each in operation.args]
    words += [f"{name}={_text(value)}" for name, value in operation.kwargs.items()]
    return f"{operation.name}({', '.join(words)})"


def _line(operation: Operation, width: int, when: dict[float, int]) -> str:
    times = f"{when[operation.began]}-{when[operation.ended] if operation.known else ''}"
    return f"  {operation.task:{width}}  {times:>5}  {call_text(operation)}{_outcome(operation)}"


def _outcome(operation: Operation) -> str:
    error = operation.error
    if not operation.known:
        if error is None:
            return " has not returned"
        cancelled = isinstance(error, asyncio.CancelledError)
        return " was cancelled" if cancelled else f" failed with {type(error).__name__}"
    if error is not None:
        return f" raised {type(error).__name__}"
    return "" if operation.result is ANYTHING else f" -> {_text(operation.result)}"


def _refusal(refusal: Refusal) -> str:
    call = call_text(refusal.operation) + _outcome(refusal.operation)
    if isinstance(refusal.error, WouldBlock):
        return f"{call}, where the model would block"
    if refusal.error is not None:
        return f"{call}, where the model raises {type(refusal.error).__name__}"
    return f"{call}, where the model returns {_text(refusal.answer)}"


def _text(value: Any) -> str:
    return printable(_short.repr(value))
