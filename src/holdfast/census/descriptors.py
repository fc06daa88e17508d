"""The open descriptors: files, pipes, sockets. On request, for it reads one link for each.

A socket is shown with its addresses. Where a socket or a file was opened is noted; nobody sees
that of a pipe. The descriptor with which the list itself is read is not in it, nor are the three
standard ones, which whoever captures output moves about, nor what an event loop polls with.
"""

from __future__ import annotations

import os
import socket
import sys
import weakref
from asyncio import AbstractEventLoop
from collections.abc import Callable, Hashable, Iterator
from functools import wraps
from typing import Any

from holdfast.census import births
from holdfast.census.birth import Birth
from holdfast.census.hooks import Hook
from holdfast.census.thing import Thing

__all__ = ["Descriptor", "all_open", "blind_spots", "forget", "hooks", "note_files"]

_LIST = "/proc/self/fd"
_STANDARD = 2
# Where each file was opened last, as long as births are recorded.
_OPENED: dict[str, Birth] = {}
_MOST = 10_000
# The births of those that were there at the last look: their file may have been opened again since.
_SEEN: dict[Hashable, Birth] = {}
_SOCKETS: weakref.WeakValueDictionary[int, socket.socket] = weakref.WeakValueDictionary()


class Descriptor(Thing):
    """One open descriptor."""

    __slots__ = ("number", "target")

    check = "descriptors"

    def __init__(self, number: int, target: str) -> None:
        super().__init__(_birth_of(number, target))
        self.number = number
        self.target = target

    @property
    def key(self) -> Hashable:
        return ("descriptor", self.number, self.target)

    @property
    def code(self) -> str:
        return "HF751"

    @property
    def what(self) -> str:
        addresses = _addresses(self.number) if self._is_socket and not self.over() else ""
        return f"descriptor {self.number} -> {self.target}{addresses}"

    @property
    def _is_socket(self) -> bool:
        return self.target.startswith("socket:")

    def over(self) -> bool:
        return _target_of(self.number) != self.target


def all_open(loop: AbstractEventLoop | None = None) -> Iterator[Descriptor]:
    """Each descriptor that this process has open."""
    if next(blind_spots(), None) is not None:
        return
    there: dict[Hashable, Birth] = {}
    for number in map(int, os.listdir(_LIST)):
        target = _target_of(number) if number > _STANDARD else None
        # Without a target, it was the one that the list was read with.
        if target is not None and not target.startswith("anon_inode:"):
            found = Descriptor(number, target)
            if found.birth is not None:
                there[found.key] = found.birth
            yield found
    _SEEN.clear()
    _SEEN.update(there)


def blind_spots(loop: AbstractEventLoop | None = None) -> Iterator[str]:
    """What cannot be seen here."""
    if not os.path.isdir(_LIST):
        yield "descriptors cannot be seen: /proc is not here"


def _target_of(number: int) -> str | None:
    try:
        # A file is the same one after its name is gone.
        return os.readlink(f"{_LIST}/{number}").removesuffix(" (deleted)")
    except FileNotFoundError:
        return None


def _addresses(number: int) -> str:
    """Where a socket is bound, and to whom it is connected."""
    try:
        # A second descriptor, so that closing this one leaves the socket alone.
        with socket.socket(fileno=os.dup(number)) as double:
            here = _in_words(double.getsockname())
            try:
                there = _in_words(double.getpeername())
            except OSError:  # not connected
                there = ""
    except OSError:  # not a socket any more, or no descriptor to spare
        return ""
    at = f" at {here}" if here else ""
    return f"{at} connected to {there}" if there else at


def _in_words(address: Any) -> str:
    if isinstance(address, tuple) and len(address) >= 2:
        host, port, *_ = address
        return f"[{host}]:{port}" if ":" in str(host) else f"{host}:{port}"
    return os.fsdecode(address) if isinstance(address, (str, bytes)) else str(address)


# --- birth -------------------------------------------------------------------------------------


def hooks() -> Iterator[Hook]:
    """Where sockets are born."""
    yield Hook(socket.socket, "__init__", _around_init)


def note_files() -> None:
    """Note from now on where files are opened. An audit hook cannot be taken out, so this is done
    for those only who look for descriptors; outside of a recording it does nothing."""
    global _listening
    if not _listening:
        _listening = True
        sys.addaudithook(_heard)


def forget() -> None:
    """What was opened is no longer of interest."""
    _OPENED.clear()
    _SEEN.clear()


_listening = False


def _heard(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open" and isinstance(arguments[0], (str, bytes)) and births.are_recorded():
        if len(_OPENED) >= _MOST:
            _OPENED.clear()
        birth = births.born()
        if birth is not None:
            _OPENED[os.path.realpath(os.fsdecode(arguments[0]))] = birth


def _around_init(init: Callable[..., None]) -> Callable[..., None]:
    @wraps(init)
    def noted(self: socket.socket, *args: Any, **options: Any) -> None:
        init(self, *args, **options)
        births.note(self)
        _SOCKETS[self.fileno()] = self

    return noted


def _birth_of(number: int, target: str) -> Birth | None:
    found = _SOCKETS.get(number)
    # A socket that was closed says -1, and the number may be that of a file by now.
    if found is not None and found.fileno() == number:
        return births.of(found)
    return _SEEN.get(("descriptor", number, target)) or _OPENED.get(target)
