"""What is alive in this process: tasks, timers, generators, threads, children, connections.

`take` lists everything once. Two snapshots are compared by the keys of the objects in them. Each
file in `kinds/` lists one kind of object and names the patches that record its creation: adding a
file there adds a kind. Nothing here decides what a leak is; `handfast._leaks.judge` does.
"""

from __future__ import annotations

from handfast._census.creation import Creation
from handfast._census.creation_log import owned_by, owned_here_by
from handfast._census.kinds.closables import register
from handfast._census.live_object import LiveObject
from handfast._census.recording import patch_late_imports, recording
from handfast._census.snapshot import CHECKS, DEFAULT, ON_REQUEST, Snapshot, take

__all__ = [
    "CHECKS",
    "DEFAULT",
    "ON_REQUEST",
    "Creation",
    "LiveObject",
    "Snapshot",
    "owned_by",
    "owned_here_by",
    "patch_late_imports",
    "recording",
    "register",
    "take",
]
