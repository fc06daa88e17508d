"""Python imports this by its name when it starts. It makes a command tell, on a pipe, that it has come
to a certain point, so that it can be killed right there and not at some time.

    worker     a worker has begun to read code
    replace    a file is written, and about to take its place; here the command also stops
"""

from __future__ import annotations

import os
import signal
import sys

_HEARD_ON = os.environ.get("HOLDFAST_HEARD_ON", "")
_PARENT = os.getpid()
_HALT_AT = os.environ.get("HOLDFAST_HALT_AT", "")


def _tell() -> None:
    try:
        os.write(int(_HEARD_ON), b".")
    except BlockingIOError:  # nobody listens any more: enough was heard
        pass


def _halt(*_: object, **__: object) -> None:
    _tell()
    while True:
        signal.pause()


def _tell_of_a_worker(event: str, _: object) -> None:
    """It gets code only when all workers are there: a Ctrl-C in the middle of a fork would be lost, as
    Python ignores what its own callbacks raise there."""
    if event == "compile" and os.getpid() != _PARENT:
        _tell()


if _HEARD_ON:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if _HALT_AT == "worker":
        sys.addaudithook(_tell_of_a_worker)
    elif _HALT_AT == "replace":
        os.replace = _halt
