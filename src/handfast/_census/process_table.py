"""The children of this process, from /proc or through psutil.

A pid is reused after a while, so a process is identified by its pid and its start time.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Hashable, Iterable
from functools import cache
from typing import Any, NamedTuple

_PROC = os.path.exists("/proc/self/stat")
# Not every kernel is built with this file.
_LISTED = os.path.exists("/proc/thread-self/children")
_THREADS = "/proc/self/task"
_TRIES = 8
# PermissionError: /proc may hide the processes of other users.
_GONE = (FileNotFoundError, ProcessLookupError, PermissionError)


class Entry(NamedTuple):
    """One process, as it was when the table was read."""

    pid: int
    parent: int
    start: Hashable
    is_zombie: bool
    name: str


def can_be_read() -> bool:
    """Whether children can be listed on this system."""
    return _PROC or _psutil() is not None


def children() -> list[Entry]:
    """The children of this process, the oldest pid first."""
    if _is_childless():
        return []
    if not _PROC:
        return _psutil_children()
    entries = map(find, sorted(_listed() if _LISTED else _all_pids()))
    # A pid of the list may have been reused by now.
    return [entry for entry in entries if entry is not None and entry.parent == os.getpid()]


def find(pid: int) -> Entry | None:
    """The process that has this pid now; None if there is none."""
    if not _PROC:
        return _psutil_find(pid)
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
            stat = file.read()
    except _GONE:
        return None
    return _parsed(pid, stat)


def command_line(pid: int) -> str:
    """The command line; empty for a zombie and for a process that is gone."""
    if not _PROC:
        return _psutil_command_line(pid)
    try:
        with open(f"/proc/{pid}/cmdline", "rb", buffering=0) as file:
            return os.fsdecode(file.read()).replace("\0", " ").strip()
    except _GONE:
        return ""


# --- /proc -------------------------------------------------------------------------------------


def _is_childless() -> bool:
    """Whether there are no children: the usual case, for one system call that reaps nothing."""
    if not hasattr(os, "waitid"):  # macOS before 3.13, Windows
        return False
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return True
    return False


def _listed() -> set[int]:
    """The children of all our threads.

    If a thread ends meanwhile, its children move to another one, which may have been read before:
    so everything is read again.
    """
    pids: set[int] = set()
    for _ in range(_TRIES):
        try:
            for thread in os.listdir(_THREADS):
                with open(f"{_THREADS}/{thread}/children", "rb", buffering=0) as file:
                    pids.update(map(int, file.readall().split()))
            break
        except (FileNotFoundError, ProcessLookupError):
            continue
    return pids


def _all_pids() -> Iterable[int]:
    return (int(name) for name in os.listdir("/proc") if name.isdigit())


def _parsed(pid: int, stat: bytes) -> Entry | None:
    # The name is in parentheses, and may itself contain spaces and parentheses.
    before, _, after = stat.rpartition(b")")
    fields = after.split()
    state, parent, start = fields[0], int(fields[1]), int(fields[19])
    if state in b"Xx":  # being removed from the table
        return None
    return Entry(pid, parent, start, state == b"Z", os.fsdecode(before.partition(b"(")[2]))


# --- psutil ------------------------------------------------------------------------------------


@cache
def _psutil() -> Any:
    try:
        return importlib.import_module("psutil")
    except ImportError:
        return None


def _psutil_children() -> list[Entry]:
    psutil = _psutil()
    if psutil is None:
        return []
    entries = (_psutil_find(process.pid) for process in psutil.Process().children())
    return sorted(entry for entry in entries if entry is not None)


def _psutil_find(pid: int) -> Entry | None:
    psutil = _psutil()
    if psutil is None:
        return None
    try:
        process = psutil.Process(pid)
        is_zombie = process.status() == psutil.STATUS_ZOMBIE
        name = "" if is_zombie else process.name()
        return Entry(pid, process.ppid(), process.create_time(), is_zombie, name)
    except psutil.Error:
        return None


def _psutil_command_line(pid: int) -> str:
    psutil = _psutil()
    if psutil is None:
        return ""
    try:
        return " ".join(psutil.Process(pid).cmdline())
    except psutil.Error:  # a zombie has none
        return ""
