"""Tasks that wait forever on purpose, until a cancel.

    async with serve(handler, port):
        await asyncio.Future()  # run forever

What tells this from a lost waker: the future or event was never given to anyone. Either the awaited
expression creates it, or a variable has it that is used for nothing but the wait.
"""

from __future__ import annotations

import asyncio
import dis
from asyncio import Task
from collections.abc import Iterator
from types import CodeType, FrameType
from typing import Any

from handfast._asyncio_internals import awaited_future
from handfast._await_stack import await_frames


def is_parked(task: Task[Any]) -> bool:
    """Whether a task waits for a future or an event that was never given to anyone, or runs a
    coroutine of a class that cannot be read."""
    try:
        frames = list(await_frames(Task.get_coro(task)))
    except Exception:  # its attributes may raise anything
        return True
    if not frames:
        return False
    if frames[-1].f_code is asyncio.Event.wait.__code__:
        return len(frames) > 1 and _never_given(frames[-2], {"Event"})
    if type(awaited_future(task)) is asyncio.Future:
        return _never_given(frames[-1], {"Future", "create_future"})
    return False


def _never_given(frame: FrameType, creators: set[str]) -> bool:
    awaited = _position(frame.f_code, frame.f_lasti)
    uses = list(_uses(frame.f_code))
    inside = [name for name, place in uses if _within(place, awaited)]
    if creators.intersection(inside):
        return True
    variables = _variables(frame.f_code)
    held = variables.intersection(inside)
    if not held or not creators.intersection(frame.f_code.co_names):
        return False
    return all(_within(place, awaited) for name, place in uses if name in held)


def _variables(code: CodeType) -> set[str]:
    """The local variables without the parameters, by name.

    Not `frame.f_locals`: until 3.12 that leaves a dict of the values in the frame.
    """
    parameters = code.co_argcount + code.co_kwonlyargcount
    return set(code.co_varnames[parameters:])


Position = tuple[int, int, int, int]


def _position(code: CodeType, lasti: int) -> Position:
    return _full(list(code.co_positions())[lasti // 2])


def _full(place: Any) -> Position:
    line, end_line, column, end_column = (each or 0 for each in place)
    return line, column, end_line, end_column


def _within(inner: Position, outer: Position) -> bool:
    return outer[:2] <= inner[:2] and inner[2:] <= outer[2:]


def _uses(code: CodeType) -> Iterator[tuple[Any, Position]]:
    """The names that are read in some code, and where."""
    for each in dis.get_instructions(code):
        reads = each.opname.startswith("LOAD_") and each.opname != "LOAD_CONST"
        if reads and each.positions is not None:
            names = each.argval if isinstance(each.argval, tuple) else (each.argval,)
            position = each.positions
            place = (position.lineno, position.end_lineno, position.col_offset)
            for name in names:
                yield name, _full((*place, position.end_col_offset))
