"""Collect the source lines of a trace, each once.

During the run only code objects and line numbers are kept; the text is read at the end. A line
belongs to the program unless it is part of asyncio, the runtime or the explorer.
"""

from __future__ import annotations

import asyncio
import linecache
import os
from collections.abc import Iterator
from types import CodeType, FrameType, TracebackType
from typing import Any

from handfast._await_stack import await_frames
from handfast._code_owner import is_machinery
from handfast._explore.search.run import drive
from handfast._explore.trace.model import Place, Source, StackPosition, Trace
from handfast._explore.verdict.error_text import printable
from handfast._explore.verdict.verdict import raised_in

# The frames further out belong to the loop and to the code that runs it. Compared by identity,
# because the program may have functions with the same names.
_OUTERMOST: tuple[CodeType, ...] = (asyncio.Handle._run.__code__, drive.__code__)
# The lines of source kept before and after each line of the trace.
_AROUND = 30


class SourceLines:
    """Fills in the places, the positions and the sources of a trace."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._places: dict[tuple[int, int], int] = {}
        self._positions: dict[tuple[int, ...], int] = {}
        # The keys contain ids, which are unique only while the objects exist.
        self._codes: list[CodeType] = []

    def position(self, task: asyncio.Task[Any]) -> int | None:
        """Where a task waits, as an index into `Trace.positions`."""
        frames = list(await_frames(task.get_coro()))
        key = tuple(x for frame in frames for x in (id(frame.f_code), frame.f_lasti))
        found = self._positions.get(key)
        if found is None and frames:
            found = self._positions[key] = len(self._trace.positions)
            self._trace.positions.append(self._new_position(frames))
        return found

    def caller(self, frame: FrameType | None) -> int | None:
        """The innermost line of the program on the stack of `frame`, if there is one."""
        while frame is not None:
            if any(frame.f_code is code for code in _OUTERMOST):
                return None
            if _is_program(frame.f_code):
                return self._place(frame.f_code, frame.f_lineno)
            frame = frame.f_back
        return None

    def raised(self, traceback: TracebackType | None) -> int | None:
        """The innermost line of the program in a traceback, else the innermost of all."""
        found = raised_in(traceback)
        return None if found is None else self._place(found.tb_frame.f_code, found.tb_lineno)

    def finish(self) -> None:
        """Read the text of the lines, and shorten the names of the files."""
        wanted: dict[str, list[tuple[int, int]]] = {}
        for place in self._trace.places:
            place.text = linecache.getline(place.file, place.line).strip()
            first = max(1, place.first, place.line - _AROUND)
            last = min(place.last, place.line + _AROUND)
            wanted.setdefault(place.file, []).append((first, last))
        for file, ranges in wanted.items():
            lines = linecache.getlines(file)
            for first, last in _merged(ranges):
                if lines[first - 1 : last]:
                    kept = [line.rstrip("\n") for line in lines[first - 1 : last]]
                    self._trace.sources.append(Source(printable(_short(file)), first, kept))
        for place in self._trace.places:
            place.file = printable(_short(place.file))

    def _new_position(self, frames: list[FrameType]) -> StackPosition:
        chain = [self._place(frame.f_code, frame.f_lineno) for frame in frames]
        program = [i for i, f in enumerate(frames) if _is_program(f.f_code)]
        at = program[-1] if program else len(frames) - 1
        inner = "" if at == len(frames) - 1 else frames[-1].f_code.co_qualname
        return StackPosition(chain[at], chain, inner)

    def _place(self, code: CodeType, line: int | None) -> int:
        line = line or code.co_firstlineno
        key = (id(code), line)
        found = self._places.get(key)
        if found is None:
            found = self._places[key] = len(self._trace.places)
            self._codes.append(code)
            name = code.co_qualname.rpartition("<locals>.")[2]
            first = code.co_firstlineno
            last = max((at for _, _, at in code.co_lines() if at is not None), default=first)
            self._trace.places.append(Place(code.co_filename, line, name, "", first, last))
        return found


def _is_program(code: CodeType) -> bool:
    return not is_machinery(code.co_filename, "explore", "runtime")


def _merged(ranges: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    first = last = 0
    for low, high in sorted(ranges):
        if low > last + 1:
            if last:
                yield first, last
            first = low
        last = max(last, high)
    yield first, last


def _short(file: str) -> str:
    """Relative to the working directory, unless the file is outside it."""
    try:
        relative = os.path.relpath(file)
    except (ValueError, OSError):  # another drive; a working directory that is gone
        return file
    return file if relative.startswith("..") else relative
