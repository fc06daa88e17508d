"""holdfast: every asyncio task has an owner, and closing tells the truth.

The house, room by room:

    holdfast             this door: the runtime's public names
    holdfast.catalogue   the bug kinds: code, name, why, wrong, right
    holdfast.origin      where a task was born
    holdfast.runtime     owns tasks, resources, processes, streams; standard library only
    holdfast.check       finds lifetime bugs by reading the code
    holdfast.census      what is alive now
    holdfast.leaks       which code leaves something behind, and what
    holdfast.explore     runs a program under the schedules nobody tried
    holdfast.bridges     the runtime beside reactivex, langgraph, anyio, aiohttp
    holdfast.casebook    five systems: as reported, as the report would fix it, as it should be
    holdfast.pytest_plugin   `pytest --holdfast`, `@pytest.mark.explore`
    holdfast.cli         the `holdfast` command

Start with `Scope`: everything else hangs on one.
"""

from importlib import import_module
from typing import Any

from holdfast.origin import Origin
from holdfast.runtime.background import BackgroundLoop
from holdfast.runtime.errors import (
    HoldfastError,
    LoopStopped,
    ProcessGone,
    ProcessStartError,
    RestartLimit,
    ScopeClosed,
    SlotBusy,
    SlotCancelled,
    SlotStuck,
    StragglersLeft,
    StreamBroken,
    UnsupportedPlatform,
    WrongLoop,
)
from holdfast.runtime.failure import CleanupErrors, Failure, split
from holdfast.runtime.process import ExitStatus, Process
from holdfast.runtime.report import CloseReport, Ending, Straggler
from holdfast.runtime.restart import Restart
from holdfast.runtime.runner import run
from holdfast.runtime.scope import Scope
from holdfast.runtime.shielding import shielded
from holdfast.runtime.slots import Slots
from holdfast.runtime.streams import Stream, stream

__version__ = "0.1.0"

__all__ = [
    "BackgroundLoop",
    "CleanupErrors",
    "CloseReport",
    "Ending",
    "ExitStatus",
    "Failure",
    "HoldfastError",
    "LoopStopped",
    "Origin",
    "Process",
    "ProcessGone",
    "ProcessStartError",
    "Restart",
    "RestartLimit",
    "Scope",
    "ScopeClosed",
    "SlotBusy",
    "SlotCancelled",
    "SlotStuck",
    "Slots",
    "Straggler",
    "StragglersLeft",
    "Stream",
    "StreamBroken",
    "UnsupportedPlatform",
    "WrongLoop",
    "__version__",
    "run",
    "shielded",
    "split",
    "stream",
]


def __getattr__(name: str) -> Any:
    """The rooms that a program asks for by name; who only wants the runtime does not load them."""
    if name in ("bridges", "casebook", "census", "check", "explore", "leaks"):
        return import_module(f"holdfast.{name}")
    raise AttributeError(f"module 'holdfast' has no attribute {name!r}")
