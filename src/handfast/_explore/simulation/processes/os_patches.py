"""Patches of `os` while a run has children: calls with an invented pid go to the process table of
the run, all other calls to the system.

A pid in the invented range never reaches the system, even if no process has it.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from typing import Any

from handfast._explore.simulation.processes.process_table import FIRST_PID, ProcessTable
from handfast._runtime.process import group as process_group

# The tables of the current runs; more than one if runs are nested, or in several threads.
_tables: list[ProcessTable] = []
_real: dict[str, Callable[..., Any]] = {}
_real_members = process_group.running_members


def enter(table: ProcessTable) -> None:
    """Answer calls for the pids of `table` from now on."""
    if not _tables:
        for name, call in _CALLS.items():
            _real[name] = getattr(os, name)
            setattr(os, name, call)
        # The runtime reads /proc for this, where invented pids do not exist.
        process_group.running_members = _running_members
    _tables.append(table)


def leave(table: ProcessTable) -> None:
    """End the run; the last one removes the patches."""
    if table not in _tables:
        return
    _tables.remove(table)
    if not _tables:
        for name in _CALLS:
            setattr(os, name, _real.pop(name))
        process_group.running_members = _real_members


def _table() -> ProcessTable:
    """The table of this thread's loop. A thread of an executor has no loop and gets the latest."""
    loop: Any = asyncio._get_running_loop()
    launcher = getattr(loop, "_launcher", None)
    return launcher.table if launcher is not None else _tables[-1]


def _kill(pid: int, signal: int, /) -> None:
    if pid >= FIRST_PID:
        _table().kill(pid, signal)
    # A negative pid is a process group (kill(2)).
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
