"""The memory that lines of the program have asked for and not given back.

One look cannot tell growth from a cache that warms up, so a census alone sees nothing here. Over
many rounds it can be told: `sizes` is one measurement for that, and `Grown` what comes of it.
"""

from __future__ import annotations

import linecache
import os
import tracemalloc
from asyncio import AbstractEventLoop
from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeAlias

from holdfast.census.birth import is_library
from holdfast.census.thing import Thing

__all__ = ["Grown", "Place", "all_grown", "blind_spots", "grown", "sizes", "watching"]

Place: TypeAlias = tuple[str, int]
"""A file and a line."""

# What the census itself notes is not the program's.
_CENSUS = os.path.dirname(os.path.abspath(__file__)) + os.sep
_FRAMES = 8
_before: Mapping[Place, int] | None = None


class Grown(Thing):
    """A line of the program that holds more memory than before."""

    __slots__ = ("growth", "place", "size")

    check = "memory"

    def __init__(self, place: Place, size: int, growth: int) -> None:
        super().__init__(None)
        self.place = place
        self.size = size
        self.growth = growth

    @property
    def key(self) -> Hashable:
        return ("memory", *self.place)

    @property
    def code(self) -> str:
        return "HF761"

    @property
    def what(self) -> str:
        return f"{_in_words(self.growth)} more, {_in_words(self.size)} in all"

    def stands(self) -> tuple[str, ...]:
        """The line that asked for it."""
        filename, lineno = self.place
        return (f"{filename}:{lineno}: {linecache.getline(filename, lineno).strip()}",)

    def over(self) -> bool:
        """Never: what a line has asked for does not go by waiting."""
        return False


def all_grown(loop: AbstractEventLoop | None = None) -> Iterator[Grown]:
    """Each line that holds more than when `watching` began; nothing outside of that."""
    if _before is not None:
        yield from grown(_before, sizes())


def grown(before: Mapping[Place, int], after: Mapping[Place, int]) -> Iterator[Grown]:
    """Each line that holds more than before, the one that has grown most first."""
    growth = {place: size - before.get(place, 0) for place, size in after.items()}
    for place in sorted(growth, key=lambda place: (-growth[place], place)):
        if growth[place] > 0:
            yield Grown(place, after[place], growth[place])


def blind_spots(loop: AbstractEventLoop | None = None) -> Iterator[str]:
    """What one census does not see."""
    if _before is None:
        yield "memory growth is only seen over rounds: use holdfast.leaks.stress"


@contextmanager
def watching() -> Iterator[None]:
    """Within, a census tells what has grown since the beginning.

    tracemalloc traces meanwhile, which makes a program several times slower.
    """
    global _before
    outer = _before
    started = not tracemalloc.is_tracing()
    if started:
        tracemalloc.start(_FRAMES)
    try:
        _before = sizes()
        yield
    finally:
        _before = outer
        if started:
            tracemalloc.stop()


def sizes() -> dict[Place, int]:
    """The bytes that each line of the program holds now; empty if tracemalloc does not trace.

    A line of the program stands for what the libraries it calls have asked for, as far as
    tracemalloc has been told to look: `tracemalloc.start(8)` looks eight frames out.
    """
    found: defaultdict[Place, int] = defaultdict(int)
    if tracemalloc.is_tracing():
        for trace in tracemalloc.take_snapshot().traces:
            place = _place(trace.traceback)
            if place is not None:
                found[place] += trace.size
    return dict(found)


def _place(frames: tracemalloc.Traceback) -> Place | None:
    """The innermost line of the program; none if the census has asked for the memory."""
    for frame in reversed(frames):
        if frame.filename.startswith(_CENSUS):
            return None
        if not is_library(frame.filename) and frame.filename != "<unknown>":
            return frame.filename, frame.lineno
    return None


def _in_words(size: int) -> str:
    return f"{size} bytes" if size < 1024 else f"{size / 1024:.1f} KiB"
