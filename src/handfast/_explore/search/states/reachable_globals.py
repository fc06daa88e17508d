"""Which globals a piece of code can reach: those that it names, also as attributes of modules.

The modules of the standard library that are listed here are assumed to keep no state there that a
program depends on. Code that finds its globals by other means than a name makes the state unknown.
"""

from __future__ import annotations

import builtins
import dis
import sys
from collections.abc import Iterator
from functools import lru_cache
from types import CodeType, ModuleType
from typing import Any

from handfast._code_owner import module_in_package
from handfast._explore.search.states import UnknownState

# Standard modules whose functions and classes keep no state of the program, or keep it in objects
# that the object graph contains anyway.
_HARMLESS = frozenset(
    {
        "__future__", "_asyncio", "_collections", "_collections_abc", "_contextvars", "_functools",
        "_operator", "_weakrefset", "abc", "asyncio", "base64", "binascii", "bisect", "builtins",
        "collections", "concurrent", "contextlib", "contextvars", "copy", "dataclasses", "datetime",
        "decimal", "enum", "fractions", "functools", "hashlib", "heapq", "html", "inspect",
        "itertools", "json", "keyword", "linecache", "logging", "math", "numbers", "operator",
        "pprint", "random", "re", "reprlib", "statistics", "string", "struct", "textwrap", "time",
        "traceback", "types", "typing", "unittest", "uuid", "warnings", "weakref", "zlib",
    }
)  # fmt: skip
# Functions that reach globals, or the outside, without naming them.
_UNNAMED = frozenset(
    {
        "__import__", "breakpoint", "eval", "exec", "globals", "import_module", "input", "open",
        "vars",
    }
)  # fmt: skip
_MISSING = object()


def harmless(module: object) -> bool:
    """Whether what the module of this name defines has no state that matters.

    UnknownState if it is a module of the standard library that reaches outside.
    """
    if not isinstance(module, str):
        raise UnknownState("something that belongs to no module")
    if module_in_package(module, "explore") or module.startswith("_pytest."):
        return True  # the explorer, and what an assertion in a test names
    top = module.partition(".")[0]
    if top in _HARMLESS:
        return True
    if top in sys.stdlib_module_names:
        raise UnknownState(f"module {module}")
    return False


@lru_cache(maxsize=4096)
def _names(code: CodeType) -> tuple[str, ...]:
    """Every name that the code, or code inside it, looks up."""
    # `co_names` has attributes as well as globals. Taking both reaches too much, never too little.
    names = dict.fromkeys(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names.update(dict.fromkeys(_names(constant)))
    return tuple(names)


@lru_cache(maxsize=4096)
def _imports(code: CodeType) -> frozenset[str]:
    """The modules that the code, or code inside it, imports when it runs."""
    names: set[str] = set()
    for step in dis.get_instructions(code):
        if step.opname == "IMPORT_NAME":
            names |= {step.argval, step.argval.partition(".")[0]}
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= _imports(constant)
    return frozenset(names)


def reachable(code: CodeType, namespace: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The globals that this code can reach, each with its name."""
    if harmless(namespace.get("__name__")):
        return
    names = _names(code)
    for name in names:
        value = namespace.get(name, _MISSING)
        if value is _MISSING and name in _UNNAMED and hasattr(builtins, name):
            raise UnknownState(f"{name}()")
        if isinstance(value, ModuleType):
            yield from _in_module(name, value, names, set())
        elif value is not _MISSING:
            yield name, value
    # An import inside a function: the first one runs the code of a module, which can do anything.
    for name in sorted(_imports(code)):
        if name not in sys.modules:
            raise UnknownState(f"an import of {name!r} that is still to come")
        yield from _in_module(name, sys.modules[name], names, set())


def _in_module(
    path: str, module: ModuleType, names: tuple[str, ...], met: set[str]
) -> Iterator[tuple[str, Any]]:
    if module.__name__ in met or harmless(module.__name__):
        return
    met.add(module.__name__)
    for name in names:
        value = vars(module).get(name, _MISSING)
        if isinstance(value, ModuleType):
            yield from _in_module(f"{path}.{name}", value, names, met)
        elif value is not _MISSING:
            yield f"{path}.{name}", value
