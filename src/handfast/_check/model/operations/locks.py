"""Which locks are held at a node: by a `with` around it, or by every caller of the function."""

from __future__ import annotations

import ast
import re

from handfast._check.model.syntax.ancestors import steps_up
from handfast._check.model.syntax.call_graph import callers, members
from handfast._check.model.syntax.function import Function
from handfast._check.model.syntax.memo import remembered
from handfast._check.model.syntax.module import Class

# `self._lock`, `self._lock_of(key)`, `self._locks.setdefault(key, Lock())`.
_LOCK_NAME = re.compile(r"(?i).*(lock|mutex|sem(aphore)?|cond(ition)?)s?(_(for|of|by)\w*)?$")
_ENTRIES = {"get", "setdefault"}
# How many callers up a lock is looked for.
_DEPTH = 8
_LOCK_CLASSES = {"Lock", "Semaphore", "BoundedSemaphore", "Condition", "RLock"}


def locks_held(
    function: Function, node: ast.AST, klass: Class | None = None, *, by_any_name: bool = False
) -> set[str]:
    """The names of the locks that are held at a node.

    A lock is recognised by its name, or because the class creates it. With `by_any_name` every
    entered name counts: if two places enter the same object, it serialises them, whatever it is.
    """
    entered = [
        item.context_expr
        for below, up in steps_up(function, node)
        if isinstance(up, (ast.With, ast.AsyncWith)) and not isinstance(below, ast.withitem)
        for item in up.items
        if not is_new_lock(function, item.context_expr)
    ]
    if by_any_name:
        return {function.name_of(each) for each in entered} - {""}
    created = _created_locks(klass) if klass is not None and entered else frozenset()
    names = {_lock_name(function, each) for each in entered}
    return {name for name in names if _LOCK_NAME.match(name) or name in created}


def is_new_lock(function: Function, node: ast.expr) -> bool:
    """`async with asyncio.Lock():` keeps nobody out: each caller enters a lock of its own."""
    return isinstance(node, ast.Call) and function.last_name_of(node.func) in _LOCK_CLASSES


def _lock_name(function: Function, node: ast.expr) -> str:
    # A lock for each key counts as one lock: two callers with the same key exclude each other, and
    # two with different keys do not share the entry that the rules are about.
    while isinstance(node, (ast.Call, ast.Subscript)):
        node = node.func if isinstance(node, ast.Call) else node.value
        if isinstance(node, ast.Attribute) and node.attr in _ENTRIES:
            node = node.value
    return function.name_of(node)


@remembered
def _created_locks(klass: Class) -> frozenset[str]:
    """The attributes of a class that are assigned a lock."""
    return frozenset(
        function.name_of(target)
        for function in members(klass)
        for node in function.nodes
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
        if function.last_name_of(node.value.func) in _LOCK_CLASSES
        for target in node.targets
    )


def locks_over(
    klass: Class | None, function: Function, node: ast.AST, *, by_any_name: bool = False
) -> set[str]:
    """The same, with those that every caller of a private function holds.

    A public function may have other callers, in other files, that hold nothing.
    """
    held = locks_held(function, node, klass, by_any_name=by_any_name)
    return held | _held_by_callers(function, klass, by_any_name, _DEPTH)


@remembered
def _held_by_callers(
    function: Function, klass: Class | None, by_any_name: bool, depth: int
) -> frozenset[str]:
    if not depth or not function.name.startswith("_") or function.name.startswith("__"):
        return frozenset()
    held = [
        locks_held(each, call, klass, by_any_name=by_any_name)
        | _held_by_callers(each, klass, by_any_name, depth - 1)
        for each, call in callers(klass, function)
    ]
    return frozenset(set.intersection(*map(set, held))) if held else frozenset()
