"""Where an object was created, and who owns it.

Two lines are kept: `origin` is the program's own, `via` the nearest one outside the standard
library, which may belong to a library that the program called. Both are stored raw and formatted
when they are read, since every task and timer of a recorded program passes through here.
"""

from __future__ import annotations

import functools
from types import CodeType, FrameType

from handfast._asyncio_internals import run_once_code
from handfast._code_owner import CodeOwner, code_owner, in_package, installed_project
from handfast._origin import Origin

# Frames of this code run an event loop: what lies further out did not create anything. By
# identity, since the hash of a code object reads all of its bytecode.
_LOOP_CODE: dict[int, CodeType] = {}


class Creation:
    """The line that created an object, and the object's owner."""

    __slots__ = ("code", "lasti", "owner", "reported", "via_code", "via_lasti")

    def __init__(
        self, code: CodeType, lasti: int, via_code: CodeType, via_lasti: int, owner: object
    ) -> None:
        self.code = code
        self.lasti = lasti
        self.via_code = via_code
        self.via_lasti = via_lasti
        self.owner = owner
        self.reported = False
        """Whether a leak of this object was reported: each is reported once."""

    @property
    def origin(self) -> Origin:
        """The line of the program."""
        return Origin(self.code, self.lasti)

    @property
    def via(self) -> Origin:
        """The nearest line outside the standard library."""
        return Origin(self.via_code, self.via_lasti)

    @property
    def package(self) -> str:
        """The installed package that created it; empty if the program did."""
        return installed_project(self.via_code.co_filename)

    def for_owner(self, owner: object) -> Creation:
        """The same line for another object, which is reported by itself."""
        return Creation(self.code, self.lasti, self.via_code, self.via_lasti, owner)

    def __repr__(self) -> str:
        return f"<Creation at {self.origin}>"


def creation_in(
    frame: FrameType | None, owner: object, requested: Creation | None = None
) -> Creation | None:
    """The creation of an object in `frame`: the nearest line of the program around it.

    If there are only frames of the standard library, `requested` is taken: the line in another
    thread that requested the object.
    """
    via: FrameType | None = None
    outermost = frame
    while frame is not None and id(frame.f_code) not in _LOOP_CODE:
        file_owner = _owner_of_file(frame.f_code.co_filename)
        if file_owner == "program":
            via = via or frame
            return Creation(frame.f_code, frame.f_lasti, via.f_code, via.f_lasti, owner)
        if file_owner != "stdlib" and via is None:
            via = frame
        frame = frame.f_back
    if via is None and requested is not None:
        return requested.for_owner(owner)
    via = via or outermost
    if via is None:
        return None
    return Creation(via.f_code, via.f_lasti, via.f_code, via.f_lasti, owner)


def mark_as_loop(code: CodeType) -> None:
    """Frames of `code` run an event loop: `creation_in` does not look beyond them."""
    _LOOP_CODE[id(code)] = code


if (_run_once := run_once_code()) is not None:
    mark_as_loop(_run_once)


@functools.cache
def _owner_of_file(filename: str) -> CodeOwner:
    """The owner of a file. Our own patches are skipped like frames of the standard library."""
    return "stdlib" if in_package(filename, "census") else code_owner(filename)
