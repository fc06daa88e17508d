"""Open file descriptors: files, pipes, sockets. On request, since each needs a readlink call.

Not listed: the descriptor that the list itself is read with, the three standard ones (output
capturing moves them), and those that an event loop polls with. Where a pipe was opened is not
recorded.
"""

from __future__ import annotations

import os
import socket
import sys
import weakref
from asyncio import AbstractEventLoop
from collections.abc import Hashable, Iterator
from typing import Any

from handfast._census import creation_log
from handfast._census.creation import Creation
from handfast._census.kind import Kind
from handfast._census.kinds.connections import address
from handfast._census.live_object import LiveObject
from handfast._census.patch import Patch, call_after

_LIST = "/proc/self/fd"
_LAST_STANDARD = 2
# Where each file was opened last, during a recording.
_OPENED: dict[str, Creation] = {}
_MOST_OPENED = 10_000
# The creations of the last listing: a file may have been opened once more since.
_LISTED: dict[Hashable, Creation] = {}
_SOCKETS: weakref.WeakValueDictionary[int, socket.socket] = weakref.WeakValueDictionary()


def open_descriptors(loop: AbstractEventLoop | None = None) -> Iterator[LiveObject]:
    """Each descriptor that this process has open."""
    if not os.path.isdir(_LIST):
        return
    creations: dict[Hashable, Creation] = {}
    for number in map(int, os.listdir(_LIST)):
        target = _target_of(number) if number > _LAST_STANDARD else None
        # Without a target, it was the one that the list was read with.
        if target is not None and not target.startswith("anon_inode:"):
            live = _live_descriptor(number, target)
            if live.creation is not None:
                creations[live.key] = live.creation
            yield live
    _LISTED.clear()
    _LISTED.update(creations)


def _live_descriptor(number: int, target: str) -> LiveObject:
    addresses = _addresses(number) if target.startswith("socket:") else ""
    return LiveObject(
        check="descriptors",
        code="HF751",
        key=("descriptor", number, target),
        what=f"descriptor {number} -> {target}{addresses}",
        ended=lambda: _target_of(number) != target,
        creation=_creation_of(number, target),
        target=number,
    )


def _target_of(number: int) -> str | None:
    try:
        # A file stays the same one after its name is deleted.
        return os.readlink(f"{_LIST}/{number}").removesuffix(" (deleted)")
    except FileNotFoundError:
        return None


def _addresses(number: int) -> str:
    """The addresses of a socket: its own, and the one that it is connected to."""
    try:
        # A second descriptor, so that closing this object leaves the socket open.
        with socket.socket(fileno=os.dup(number)) as double:
            here = address(double.getsockname())
            try:
                there = address(double.getpeername())
            except OSError:  # not connected
                there = ""
    except OSError:  # no longer a socket, or too many open descriptors
        return ""
    at = f" at {here}" if here else ""
    return f"{at} connected to {there}" if there else at


def _not_checked(loop: AbstractEventLoop | None) -> Iterator[str]:
    if not os.path.isdir(_LIST):
        yield "descriptors cannot be seen: /proc is not here"


# --- patches -----------------------------------------------------------------------------------


def patches() -> Iterator[Patch]:
    """Record the creation of sockets."""
    yield Patch(socket.socket, "__init__", call_after(_record))


def record_files() -> None:
    """Record from now on where files are opened, during recordings.

    An audit hook cannot be removed, so this is done only if a user checks descriptors.
    """
    global _has_audit_hook
    if not _has_audit_hook:
        _has_audit_hook = True
        sys.addaudithook(_on_audit_event)


_has_audit_hook = False


def _on_audit_event(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open" and isinstance(arguments[0], (str, bytes)) and creation_log.is_recording():
        if len(_OPENED) >= _MOST_OPENED:
            _OPENED.clear()
        creation = creation_log.created_here()
        if creation is not None:
            _OPENED[os.path.realpath(os.fsdecode(arguments[0]))] = creation


def _clear() -> None:
    _OPENED.clear()
    _LISTED.clear()


def _record(created: socket.socket, *args: Any, **options: Any) -> None:
    creation_log.record(created, 2)
    _SOCKETS[created.fileno()] = created


def _creation_of(number: int, target: str) -> Creation | None:
    found = _SOCKETS.get(number)
    # A closed socket has the number -1, and its old number may be that of a file by now.
    if found is not None and found.fileno() == number:
        return creation_log.creation_of(found)
    return _LISTED.get(("descriptor", number, target)) or _OPENED.get(target)


KIND = Kind(
    "descriptors",
    ("HF751",),
    open_descriptors,
    patches,
    _not_checked,
    clear=_clear,
    on_request=True,
)
