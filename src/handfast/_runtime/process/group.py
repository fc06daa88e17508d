"""The process group of one child: signal all of it, and list the members that still run.

A child is started in a session of its own, so the number of its group is its pid, and each
descendant is a member unless it left on purpose. One that left (setsid, a daemon) cannot be found,
on any Unix. It keeps S1.3 and S1.4: `kill()` alone would not end the grandchildren (#127874).
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import sys
from collections.abc import Iterator

from handfast._runtime.errors import UnsupportedPlatform

SUPPORTED = hasattr(os, "killpg")
HAS_PROC = sys.platform == "linux" and os.path.exists("/proc/self/stat")


def require_process_groups() -> None:
    """Raise UnsupportedPlatform, before anything is started, if there are no process groups."""
    if not SUPPORTED:
        raise UnsupportedPlatform(
            f"handfast.Process needs process groups, and {sys.platform} has none: the descendants "
            "of a child could not be ended. Use asyncio.create_subprocess_exec there"
        )


class ProcessGroup:
    """A child and its descendants that are still in its group."""

    __slots__ = ("leader_reaped", "owner", "pgid")

    def __init__(self, leader: int) -> None:
        self.pgid = leader
        self.leader_reaped = False
        self.owner = os.getpid()

    def signal(self, number: signal.Signals) -> None:
        """Signal every member, also if the leader has ended before them.

        A copy of this object in a forked child does nothing: the group belongs to the parent.
        """
        if self.owner != os.getpid() or self._recycled():
            return
        # EPERM: a set-uid member, or on macOS a group of zombies. `survivors` distinguishes them.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pgid, number)

    def survivors(self) -> tuple[int, ...]:
        """The members that still run. Zombies do not: they have ended, and await their parent."""
        try:
            os.killpg(self.pgid, 0)
        except ProcessLookupError:
            return ()
        except PermissionError:
            if not HAS_PROC:
                return ()
        if self._recycled():
            return ()
        return tuple(running_members(self.pgid)) if HAS_PROC else (self.pgid,)

    def _recycled(self) -> bool:
        """Whether another process has got the number since (#127049).

        The system does not reuse a pid that is still the number of a group. So once the leader was
        reaped, a process with its pid means that our group is empty and this one is not ours.
        """
        if not self.leader_reaped:
            return False
        try:
            os.getpgid(self.pgid)
        except OSError as error:
            return error.errno != errno.ESRCH
        return True


def running_members(pgid: int) -> Iterator[int]:
    """The members of a group that have not ended, on systems with /proc."""
    for pid, (state, _parent, group, *_) in proc_stats():
        if int(group) == pgid and state not in (b"Z", b"X"):
            yield pid


def proc_stats() -> Iterator[tuple[int, list[bytes]]]:
    """Each process: its pid, and the fields of /proc/PID/stat from the state on."""
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                stat = file.read()
        except OSError:  # it has ended meanwhile
            continue
        # The name of the program is in parentheses and may contain parentheses itself.
        yield int(name), stat.rpartition(b")")[2].split()
