"""Whether a process is running. A zombie is not: it has exited and waits to be reaped."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["is_running"]

_PROC = Path("/proc")


def is_running(pid: int) -> bool:
    """Whether the process is running.

    >>> is_running(os.getpid())
    True
    """
    try:
        os.kill(pid, 0)
        if not (_PROC / "self").exists():
            return True
        state = (_PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()[0]
    except OSError:  # it ended, perhaps between two of these calls
        return False
    return state != b"Z"
