"""Calls in a forked process: what they do to globals, caches and the environment ends with it."""

from __future__ import annotations

import os
import pickle
import select
import signal
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from handfast._explore.search.watchdog import TooLong
from handfast._explore.verdict.error_text import error_text

T = TypeVar("T")
_CHUNK = 1 << 16


class ForkEnded(Exception):
    """The forked process has ended without an answer."""


def in_fork(call: Callable[[], T], seconds: float) -> T:
    """Return what `call` returns in a fork of this process, or raise what it raises.

    TooLong after `seconds`, in which case the fork is killed.
    """
    _flush()
    reads, writes = os.pipe()
    with warnings.catch_warnings():
        # The fork only runs one test and exits, so a lock that another thread holds now can block
        # it, but no longer than `seconds`.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if not child:
        os.close(reads)
        _answer(call, writes)
    os.close(writes)
    try:
        packed = _read_all(reads, seconds)
    finally:
        os.close(reads)
        os.kill(child, signal.SIGKILL)  # it has answered, or never will; a zombie ignores it
        _, status = os.waitpid(child, 0)
    if not packed:
        raise ForkEnded(f"exit code {os.waitstatus_to_exitcode(status)}")
    returned, value = pickle.loads(packed)
    if not returned:
        raise value
    result: T = value
    return result


def _answer(call: Callable[[], Any], writes: int) -> NoReturn:
    """Call, send the result and end this process, without anything that runs at exit."""
    status = 1
    try:
        packed = _packed(call)
        while packed:
            packed = packed[os.write(writes, packed) :]
        status = 0
    finally:
        os._exit(status)


def _packed(call: Callable[[], Any]) -> bytes:
    try:
        return pickle.dumps((True, call()))
    except BaseException as error:
        try:
            packed = pickle.dumps((False, error))
            # Many exceptions can be pickled but not loaded, because of their constructor.
            pickle.loads(packed)
        except Exception:
            return pickle.dumps((False, RuntimeError(error_text(error))))
        return packed


def _read_all(reads: int, seconds: float) -> bytes:
    ends = time.monotonic() + seconds
    packed = b""
    while True:
        left = ends - time.monotonic()
        if left <= 0 or not select.select([reads], [], [], left)[0]:
            raise TooLong
        chunk = os.read(reads, _CHUNK)
        if not chunk:
            return packed
        packed += chunk


def _flush() -> None:
    """Write what is buffered: the fork would write it again."""
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        if stream is not None and not stream.closed:
            stream.flush()
