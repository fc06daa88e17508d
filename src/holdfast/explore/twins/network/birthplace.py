"""The line of the program that asked the network for something, for the verdict."""

from __future__ import annotations

import asyncio
import os
import sys
from types import FrameType

from holdfast.explore import stepping
from holdfast.origin import Origin

__all__ = ["birthplace"]

_ASYNCIO = os.path.dirname(asyncio.__file__)
_EXPLORE = os.path.dirname(stepping.__file__)
_INSTALLED = f"{os.sep}site-packages{os.sep}"


def birthplace() -> Origin | None:
    """The innermost line of the program itself in this step, else of a package that it uses."""
    found = None
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename != stepping.__file__:
        name = frame.f_code.co_filename
        if not name.startswith((_ASYNCIO, _EXPLORE)):
            if _INSTALLED not in name:
                return Origin(frame.f_code, frame.f_lasti)
            found = found or Origin(frame.f_code, frame.f_lasti)
        frame = frame.f_back
    return found
