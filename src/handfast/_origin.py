"""`Origin`: the line that created an object, stored raw and formatted late.

An origin is a code object and an instruction offset. Every frame has both, so storing them is
cheap; the file, the line and the text are looked up only when they are read. Capturing a whole
stack would cost as much as ten spawns.
"""

from __future__ import annotations

import linecache
import os
import sys
from collections.abc import Callable
from types import CodeType


class Origin:
    """The line that created a task, a resource or a process.

    >>> origin = Origin.here()
    >>> origin.function
    '<module>'
    """

    __slots__ = ("code", "lasti")

    def __init__(self, code: CodeType, lasti: int) -> None:
        self.code = code
        self.lasti = lasti

    @classmethod
    def here(cls, depth: int = 0) -> Origin:
        """The line that called this, or one `depth` frames further out."""
        return intern_origin(sys._getframe(depth + 1).f_code, sys._getframe(depth + 1).f_lasti)

    @property
    def filename(self) -> str:
        return self.code.co_filename

    @property
    def function(self) -> str:
        return self.code.co_qualname

    @property
    def lineno(self) -> int:
        # co_positions has one entry for each instruction of two bytes.
        for index, (line, *_) in enumerate(self.code.co_positions()):
            if index == self.lasti // 2 and line is not None:
                return line
        return self.code.co_firstlineno

    @property
    def source(self) -> str:
        """The text of the line, stripped; empty if the source is not available."""
        return linecache.getline(self.filename, self.lineno).strip()

    def __str__(self) -> str:
        return f"{_short(self.filename)}:{self.lineno} in {self.function}"

    def __repr__(self) -> str:
        return f"<Origin {self}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Origin):
            return NotImplemented
        if self.lasti != other.lasti:
            return False
        return self.code is other.code or self._place() == other._place()

    def __hash__(self) -> int:
        return hash((self.filename, self.function, self.lasti))

    def _place(self) -> tuple[str, str, int]:
        return self.filename, self.function, self.lineno

    def __deepcopy__(self, memo: object) -> Origin:
        return self

    def __reduce__(self) -> tuple[Callable[..., Origin], tuple[str, str, int, int]]:
        return _unpickled, (*self._place(), self.lasti)


_EMPTY = (lambda: None).__code__


def _unpickled(filename: str, function: str, lineno: int, lasti: int) -> Origin:
    """An origin from another process.

    Code cannot be pickled. An empty code object stands in for it; without a table of lines all of
    its instructions are on its first line.
    """
    code = _EMPTY.replace(
        co_filename=filename,
        co_name=function.rpartition(".")[2],
        co_qualname=function,
        co_firstlineno=lineno,
        co_linetable=b"",
    )
    return Origin(code, lasti)


def _short(filename: str) -> str:
    """The path relative to the working directory, if that is shorter."""
    try:
        relative = os.path.relpath(filename)
    except (ValueError, OSError):  # another drive; a working directory that was deleted
        return filename
    return relative if len(relative) < len(filename) else filename


# One Origin for each instruction that spawns, so that a hundred thousand tasks created on one
# line share it. Code made by exec() would grow the table without bound: it is cleared when full.
_ORIGINS: dict[int, Origin] = {}
_FULL = 8192


def intern_origin(code: CodeType, lasti: int) -> Origin:
    """The shared Origin of this instruction."""
    # hash(code) reads the whole bytecode. The sum below is as good: the bytecode lies inside
    # the code object, so two live instructions never give the same number.
    key = id(code) + lasti
    origin = _ORIGINS.get(key)
    if origin is None or origin.code is not code or origin.lasti != lasti:
        if len(_ORIGINS) >= _FULL:
            _ORIGINS.clear()
        origin = _ORIGINS[key] = Origin(code, lasti)
    return origin
