"""The process group of one child: signal all of it, and see who is left of it.

A child is started in a session of its own, so the number of its group is its pid, and the group takes
in each descendant that did not leave on purpose. What left (setsid, a daemon) is out of reach, on
every Unix. It keeps S1.3 and S1.4: `kill()` alone would spare the grandchildren (#127874).
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import sys
from collections.abc import Iterator

from holdfast.runtime.errors import UnsupportedPlatform

__all__ = ["ProcessGroup", "require_process_groups", "running_members"]

SUPPORTED = hasattr(os, "killpg")
HAS_PROC = sys.platform == "linux" and os.path.exists("/proc/self/stat")


def require_process_groups() -> None:
    """Say at the call, and not at the first leak, that this system has no process groups."""
    if not SUPPORTED:
        raise UnsupportedPlatform(
            f"holdfast.Process needs process groups, and {sys.platform} has none: nothing could end "
            "the descendants of a child. Use asyncio.create_subprocess_exec there, and end them by hand"
        )


class ProcessGroup:
    """All that a child started and that stayed with it."""

    __slots__ = ("leader_reaped", "pgid")

    def __init__(self, leader: int) -> None:
        self.pgid = leader
        self.leader_reaped = False

    def signal(self, number: signal.Signals) -> None:
        """Signal every member, also when the leader has gone before them."""
        if self._recycled():
            return
        # EPERM: a set-uid member, or on macOS a group of zombies. `survivors` tells them apart.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pgid, number)

    def survivors(self) -> tuple[int, ...]:
        """The members that still run. Zombies do not: whoever is their parent has only to look."""
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
        """Whether the number has gone to a stranger (#127049).

        The system gives out no pid that is still the number of a group. So once the leader was reaped,
        a process with its pid means that our group is empty and this one is not ours.
        """
        if not self.leader_reaped:
            return False
        try:
            os.getpgid(self.pgid)
        except OSError as error:
            return error.errno != errno.ESRCH
        return True


def running_members(pgid: int) -> Iterator[int]:
    """Who of a group has not ended, where there is /proc."""
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                stat = file.read()
        except OSError:  # it has gone meanwhile
            continue
        # The name of the program stands in parentheses and may hold anything, these too.
        state, _parent, group = stat.rpartition(b")")[2].split(maxsplit=3)[:3]
        if int(group) == pgid and state not in (b"Z", b"X"):
            yield int(name)
