"""The call of a library that a task of the test is in.

A test does not say which of its tasks may be cancelled. But what a library does for a caller has to
stand a cancel of the caller at any point, so a task that the test itself has started, and the test
too, may be cancelled while it is inside such a call. Outside of one it is the test's own code that
would have to cope with the cancel, and nobody has promised that.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Iterable
from types import CodeType, FrameType, TracebackType
from typing import Any

from handfast._await_stack import await_frames
from handfast._code_owner import code_owner
from handfast._explore.hosted.source_files import is_test_file

# How anyio runs what is passed to a task group.
_ANYIO_RUNS = ("_run_coro", "_run_wrapped_task")


def library_call(frames: Iterable[FrameType], *, started_by_test: bool = False) -> FrameType | None:
    """The outermost frame of a library that the test has called, of an await stack.

    What lies outside the first frame of the test runs the test. A task that the test has started
    may consist of the call alone.
    """
    inside = started_by_test
    outermost = None
    for frame in frames:
        if is_test_file(frame.f_code.co_filename):
            if outermost is None:
                inside = True
            # Else the library has called back, into a stand-in for a peer for example.
        elif inside and outermost is None and is_library(frame.f_code):
            outermost = frame
    return outermost


def call_of(task: asyncio.Task[Any], *, started_by_test: bool = False) -> FrameType | None:
    """The same for a suspended task."""
    return library_call(await_frames(task.get_coro()), started_by_test=started_by_test)


def is_library(code: CodeType) -> bool:
    """Whether this is code that the suite tests, or that of another library."""
    if code.co_name in _ANYIO_RUNS:
        return False
    return _is_library_file(code.co_filename)


@functools.cache
def _is_library_file(filename: str) -> bool:
    return code_owner(filename) in ("library", "program") and not is_test_file(filename)


def started_by_test(frame: FrameType | None) -> bool:
    """Whether the code of a test starts the task that is being created in this frame.

    asyncio and anyio pass the call on; any other library starts a task for its own use. What lies
    outside of the running callback is the code that runs the loop, such as a test with asyncio.run.
    """
    while frame is not None and frame.f_code is not asyncio.Handle._run.__code__:
        name = frame.f_code.co_filename
        if is_test_file(name):
            return True
        if _is_library_file(name) and "/anyio/" not in name.replace("\\", "/"):
            return False
        frame = frame.f_back
    return False


def went_through(traceback: TracebackType | None, frame: FrameType) -> bool:
    """Whether an error has left this very frame."""
    while traceback is not None:
        if traceback.tb_frame is frame:
            return True
        traceback = traceback.tb_next
    return False


def raised_in_library(traceback: TracebackType | None) -> bool:
    """Whether the innermost frame that is not of the standard library is a library's."""
    found = False
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if is_library(code) or is_test_file(code.co_filename):
            found = is_library(code)
        traceback = traceback.tb_next
    return found
