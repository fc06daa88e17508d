"""The child: a script that answers each line of JSON with another. It is run, never imported.

It needs only Python. A request names an action under "do"; the answer has the session, the pid, the
request and the result. The script ends when its input ends.
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
    """Write all of it to stderr, however long that takes."""
    while data:
        data = data[os.write(2, data) :]


def noise(size: int) -> None:
    """Write binary data, then a line of this size."""
    write(_BINARY)
    write(b"\0" * size + b"\n")


def fork(seconds: int) -> int:
    """Fork a grandchild that holds all pipes for so long and ignores SIGTERM; return its pid."""
    pid = os.fork()
    if pid:
        return pid
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(seconds)
    os._exit(0)


def flood(lines: int) -> None:
    """Write so many lines of 1 KiB on SIGTERM, then exit with 0."""
    _TO_SAVE.append(lines)
    signal.signal(signal.SIGTERM, end)


def end(*_: object) -> None:
    """Called on SIGTERM and at the end of the input; either may come first."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for lines in _TO_SAVE:
        for number in range(1, lines + 1):
            write(f"saved {number} of {lines}".encode().rjust(1023) + b"\n")
    os._exit(0)


def leave(code: int) -> None:
    """Write a line to stderr, and exit without an answer."""
    write(b"I cannot go on\n")
    os._exit(code)


_ACTIONS: dict[str, Callable[[int], int | None]] = {
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
        query: dict[str, Any] = json.loads(line)
        result = _ACTIONS[query["do"]](query.get("number", 0))
        answer = {"session": session, "pid": os.getpid(), "query": query, "result": result}
        sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n")
        sys.stdout.buffer.flush()
    end()


if __name__ == "__main__":
    main()
