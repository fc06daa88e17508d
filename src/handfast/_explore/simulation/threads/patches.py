"""Install the replacements and locks of a run, and remove them afterwards.

Names that other modules imported (`from time import sleep`) are replaced too. A name that something
else has replaced before is left alone.
"""

from __future__ import annotations

import builtins
import queue
import sys
import threading
import time
from _thread import allocate_lock
from asyncio import base_events, taskgroups
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from handfast._explore.loop import virtual_clock
from handfast._explore.simulation.processes import real_children
from handfast._explore.simulation.threads import locks, replacements
from handfast._explore.simulation.threads.locks import RealLock

# The object that has the attribute, the name, the original, the replacement.
Patch = tuple[Any, str, Any, Any]


class _InOrder(dict[Any, None]):
    """In place of the set in which a `TaskGroup` keeps its tasks.

    It cancels them in the order of the set, which is that of their addresses: the same schedule
    would not give the same run. Here it is the order in which they were created.
    """

    def add(self, task: Any) -> None:
        self[task] = None

    def discard(self, task: Any) -> None:
        self.pop(task, None)


_STANDARD: list[Patch] = [
    # The module's own name hides the built-in one; `TaskGroup.__init__` is all that uses it.
    (taskgroups, "set", set, _InOrder),
    (time, "sleep", replacements.REAL["sleep"], replacements.sleep),
    (threading, "_time", replacements.REAL["monotonic"], replacements.monotonic),
    (queue, "time", replacements.REAL["monotonic"], replacements.monotonic),
    (threading, "Lock", threading.Lock, locks.ProgramLockType),
    (threading, "_allocate_lock", allocate_lock, locks.lock_inside),
    (threading, "_CRLock", locks.REAL_RLOCK, locks.rlock_for_program),
    (queue, "SimpleQueue", locks.REAL_QUEUE, locks.SimpleQueue),
    (threading.Thread, "start", replacements.REAL["start"], replacements.start),
    (ThreadPoolExecutor, "submit", replacements.REAL["submit"], replacements.submit),
    (ThreadPoolExecutor, "shutdown", replacements.REAL["shutdown"], replacements.shutdown),
    (
        base_events.BaseEventLoop,
        "run_forever",
        replacements.REAL["run_forever"],
        replacements.run_forever,
    ),
    *real_children.PATCHES,
]
# What other modules may have imported by name.
_IMPORTED: dict[int, tuple[Any, Any]] = {
    id(real): (real, ours)
    for real, ours in (
        (replacements.REAL["sleep"], replacements.sleep),
        *virtual_clock.REPLACED,
        (allocate_lock, locks.ProgramLockType),
        (RealLock, locks.ProgramLockType),
        (locks.REAL_QUEUE, locks.SimpleQueue),
    )
}


# What runs the program has real clocks: this package, and a test runner, which measures durations.
_LEFT_ALONE = frozenset({"handfast", "_pytest", "pytest", "pluggy", "xdist", "execnet"})


class _State:
    """The number of current runs in this process, and the patches installed for them."""

    runs = 0
    put: list[Patch] = []  # noqa: RUF012 - one for the process
    guard = allocate_lock()
    modules: dict[str, Any] = {}  # noqa: RUF012
    elsewhere: list[Patch] = []  # noqa: RUF012


def install() -> None:
    """Install the patches for a run."""
    with _State.guard:
        _State.runs += 1
        if _State.runs == 1:
            for patch in (*_STANDARD, *_processes(), *_elsewhere()):
                place, name, real, ours = patch
                # Not `getattr`: a value inherited from a base class must not be written into a subclass.
                if vars(place).get(name, vars(builtins).get(name)) is real:
                    setattr(place, name, ours)
                    _State.put.append(patch)


def remove() -> None:
    """End a run; after the last one, remove the patches."""
    with _State.guard:
        _State.runs -= 1
        if _State.runs == 0:
            for place, name, real, _ in _State.put:
                setattr(place, name, real)
            _State.put.clear()


@contextmanager
def patched() -> Iterator[None]:
    """Keep the patches installed over many runs, which is faster."""
    install()
    try:
        yield
    finally:
        remove()


def _processes() -> Iterator[Patch]:
    """Patches of `ProcessPoolExecutor`, if its module is loaded."""
    module = sys.modules.get("concurrent.futures.process")
    if module is not None:
        executor: Any = module.ProcessPoolExecutor
        for name, ours in (
            ("__init__", replacements.create_process_pool),
            ("submit", replacements.submit_to_processes),
        ):
            if (real := vars(executor)[name]) is not ours:
                replacements.REAL[ours.__name__] = real
            yield executor, name, replacements.REAL[ours.__name__], ours


def _elsewhere() -> list[Patch]:
    """Patches of names that modules outside the standard library imported."""
    # Copied, because attribute access of a lazy module may import others.
    for name, module in list(sys.modules.items()):
        # By identity: a module may be imported again under the same name.
        if name not in _State.modules or _State.modules[name] is not module:
            _State.modules[name] = module
            _State.elsewhere += _taken_by(name, module)
    return _State.elsewhere


def _taken_by(name: str, module: Any) -> Iterator[Patch]:
    top = name.partition(".")[0]
    if top in _LEFT_ALONE or top in sys.stdlib_module_names:
        return
    for taken, value in list(getattr(module, "__dict__", {}).items()):
        if id(value) in _IMPORTED:
            real, ours = _IMPORTED[id(value)]
            yield module, taken, real, ours
