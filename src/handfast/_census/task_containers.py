"""Containers of finished tasks, and the names under which a program holds them.

A container is named if an attribute, a global name or another such container holds it. One in a
local variable is gone when the function returns.

Any object of the program may be met here, and none of its own code may run: `isinstance` would read
`__class__`, which a proxy such as werkzeug's or Django's computes, or raises for.
"""

from __future__ import annotations

import gc
import sys
import types
from asyncio import Task
from collections import deque
from collections.abc import Collection
from typing import Any

from handfast._census.known_libraries import library_that_keeps

CONTAINERS = (list, dict, set, deque)

# How many containers around it are searched for a name: a dict of lists is two.
_DEPTH = 2
# These hold something only while they run, or hold what belongs to another object.
_NOT_HOLDERS = (
    types.BuiltinFunctionType,
    types.CellType,
    types.FrameType,
    types.FunctionType,
    types.MethodType,
    types.ModuleType,
    *(types.AsyncGeneratorType, types.CoroutineType, types.GeneratorType),
)


def done_tasks_in(container: Collection[Any]) -> list[Task[Any]]:
    """The finished tasks in a container; the last is the newest if it has an order."""
    found: dict[int, Task[Any]] = {}
    inside = [*container, *container.values()] if isinstance(container, dict) else [*container]
    for each in inside:
        if is_a(each, Task) and Task.done(each):
            found[id(each)] = each
    return list(found.values())


def is_a(thing: object, kinds: type | tuple[type, ...]) -> bool:
    """`isinstance` by the real class."""
    return issubclass(type(thing), kinds)


def names_of(held: list[Any], depth: int = _DEPTH) -> dict[int, str]:
    """The names under which containers are kept, by id; those that have none are not in it.

    All of them are searched for at once, since each search walks the whole heap.
    """
    # The attributes of an object do not grow in number.
    attributes = _owners([each for each in held if is_a(each, dict)])
    wanted = {id(each): each for each in held if id(each) not in attributes}
    holders = [
        each
        for each in referrers(wanted)
        if not is_a(each, _NOT_HOLDERS) and each is not held and each is not wanted
    ]
    owners = _owners([each for each in holders if is_a(each, dict)])
    around = []
    names: dict[int, str] = {}
    for holder in holders:
        if id(holder) in owners:
            names = _named(owners[id(holder)], holder, wanted) | names
        elif is_a(holder, (*CONTAINERS, tuple)):
            around.append(holder)
        else:
            names = _named(holder, _attributes(holder), wanted) | names
    unnamed = wanted.keys() - names.keys()
    if not unnamed or not depth:
        return names
    around = [each for each in around if not unnamed.isdisjoint(map(id, gc.get_referents(each)))]
    names_around = names_of(around, depth - 1)
    for holder in around:
        if id(holder) in names_around:
            name = f"in {names_around[id(holder)].removeprefix('in ')}"
            names |= {id(each): name for each in gc.get_referents(holder) if id(each) in unnamed}
    return names


def referrers(wanted: dict[int, Any]) -> list[Any]:
    """What refers to any of the objects."""
    return gc.get_referrers(*wanted.values()) if wanted else []


def _owners(namespaces: list[dict[Any, Any]]) -> dict[int, Any]:
    """The object, class or module whose attributes these are, by the id of the namespace."""
    owners: dict[int, Any] = {}
    others: dict[int, Any] = {}
    for namespace in namespaces:
        name = dict.get(namespace, "__name__")
        module = sys.modules.get(name) if type(name) is str else None
        if module is not None and _attributes(module) is namespace:
            owners[id(namespace)] = module
        else:
            others[id(namespace)] = namespace
    for referrer in referrers(others):
        if is_a(referrer, (*_NOT_HOLDERS, *CONTAINERS, tuple)):
            continue
        if is_a(referrer, type):
            owners |= {
                id(each): referrer
                for each in gc.get_referents(referrer)
                if id(each) in others
                and "__module__" in each
                and each.keys() == vars(referrer).keys()
            }
        elif id(attributes := _attributes(referrer)) in others:
            owners[id(attributes)] = referrer
    return owners


def _attributes(owner: Any) -> dict[str, Any]:
    """The attributes of an object by name, also those in slots."""
    try:
        names = object.__getattribute__(owner, "__dict__")
    except Exception:  # it has none; or a property of this name raises
        names = None
    if type(names) is dict:
        return names
    return {
        name: value
        for kind in type(owner).__mro__
        if "__slots__" in vars(kind)
        for name, slot in vars(kind).items()
        if type(slot) is types.MemberDescriptorType
        for value in _value(slot, owner)
    }


def _value(slot: types.MemberDescriptorType, owner: object) -> list[Any]:
    try:
        return [slot.__get__(owner)]
    except AttributeError:  # not set
        return []


def _named(owner: Any, names: dict[str, Any], wanted: dict[int, Any]) -> dict[int, str]:
    """The names that an object gives to those of `wanted` that it has as attributes, by id."""
    kind = owner if is_a(owner, type) else type(owner)
    module = str(owner.__name__ if is_a(owner, types.ModuleType) else kind.__module__)
    if library_that_keeps("task container", module.partition(".")[0]):
        return {}
    text = "{} of module " + module
    if not is_a(owner, types.ModuleType):
        text = "attribute {} of " + kind.__qualname__
    return {id(each): text.format(name) for name, each in names.items() if id(each) in wanted}
