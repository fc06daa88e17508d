"""HF201: the end of a task pops the entry of its key, which may by then belong to its successor.

Reported: a done callback, or the body of a task when it is cancelled at an `await`, removes an entry by
its key, and the code that stores into the same dict cancels the old task and stores the new one
without joining the old one in between. A store without any check of the dict is pedantic: that is
evidence from one place only.
Not reported: where the key is new for each task, where a lock is held, where a check of the dict
decides about the store, and where the removal compares (`d.get(key) is task`, a generation).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from handfast._check.finding import Finding
from handfast._check.model.operations.effects import effects
from handfast._check.model.operations.locks import locks_held
from handfast._check.model.syntax.call_graph import callees, runs
from handfast._check.model.syntax.control_flow import Step
from handfast._check.model.syntax.function import Function
from handfast._check.model.syntax.module import Class, Module
from handfast._check.model.tasks.task_dicts import (
    TaskDictRemoval,
    TaskDictStore,
    bodies_of,
    cancelled_unjoined,
    compares_identity,
    is_decided_by,
    is_unique_key,
    removals,
    stores_in,
)
from handfast._check.rules.rule import ANY_CREATING, Rule, line_of, once_per_place, related, report


@once_per_place
def check(module: Module) -> Iterator[Finding]:
    for klass, store in stores_in(module):
        for removal in removals(klass, store):
            if _is_new_here(module, klass, store, removal):
                yield from _evaluate(module, klass, store, removal)


def _is_new_here(
    module: Module, klass: Class | None, store: TaskDictStore, removal: TaskDictRemoval
) -> bool:
    """Whether this class has a part in it. What a base class does alone is reported there."""
    own = klass is None or klass in (store.function.klass, removal.function.klass)
    return own and removal.function.module is module


def _evaluate(
    module: Module, klass: Class | None, store: TaskDictStore, removal: TaskDictRemoval
) -> Iterator[Finding]:
    replaced = _replaced_by(klass, store)
    if replaced is None or is_unique_key(store):
        return
    if locks_held(store.function, store.node, klass) or compares_identity(removal.function):
        return
    if removal.where == "body":
        bodies = bodies_of(klass, store.creation)
        if not _suspends_before(klass, bodies, removal):
            return
        if replaced is not store.step:
            if not any(_runs_after_cancel(each, klass, removal) for each in bodies):
                return
    remover = "A done callback" if removal.where == "callback" else "The task"
    yield report(
        "HF201",
        module,
        removal.node,
        f"{remover} removes the entry of `{store.container}` at the end of the task, but by then the "
        f"entry may belong to the next task, stored in `{store.function.qualname}` (line "
        f"{line_of(store.node)}): remove it only if it is the task's own",
        related(
            store.function.module, store.node, "the next task is stored here, with the same key"
        ),
        related(store.function.module, replaced.stmt, "the old task is cancelled and not awaited")
        if replaced is not store.step
        else None,
        pedantic=replaced is store.step,
    )


def _replaced_by(klass: Class | None, store: TaskDictStore) -> Step | None:
    """The step that replaces the old task: where it is cancelled and not joined, or the store itself
    if nothing checks the dict before."""
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


def _suspends_before(klass: Class | None, bodies: list[Function], removal: TaskDictRemoval) -> bool:
    """Whether the body can suspend before it removes the entry: otherwise nothing can replace it."""
    for body in bodies:
        if removal.function is not body:
            return _runs_it(body, klass, removal)  # taken to suspend on the way there
        goal = body.flow.of(removal.node)
        if goal is not None:
            return any(each.suspends and body.flow.reaches(each, goal) for each in body.flow.nodes)
    return False


def _runs_after_cancel(
    function: Function, klass: Class | None, removal: TaskDictRemoval, depth: int = 4
) -> bool:
    """Whether a task that is cancelled at an `await` still runs the removal."""
    if function is removal.function:
        return _is_reached_by_cancel(function, removal.node)
    return depth > 0 and any(
        (_is_reached_by_cancel(function, call) and _runs_it(callee, klass, removal))
        or _runs_after_cancel(callee, klass, removal, depth - 1)
        for call, callee in callees(function, klass)
    )


def _is_reached_by_cancel(function: Function, goal: ast.AST) -> bool:
    """Whether a cancellation at an `await` of the function leads to a node."""
    flow = function.flow
    step = flow.of(goal)
    return any(
        first is step or flow.reaches(first, step)
        for node in flow.nodes
        if node.suspends
        for first in node.cancelling
    )


def _runs_it(function: Function, klass: Class | None, removal: TaskDictRemoval) -> bool:
    return any(each is removal.function for each, _ in runs(function, klass))


RULE = Rule("HF201", check, needs=(ANY_CREATING,))
