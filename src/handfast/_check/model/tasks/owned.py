"""The tasks that an object holds, and which attributes of the object they use while they run."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from handfast._check.model.operations.guards import is_checked_inline, presence_checks
from handfast._check.model.operations.operations import operations
from handfast._check.model.syntax.ancestors import assignments
from handfast._check.model.syntax.call_graph import (
    is_cleanup,
    members,
    reached_from,
    resolve_function,
    resolve_in,
    runs,
)
from handfast._check.model.syntax.function import Function
from handfast._check.model.syntax.memo import remembered
from handfast._check.model.syntax.module import Class
from handfast._check.model.tasks.creation import TaskCreation, creation_in
from handfast._check.model.tasks.makers import made_task
from handfast._check.model.tasks.method_roles import is_close_name


@dataclass(slots=True, eq=False)
class Owned:
    """An attribute that holds a task, or a container of tasks."""

    root: str
    creations: list[TaskCreation] = field(default_factory=list)


@dataclass(frozen=True, slots=True, eq=False)
class Use:
    """A place in a task that reads an attribute or method of `self.x`, so None would fail there."""

    root: str
    node: ast.AST
    function: Function
    in_cleanup: bool


@remembered
def owned_tasks(klass: Class) -> tuple[Owned, ...]:
    """The attributes of a class that hold tasks which no task group or framework tracks."""
    found: dict[str, Owned] = {}
    for function in members(klass):
        for root, creation in _retained_by_self(function):
            found.setdefault(root, Owned(root)).creations.append(creation)
    return tuple(found.values())


@remembered
def _retained_by_self(function: Function) -> tuple[tuple[str, TaskCreation], ...]:
    return tuple(
        (each.name, creation)
        for call in function.calls
        if (creation := creation_in(function, call) or made_task(function, call)) is not None
        for each in creation.retentions
        # `self._child._task` belongs to the child.
        if each.how in ("attribute", "element")
        and each.name.startswith("self.")
        and each.name.count(".") == 1
    )


@remembered
def own_tasks(klass: Class) -> tuple[Owned, ...]:
    """Those that the class itself creates, or all if it has a close method of its own.

    The rest is reported for the base class, once, and not again for each class derived from it.
    """
    # A close method that overrides that of a base is responsible for the tasks of the base as well.
    if any(is_close_name(name) for name in klass.methods):
        return owned_tasks(klass)
    if not creates_tasks(klass):
        return ()
    return tuple(
        owned
        for owned in owned_tasks(klass)
        if any(creation.function.klass is klass for creation in owned.creations)
    )


@remembered
def creates_tasks(klass: Class) -> bool:
    """Whether a class creates a task and keeps it. Rules test this first: it reads no other file."""
    return any(map(_retained_by_self, klass.functions))


def bodies_in(klass: Class | None, creation: TaskCreation) -> list[Function]:
    """The functions that a task runs, where `self` is an object of this class."""
    match creation.coro:
        case ast.Call(func):
            return list(resolve_in(klass, creation.runs_in, func))
    return []


def run_in(klass: Class, attributes: Collection[str]) -> set[Function]:
    """The functions that run in the tasks which a class keeps in these attributes.

    Any call that is given a coroutine and assigned to the attribute counts as the creation of a
    task: `self._task = self._spawn(self._run())` is enough, whatever `_spawn` is.
    """
    return {
        each
        for attribute, body in _bodies_by_attribute(klass)
        if attribute in attributes
        for each in reached_from(body)
    }


@remembered
def _bodies_by_attribute(klass: Class) -> list[tuple[str, Function]]:
    return [
        (function.name_of(target), body)
        for part in klass.lineage
        for function in part.functions
        for node in function.nodes
        if isinstance(node, ast.Assign) and len(node.targets) == 1
        for target, value in assignments(node)
        if isinstance(value, ast.Call) and value.args and isinstance(value.args[0], ast.Call)
        for body in resolve_function(function, value.args[0].func)
    ]


def uses(klass: Class, creation: TaskCreation) -> Iterator[Use]:
    """The uses of attributes of `self` by a task and by what it runs."""
    for body in bodies_in(klass, creation):
        for function, in_cleanup in runs(body, klass):
            for each in operations(function):
                if each.kind == "use" and each.root.startswith("self."):
                    late = in_cleanup or is_cleanup(function, each.node)
                    yield Use(each.root, each.node, function, late)


def unguarded_uses(klass: Class, creation: TaskCreation, root: str) -> Iterator[Use]:
    """The uses of an attribute that a suspension may separate from the last check of it."""
    bodies = bodies_in(klass, creation)
    for use in uses(klass, creation):
        if use.root == root and not _is_guarded(klass, use, use.function in bodies):
            yield use


def _is_guarded(klass: Class, use: Use, from_start: bool) -> bool:
    flow = use.function.flow
    step = flow.of(use.node)
    if step is None or is_checked_inline(use.function, use.node, use.root):
        return True
    checks = presence_checks(use.function, use.root, klass)
    # A step that suspends and then checks or stores leaves no gap: `self.x = await connect()`.
    before = [each for each in flow.nodes if each.suspends and each not in checks]
    # The start of a task counts as a suspension: the loop runs other code before the first step.
    if from_start:
        before.append(flow.entry)
    return step in checks or not any(flow.reaches(each, step, checks) for each in before)
