"""Where the instances of a class keep their state, and whether all of it can be read."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterator
from types import FunctionType, MemberDescriptorType
from typing import Any

from handfast._explore.search.states import UnknownState

# Py_TPFLAGS_HEAPTYPE: the type was created at run time, by a class statement or by a C module.
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
    """Raise UnknownState if an instance has state that is not in an attribute."""
    for base in cls.__mro__:
        open_base = base in _OPEN or (
            issubclass(base, BaseException) and base.__module__ == "builtins"
        )
        if not open_base and not _in_python(base):
            raise UnknownState(f"an instance of {base.__module__}.{base.__qualname__}")


def _in_python(cls: type) -> bool:
    """Whether a class statement made it.

    Types written in C have no such entries, and may have fields of their own in each instance.
    """
    if not cls.__flags__ & _HEAP:
        return False
    own = vars(cls)
    if "__slots__" in own or "__weakref__" in own:
        return True
    return cls.__base__ is not None and cls.__basicsize__ == cls.__base__.__basicsize__


def attributes(thing: Any) -> Iterator[tuple[str, Any]]:
    """The attributes of an instance: its dictionary, then its slots."""
    try:
        # Not `vars(thing)`: `__getattribute__` of the program would run code of the program.
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
        # `_abc_impl` is a cache of isinstance checks, without influence on their results.
        if name != "_abc_impl" and not isinstance(value, MemberDescriptorType):
            yield name, value
