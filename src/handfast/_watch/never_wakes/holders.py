"""Which holder of a reference can act on it.

A holder is one of these:

- **at work**: it runs or will run by itself, or it can be reached from anywhere. Modules, classes,
  event loops, handles and transports.
- **a task**: what its coroutine holds matters only once the task wakes.
- **passive**: whether it matters depends on who holds it, in turn.
"""

from __future__ import annotations

import asyncio
import gc
import types
import weakref
from asyncio import AbstractEventLoop, Task
from collections import deque
from typing import Any

from handfast._asyncio_internals import awaited_future

_AT_WORK = (
    AbstractEventLoop,
    asyncio.BaseTransport,
    asyncio.Handle,
    types.ModuleType,
    type,
)

# What lies between a coroutine and the future that it awaits, in asyncio itself, and how far to
# look for it.
_ON_THE_WAY = {
    asyncio.Barrier,
    asyncio.Condition,
    asyncio.Event,
    asyncio.Lock,
    asyncio.LifoQueue,
    asyncio.PriorityQueue,
    asyncio.Queue,
    asyncio.Semaphore,
    asyncio.StreamReader,
    deque,
    types.CoroutineType,
}
_STEPS = 6
_SEEN = 100


def is_handle(thing: object) -> bool:
    """A callback that a loop will call. A cancelled one no longer refers to anything."""
    kind = type(thing)
    # Those of uvloop are no subclasses of asyncio's.
    return issubclass(kind, asyncio.Handle) or (
        _is_of_uvloop(thing) and kind.__name__ in ("Handle", "TimerHandle")
    )


def _is_of_uvloop(thing: object) -> bool:
    return str(type(thing).__module__).partition(".")[0] == "uvloop"


def is_at_work(thing: object) -> bool:
    """Whether an object can act by itself, or be reached from anywhere."""
    # By type: `isinstance` reads `__class__`, which for a proxy may run any code.
    kind = type(thing)
    if issubclass(kind, _AT_WORK) or is_handle(thing):
        return True
    if _is_of_uvloop(thing):
        return True  # its transports, servers and processes
    return kind is dict and "__builtins__" in thing  # type: ignore[operator]


def is_pending_task(thing: object) -> bool:
    return issubclass(type(thing), Task) and not Task.done(thing)  # type: ignore[arg-type]


def waits_for(task: Task[Any]) -> Any:
    """What a task waits for; None if it runs, or will as soon as its loop comes to it."""
    future = awaited_future(task)
    if issubclass(type(future), asyncio.Future):
        return None if asyncio.Future.done(future) else future
    return None if future is None or future.done() else future


def that_matter(holders: list[Any], held: object) -> list[Any]:
    """Those holders of an object that are of use to complete or to continue it."""
    matter = [each for each in holders if not _only_waits(each, held)]
    # By type: `isinstance` reads `__class__`, which for a proxy may run any code.
    if issubclass(type(held), types.CoroutineType):
        # While one coroutine awaits another, nobody else can continue that.
        awaiting = [each for each in matter if _awaits(each, held)]
        return awaiting or matter
    if issubclass(type(held), weakref.WeakSet):
        # The list of async generators of a uvloop loop, which Python code cannot read.
        return [each for each in matter if not _is_of_uvloop(each)]
    return matter


def _awaits(holder: object, coroutine: object) -> bool:
    if is_pending_task(holder):
        return Task.get_coro(holder) is coroutine  # type: ignore[arg-type]
    is_coroutine = issubclass(type(holder), types.CoroutineType)
    return is_coroutine and holder.cr_await is coroutine  # type: ignore[attr-defined]


def _only_waits(holder: object, held: object) -> bool:
    """Whether a holder has this reference only because it waits for the object."""
    return is_pending_task(holder) and awaited_future(holder) is held  # type: ignore[arg-type]


def way_to(goal_of: object, goal: object) -> list[Any]:
    """The objects on a way of references from one to another, and the other."""
    seen: dict[int, Any] = {id(goal_of): goal_of}
    held_by: dict[int, list[Any]] = {}
    pending = [goal_of]
    for _ in range(_STEPS):
        following = []
        for holder in pending:
            for held in gc.get_referents(holder):
                held_by.setdefault(id(held), []).append(holder)
                if id(held) not in seen and _is_on_the_way(held) and len(seen) < _SEEN:
                    seen[id(held)] = held
                    following.append(held)
        pending = following
    way = {id(goal): goal}
    pending = [goal]
    while pending:
        for holder in held_by.get(id(pending.pop()), ()):
            if id(holder) not in way:
                way[id(holder)] = holder
                pending.append(holder)
    return list(way.values())


def _is_on_the_way(thing: object) -> bool:
    return type(thing) in _ON_THE_WAY or type(thing).__name__ == "FutureIter"


def weak_holders(held: object) -> list[Any]:
    """The weak references to an object: who has one can reach it, too.

    asyncio lists its tasks in weak sets, and nobody completes a task through those.
    """
    if issubclass(type(held), Task):
        return []
    return list(weakref.getweakrefs(held))


def registries(tasks: list[Task[Any]]) -> set[int]:
    """The sets, by id, in which loops list their async generators, only to close them."""
    listed = (getattr(Task.get_loop(task), "_asyncgens", None) for task in tasks)
    sets = (vars(each).get("data") for each in listed if isinstance(each, weakref.WeakSet))
    return {id(each) for each in sets}
