"""Whose task is it? One that a library has made for itself is in nobody's reach: the program cannot
cancel it, so neither does the explorer.
"""

from __future__ import annotations

import asyncio
import functools
import glob
import os
import sys
import sysconfig
from types import CodeType, FrameType

__all__ = ["belongs_to_the_program", "made_by_the_program"]

_ASYNCIO = os.path.dirname(asyncio.__file__)
_HERE = os.path.dirname(__file__)
_HOLDFAST = os.path.dirname(_HERE)
# Programs as a user would write them, though they lie in the package.
_CASES = os.path.join(_HOLDFAST, "casebook", "")
_TRANSPARENT, _PROGRAM, _LIBRARY = "transparent", "program", "library"
# This is asked for every task of every run, and the hash of a code object reads all of it: so by
# its id, which holds as long as the code itself is held.
_KNOWN: dict[int, tuple[str, CodeType]] = {}
_FULL = 8192
_INSTALLED = tuple(
    os.path.join(sysconfig.get_path(name), "")
    for name in ("stdlib", "platstdlib", "purelib", "platlib")
)


def made_by_the_program(frame: FrameType | None) -> bool:
    """Whether the nearest line that is not asyncio's own belongs to the program, and not to an
    installed package."""
    while frame is not None:
        code = frame.f_code
        known = _KNOWN.get(id(code))
        if known is None:
            if len(_KNOWN) >= _FULL:  # code that exec() makes would fill it without end
                _KNOWN.clear()
            known = _KNOWN[id(code)] = (_whose(code.co_filename), code)
        if known[0] != _TRANSPARENT:
            return known[0] == _PROGRAM
        frame = frame.f_back
    return False


def belongs_to_the_program(code: CodeType) -> bool:
    """Whether this code is the program's, and not asyncio's or that of an installed package."""
    return _whose(code.co_filename) == _PROGRAM


def _whose(filename: str) -> str:
    if os.path.dirname(filename) in (_ASYNCIO, _HERE):
        return _TRANSPARENT
    return _LIBRARY if _installed(filename) else _PROGRAM


@functools.cache
def _installed(filename: str) -> bool:
    if filename.startswith(_CASES):
        return False
    if filename.startswith((*_INSTALLED, os.path.join(_HOLDFAST, ""))):
        return True
    folder = os.path.abspath(filename)
    roots = {os.path.abspath(entry or ".") for entry in sys.path}
    while (parent := os.path.dirname(folder)) != folder:
        folder = parent
        if folder in roots:
            # A folder that pip has filled (site-packages, or any other given with --target).
            return bool(glob.glob(os.path.join(glob.escape(folder), "*.dist-info")))
    return False
