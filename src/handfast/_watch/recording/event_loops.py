"""The event loops of the process and their pending tasks, read from the agent's thread.

Loops are noted when they are created. Those that exist when the watch begins are found among the
objects of the garbage collector, once.
"""

from __future__ import annotations

import asyncio
import gc
import weakref
from asyncio import AbstractEventLoop, Task
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from handfast._asyncio_internals import (
    TASKS_ARE_IN_WEAK_SETS,
    pending_tasks,
    snapshot,
    task_kinds,
    task_references,
)
from handfast._census.patch import Patch, call_after, call_before, uvloop_patches

Pause = Callable[[], object]
"""Called between small pieces of work, so that other threads may run."""

_loops: weakref.WeakSet[AbstractEventLoop] = weakref.WeakSet()
_hooks: list[Patch] = []
_KINDS = task_kinds()


def known_loops() -> list[AbstractEventLoop]:
    """The loops that are not closed."""
    return [loop for loop in snapshot(_loops) if not loop.is_closed()]


def kind_of(loop: AbstractEventLoop) -> str:
    """The class of a loop, such as "uvloop.Loop" or "SelectorEventLoop"."""
    kind = type(loop)
    package = kind.__module__.partition(".")[0]
    own = package in ("asyncio", "builtins")
    return kind.__name__.lstrip("_").removeprefix("Unix") if own else f"{package}.{kind.__name__}"


def watch_loops() -> None:
    """Note each loop from now on, and those that exist already."""
    patch_late_imports()
    find_loops()


def patch_late_imports() -> None:
    """Patch the classes of loops that are imported and not patched yet."""
    note = call_after(lambda loop, *_, **__: _loops.add(loop))
    patches = [Patch(asyncio.BaseEventLoop, "__init__", note)]
    # A program imports uvloop before it makes a runner, and perhaps after the watch began.
    late = call_before(lambda *_, **__: patch_late_imports())
    patches.append(Patch(asyncio.Runner, "__init__", late))
    patches += uvloop_patches(("__init__", note))
    for patch in patches:
        if all(hook.where is not patch.where for hook in _hooks):
            patch.install()
            _hooks.append(patch)
            if patch.where not in (asyncio.BaseEventLoop, asyncio.Runner):
                find_loops()


def stop_watching_loops() -> None:
    """Note no more loops."""
    while _hooks:
        _hooks.pop().uninstall()


def find_loops() -> None:
    """Find the loops that exist, among all objects: some milliseconds for each 100,000."""
    # Every program that has a loop has imported asyncio, and with it this module's classes. By
    # type: `isinstance` reads `__class__`, which for a proxy may run any code.
    kinds = _subclasses(AbstractEventLoop)
    for each in gc.get_objects():
        if type(each) in kinds:
            _loops.add(each)


def _subclasses(kind: type) -> set[type]:
    found = {kind}
    each: type
    for each in kind.__subclasses__():
        found |= _subclasses(each)
    return found


# --- tasks ---------------------------------------------------------------------------------------


def live_tasks(
    loops: Iterable[AbstractEventLoop], pause: Pause = lambda: None
) -> Iterator[Task[Any]]:
    """The pending tasks of loops that are not closed, one after the other. `pause` is called for each.

    No list of them is kept: a task that ends meanwhile is freed as ever.
    """
    references = task_references()
    while references:
        pause()
        task = _task_behind(references.pop())
        if task is not None and _is_pending(task):
            yield task
    if TASKS_ARE_IN_WEAK_SETS:
        return
    for loop in loops:
        tasks = pending_tasks(loop)
        while tasks:
            pause()
            task = tasks.pop()
            if _is_pending(task):
                yield task


def _is_pending(task: Task[Any]) -> bool:
    try:
        if task.done() or task.get_loop().is_closed():
            return False
        _loops.add(task.get_loop())
    except Exception:  # a class of the program's may raise anything: such a task is left out
        return False
    return True


def _task_behind(reference: Any) -> Task[Any] | None:
    # Since 3.14 the sets have tasks of other implementations only, which `pending_tasks` lists too.
    if not TASKS_ARE_IN_WEAK_SETS:
        return None
    task = reference() if isinstance(reference, weakref.ref) else reference
    return task if issubclass(type(task), _KINDS) else None
