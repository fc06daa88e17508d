"""The child processes, running or zombie, whoever started them: asyncio, subprocess, os.fork.

`process_table` is read; here is decided which of them are anybody's. What multiprocessing keeps
for itself (its resource tracker, its fork server) ends with the program and is nobody's.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from asyncio import AbstractEventLoop
from collections.abc import Callable, Hashable, Iterator
from functools import wraps
from types import FrameType
from typing import Any

from holdfast.census import births, process_table, threads
from holdfast.census.birth import Birth, birth_here, is_library
from holdfast.census.hooks import Hook
from holdfast.census.process_table import Entry
from holdfast.census.tasks import coroutine_of
from holdfast.census.thing import Thing

__all__ = ["Child", "all_children", "blind_spots", "hooks"]

Identity = tuple[int, Hashable]

_BIRTHS: dict[Identity, Birth] = {}
_NOBODYS: set[Identity] = set()
# How multiprocessing, and joblib after it, call the servants that they start.
_SERVANTS = ("resource_tracker import main", "forkserver import main")
_LONG = 60


class Child(Thing):
    """A child process that nobody has waited for to its end."""

    __slots__ = ("_entry", "_whole")

    check = "children"

    def __init__(self, entry: Entry, whole: Thing | None) -> None:
        super().__init__(_BIRTHS.get(_identity(entry)) or (whole.birth if whole else None))
        self._entry = entry
        self._whole = whole

    @property
    def pid(self) -> int:
        return self._entry.pid

    @property
    def key(self) -> Hashable:
        return ("child", *_identity(self._entry))

    @property
    def code(self) -> str:
        return "HF702" if self._entry.is_zombie else "HF701"

    @property
    def what(self) -> str:
        # A zombie has no command line any more, only its name.
        called = _shortened(process_table.command_line(self.pid) or self._entry.name)
        state = "a zombie" if self._entry.is_zombie else "running"
        return f"child process {self.pid}{called and f' ({called})'}, {state}"

    def over(self) -> bool:
        """Whether it has left the process table. One that has ended may still be a zombie."""
        entry = process_table.find(self.pid)
        if entry is None or _identity(entry) != _identity(self._entry):
            return True
        self._entry = entry
        return _is_nobodys(entry)  # which shows only after its exec

    @property
    def part_of(self) -> Hashable | None:
        """The executor that it works for."""
        return self._whole.key if self._whole else None

    @property
    def passing(self) -> bool:
        return self._whole is not None and self._whole.passing


def all_children(loop: AbstractEventLoop | None = None) -> Iterator[Child]:
    """Each child of this process."""
    # Taken before the look, so that one born after it is not forgotten.
    known = [*_BIRTHS, *_NOBODYS]
    entries = process_table.children()
    if known:
        _forget(set(known).difference(map(_identity, entries)))
    if entries:
        wholes = threads.by_process()
        for entry in entries:
            if not _is_nobodys(entry):
                yield Child(entry, wholes.get(entry.pid))


def blind_spots(loop: AbstractEventLoop | None = None) -> Iterator[str]:
    """What cannot be seen here."""
    if not process_table.can_be_read():
        yield "children cannot be seen: /proc is not here and psutil is not installed"


def _identity(entry: Entry) -> Identity:
    return (entry.pid, entry.start)


def _forget(gone: set[Identity]) -> None:
    for identity in gone:
        _BIRTHS.pop(identity, None)
        _NOBODYS.discard(identity)


def _is_nobodys(entry: Entry) -> bool:
    identity = _identity(entry)
    if identity in _NOBODYS:
        return True
    if identity in _BIRTHS:  # it was started in a way that those are not
        return False
    # Only a yes is kept: before its exec a servant still looks like ourselves.
    called = process_table.command_line(entry.pid)
    if any(servant in called for servant in _SERVANTS):
        _NOBODYS.add(identity)
        return True
    return False


def _shortened(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONG else text[: _LONG - 3] + "..."


# --- birth -------------------------------------------------------------------------------------


def hooks() -> Iterator[Hook]:
    """Where children are born. asyncio starts its own through `Popen`; uvloop does not."""
    # Late: it is no small thing to load, and a census without births does without.
    from multiprocessing.process import BaseProcess

    yield Hook(subprocess.Popen, "__init__", _around_start)
    yield Hook(BaseProcess, "start", _around_start)
    uvloop = sys.modules.get("uvloop")
    if uvloop is not None:
        yield Hook(uvloop.Loop, "subprocess_exec", _around_uvloop)
        yield Hook(uvloop.Loop, "subprocess_shell", _around_uvloop)


def _around_start(start: Callable[..., None]) -> Callable[..., None]:
    @wraps(start)
    def noted(self: Any, *args: Any, **options: Any) -> None:
        birth = _birth_in(sys._getframe(1))
        start(self, *args, **options)
        _register(self.pid, birth)

    return noted


def _around_uvloop(start: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(start)
    async def noted(self: Any, *args: Any, **options: Any) -> Any:
        birth = _birth_in(sys._getframe(1))
        transport, protocol = await start(self, *args, **options)
        _register(transport.get_pid(), birth)
        return transport, protocol

    return noted


def _birth_in(frame: FrameType) -> Birth | None:
    birth = birth_here(frame, births.owner_now())
    # A library may start a child in a task of its own, as `holdfast.Process` does. Then it was
    # born where that task was.
    task = asyncio.current_task() if asyncio._get_running_loop() else None
    made = births.of(task) if task is not None and _is_all_library(frame, task) else None
    if birth is None or made is None:
        return birth
    return Birth(made.code, made.lasti, birth.near_code, birth.near_lasti, birth.owner)


def _is_all_library(frame: FrameType | None, task: asyncio.Task[Any]) -> bool:
    """Whether no line of the program stands between a frame and the beginning of its task."""
    beginning = getattr(coroutine_of(task), "cr_frame", None)
    while frame is not None and is_library(frame.f_code.co_filename):
        if frame is beginning:
            return True
        frame = frame.f_back
    return False


def _register(pid: int | None, birth: Birth | None) -> None:
    entry = process_table.find(pid) if pid is not None else None
    if entry is not None and birth is not None:
        _BIRTHS[_identity(entry)] = birth
