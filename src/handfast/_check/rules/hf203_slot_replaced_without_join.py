"""HF203: the task of a key is cancelled, and its successor is stored before it has ended.

Reported: a function (or one that it calls) cancels an entry of a dict of tasks and then stores a new
task in the same dict, with a path between on which the old one is not joined. Pedantic where the body
is known and has no cleanup of its own: there is little left that it could do.
"""

from __future__ import annotations

from collections.abc import Iterator

from handfast._check.finding import Finding
from handfast._check.model.operations.effects import Effect
from handfast._check.model.operations.teardown import cleans_up
from handfast._check.model.syntax.module import Class, Module
from handfast._check.model.tasks.task_dicts import (
    TaskDictStore,
    bodies_of,
    cancelled_unjoined,
    is_unique_key,
    stores_in,
)
from handfast._check.rules.rule import ANY_CREATING, Rule, line_of, once_per_place, related, report


@once_per_place
def check(module: Module) -> Iterator[Finding]:
    for klass, store in stores_in(module):
        if store.function.module is module:
            cancel = cancelled_unjoined(klass, store)
            if cancel is not None and not is_unique_key(store):
                yield _finding(module, klass, store, cancel)


def _finding(module: Module, klass: Class | None, store: TaskDictStore, cancel: Effect) -> Finding:
    bodies = bodies_of(klass, store.creation)
    bare = bool(bodies) and not any(cleans_up(body, klass) for body in bodies)
    return report(
        "HF203",
        module,
        store.node,
        f"The old task of `{store.container}` is cancelled (line {line_of(cancel.node)}), and the next "
        "one is stored before it has ended: await the old task first",
        related(
            cancel.operation.function.module, cancel.operation.node, "cancelled here, never awaited"
        ),
        pedantic=bare,
    )


RULE = Rule("HF203", check, needs=(ANY_CREATING, "cancel"))
