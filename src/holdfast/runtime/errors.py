"""Every error that the runtime raises by itself. What a task raised is never wrapped here.

Each says what happened, where the thing was born and what to do about it. They keep a
standard base class too, so that code which knows nothing of holdfast can catch them.
"""

from __future__ import annotations

__all__ = [
    "HoldfastError",
    "LoopStopped",
    "ProcessGone",
    "ProcessStartError",
    "RestartLimit",
    "ScopeClosed",
    "SlotBusy",
    "SlotCancelled",
    "SlotStuck",
    "StragglersLeft",
    "StreamBroken",
    "UnsupportedPlatform",
    "WrongLoop",
]


class HoldfastError(Exception):
    """The base of all that follows."""


class ScopeClosed(HoldfastError, RuntimeError):
    """New work for a scope that is closing or closed."""


class WrongLoop(HoldfastError, RuntimeError):
    """A scope was used on another event loop, or on another thread, than its own."""


class LoopStopped(HoldfastError, RuntimeError):
    """Work for an event loop that has stopped or closed: nobody would ever run it."""


class SlotBusy(HoldfastError, RuntimeError):
    """`Slots.reject` on a key that has a live task."""


class SlotCancelled(HoldfastError, RuntimeError):
    """The task that `Slots.keep` had joined was cancelled by somebody else."""


class SlotStuck(HoldfastError, TimeoutError):
    """A predecessor did not end within the deadline of its slot."""


class StreamBroken(HoldfastError, RuntimeError):
    """A stream was used in a way that it cannot serve, or its owner task was cancelled."""


class RestartLimit(HoldfastError, RuntimeError):
    """A service failed more often than its restart policy allows."""


class StragglersLeft(HoldfastError, TimeoutError):
    """A close reached its deadline and something was still there."""


class ProcessStartError(HoldfastError, OSError):
    """A program could not be started."""


class ProcessGone(HoldfastError, BrokenPipeError):
    """Input for a child process that has ended."""


class UnsupportedPlatform(HoldfastError, NotImplementedError):
    """Something that this operating system does not have."""
