"""HF203: the task of a key is cancelled, and its successor stored before it has ended.

Found where a function (or one that it calls) cancels an entry of a dict of tasks and then stores a
new task in the same dict, with a way between on which the old one is not joined. Pedantic where the
body is known and has no clean-up of its own: there is little that it could still do.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from holdfast.check.finding import Finding
from holdfast.check.model.effects import Effect, runs
from holdfast.check.model.flow import catches_cancellation
from holdfast.check.model.function import Function
from holdfast.check.model.module import Class, Module
from holdfast.check.model.slots import (
    Store,
    bodies_of,
    cancelled_unjoined,
    is_unique_key,
    slots_of,
)
from holdfast.check.rules.rule import Rule, found, related

__all__ = ["RULE"]


def check(module: Module) -> Iterator[Finding]:
    seen: set[ast.AST] = set()
    for slots in slots_of(module):
        klass = slots.klass
        for store in slots.stores:
            if store.node in seen or store.function.module is not module:
                continue
            cancel = cancelled_unjoined(klass, store)
            if cancel is not None and not is_unique_key(store):
                seen.add(store.node)
                yield _finding(module, klass, store, cancel)


def _finding(module: Module, klass: Class | None, store: Store, cancel: Effect) -> Finding:
    bodies = bodies_of(klass, store.made)
    bare = bool(bodies) and not any(
        _cleans_up(function) for body in bodies for function, _ in runs(body, klass)
    )
    return found(
        "HF203",
        module,
        store.node,
        f"the old task of `{store.container}` is cancelled (line "
        f"{getattr(cancel.node, 'lineno', 0)}) and its successor stored before it has ended; join the "
        "old one first",
        related(cancel.deed.function.module, cancel.deed.node, "cancelled here, never joined"),
        pedantic=bare,
    )


def _cleans_up(function: Function) -> bool:
    """Whether a function has something left to do when it is cancelled."""
    for node in function.nodes:
        if isinstance(node, (ast.Try, ast.TryStar)):
            handlers = [each.body for each in node.handlers if catches_cancellation(each.type)]
            if any(_does_something(body) for body in [node.finalbody, *handlers]):
                return True
        if isinstance(node, (ast.With, ast.AsyncWith)):
            return True
    return False


def _does_something(body: list[ast.stmt]) -> bool:
    return any(not isinstance(each, (ast.Pass, ast.Raise, ast.Return, ast.Break)) for each in body)


RULE = Rule("HF203", check)
