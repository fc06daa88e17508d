"""Whether a process still runs. A zombie, which only waits for somebody to read its exit, does not."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["runs"]

_PROC = Path("/proc")


def runs(pid: int) -> bool:
    """Whether there is such a process.

    >>> runs(os.getpid())
    True
    """
    try:
        os.kill(pid, 0)
        if not (_PROC / "self").exists():
            return True
        state = (_PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()[0]
    except OSError:  # it went away, some of these times between two of our looks
        return False
    return state != b"Z"
