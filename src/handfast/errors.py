"""Every error that the runtime raises by itself. Errors of the user's own tasks are not wrapped."""

from handfast._public_names import publish
from handfast._runtime.errors import (
    HandfastError,
    KeyBusy,
    KeyCancelled,
    KeyStuck,
    LoopStopped,
    OutputDropped,
    ProcessFailed,
    ProcessGone,
    ProcessStartError,
    ProcessTimeout,
    RestartLimit,
    ScopeClosed,
    StragglersLeft,
    StreamBroken,
    UnsupportedPlatform,
    WrongLoop,
)
from handfast._runtime.failure import CleanupErrors

__all__ = [
    "CleanupErrors",
    "HandfastError",
    "KeyBusy",
    "KeyCancelled",
    "KeyStuck",
    "LoopStopped",
    "OutputDropped",
    "ProcessFailed",
    "ProcessGone",
    "ProcessStartError",
    "ProcessTimeout",
    "RestartLimit",
    "ScopeClosed",
    "StragglersLeft",
    "StreamBroken",
    "UnsupportedPlatform",
    "WrongLoop",
]

publish(__name__, [globals()[name] for name in __all__])
