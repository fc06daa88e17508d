"""What a test creates for a fixture of a wider scope: a pool that starts its thread on first use.

The test runs the code that creates it, but it belongs to the fixture, and ends with it. It is found
by following references: from the value of the fixture, and from what its generator holds.
"""

from __future__ import annotations

import asyncio
import functools
import gc
import weakref
from collections import deque
from collections.abc import Collection, Iterable, Iterator
from contextvars import Context
from types import FunctionType, ModuleType
from typing import Any

from handfast._census import LiveObject

# Not an error that was not read, which is one of the test, and not what is known by a number only.
_CHECKS = {"tasks", "threads", "timers", "generators", "connections", "resources"}
# Enough for a client with its pool; a fixture with more data than that is not searched to its end.
_MOST = 20_000
# Where references lead to everything else: from a loop to each timer, from a future to each waiter.
_ENDS = (asyncio.AbstractEventLoop, asyncio.Runner, asyncio.Future, Context, ModuleType, type)
_PACKAGES = {"_pytest", "pytest", "pluggy", "pytest_asyncio", "handfast"}


def parts_of(roots: Iterable[Any], found: Collection[LiveObject]) -> list[LiveObject]:
    """Those of `found` that the roots hold, and those on the event loop of such a thread."""
    wanted = {id(target): live for live in found if (target := _target(live)) is not None}
    held: list[LiveObject] = []
    if wanted:
        held = [wanted[number] for number in map(id, _reachable(roots)) if number in wanted]
    threads = {getattr(live.target, "ident", None) for live in held if live.check == "threads"}
    inner = [live for live in found if live not in held and _thread_of_loop(live) in threads]
    return held + inner


def _target(live: LiveObject) -> Any:
    if live.creation is None or live.check not in _CHECKS:
        return None
    return live.target() if isinstance(live.target, weakref.ref) else live.target


def _thread_of_loop(live: LiveObject) -> object:
    # Not None, which is the identifier of a thread that has not started.
    return getattr(live.loop, "_thread_id", None) or live


def _reachable(roots: Iterable[Any]) -> Iterator[Any]:
    waiting = deque(roots)
    seen = {id(each): each for each in waiting}
    while waiting and len(seen) < _MOST:
        each = waiting.popleft()
        yield each
        for inner in _inner(each):
            if id(inner) not in seen:
                seen[id(inner)] = inner
                waiting.append(inner)
    yield from waiting


def _inner(each: Any) -> Iterable[Any]:
    # By type: `isinstance` reads `__class__`, which for a proxy may run any code.
    kind = type(each)
    if issubclass(kind, asyncio.Task):
        return () if each.done() else (each.get_coro(),)
    if issubclass(kind, FunctionType):
        return (*(each.__closure__ or ()), each.__defaults__, each.__kwdefaults__)
    if issubclass(kind, functools.partial):
        return (each.func, *each.args, *each.keywords.values())
    if issubclass(kind, _ENDS) or _package(kind) in _PACKAGES:
        return ()
    return gc.get_referents(each)


def _package(kind: type) -> str:
    return str(kind.__module__).partition(".")[0]
