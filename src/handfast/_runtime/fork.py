"""After `os.fork`: what the child has inherited, and cannot use.

The loop of the parent looks in the child as if it ran, but its thread is in the parent. Whatever
waits for such a loop registers here, once, and is notified in the child. So nothing on a hot path
compares process ids.
"""

from __future__ import annotations

import asyncio
import gc
import os
import weakref
from typing import Protocol

from handfast._asyncio_internals import mute_destroyed_warning, pending_tasks


class Inherited(Protocol):
    """Something that a forked child must not use."""

    def on_fork(self) -> None: ...


class _ThisProcess:
    """Replaced in a forked child. Comparing it costs less than a process id, which is a system call."""


this_process = _ThisProcess()

_inherited: weakref.WeakSet[Inherited] = weakref.WeakSet()


def register_inherited(thing: Inherited) -> None:
    """Have `thing.on_fork()` called in every child that this process forks while it lives."""
    _inherited.add(thing)


def _notify_inherited() -> None:
    global this_process
    this_process = _ThisProcess()
    for thing in list(_inherited):
        thing.on_fork()


def keep_loop(loop: asyncio.AbstractEventLoop) -> None:
    """In a child: keep the tasks of the parent's loop from being collected, even at its exit.

    A task that is collected runs its `finally` blocks, and those run in the parent already.
    """
    tasks = pending_tasks(loop)
    for task in tasks:
        mute_destroyed_warning(task)
    # In a reference cycle, and frozen: so neither its last reference nor a collection ends it.
    kept: list[object] = [loop, tasks]
    kept.append(kept)
    gc.freeze()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_notify_inherited)
