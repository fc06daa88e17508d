"""Every error that the runtime raises by itself. Errors of the user's tasks are not wrapped.

Each message says what happened, where the object was created and what to do. Each class has a
standard base class too, so that code which does not know handfast can catch it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from handfast._runtime.process.run_process import ProcessResult


class HandfastError(Exception):
    """The base class of all errors of the runtime."""


class ScopeClosed(HandfastError, RuntimeError):
    """New work was refused because the scope is closing or closed."""


class WrongLoop(HandfastError, RuntimeError):
    """A scope was used on another event loop, or on another thread, than its own."""


class LoopStopped(HandfastError, RuntimeError):
    """Work was submitted to an event loop that has stopped or closed and would never run it."""


class KeyBusy(HandfastError, RuntimeError):
    """`KeyedTasks.start` was called for a key that has a live task."""


class KeyCancelled(HandfastError, RuntimeError):
    """The task that `KeyedTasks.share` waited for was cancelled by other code."""


class KeyStuck(HandfastError, TimeoutError):
    """The previous task of a key did not end within the timeout."""


class StreamBroken(HandfastError, RuntimeError):
    """A stream was used in the wrong way, or its owner task was cancelled."""


class RestartLimit(HandfastError, RuntimeError):
    """A service failed more often than its restart policy allows."""


class StragglersLeft(HandfastError, TimeoutError):
    """A close reached its timeout while a task, thread or process was still running."""


class ProcessStartError(HandfastError, OSError):
    """A program could not be started."""


class ProcessGone(HandfastError, BrokenPipeError):
    """Input was sent to a child process that has ended."""


class ProcessFailed(HandfastError, RuntimeError):
    """`run_process(check=True)`: the program did not end with exit code 0."""

    result: ProcessResult
    """How it ended, and its output."""


class ProcessTimeout(HandfastError, TimeoutError):
    """`run_process(timeout=)`: the program took too long, and was ended."""

    result: ProcessResult
    """How it ended, and its output until then."""


class OutputDropped(HandfastError, RuntimeError):
    """Output of a process is missing at this point, because it was not kept. Reading can go on."""

    dropped: int = 0
    """The number of missing bytes."""


class UnsupportedPlatform(HandfastError, NotImplementedError):
    """A feature that this operating system does not have."""
