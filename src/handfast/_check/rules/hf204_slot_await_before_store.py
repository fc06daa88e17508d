"""HF204: an `await` separates the lookup of the old task of a key from the store of the new one.

Reported: a coroutine removes an entry of a dict of tasks, or tests for one, then can suspend, and then
stores a new task in the same dict without another lookup. Two callers that interleave there both
store, and the dict loses track of one running task. Pedantic where the function looks up the old task
to await it.
Not reported: where a lock is held around the store, where the key is new for each task or computed
anew in between, where a loop awaits each call of the function, and where the store is in a loop that
takes one job after the other from a queue.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from handfast._check.finding import Finding
from handfast._check.model.operations.guards import is_serial
from handfast._check.model.operations.locks import locks_held
from handfast._check.model.operations.operations import operations
from handfast._check.model.syntax.ancestors import ancestors
from handfast._check.model.syntax.call_graph import callees
from handfast._check.model.syntax.children import walk_here
from handfast._check.model.syntax.control_flow import Step
from handfast._check.model.syntax.function import names_in
from handfast._check.model.syntax.module import Class, Module
from handfast._check.model.tasks.task_dicts import (
    TaskDictStore,
    is_unique_key,
    key_lookups,
    stores_in,
)
from handfast._check.rules.rule import ANY_CREATING, Rule, line_of, once_per_place, related, report

_TAKES_NEXT = {"get", "receive", "recv", "read", "readline", "next"}


@dataclass(frozen=True, slots=True)
class _KeyLookup:
    """A lookup of the key; `waits` if its step then suspends."""

    node: ast.AST
    step: Step
    waits: bool
    taken: bool


@once_per_place
def check(module: Module) -> Iterator[Finding]:
    for klass, store in stores_in(module):
        if store.function.module is not module:
            continue
        if locks_held(store.function, store.node, klass) or is_unique_key(store):
            continue
        lookup = _stale_lookup(klass, store)
        if lookup is None or _is_in_turn(store):
            continue
        if not (klass and is_serial(klass, store.function)):
            yield _finding(module, store, lookup)


def _is_in_turn(store: TaskDictStore) -> bool:
    """Whether the store is in a loop that takes one job after the other: there is one such loop."""
    around = ancestors(store.function, store.node)
    loop = next((up for up in around if isinstance(up, ast.While)), None)
    return loop is not None and any(map(_takes_next, walk_here(loop)))


def _takes_next(node: ast.AST) -> bool:
    match node:
        case ast.Assign(_, ast.Await(ast.Call(ast.Attribute(attr=method)))):
            return method in _TAKES_NEXT
    return False


def _stale_lookup(klass: Class | None, store: TaskDictStore) -> _KeyLookup | None:
    """The last lookup from which a path that suspends leads to the store."""
    function, goal = store.function, store.step
    if goal is None or not function.is_async:
        return None
    lookups = [each for each in _lookups(klass, store) if each.step is not goal]
    steps = {each.step for each in lookups}
    # In the next iteration it is another key.
    steps |= {
        step
        for name in names_in(store.key)
        for value in function.assigned.get(name, ())
        if (step := function.flow.of(value)) is not None
    }
    for each in lookups:
        late = each.waits or function.flow.suspends_between(each.step, goal, steps)
        if late and function.flow.reaches(each.step, goal, steps):
            return each
    return None


def _lookups(klass: Class | None, store: TaskDictStore) -> Iterator[_KeyLookup]:
    """The lookups of the same key in the function that stores, and in what it awaits."""
    function = store.function
    wanted = ast.dump(store.key)
    for node, key in key_lookups(function, store.container):
        step = function.flow.of(node)
        if step is not None and ast.dump(key) == wanted:
            yield _KeyLookup(node, step, step.suspends, _is_taken(node))
    for call, callee in callees(function, klass):
        step = function.flow.of(call)
        for inner, _ in key_lookups(callee, store.container):
            start = callee.flow.of(inner)
            if step is not None and start is not None:
                waits = callee.flow.suspends_between(start, callee.flow.end)
                yield _KeyLookup(call, step, waits or start.suspends, _is_taken(inner))


def _is_taken(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "pop"


def _finding(module: Module, store: TaskDictStore, lookup: _KeyLookup) -> Finding:
    what = "removed" if lookup.taken else "looked up"
    return report(
        "HF204",
        module,
        store.node,
        f"The old task of `{store.container}` is {what} on line {line_of(lookup.node)}, and an `await` "
        "separates that from this store: a second caller can store its task meanwhile, and the dict "
        "loses track of one of the two; hold a lock around both",
        related(module, lookup.node, f"the old task is {what} here"),
        pedantic=not lookup.taken and _shares_old(store),
    )


def _shares_old(store: TaskDictStore) -> bool:
    """Whether the function only awaits the old task, as the callers of one key that share its result."""
    done = {each.kind for each in operations(store.function) if each.root == store.container}
    return "join" in done and "cancel" not in done


RULE = Rule("HF204", check, needs=(ANY_CREATING, "async "))
