"""Where a thing was made, and for whom: noted raw at birth, put in words when somebody reads it.

Two places are kept. `origin` is the line of the program itself; `near` the nearest line that is
not the standard library's, which may be a library that the program called.
"""

from __future__ import annotations

import asyncio
import os
import site
import sys
import sysconfig
from types import CodeType, FrameType

from holdfast.origin import Origin

__all__ = ["Birth", "birth_here", "edge", "is_library", "package_of"]

_HOLDFAST = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_STDLIB = tuple({path + os.sep for path in map(sysconfig.get_path, ("stdlib", "platstdlib"))})
_PACKAGES = tuple(
    {
        path + os.sep
        for path in (
            *map(sysconfig.get_path, ("purelib", "platlib")),
            *site.getsitepackages(),
            site.getusersitepackages(),
        )
    }
)
# Programs as a user would write them, though they lie in the package.
_CASES = os.path.join(_HOLDFAST, "casebook") + os.sep
_SCRIPTS = sysconfig.get_path("scripts") + os.sep
_CENSUS = os.path.dirname(os.path.abspath(__file__)) + os.sep
# Beyond these frames is whoever runs the loop, and not whoever made the thing. By identity: the
# hash of a code object reads all of its bytecode.
_EDGES: dict[int, CodeType] = {}
_OWN, _LIBRARY, _STANDARD = 0, 1, 2
_PLACES: dict[str, int] = {}


class Birth:
    """Where a thing was made, and who owns it."""

    __slots__ = ("code", "lasti", "near_code", "near_lasti", "owner", "told")

    def __init__(
        self, code: CodeType, lasti: int, near_code: CodeType, near_lasti: int, owner: object
    ) -> None:
        self.code = code
        self.lasti = lasti
        self.near_code = near_code
        self.near_lasti = near_lasti
        self.owner = owner
        self.told = False
        """Whether somebody has been told of it: nobody is told twice."""

    @property
    def origin(self) -> Origin:
        """The line of the program."""
        return Origin(self.code, self.lasti)

    @property
    def near(self) -> Origin:
        """The nearest line outside the standard library."""
        return Origin(self.near_code, self.near_lasti)

    @property
    def package(self) -> str:
        """The installed package that made it for the program; empty if the program did itself."""
        return package_of(self.near_code.co_filename)

    def __repr__(self) -> str:
        return f"<Birth at {self.origin}>"


def birth_here(frame: FrameType | None, owner: object, asked: Birth | None = None) -> Birth | None:
    """A birth in `frame`, or the nearest frame around it that says more.

    Where only the standard library is to be seen, it is done for whoever `asked` for it.
    """
    near: FrameType | None = None
    outermost = frame
    while frame is not None and id(frame.f_code) not in _EDGES:
        place = _place(frame.f_code.co_filename)
        if place == _OWN:
            near = near or frame
            return Birth(frame.f_code, frame.f_lasti, near.f_code, near.f_lasti, owner)
        if place == _LIBRARY and near is None:
            near = frame
        frame = frame.f_back
    if near is None and asked is not None:
        return Birth(asked.code, asked.lasti, asked.near_code, asked.near_lasti, owner)
    near = near or outermost
    if near is None:
        return None
    return Birth(near.f_code, near.f_lasti, near.f_code, near.f_lasti, owner)


def edge(code: CodeType) -> None:
    """A frame of this code runs an event loop: no birth is looked for beyond it."""
    _EDGES[id(code)] = code


edge(getattr(asyncio.BaseEventLoop, "_run_once").__code__)  # noqa: B009


def is_library(filename: str) -> bool:
    """Whether a file is the standard library's, an installed package's or our own."""
    return _place(filename) != _OWN


def package_of(filename: str) -> str:
    """The installed package that a file belongs to; empty if it is none's."""
    if filename.startswith(_HOLDFAST):
        return "holdfast"
    for folder in _PACKAGES:
        if filename.startswith(folder):
            return filename[len(folder) :].split(os.sep, 1)[0].removesuffix(".py")
    return ""


def _place(filename: str) -> int:
    place = _PLACES.get(filename)
    if place is None:
        place = _PLACES[filename] = _find_place(filename)
    return place


def _find_place(filename: str) -> int:
    if filename.startswith(_CENSUS):  # our own hooks, through which everything passes
        return _STANDARD
    if filename.startswith(_CASES):
        return _OWN
    # A package folder lies inside that of the standard library, so it is asked for first.
    if filename.startswith((_HOLDFAST, _SCRIPTS, *_PACKAGES)):
        return _LIBRARY
    if filename.startswith(_STDLIB) or filename.startswith("<frozen "):
        return _STANDARD
    if not os.path.isabs(filename):  # "<string>": what the program made itself
        return _OWN
    return _STANDARD if filename.startswith(sys.base_prefix + os.sep) else _OWN
