"""While a run has children: the calls of `os` about their invented pids go to the table of the run,
and everything else to the system, as ever.

A pid in the invented range never reaches the system, also when nobody has it any more.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from typing import Any

from holdfast.explore.twins.children.table import FIRST_PID, Table
from holdfast.runtime import process_group

__all__ = ["enter", "leave"]

# The tables of the runs under way; more than one if runs are nested, or in several threads.
_tables: list[Table] = []
_real: dict[str, Callable[..., Any]] = {}
_real_members = process_group.running_members


def enter(table: Table) -> None:
    """From here on the pids of `table` can be asked for."""
    if not _tables:
        for name, call in _CALLS.items():
            _real[name] = getattr(os, name)
            setattr(os, name, call)
        process_group.running_members = _running_members
    _tables.append(table)


def leave(table: Table) -> None:
    """The run is over; the last one puts everything back."""
    if table not in _tables:
        return
    _tables.remove(table)
    if not _tables:
        for name in _CALLS:
            setattr(os, name, _real.pop(name))
        process_group.running_members = _real_members


def _table() -> Table:
    """The one of this thread's loop; a thread of an executor has none, and means the latest."""
    loop: Any = asyncio._get_running_loop()
    launcher = getattr(loop, "_launcher", None)
    return launcher.table if launcher is not None else _tables[-1]


def _kill(pid: int, signal: int, /) -> None:
    if pid >= FIRST_PID:
        _table().kill(pid, signal)
    elif pid <= -FIRST_PID:
        _table().killpg(-pid, signal)
    else:
        _real["kill"](pid, signal)


def _killpg(pgid: int, signal: int, /) -> None:
    if pgid >= FIRST_PID:
        _table().killpg(pgid, signal)
    else:
        _real["killpg"](pgid, signal)


def _getpgid(pid: int) -> int:
    return _table().getpgid(pid) if pid >= FIRST_PID else int(_real["getpgid"](pid))


def _waitpid(pid: int, options: int, /) -> tuple[int, int]:
    if pid >= FIRST_PID:
        return _table().waitpid(pid, options)
    pid, status = _real["waitpid"](pid, options)
    return pid, status


def _running_members(pgid: int) -> Iterator[int]:
    return iter(_table().running(pgid)) if pgid >= FIRST_PID else _real_members(pgid)


_CALLS: dict[str, Callable[..., Any]] = {
    "kill": _kill,
    "killpg": _killpg,
    "getpgid": _getpgid,
    "waitpid": _waitpid,
}
