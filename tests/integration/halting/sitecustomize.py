"""Python imports this when it starts. It makes a command write to a pipe when it reaches a certain
point, so that the test can kill it there.

    worker     a worker has begun to parse
    replace    a file is written and about to be moved into place; the command also stops here
"""

from __future__ import annotations

import os
import signal
import sys

_SIGNAL_FD = os.environ.get("HANDFAST_SIGNAL_FD", "")
_PARENT = os.getpid()
_HALT_AT = os.environ.get("HANDFAST_HALT_AT", "")


def _signal() -> None:
    try:
        os.write(int(_SIGNAL_FD), b".")
    except BlockingIOError:  # the pipe is full: the test has read enough
        pass


def _halt(*_: object, **__: object) -> None:
    _signal()
    while True:
        signal.pause()


def _signal_worker(event: str, _: object) -> None:
    """It parses only when all workers have started: a Ctrl-C during a fork would be lost, since Python
    ignores what its own callbacks raise there."""
    if event == "compile" and os.getpid() != _PARENT:
        _signal()


if _SIGNAL_FD:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if _HALT_AT == "worker":
        sys.addaudithook(_signal_worker)
    elif _HALT_AT == "replace":
        os.replace = _halt
