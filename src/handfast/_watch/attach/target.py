"""What process is to be attached to, and why that is impossible."""

from __future__ import annotations

import os
import re
import sys
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from handfast._watch.error import WatchError

_OTHERWISE = (
    "start it with HANDFAST_WATCH=1 in its environment, or call handfast.watch.serve() in it"
)
# The interpreter, or its library if a program embeds it.
_PYTHON = re.compile(r"/(?:lib)?python(3)\.(\d+)[^/]*$")


class Target(NamedTuple):
    """A process that can be attached to."""

    pid: int
    python: tuple[int, int]


def examine(pid: int) -> Target:
    """Look at a process; raise if it is of another user, container or version, or no Python."""
    if not Path("/proc/self/status").exists():  # macOS: `sys.remote_exec` makes its own checks
        if sys.version_info < (3, 14):
            raise WatchError(f"gdb is used on Linux only: {_OTHERWISE}")
        return Target(pid, sys.version_info[:2])
    _require_own(pid)
    _require_same_container(pid)
    found = _python_of(pid)
    if found is None:
        raise WatchError(f"process {pid} runs no Python that can be recognised in its /proc/maps")
    if found != sys.version_info[:2]:
        theirs, ours = _dotted(found), _dotted(sys.version_info[:2])
        raise WatchError(
            f"process {pid} runs Python {theirs}, and this is Python {ours}: run "
            f"`python{theirs} -m handfast attach {pid}` with handfast installed for it"
        )
    return Target(pid, found)


def _dotted(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"


def _require_own(pid: int) -> None:
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        raise WatchError(f"there is no process {pid}") from None
    uids = next(line.split()[1:] for line in status.splitlines() if line.startswith("Uid:"))
    uid = int(uids[1])
    if uid != os.geteuid():
        raise WatchError(
            f"process {pid} belongs to user {uid}, and this is user {os.geteuid()}: only that user "
            f"can read its watch; run `sudo -u '#{uid}' handfast attach {pid}`"
        )


def _require_same_container(pid: int) -> None:
    for kind in ("pid", "mnt"):
        try:
            theirs = os.readlink(f"/proc/{pid}/ns/{kind}")
        except OSError:
            raise WatchError(why_not_permitted(pid)) from None
        if theirs != os.readlink(f"/proc/self/ns/{kind}"):
            raise WatchError(
                f"process {pid} runs in another container (its {kind} namespace is another one), "
                "and attaching from outside could crash it: run handfast inside that container, or "
                f"{_OTHERWISE}"
            )


def _python_of(pid: int) -> tuple[int, int] | None:
    names = []
    with suppress(OSError):
        names.append(os.readlink(f"/proc/{pid}/exe"))
    with suppress(OSError):
        maps = Path(f"/proc/{pid}/maps").read_text(encoding="utf-8", errors="replace")
        names += [line.split(maxsplit=5)[-1] for line in maps.splitlines() if " r-xp " in line]
    for name in names:
        if found := _PYTHON.search(name.removesuffix(" (deleted)")):
            return int(found[1]), int(found[2])
    return None


def why_not_permitted(pid: int) -> str:
    """Return why the system does not let this process look into another one."""
    scope = ""
    with suppress(OSError):
        scope = Path("/proc/sys/kernel/yama/ptrace_scope").read_text().strip()
    if scope == "3":
        how = "kernel.yama.ptrace_scope is 3, which only a restart of the system changes"
    elif scope in ("1", "2"):
        how = f"kernel.yama.ptrace_scope is {scope}; run it as root, or set that to 0"
    else:
        how = "run it as root; in a container, start that with --cap-add=SYS_PTRACE"
    return f"the system does not permit to attach to process {pid} ({how}). Or {_OTHERWISE}"
