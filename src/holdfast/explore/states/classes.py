"""What a class says about its instances: whether all of their state is in sight, and where."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterator
from types import FunctionType, MemberDescriptorType
from typing import Any

from holdfast.explore.states.unknown import Unknown

__all__ = ["attributes", "check_layout", "members"]

_HEAP = 1 << 9
# The types, written in C, from which a class may inherit without hiding state.
_OPEN: tuple[type, ...] = (
    object,
    dict,
    list,
    set,
    frozenset,
    tuple,
    deque,
    OrderedDict,
    defaultdict,
    asyncio.Future,
    asyncio.Task,
)


def check_layout(cls: type) -> None:
    """Unknown if an instance has state that no attribute shows."""
    for base in cls.__mro__:
        open_base = base in _OPEN or (
            issubclass(base, BaseException) and base.__module__ == "builtins"
        )
        if not open_base and not _in_python(base):
            raise Unknown(f"an instance of {base.__module__}.{base.__qualname__}")


def _in_python(cls: type) -> bool:
    """Whether a class statement made it: types written in C have no such entries, and have some
    room of their own in each instance."""
    if not cls.__flags__ & _HEAP:
        return False
    own = vars(cls)
    if "__slots__" in own or "__weakref__" in own:
        return True
    return cls.__base__ is not None and cls.__basicsize__ == cls.__base__.__basicsize__


def attributes(thing: Any) -> Iterator[tuple[str, Any]]:
    """The attributes of an instance: its dictionary, then its slots."""
    try:
        yield from object.__getattribute__(thing, "__dict__").items()
    except AttributeError:
        pass
    for name, slot in _slots(type(thing)):
        try:
            yield name, slot.__get__(thing)
        except AttributeError:  # not set
            pass


def _slots(cls: type) -> tuple[tuple[str, Any], ...]:
    return tuple(
        (name, slot)
        for base in cls.__mro__
        if _in_python(base)
        for name, slot in vars(base).items()
        if isinstance(slot, MemberDescriptorType)
    )


def members(cls: type) -> Iterator[tuple[str, Any]]:
    """What a class of the program's holds: methods, and attributes that may change."""
    for name, value in tuple(vars(cls).items()):
        dunder = name.startswith("__") and name.endswith("__")
        if dunder and not isinstance(value, FunctionType):
            continue
        if name != "_abc_impl" and not isinstance(value, MemberDescriptorType):
            yield name, value
