"""Child processes, running or zombie, started by asyncio, subprocess, multiprocessing or fork."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import weakref
from asyncio import AbstractEventLoop
from asyncio.base_subprocess import BaseSubprocessTransport
from collections.abc import Callable, Hashable, Iterator
from functools import wraps
from types import FrameType
from typing import Any

from handfast._asyncio_internals import running_loop
from handfast._census import creation_log, process_table
from handfast._census.creation import Creation, creation_in
from handfast._census.kind import Kind
from handfast._census.kinds import threads
from handfast._census.kinds.tasks import coroutine_of
from handfast._census.known_libraries import library_that_keeps
from handfast._census.live_object import LiveObject
from handfast._census.patch import Patch, call_after, uvloop_patches
from handfast._census.process_table import Entry
from handfast._code_owner import is_program

Identity = tuple[int, Hashable]

_CREATIONS: dict[Identity, Creation] = {}
_LIBRARIES: dict[Identity, str] = {}
# The loop that watches a child of asyncio's. When the loop has closed, the child is killed as soon as
# its transport is collected, and perhaps reaped: from then on nothing shows that it was left running.
_LOOPS: dict[Identity, weakref.ref[AbstractEventLoop]] = {}
_LONGEST_COMMAND = 60


def children(loop: AbstractEventLoop | None = None) -> Iterator[LiveObject]:
    """Each child of this process; with `loop`, the running ones that it watches."""
    if loop is not None and not _LOOPS:
        return
    # Read before the process table, so that a child started after that is not dropped.
    known = [*_CREATIONS, *_LIBRARIES, *_LOOPS]
    entries = process_table.children()
    for identity in set(known).difference(map(_identity, entries)) if known else ():
        _CREATIONS.pop(identity, None)
        _LIBRARIES.pop(identity, None)
        _LOOPS.pop(identity, None)
    if loop is not None:
        entries = [entry for entry in entries if not entry.is_zombie and _is_on(entry, loop)]
    if entries:
        wholes = threads.by_process()
        for entry in entries:
            yield _live_child(entry, wholes.get(entry.pid))


def _live_child(entry: Entry, executor: LiveObject | None) -> LiveObject:
    """A child, with the executor that it works for if there is one."""
    creation = _CREATIONS.get(_identity(entry)) or (executor.creation if executor else None)
    # A zombie has no command line any more, only its name.
    command = process_table.command_line(entry.pid)
    called = _shortened(command or entry.name)
    state = "a zombie" if entry.is_zombie else "running"
    return LiveObject(
        check="children",
        code="HF702" if entry.is_zombie else "HF701",
        key=("child", *_identity(entry)),
        what=f"child process {entry.pid}{called and f' ({called})'}, {state}",
        ended=lambda: _has_ended(entry),
        creation=creation,
        target=entry.pid,
        part_of=lambda: executor.key if executor else None,
        ends_by_itself=executor is not None and executor.ends_by_itself,
        library=_library(entry, command),
    )


def _has_ended(entry: Entry) -> bool:
    """Whether a child has left the process table. A zombie has not."""
    now = process_table.find(entry.pid)
    return now is None or _identity(now) != _identity(entry)


def _is_on(entry: Entry, loop: AbstractEventLoop) -> bool:
    reference = _LOOPS.get(_identity(entry))
    return reference is not None and reference() is loop


def _identity(entry: Entry) -> Identity:
    return (entry.pid, entry.start)


def _library(entry: Entry, command: str) -> str:
    identity = _identity(entry)
    if identity in _CREATIONS:  # libraries start their helpers in other ways
        return ""
    # Only a match is kept: before its exec such a child still has our own command line.
    if identity not in _LIBRARIES and (found := library_that_keeps("child process", command)):
        _LIBRARIES[identity] = found
    return _LIBRARIES.get(identity, "")


def _shortened(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST_COMMAND else text[: _LONGEST_COMMAND - 3] + "..."


def _not_checked(loop: AbstractEventLoop | None) -> Iterator[str]:
    if not process_table.can_be_read():
        yield "children cannot be seen: /proc is not here and psutil is not installed"


# --- patches -----------------------------------------------------------------------------------


def patches() -> Iterator[Patch]:
    """Record the start of children. asyncio starts its own through `Popen`; uvloop does not."""
    # Imported late: it is large, and a snapshot without a recording does not need it.
    from multiprocessing.process import BaseProcess

    yield Patch(subprocess.Popen, "__init__", _wrap_start)
    yield Patch(BaseProcess, "start", _wrap_start)
    yield Patch(BaseSubprocessTransport, "__init__", call_after(_note_loop))
    yield from uvloop_patches(("subprocess_exec", _wrap_uvloop), ("subprocess_shell", _wrap_uvloop))


def _wrap_start(start: Callable[..., None]) -> Callable[..., None]:
    @wraps(start)
    def wrapper(self: Any, *args: Any, **options: Any) -> None:
        creation = _creation_in(sys._getframe(1))
        start(self, *args, **options)
        _record(self.pid, creation)

    return wrapper


def _wrap_uvloop(start: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(start)
    async def wrapper(self: Any, *args: Any, **options: Any) -> Any:
        creation = _creation_in(sys._getframe(1))
        transport, protocol = await start(self, *args, **options)
        _record(transport.get_pid(), creation)
        _note_loop(transport, self)
        return transport, protocol

    return wrapper


def _creation_in(frame: FrameType) -> Creation | None:
    creation = creation_in(frame, creation_log.current_owner())
    # A library may start a child in a task of its own, as `handfast.Process` does. Then the line
    # that created the task is the one to show.
    task = asyncio.current_task() if running_loop() else None
    in_library = task is not None and _is_all_library(frame, task)
    of_task = creation_log.creation_of(task) if in_library else None
    if creation is None or of_task is None:
        return creation
    via = creation.via_code, creation.via_lasti
    return Creation(of_task.code, of_task.lasti, *via, creation.owner)


def _is_all_library(frame: FrameType | None, task: asyncio.Task[Any]) -> bool:
    """Whether no line of the program is between a frame and the first frame of its task."""
    first = getattr(coroutine_of(task), "cr_frame", None)
    while frame is not None and not is_program(frame.f_code.co_filename):
        if frame is first:
            return True
        frame = frame.f_back
    return False


def _record(pid: int | None, creation: Creation | None) -> None:
    entry = process_table.find(pid) if pid is not None else None
    if entry is not None and creation is not None:
        _CREATIONS[_identity(entry)] = creation


def _note_loop(transport: Any, loop: AbstractEventLoop, *_: object, **__: object) -> None:
    entry = process_table.find(transport.get_pid() or 0)
    if entry is not None:
        _LOOPS[_identity(entry)] = weakref.ref(loop)


KIND = Kind("children", ("HF701", "HF702"), children, patches, _not_checked, per_loop=True)
