"""Where the hooks and the locks of a run are put in, and that everything is put back.

Also where a module has taken a name for itself (`from time import sleep`). A name that somebody
else has replaced before is left alone.
"""

from __future__ import annotations

import queue
import sys
import threading
import time
from asyncio import base_events
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from holdfast.explore.twins.threads import hooks, locks
from holdfast.explore.twins.threads.members import RealLock, allocate_lock

__all__ = ["install", "patched", "remove"]

# The place, the name, the real thing, and ours.
Patch = tuple[Any, str, Any, Any]

_STANDARD: list[Patch] = [
    (time, "sleep", hooks.REAL["sleep"], hooks.sleep),
    (threading, "_time", hooks.REAL["monotonic"], hooks.monotonic),
    (queue, "time", hooks.REAL["monotonic"], hooks.monotonic),
    (threading, "Lock", threading.Lock, locks.ProgramLockType),
    (threading, "_allocate_lock", allocate_lock, locks.lock_inside),
    (threading, "_CRLock", locks.REAL_RLOCK, locks.rlock_for_program),
    (queue, "SimpleQueue", locks.REAL_QUEUE, locks.SimpleQueue),
    (threading.Thread, "start", hooks.REAL["start"], hooks.start),
    (ThreadPoolExecutor, "submit", hooks.REAL["submit"], hooks.submit),
    (ThreadPoolExecutor, "shutdown", hooks.REAL["shutdown"], hooks.shutdown),
    (base_events.BaseEventLoop, "run_forever", hooks.REAL["run_forever"], hooks.run_forever),
]
# What other modules may have imported by name.
_TAKEN: dict[int, tuple[Any, Any]] = {
    id(real): (real, ours)
    for real, ours in (
        (hooks.REAL["sleep"], hooks.sleep),
        (hooks.REAL["monotonic"], hooks.monotonic),
        (allocate_lock, locks.ProgramLockType),
        (RealLock, locks.ProgramLockType),
        (locks.REAL_QUEUE, locks.SimpleQueue),
    )
}


class _State:
    """How many runs are under way in this process, and what is in place for them."""

    runs = 0
    put: list[Patch] = []  # noqa: RUF012 - one for the process
    guard = allocate_lock()
    modules: set[str] = set()  # noqa: RUF012
    elsewhere: list[Patch] = []  # noqa: RUF012


def install() -> None:
    """A run begins."""
    with _State.guard:
        _State.runs += 1
        if _State.runs == 1:
            for patch in (*_STANDARD, *_processes(), *_elsewhere()):
                place, name, real, ours = patch
                if vars(place).get(name) is real:
                    setattr(place, name, ours)
                    _State.put.append(patch)


def remove() -> None:
    """It has ended; after the last one everything is as it was."""
    with _State.guard:
        _State.runs -= 1
        if _State.runs == 0:
            for place, name, real, _ in _State.put:
                setattr(place, name, real)
            _State.put.clear()


@contextmanager
def patched() -> Iterator[None]:
    """For many runs at once: each of them then finds everything in its place."""
    install()
    try:
        yield
    finally:
        remove()


def _processes() -> Iterator[Patch]:
    """`ProcessPoolExecutor` is loaded only by those who use it."""
    module = sys.modules.get("concurrent.futures.process")
    if module is not None:
        executor: Any = module.ProcessPoolExecutor
        if executor.submit is not hooks.submit_to_processes:
            hooks.REAL["submit_to_processes"] = executor.submit
        real = hooks.REAL["submit_to_processes"]
        yield executor, "submit", real, hooks.submit_to_processes


def _elsewhere() -> list[Patch]:
    """The names that modules outside the standard library have taken for themselves."""
    if len(_State.modules) < len(sys.modules):
        for name, module in list(sys.modules.items()):
            if name not in _State.modules:
                _State.modules.add(name)
                _State.elsewhere += _taken_by(name, module)
    return _State.elsewhere


def _taken_by(name: str, module: Any) -> Iterator[Patch]:
    if name.startswith("holdfast.explore") or name.partition(".")[0] in sys.stdlib_module_names:
        return
    for taken, value in list(getattr(module, "__dict__", {}).items()):
        if id(value) in _TAKEN:
            real, ours = _TAKEN[id(value)]
            yield module, taken, real, ours
