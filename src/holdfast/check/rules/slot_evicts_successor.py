"""HF201: the end of a task pops the entry of its key, which may be its successor's by then.

Found where a done callback, or the task's body when it is cancelled at an `await`, removes an entry
by its key, and the store of the same dict replaces an old task: it cancels the old one and stores
the new one without joining in between. A store that looks at nothing is evidence from one place,
so pedantic.
Silent where the key is made anew for each task, where a lock is held, where a look at the dict
decides about the store, and where the removal compares (`d.get(key) is task`, a generation).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from holdfast.check.finding import Finding
from holdfast.check.model.effects import callees, effects, runs
from holdfast.check.model.flow import Node
from holdfast.check.model.function import Function
from holdfast.check.model.guards import locks_held
from holdfast.check.model.module import Class, Module
from holdfast.check.model.slots import (
    Removal,
    Store,
    bodies_of,
    cancelled_unjoined,
    compares_identity,
    is_decided_by,
    is_unique_key,
    removals,
    slots_of,
)
from holdfast.check.rules.rule import Rule, found, related

__all__ = ["RULE"]


def check(module: Module) -> Iterator[Finding]:
    seen: set[ast.AST] = set()
    for slots in slots_of(module):
        klass = slots.klass
        for store in slots.stores:
            for removal in removals(klass, store):
                if removal.node in seen or not _is_new_here(module, klass, store, removal):
                    continue
                finding = _judge(module, klass, store, removal)
                if finding is not None:
                    seen.add(removal.node)
                    yield finding


def _is_new_here(module: Module, klass: Class | None, store: Store, removal: Removal) -> bool:
    """What a base does all by itself is said of the base."""
    own = klass is None or klass in (store.function.klass, removal.function.klass)
    return own and removal.function.module is module


def _judge(module: Module, klass: Class | None, store: Store, removal: Removal) -> Finding | None:
    replaced = _replaced_by(klass, store)
    if replaced is None or is_unique_key(store):
        return None
    if locks_held(store.function, store.node, klass) or compares_identity(removal.function):
        return None
    if removal.where == "body" and not _comes_late(klass, store, removal):
        return None
    if removal.where == "body" and replaced is not store.step:
        if not any(_comes_after_cancel(b, klass, removal) for b in bodies_of(klass, store.made)):
            return None
    who = "a done callback" if removal.where == "callback" else "its task"
    return found(
        "HF201",
        module,
        removal.node,
        f"{who} removes the entry of `{store.container}` at the end of the task, although it may by "
        f"now be that of the successor stored in `{store.function.qualname}` (line "
        f"{getattr(store.node, 'lineno', 0)}); remove it only if it is the task's own",
        related(
            store.function.module, store.node, "the successor is stored here, under the same key"
        ),
        *(
            [related(store.function.module, replaced.stmt, "the old task is cancelled, not joined")]
            if replaced is not store.step
            else []
        ),
        pedantic=replaced is store.step,
    )


def _replaced_by(klass: Class | None, store: Store) -> Node | None:
    """The step that gives up the old task: where it is cancelled and not joined, or the store itself
    where nothing looks at the dict before."""
    cancel = cancelled_unjoined(klass, store)
    if cancel is not None:
        return cancel.step
    joins = any(
        each.kind == "join" and each.root == store.container
        for each in effects(store.function, klass)
    )
    if joins or is_decided_by(store.function, store, klass):
        return None
    return store.step


def _comes_late(klass: Class | None, store: Store, removal: Removal) -> bool:
    """Whether the body can have suspended before it removes: a replacement needs the time."""
    for body in bodies_of(klass, store.made):
        if removal.function is not body:
            # In what the body runs; where that stands matters little to who reads it.
            return any(function is removal.function for function, _ in runs(body, klass))
        goal = body.flow.of(removal.node)
        if goal is not None:
            return any(each.suspends and body.flow.reaches(each, goal) for each in body.flow.nodes)
    return False


def _comes_after_cancel(
    function: Function, klass: Class | None, removal: Removal, depth: int = 4
) -> bool:
    """Whether a task that is cancelled while it waits still comes to the removal: the old one was."""
    if function is removal.function:
        return _is_left_by_cancel(function, removal.node)
    return depth > 0 and any(
        (_is_left_by_cancel(function, call) and _runs_it(callee, klass, removal))
        or _comes_after_cancel(callee, klass, removal, depth - 1)
        for call, callee in callees(function, klass)
    )


def _is_left_by_cancel(function: Function, goal: ast.AST) -> bool:
    """Whether a cancellation at an `await` of the function leads to a node."""
    flow = function.flow
    step = flow.of(goal)
    return step is not None and any(
        first is step or flow.reaches(first, step)
        for node in flow.nodes
        if node.suspends
        for first in node.cancelling
    )


def _runs_it(function: Function, klass: Class | None, removal: Removal) -> bool:
    return any(each is removal.function for each, _ in runs(function, klass))


RULE = Rule("HF201", check)
