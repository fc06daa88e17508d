"""A command as a user starts it, in a process of its own; and what is alive of what it started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from pathlib import Path
from typing import NamedTuple

import pytest

__all__ = ["Interrupted", "alive", "interrupted", "start"]


def start(
    command: str, here: Path, *arguments: str, pass_fd: int | None = None, **environment: str
) -> subprocess.Popen[str]:
    """Start `handfast COMMAND`; a warning is an error."""
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-m", "handfast", command, *arguments],
        cwd=here.parent,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        pass_fds=() if pass_fd is None else (pass_fd,),
    )


class Interrupted(NamedTuple):
    """What a command said after Ctrl-C, and which of its processes are still there."""

    status: int
    printed: str
    errors: str
    orphans: list[str]


def interrupted(command: str, here: Path, *arguments: str, after: int) -> Interrupted:
    """Press Ctrl-C once the program has written `after` bytes to the descriptor in `RUNNING`."""
    if not Path("/proc/self/environ").exists():
        pytest.skip("looks for orphans in /proc")
    mark = uuid.uuid4().hex
    hears, says = os.pipe()
    os.set_blocking(says, False)
    named = {"RUNNING": str(says), "HANDFAST_TEST_MARK": mark}
    process = start(command, here, *arguments, pass_fd=says, **named)
    os.close(says)  # so that its end, if it comes too soon, is heard
    try:
        for _ in range(after):  # it is well under way
            assert os.read(hears, 1)
        process.send_signal(signal.SIGINT)
        printed, errors = process.communicate(timeout=60)
    finally:
        process.kill()
        os.close(hears)
    return Interrupted(process.returncode, printed, errors, alive(mark))


def alive(mark: str) -> list[str]:
    """The processes that have this mark in their environment."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (process / "environ").read_bytes():
                found.append(process.name)
        except OSError:  # it ended while we looked, or is not ours
            continue
    return found
