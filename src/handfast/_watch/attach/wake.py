"""Wakes a process that sleeps in the kernel, so that its interpreter runs what it was given.

`sys.remote_exec` only leaves a note, which an idle server would read at its next request. To be traced
for a moment ends its `epoll_wait` early, as a debugger does; no signal is sent, and neither the program
nor its parent notices. Linux only, and only an improvement: errors are ignored.
"""

from __future__ import annotations

import ctypes
import os
import sys
from contextlib import suppress

_SEIZE, _INTERRUPT, _DETACH = 0x4206, 0x4207, 17  # <sys/ptrace.h>
_WAIT_FOR_ANY = 0x40000000  # __WALL: also for threads


def wake(pid: int) -> None:
    """End the system call that a process sleeps in."""
    if sys.platform != "linux":
        return
    ptrace = ctypes.CDLL(None, use_errno=True).ptrace
    ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    ptrace.restype = ctypes.c_long
    if ptrace(_SEIZE, pid, None, None) != 0:
        return
    try:
        if ptrace(_INTERRUPT, pid, None, None) == 0:
            with suppress(OSError):
                os.waitpid(pid, _WAIT_FOR_ANY)
    finally:
        ptrace(_DETACH, pid, None, None)
