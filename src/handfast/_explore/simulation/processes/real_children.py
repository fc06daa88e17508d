"""Calls that start a real child, or end this process, are refused in a run.

A child would be started once in each schedule, and a fork of the explorer would continue exploring.
`os._exit` would end the search without a word, and its exit status 0 means that nothing was found.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

from handfast._explore.simulation.threads.locks import MEMBERS, get_ident

_CHILD = "it starts a real process, once in each schedule"
_EXIT = "it ends the process, and the search with it"
_SCRIPT = (
    "start the child with asyncio and script it (handfast.scripted), or allow it with "
    "real_io=True (--real-io)"
)
_RETURN = "let the program return, or raise SystemExit"


def patches() -> Iterator[tuple[Any, str, Any, Any]]:
    """Each place, name, original and replacement."""
    for place, name, why, remedy in _calls():
        real = vars(place).get(name)
        if real is not None:
            shown = f"{getattr(place, '__name__', place)}.{name}"
            yield place, name, real, _refusing(shown, real, why, remedy)


def _calls() -> Iterator[tuple[Any, str, str, str]]:
    yield os, "_exit", _EXIT, _RETURN
    for name in ("fork", "forkpty", "posix_spawn", "posix_spawnp", "system"):
        yield os, name, _CHILD, _SCRIPT
    yield subprocess.Popen, "__init__", _CHILD, _SCRIPT
    # multiprocessing calls it without `subprocess`.
    if sys.platform != "win32":
        import _posixsubprocess

        yield _posixsubprocess, "fork_exec", _CHILD, _SCRIPT


def _refusing(shown: str, real: Any, why: str, remedy: str) -> Callable[..., Any]:
    if shown.endswith(".__init__"):
        shown = "subprocess.Popen"

    def call(*args: Any, **kwargs: Any) -> Any:
        member = MEMBERS.get(get_ident())
        if member is not None:
            member.baton.refuse(shown, why, remedy)
        return real(*args, **kwargs)

    return call


PATCHES = list(patches())
