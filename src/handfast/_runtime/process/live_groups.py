"""The process groups that run now. They are killed when the interpreter exits. It keeps A22.

A loop that is stopped by a second Ctrl-C, that runs in a daemon thread, or that was never closed
cannot end its children. The last chance is `atexit`, which runs after all of them.

A start is registered before the fork. Between the fork and the moment when the loop reports the pid,
an exception of a signal handler may end the start; then only the system knows the pid, and the
child is looked for in /proc.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator

from handfast._runtime.process.command import Command
from handfast._runtime.process.group import HAS_PROC, ProcessGroup, proc_stats

# Seconds for starts that other threads have under way when the interpreter exits.
START_TIMEOUT = 1.0
# How often to look for the arguments of a process, a millisecond apart. The system sets them some
# microseconds after the exec has closed the pipe on which `subprocess` waits for it.
EXEC_CHECKS = 20
# Positions in the fields of /proc/PID/stat, counted from the state.
PARENT, GROUP, SESSION, START_TIME = 1, 2, 3, 19


class PendingStart:
    """A start whose pid is not known yet."""

    __slots__ = ("argv", "begun", "owner", "thread")

    def __init__(self, command: Command) -> None:
        self.argv = [os.fsencode(argument) for argument in command.argv]
        self.begun = int(_boot_time() * _TICKS)
        self.owner = os.getpid()
        self.thread = threading.get_ident()

    def kill(self) -> None:
        """Kill the child of this start, if there is one."""
        for pid in self._children():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)

    def _children(self) -> Iterator[int]:
        if not HAS_PROC or self.owner != os.getpid():
            return
        known = {group.pgid for group in list(_groups)}
        for pid, stat in proc_stats():
            if (
                int(stat[PARENT]) == self.owner
                and int(stat[GROUP]) == int(stat[SESSION]) == pid
                and int(stat[START_TIME]) >= self.begun
                and pid not in known
                and self._runs_in(pid)
            ):
                yield pid

    def _runs_in(self, pid: int) -> bool:
        """Whether the process has our arguments. For a script, the interpreter comes before them."""
        found = _arguments_of(pid)
        program, *rest = self.argv
        before = found[: len(found) - len(rest)]
        return found[len(before) :] == rest and any(
            os.path.basename(word) == os.path.basename(program) for word in before
        )


def _arguments_of(pid: int) -> list[bytes]:
    """The arguments of a process. In the middle of an exec there are none yet: look again."""
    for _ in range(EXEC_CHECKS):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                found = file.read().split(b"\0")[:-1]
        except OSError:  # it has ended meanwhile
            break
        if found:
            return found
        time.sleep(0.001)
    return []  # a zombie, too


_TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
_groups: set[ProcessGroup] = set()
_starts: set[PendingStart] = set()
_exiting = False


def begin_start(command: Command) -> PendingStart:
    """Register a start, before the fork."""
    if _exiting:
        raise RuntimeError(f"{command} cannot be started: the interpreter is exiting")
    start = PendingStart(command)
    _starts.add(start)
    return start


def end_start(start: PendingStart) -> None:
    """The start has failed, or its group is registered."""
    _starts.discard(start)


def add_group(group: ProcessGroup) -> None:
    """Register a group. Killed at once if the interpreter is exiting."""
    _groups.add(group)
    if _exiting:
        group.signal(signal.SIGKILL)


def remove_group(group: ProcessGroup) -> None:
    """The group has ended, or was killed."""
    _groups.discard(group)


def kill_all() -> None:
    """Kill every group of this process: the interpreter exits."""
    global _exiting
    _exiting = True
    deadline = time.monotonic() + START_TIMEOUT
    # Daemon threads run until the very end. A start there goes on until its group is registered.
    while _elsewhere() and time.monotonic() < deadline:
        time.sleep(0.001)
    for start in list(_starts):
        start.kill()
    for group in list(_groups):
        if not _has_another_parent(group.pgid):
            group.signal(signal.SIGKILL)


def _elsewhere() -> bool:
    """Whether a start is under way in another thread that still runs."""
    others = sys._current_frames().keys() - {threading.get_ident()}
    return any(start.thread in others for start in list(_starts))


def _has_another_parent(pid: int) -> bool:
    """Whether the number went to another process, after other code had reaped our child."""
    if not HAS_PROC:
        return False
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[PARENT]) != os.getpid()
    except OSError:  # there is no such process; its group may still have members
        return False


def _boot_time() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME) if sys.platform == "linux" else 0.0


def _forget_all() -> None:
    """In a forked child: everything belongs to the parent."""
    _groups.clear()
    _starts.clear()


atexit.register(kill_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
