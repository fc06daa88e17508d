"""HF204: an `await` stands between looking for the old task of a key and storing the new one.

Found where a coroutine takes an entry of a dict of tasks out, or looks whether one is there, then
can suspend, and then stores a new task in the same dict without having looked again. Two callers
that interleave there both store, and one live task is tracked by nobody. Silent where a lock is
held over the store, where the key is made anew, where a loop awaits each call of the function, and
where the store stands in a loop that takes one job after the other from a queue.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from holdfast.check.finding import Finding
from holdfast.check.model.effects import callees
from holdfast.check.model.flow import Node, walk_here
from holdfast.check.model.guards import is_serial, locks_held
from holdfast.check.model.module import Class, Module
from holdfast.check.model.slots import Store, is_unique_key, keyed_looks, slots_of
from holdfast.check.rules.rule import Rule, found, related

__all__ = ["RULE"]

_TAKES_NEXT = {"get", "receive", "recv", "read", "readline", "next"}


@dataclass(frozen=True, slots=True)
class Look:
    """A look for the entry of the key; `waits` if the step goes on to suspend."""

    node: ast.AST
    step: Node
    waits: bool
    taken: bool


def check(module: Module) -> Iterator[Finding]:
    seen: set[ast.AST] = set()
    for slots in slots_of(module):
        klass = slots.klass
        for store in slots.stores:
            if store.node in seen or store.function.module is not module:
                continue
            if locks_held(store.function, store.node, klass) or is_unique_key(store):
                continue
            look = _stale_look(klass, store)
            if look is None or _is_in_turn(store):
                continue
            if not (klass and is_serial(klass, store.function)):
                seen.add(store.node)
                yield _finding(module, store, look)


def _is_in_turn(store: Store) -> bool:
    """Whether the store stands in a loop that takes one job after the other: such a loop runs once."""
    parents = store.function.module.parents
    up = parents.get(store.node)
    while up is not None and up is not store.function.node:
        if isinstance(up, ast.While):
            return any(isinstance(each, ast.Assign) and isinstance(each.value, ast.Await)
                       and isinstance(each.value.value, ast.Call)
                       and getattr(each.value.value.func, "attr", "") in _TAKES_NEXT
                       for each in walk_here(up))  # fmt: skip
        up = parents.get(up)
    return False


def _stale_look(klass: Class | None, store: Store) -> Look | None:
    """The last look at the dict from which a suspension leads to the store."""
    function, goal = store.function, store.step
    if goal is None or not function.is_async:
        return None
    looks = [each for each in _looks(klass, store) if each.step is not goal]
    steps = {each.step for each in looks}
    for look in looks:
        late = look.waits or function.flow.suspends_between(
            look.step, goal, lambda node: node in steps
        )
        if late and function.flow.reaches(look.step, goal, lambda node: node in steps):
            return look
    return None


def _looks(klass: Class | None, store: Store) -> Iterator[Look]:
    """The looks for the same key in the function that stores, and in what it awaits."""
    function = store.function
    wanted = ast.dump(store.key)
    for node, key in keyed_looks(function, store.container):
        step = function.flow.of(node)
        if step is not None and ast.dump(key) == wanted:
            yield Look(node, step, step.suspends, _is_taken(node))
    for call, callee in callees(function, klass):
        step = function.flow.of(call)
        for inner, _ in keyed_looks(callee, store.container):
            start = callee.flow.of(inner)
            if step is not None and start is not None:
                waits = callee.flow.suspends_between(start, callee.flow.end)
                yield Look(call, step, waits or start.suspends, _is_taken(inner))


def _is_taken(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "pop"


def _finding(module: Module, store: Store, look: Look) -> Finding:
    what = "taken out" if look.taken else "looked for"
    return found(
        "HF204",
        module,
        store.node,
        f"the old task of `{store.container}` is {what} on line {getattr(look.node, 'lineno', 0)}, and "
        "an `await` stands between that and this store: a second caller stores its own there "
        "meanwhile, and one of the two is tracked by nobody; hold a lock over the exchange",
        related(module, look.node, f"the old task is {what} here"),
    )


RULE = Rule("HF204", check)
