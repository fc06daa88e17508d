"""Memory that lines of the program have allocated and not freed. On request.

One snapshot cannot tell growth from a cache that fills, so this kind lists nothing outside of
`tracing`. `stress` measures `sizes` over many rounds.
"""

from __future__ import annotations

import linecache
import tracemalloc
from asyncio import AbstractEventLoop
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TypeAlias

from handfast._census.kind import Kind
from handfast._census.live_object import LiveObject
from handfast._code_owner import in_package, is_program

Line: TypeAlias = tuple[str, int]
"""A file and a line number."""

_FRAMES = 8
_before: Mapping[Line, int] | None = None


def grown_lines(loop: AbstractEventLoop | None = None) -> Iterator[LiveObject]:
    """Each line that holds more memory than when `tracing` began."""
    if _before is not None:
        yield from grown(_before, sizes())


def grown(before: Mapping[Line, int], after: Mapping[Line, int]) -> Iterator[LiveObject]:
    """Each line that holds more than before, the largest growth first."""
    growth = {line: size - before.get(line, 0) for line, size in after.items()}
    for line in sorted(growth, key=lambda line: (-growth[line], line)):
        if growth[line] > 0:
            yield _live_line(line, after[line], growth[line])


def _live_line(line: Line, size: int, growth: int) -> LiveObject:
    filename, lineno = line
    return LiveObject(
        check="memory",
        code="HF761",
        key=("memory", *line),
        what=f"{_bytes(growth)} more, {_bytes(size)} in all",
        ended=lambda: False,  # it is not freed by waiting
        waiting_at=lambda: (f"{filename}:{lineno}: {linecache.getline(filename, lineno).strip()}",),
        target=line,
        size=growth,
    )


def _not_checked(loop: AbstractEventLoop | None) -> Iterator[str]:
    if _before is None:
        yield "memory growth is only seen over rounds: use handfast.leaks.stress"


@contextmanager
def tracing() -> Iterator[None]:
    """Within, snapshots list the lines that have grown since the beginning.

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


def sizes() -> dict[Line, int]:
    """The bytes that each line of the program holds now; empty if tracemalloc does not trace.

    What a library allocates counts for the line of the program that called it, as far out as
    tracemalloc keeps frames: `tracemalloc.start(8)` keeps eight.
    """
    found: defaultdict[Line, int] = defaultdict(int)
    if tracemalloc.is_tracing():
        for trace in tracemalloc.take_snapshot().traces:
            line = _line(trace.traceback)
            if line is not None:
                found[line] += trace.size
    return dict(found)


def _line(frames: tracemalloc.Traceback) -> Line | None:
    """The innermost line of the program; none for memory that this package has allocated."""
    for frame in reversed(frames):
        if in_package(frame.filename, "census"):
            return None
        if is_program(frame.filename) and frame.filename != "<unknown>":
            return frame.filename, frame.lineno
    return None


def _bytes(size: int) -> str:
    return f"{size} bytes" if size < 1024 else f"{size / 1024:.1f} KiB"


KIND = Kind("memory", ("HF761",), grown_lines, not_checked=_not_checked, on_request=True, slow=True)
