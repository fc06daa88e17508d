"""The lines of source that a story speaks of, each written down once however often a task stands
there.

While the program runs only code objects and line numbers are kept; the text is looked up at the
end. A line is the program's own unless it is asyncio's, the runtime's or the explorer's.
"""

from __future__ import annotations

import asyncio
import linecache
import os
from collections.abc import Iterator
from types import CodeType, FrameType, TracebackType
from typing import Any

from holdfast.explore.story import Place, Source, Stand, Story
from holdfast.runtime.stacks import await_frames

__all__ = ["Places"]

_HERE = os.path.dirname(__file__)
_NOT_THEIRS = (
    os.path.dirname(asyncio.__file__),
    _HERE,
    os.path.join(os.path.dirname(_HERE), "runtime"),
)
# Below these on the stack are the loop, and whoever runs it.
_BELOW = ("Handle._run", "_drive")
# The lines of source kept around each line that a task stood on.
_AROUND = 30


class Places:
    """Fills in the places, the stands and the sources of a story."""

    def __init__(self, story: Story) -> None:
        self._story = story
        self._places: dict[tuple[int, int], int] = {}
        self._stands: dict[tuple[int, ...], int] = {}
        # The keys are ids: whatever they stand for has to stay.
        self._codes: list[CodeType] = []

    def stand(self, task: asyncio.Task[Any]) -> int | None:
        frames = list(await_frames(task.get_coro()))
        key = tuple(x for frame in frames for x in (id(frame.f_code), frame.f_lasti))
        found = self._stands.get(key)
        if found is None and frames:
            found = self._stands[key] = len(self._story.stands)
            self._story.stands.append(self._new_stand(frames))
        return found

    def caller(self, frame: FrameType | None) -> int | None:
        """The line of the program that has called, if there is one on the stack."""
        while frame is not None:
            if frame.f_code.co_qualname in _BELOW:
                return None
            if not frame.f_code.co_filename.startswith(_NOT_THEIRS):
                return self._place(frame.f_code, frame.f_lineno)
            frame = frame.f_back
        return None

    def raised(self, traceback: TracebackType | None) -> int | None:
        """The innermost line of the program in a traceback, else the innermost of all."""
        theirs = innermost = None
        while traceback is not None:
            innermost = (traceback.tb_frame.f_code, traceback.tb_lineno)
            if not innermost[0].co_filename.startswith(_NOT_THEIRS):
                theirs = innermost
            traceback = traceback.tb_next
        found = theirs or innermost
        return None if found is None else self._place(*found)

    def finish(self) -> None:
        """Look up the text, and shorten the names of the files."""
        wanted: dict[str, list[tuple[int, int]]] = {}
        for place in self._story.places:
            place.text = linecache.getline(place.file, place.line).strip()
            first = max(1, place.first, place.line - _AROUND)
            last = min(place.last, place.line + _AROUND)
            wanted.setdefault(place.file, []).append((first, last))
        for file, ranges in wanted.items():
            lines = linecache.getlines(file)
            for first, last in _merged(ranges):
                if lines[first - 1 : last]:
                    kept = [line.rstrip("\n") for line in lines[first - 1 : last]]
                    self._story.sources.append(Source(_short(file), first, kept))
        for place in self._story.places:
            place.file = _short(place.file)

    def _new_stand(self, frames: list[FrameType]) -> Stand:
        chain = [self._place(frame.f_code, frame.f_lineno) for frame in frames]
        theirs = [
            i for i, f in enumerate(frames) if not f.f_code.co_filename.startswith(_NOT_THEIRS)
        ]
        at = theirs[-1] if theirs else len(frames) - 1
        inner = "" if at == len(frames) - 1 else frames[-1].f_code.co_qualname
        return Stand(chain[at], chain, inner)

    def _place(self, code: CodeType, line: int | None) -> int:
        line = line or code.co_firstlineno
        key = (id(code), line)
        found = self._places.get(key)
        if found is None:
            found = self._places[key] = len(self._story.places)
            self._codes.append(code)
            name = code.co_qualname.rpartition("<locals>.")[2]
            first = code.co_firstlineno
            last = max((at for _, _, at in code.co_lines() if at is not None), default=first)
            self._story.places.append(Place(code.co_filename, line, name, "", first, last))
        return found


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
    """Relative to where the reader stands, unless that leads up and away."""
    try:
        relative = os.path.relpath(file)
    except (ValueError, OSError):  # another drive; a working directory that is gone
        return file
    return file if relative.startswith("..") else relative
