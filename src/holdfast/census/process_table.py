"""The process table, as far as it is about our children: who they are, and whether they still run.

Read from /proc where that is there, else through psutil. A pid is given out again after a while,
so a process is known by its pid together with the time of its start.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Hashable, Iterable
from functools import cache
from typing import Any, NamedTuple

__all__ = ["Entry", "can_be_read", "children", "command_line", "find"]

_PROC = os.path.exists("/proc/self/stat")
# Not every kernel is built with it.
_LISTED = os.path.exists("/proc/thread-self/children")
_THREADS = "/proc/self/task"
_TRIES = 8
# The last, where /proc hides the processes of other users: nothing is known of those.
_GONE = (FileNotFoundError, ProcessLookupError, PermissionError)


class Entry(NamedTuple):
    """One process, as it was when somebody looked."""

    pid: int
    parent: int
    start: Hashable
    is_zombie: bool
    name: str


def can_be_read() -> bool:
    """Whether children can be seen at all here."""
    return _PROC or _psutil() is not None


def children() -> list[Entry]:
    """The children of this process, the oldest pid first."""
    if _is_childless():
        return []
    if not _PROC:
        return _children_elsewhere()
    entries = map(find, sorted(_listed() if _LISTED else _everybody()))
    # A pid of the list may belong to somebody else by now.
    return [entry for entry in entries if entry is not None and entry.parent == os.getpid()]


def find(pid: int) -> Entry | None:
    """The process that has this pid now."""
    if not _PROC:
        return _find_elsewhere(pid)
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
            stat = file.read()
    except _GONE:
        return None
    return _parsed(pid, stat)


def command_line(pid: int) -> str:
    """What was called; empty for a zombie, and for what is gone."""
    if not _PROC:
        return _command_line_elsewhere(pid)
    try:
        with open(f"/proc/{pid}/cmdline", "rb", buffering=0) as file:
            return os.fsdecode(file.read()).replace("\0", " ").strip()
    except _GONE:
        return ""


# --- /proc -------------------------------------------------------------------------------------


def _is_childless() -> bool:
    """The usual case, at the price of one system call. It waits for nothing and reaps nobody."""
    if not hasattr(os, "waitid"):  # macOS before 3.13, Windows
        return False
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return True
    return False


def _listed() -> set[int]:
    """The children that each of our threads has.

    Those of a thread that ends meanwhile pass to another one, which may have been read before
    that: so everything is read again.
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


def _everybody() -> Iterable[int]:
    return (int(name) for name in os.listdir("/proc") if name.isdigit())


def _parsed(pid: int, stat: bytes) -> Entry | None:
    # The name stands in parentheses, and may itself contain spaces and parentheses.
    before, _, after = stat.rpartition(b")")
    fields = after.split()
    state, parent, start = fields[0], int(fields[1]), int(fields[19])
    if state in b"Xx":  # on its way out of the table
        return None
    return Entry(pid, parent, start, state == b"Z", os.fsdecode(before.partition(b"(")[2]))


# --- psutil ------------------------------------------------------------------------------------


@cache
def _psutil() -> Any:
    try:
        return importlib.import_module("psutil")
    except ImportError:
        return None


def _children_elsewhere() -> list[Entry]:
    psutil = _psutil()
    if psutil is None:
        return []
    entries = (_find_elsewhere(process.pid) for process in psutil.Process().children())
    return sorted(entry for entry in entries if entry is not None)


def _find_elsewhere(pid: int) -> Entry | None:
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


def _command_line_elsewhere(pid: int) -> str:
    psutil = _psutil()
    if psutil is None:
        return ""
    try:
        return " ".join(psutil.Process(pid).cmdline())
    except psutil.Error:  # a zombie has none
        return ""
