"""The child: a program that answers each line of JSON with another. It is run, never imported.

It needs nothing but Python. What it is asked to do is under "do"; each answer has its session, its
pid, what was asked, and what came of it. It ends when its input ends.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

__all__: list[str] = []

_TO_SAVE: list[int] = []
_BINARY = bytes(range(256)) + b"\xff\xfe\x00\n"


def write(data: bytes) -> None:
    """To stderr, all of it, as long as that takes."""
    while data:
        data = data[os.write(2, data) :]


def noise(size: int) -> None:
    """Bytes that are no text, then a line of this size."""
    write(_BINARY)
    write(b"\0" * size + b"\n")


def fork(seconds: int) -> int:
    """A grandchild that holds all pipes for so long, and does not mind SIGTERM; its pid."""
    pid = os.fork()
    if pid:
        return pid
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(seconds)
    os._exit(0)


def flood(lines: int) -> None:
    """From now on, it writes so many lines of 1 KiB when it is told to end, and exits with 0."""
    _TO_SAVE.append(lines)
    signal.signal(signal.SIGTERM, end)


def end(*_: object) -> None:
    """On SIGTERM, or when the input ends: either may be noticed first."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for lines in _TO_SAVE:
        for number in range(1, lines + 1):
            write(f"saved {number} of {lines}".encode().rjust(1023) + b"\n")
    os._exit(0)


def leave(code: int) -> None:
    """Say something, and exit before there is an answer."""
    write(b"I cannot go on\n")
    os._exit(code)


_DEEDS: dict[str, Callable[[int], int | None]] = {
    "echo": lambda number: number,
    "noise": noise,
    "fork": fork,
    "flood": flood,
    "leave": leave,
    "think": time.sleep,
}


def main() -> None:
    session = f"session of {os.getpid()}"
    for line in sys.stdin.buffer:
        asked: dict[str, Any] = json.loads(line)
        result = _DEEDS[asked["do"]](asked.get("number", 0))
        answer = {"session": session, "pid": os.getpid(), "asked": asked, "result": result}
        sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n")
        sys.stdout.buffer.flush()
    end()


if __name__ == "__main__":
    main()
