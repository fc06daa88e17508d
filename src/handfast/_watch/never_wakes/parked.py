"""Tasks that wait forever on purpose, until a cancel.

    async with serve(handler, port):
        await asyncio.Future()  # run forever

What tells this from a lost waker: the future or event was never given to anyone. Either the awaited
expression creates it, or a variable has it that is used for nothing but the wait and for its state.
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

# What a loop around the wait asks.
_STATE = ("cancelled", "clear", "done", "is_set")


def is_parked(task: Task[Any]) -> bool:
    """Whether a task waits for a future or an event that was never given to anyone, or runs a
    coroutine of a class that cannot be read."""
    try:
        frames = list(await_frames(Task.get_coro(task)))
    except Exception:  # its attributes may raise anything
        return True
    if type(awaited_future(task)) is not asyncio.Future:
        return False
    creators = {"Future", "create_future"}
    while frames and _passes_on(frames[-1].f_code):
        if frames.pop().f_code is not asyncio.wait_for.__code__:
            creators = {"Event"}
    return bool(frames) and _never_given(frames[-1], creators)


def _passes_on(code: CodeType) -> bool:
    # That of anyio is around asyncio's. `wait_for` may have a timeout of None.
    return code.co_qualname == "Event.wait" or code is asyncio.wait_for.__code__


def _never_given(frame: FrameType, creators: set[str]) -> bool:
    code = frame.f_code
    awaited = _position(code, frame.f_lasti)
    uses = list(_uses(code))
    inside = [name for name, place, _ in uses if _within(place, awaited)]
    if creators.intersection(inside):
        return True
    held = _assigned(code).intersection(inside)
    if not held or not creators.intersection(code.co_names):
        return False
    return all(asks or _within(place, awaited) for name, place, asks in uses if name in held)


def _assigned(code: CodeType) -> set[str]:
    """The local variables that the code assigns, a parameter with a default among them.

    Not `frame.f_locals`: until 3.12 that leaves a dict of the values in the frame.
    """
    stored = [each.argval for each in dis.get_instructions(code) if "STORE_FAST" in each.opname]
    names = {name for each in stored for name in (each if isinstance(each, tuple) else (each,))}
    return names.intersection(code.co_varnames)


Position = tuple[int, int, int, int]


def _position(code: CodeType, lasti: int) -> Position:
    return _full(list(code.co_positions())[lasti // 2])


def _full(place: Any) -> Position:
    line, end_line, column, end_column = (each or 0 for each in place)
    return line, column, end_line, end_column


def _within(inner: Position, outer: Position) -> bool:
    return outer[:2] <= inner[:2] and inner[2:] <= outer[2:]


def _uses(code: CodeType) -> Iterator[tuple[Any, Position, bool]]:
    """The names that are read in some code, and where, and whether only to ask for the state."""
    instructions = list(dis.get_instructions(code))
    for number, each in enumerate(instructions):
        reads = each.opname.startswith("LOAD_") and each.opname != "LOAD_CONST"
        if reads and each.positions is not None:
            names = each.argval if isinstance(each.argval, tuple) else (each.argval,)
            position = each.positions
            place = (position.lineno, position.end_lineno, position.col_offset)
            asks = _asks(instructions[number + 1 : number + 3])
            for name in names:
                yield name, _full((*place, position.end_col_offset)), asks and name is names[-1]


def _asks(following: list[dis.Instruction]) -> bool:
    """Whether the next instructions read no more of an object than whether it is true or set."""
    if following and following[0].opname == "COPY":  # `stop or asyncio.Event()`
        following = following[1:]
    if not following:
        return False
    if following[0].opname in ("LOAD_ATTR", "LOAD_METHOD"):
        return following[0].argval in _STATE
    return following[0].opname.startswith(("JUMP_IF_", "POP_JUMP_", "TO_BOOL"))
