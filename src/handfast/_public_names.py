"""Public names: the module that they show, and loading them when they are first used.

A class that is defined in `handfast._runtime.errors` and published by `handfast` shows itself as
`handfast.errors.ScopeClosed`, in tracebacks, in `repr` and when it is pickled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from types import FunctionType
from typing import Any


def publish(module: str, published: Iterable[object]) -> None:
    """Make classes and functions of private modules show `module` as theirs."""
    for item in published:
        if isinstance(item, type | FunctionType) and "._" in item.__module__:
            item.__module__ = module


def load_on_use(module: str, sources: Mapping[str, str]) -> Callable[[str], Any]:
    """A `__getattr__` for a public module: imports a name from its source when it is first used."""

    def load(name: str) -> Any:
        if name not in sources:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        value = getattr(import_module(sources[name]), name)
        publish(module, [value])
        return value

    return load
