"""The lines of the program that create tasks, each with the number of tasks that it has created.

A line is found again by its code object and offset, for which one entry is looked up in a table. Code
made by `exec()` is new each time: so the table is cleared when it is full, and a place itself is known
by its file, line and function. The places are bounded, too: what does not fit counts as `OTHER`.
"""

from __future__ import annotations

import itertools
import threading
from types import CodeType, FrameType
from typing import Any

from handfast._asyncio_internals import loop_codes
from handfast._code_owner import code_owner
from handfast._origin import Origin
from handfast._watch.recording.shown_text import clean, shown_file

MAX_PLACES = 4096
"""So many places are counted exactly."""

_FULL = 8192


class Place:
    """A line that creates tasks."""

    __slots__ = ("created", "file", "function", "id", "library", "line")

    def __init__(self, number: int, file: str, line: int, function: str, library: bool) -> None:
        self.id = number
        self.file = file
        self.line = line
        self.function = function
        self.library = library
        # Counted up without a lock: between reading and writing there is no call and no jump, so
        # the interpreter does not switch to another thread (not on a free-threaded build).
        self.created = 0


class CodeOffset:
    """An entry of the table: an instruction and its place. It keeps the code, so that no other code
    gets its address."""

    __slots__ = ("code", "lasti", "place")

    def __init__(self, code: CodeType, lasti: int, place: Place) -> None:
        self.code = code
        self.lasti = lasti
        self.place = place


OTHER = Place(0, "", 0, "other", False)
"""The tasks of all places beyond the first `MAX_PLACES`."""

OFFSETS: dict[int, CodeOffset] = {}
"""By `id(code) + lasti`: the bytecode lies inside the code object, so two live instructions never
give the same number. The caller compares the code and the offset."""

PASSED: dict[int, CodeType] = {}
"""By identity, code that only passes a call on: asyncio's, the standard library's and our own."""

_LOOP_CODES: dict[int, CodeType] = {id(code): code for code in loop_codes()}
_numbers = itertools.count(1)
_places: dict[tuple[str, int, str], Place] = {}
_lock = threading.Lock()


def on_fork() -> None:
    """In a forked child: another thread of the parent may have held the lock."""
    global _lock
    _lock = threading.Lock()


def all_places() -> list[Place]:
    """Every place that has created a task."""
    with _lock:
        return [*_places.values(), *([OTHER] if OTHER.created else [])]


def find_place(frame: FrameType | None, coro: Any, in_loop: bool) -> Place:
    """The place of a task that is created in `frame`: the nearest line that is not the standard
    library's or ours. The slow path: the hook looks into `OFFSETS` first.

    A task that asyncio itself creates in a callback, for a connection or a call of another thread,
    is placed at the first line of its coroutine.
    """
    first = frame
    while frame is not None:
        code = frame.f_code
        if in_loop and id(code) in _LOOP_CODES:
            frame = None
            break
        if id(code) not in PASSED and not _passes_on(code):
            return _place_of_instruction(code, frame.f_lasti)
        frame = frame.f_back
    run = getattr(coro, "cr_code", None) or getattr(coro, "gi_code", None)
    if isinstance(run, CodeType):
        return _place(run.co_filename, run.co_firstlineno, run.co_qualname)
    return OTHER if first is None else _place_of_instruction(first.f_code, first.f_lasti)


def place_of_origin(origin: Origin) -> Place:
    """The place of a task whose origin the runtime knows."""
    return _place_of_instruction(origin.code, origin.lasti)


def _passes_on(code: CodeType) -> bool:
    if id(code) in _LOOP_CODES:
        return True  # not in PASSED: who is called by a running loop must not look beyond it
    if code_owner(code.co_filename) in ("program", "library"):
        return False
    if len(PASSED) >= _FULL:
        PASSED.clear()
    PASSED[id(code)] = code
    return True


def _place_of_instruction(code: CodeType, lasti: int) -> Place:
    key = id(code) + lasti
    entry = OFFSETS.get(key)
    if entry is None or entry.code is not code or entry.lasti != lasti:
        if len(OFFSETS) >= _FULL:
            OFFSETS.clear()
        place = _place(code.co_filename, Origin(code, lasti).lineno, code.co_qualname)
        entry = OFFSETS[key] = CodeOffset(code, lasti, place)
    return entry.place


def _place(filename: str, line: int, function: str) -> Place:
    key = filename, line, function
    place = _places.get(key)
    if place is not None:
        return place
    with _lock:
        if key not in _places and len(_places) >= MAX_PLACES:
            return OTHER
        library = code_owner(filename) != "program"
        place = Place(next(_numbers), shown_file(filename), line, clean(function), library)
        return _places.setdefault(key, place)
