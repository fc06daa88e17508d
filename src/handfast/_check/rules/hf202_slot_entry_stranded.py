"""HF202: only the body of a task removes its entry, so a cancel before its first step leaves it.

Reported: the body removes the entry by its key, nothing else does (no done callback, no other function
that removes or clears), and a function cancels a single entry and leaves it in. Pedantic where only
all of them are cancelled together, which is usually at a close.
Not reported: where a base class is not known.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from handfast._check.finding import Finding
from handfast._check.model.operations.effects import is_direct
from handfast._check.model.operations.operations import Operation, operations
from handfast._check.model.syntax.ancestors import ancestors, last_name
from handfast._check.model.syntax.call_graph import runs
from handfast._check.model.syntax.module import Class, Module
from handfast._check.model.tasks.task_dicts import (
    TaskDictStore,
    bodies_of,
    end_callbacks,
    functions_around,
    is_decided_by,
    removals,
    stores_in,
)
from handfast._check.rules.rule import ANY_CREATING, Rule, line_of, once_per_place, related, report


@once_per_place
def check(module: Module) -> Iterator[Finding]:
    for klass, store in stores_in(module):
        if store.function.module is module and (klass is None or klass.is_complete):
            yield from _evaluate(module, klass, store)


def _evaluate(module: Module, klass: Class | None, store: TaskDictStore) -> Iterator[Finding]:
    own = [each for each in removals(klass, store) if each.where == "body"]
    if not own or any(True for _ in end_callbacks(klass, store)) or _has_unknown_callback(store):
        return
    in_task = {each for body in bodies_of(klass, store.creation) for each, _ in runs(body, klass)}
    others = [
        each
        for function in functions_around(module, klass)
        if function not in in_task
        for each in operations(function)
        if each.root == store.container
    ]
    if any(each.kind in ("take", "clear") and each.function.name != "__init__" for each in others):
        return
    cancels = [
        each
        for each in others
        if each.kind == "cancel" and is_direct(each) and not _is_stored_over(klass, store, each)
    ]
    single = [each for each in cancels if not _is_of_all(each)]
    for cancel in (single or cancels)[:1]:
        yield report(
            "HF202",
            module,
            store.node,
            f"Only the body of the task removes its entry of `{store.container}` (line "
            f"{line_of(own[0].node)}): a task that is cancelled before its first step (line "
            f"{line_of(cancel.node)}) never runs that, and the entry stays; remove it in a done "
            "callback",
            related(
                own[0].function.module, own[0].node, "the only removal, in the task's own body"
            ),
            related(cancel.function.module, cancel.node, "cancelled here, and not removed"),
            pedantic=not single,
        )


def _has_unknown_callback(store: TaskDictStore) -> bool:
    """Whether a done callback is made by a call, `add_done_callback(self.ended(key))`: it may remove
    the entry."""
    return any(
        last_name(call.func) == "add_done_callback"
        and call.args
        and isinstance(call.args[0], ast.Call)
        for call in store.function.calls
    )


def _is_stored_over(klass: Class | None, store: TaskDictStore, cancel: Operation) -> bool:
    """Whether the same function then stores a new task in place of the cancelled one."""
    function = store.function
    return cancel.function is function and not is_decided_by(function, store, klass)


def _is_of_all(operation: Operation) -> bool:
    """Whether a cancel is in a loop over the dict."""
    loops = (ast.For, ast.ListComp, ast.GeneratorExp, ast.SetComp)
    return any(isinstance(up, loops) for up in ancestors(operation.function, operation.node))


RULE = Rule("HF202", check, needs=(ANY_CREATING, "cancel"))
