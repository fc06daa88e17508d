"""Containers that keep tasks which have ended: the dict that grows.

On request, since the collector is asked who holds what, and that is a walk through the whole
heap. Only a container that something lasting holds is told: an attribute, a global name, or
another such container. A variable of a function that runs goes by itself.
"""

from __future__ import annotations

import gc
import sys
from asyncio import AbstractEventLoop, Task
from collections import deque
from collections.abc import Collection, Hashable, Iterator
from types import (
    AsyncGeneratorType,
    BuiltinFunctionType,
    CellType,
    CoroutineType,
    FrameType,
    FunctionType,
    GeneratorType,
    MethodType,
    ModuleType,
)
from typing import Any

from holdfast.census import births
from holdfast.census.birth import Birth
from holdfast.census.tasks import every_task
from holdfast.census.thing import Thing

__all__ = ["Retained", "all_kept"]

_CONTAINERS = (list, dict, set, deque)
_FEW = 2
# How far out the name of a holder is looked for: a dict of lists is two.
_FAR = 2
# What holds something only while it runs, or holds what belongs to another.
_NO_HOLDERS = (
    AsyncGeneratorType,
    BuiltinFunctionType,
    CellType,
    CoroutineType,
    FrameType,
    FunctionType,
    GeneratorType,
    MethodType,
    ModuleType,
)
# Whose containers empty themselves.
_OWN_AFFAIRS = ("asyncio", "holdfast", "concurrent", "weakref", "_weakrefset")


class Retained(Thing):
    """A container that keeps tasks which have ended."""

    __slots__ = ("_held_as", "container")

    check = "retained"

    def __init__(self, container: Collection[Any], held_as: str) -> None:
        newest = _done_in(container)[-1]
        super().__init__(_birth_for(newest), newest.get_loop())
        self.container = container
        self._held_as = held_as

    @property
    def count(self) -> int:
        """How many tasks that have ended it keeps now."""
        return len(_done_in(self.container))

    @property
    def key(self) -> Hashable:
        return ("retained", id(self.container))

    @property
    def code(self) -> str:
        return "HF131"

    @property
    def what(self) -> str:
        kind = type(self.container).__name__
        return f"{kind} with {self.count} done tasks, {self._held_as}"

    def over(self) -> bool:
        return self.count < _FEW


def all_kept(loop: AbstractEventLoop | None = None) -> Iterator[Retained]:
    """Each container that keeps two tasks or more that have ended, of one loop or of all."""
    for container in _keeping(loop):
        held_as = _holder(container)
        if held_as:
            yield Retained(container, held_as)


def _keeping(loop: AbstractEventLoop | None) -> list[Any]:
    done = [t for t in every_task() if t.done() and (loop is None or t.get_loop() is loop)]
    if len(done) < _FEW:
        return []
    wanted = set(map(id, done))
    return [
        referrer
        for referrer in gc.get_referrers(*done)
        if isinstance(referrer, _CONTAINERS)
        and referrer is not done
        and len(wanted.intersection(map(id, _done_in(referrer)))) >= _FEW
    ]


def _done_in(container: Collection[Any]) -> list[Task[Any]]:
    """The tasks in a container that have ended; the last is the newest if it has an order."""
    found: dict[int, Task[Any]] = {}
    inside = [*container, *container.values()] if isinstance(container, dict) else [*container]
    for each in inside:
        if isinstance(each, Task) and each.done():
            found[id(each)] = each
    return list(found.values())


def _birth_for(newest: Task[Any]) -> Birth | None:
    """Where the newest was made. Whoever was told of that task has not been told of this."""
    born = births.of(newest)
    return born and Birth(born.code, born.lasti, born.near_code, born.near_lasti, born.owner)


# --- the holder, in words ----------------------------------------------------------------------


def _holder(held: Any, far: int = _FAR) -> str | None:
    """What keeps a container for good, in words; None if nothing does, or it has no name."""
    if isinstance(held, dict) and _whose(held) is not None:
        return None  # the attributes of something: each has its name, none is one too many
    for referrer in gc.get_referrers(held):
        words = _held_as(referrer, held, far)
        if words:
            return words
    return None


def _held_as(referrer: Any, held: Any, far: int) -> str | None:
    if isinstance(referrer, _NO_HOLDERS):
        return None
    if isinstance(referrer, dict) and (owner := _whose(referrer)) is not None:
        return _named(owner, referrer, held)
    if isinstance(referrer, (*_CONTAINERS, tuple)):
        around = _holder(referrer, far - 1) if far else None
        return around and f"in {around.removeprefix('in ')}"
    return _named(referrer, _attributes(referrer), held)


def _whose(namespace: dict[Any, Any]) -> Any:
    """The object, the class or the module whose names these are."""
    module = sys.modules.get(str(namespace.get("__name__")))
    if module is not None and vars(module) is namespace:
        return module
    for referrer in gc.get_referrers(namespace):
        if isinstance(referrer, (*_NO_HOLDERS, *_CONTAINERS, tuple)):
            continue
        if isinstance(referrer, type):
            if "__module__" in namespace and namespace.keys() == vars(referrer).keys():
                return referrer
        elif _attributes(referrer) is namespace:
            return referrer
    return None


def _attributes(thing: Any) -> dict[str, Any]:
    """The attributes of a thing by name, also those in slots."""
    try:
        names = object.__getattribute__(thing, "__dict__")
    except AttributeError:
        names = None
    if isinstance(names, dict):
        return names
    slots = [slot for kind in type(thing).__mro__ for slot in _slots(kind)]
    return {slot: getattr(thing, slot, None) for slot in slots}


def _slots(kind: type) -> tuple[str, ...]:
    slots = vars(kind).get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _named(owner: Any, names: dict[str, Any], held: Any) -> str | None:
    name = next((name for name, value in names.items() if value is held), None)
    kind = owner if isinstance(owner, type) else type(owner)
    made_by = owner.__name__ if isinstance(owner, ModuleType) else kind.__module__
    if name is None or str(made_by).partition(".")[0] in _OWN_AFFAIRS:
        return None
    if isinstance(owner, ModuleType):
        return f"{name} of module {made_by}"
    return f"attribute {name} of {kind.__qualname__}"
