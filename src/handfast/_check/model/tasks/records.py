"""Tasks that an object holds in a field of another object: `self._jobs[key] = Job(task=create_task(...))`.

The other object is a record: its class is in the same file, has no unknown base, and stores the task in
a field, by its `__init__` or as a dataclass. What ends the task then names the field, on any object.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from handfast._check.model.syntax.ancestors import last_name
from handfast._check.model.syntax.function import Function
from handfast._check.model.syntax.memo import remembered
from handfast._check.model.syntax.module import Class
from handfast._check.model.tasks.creation import (
    Retention,
    TaskCreation,
    creation_in,
    retentions_of,
)

_RECORD_DECORATORS = {"dataclass", "define", "attrs", "s", "frozen", "mutable"}


@dataclass(frozen=True, slots=True, eq=False)
class RecordedTask:
    """A task in a field of a record that an attribute holds, or a container in one."""

    root: str
    field: str
    creation: TaskCreation


@remembered
def recorded_tasks(klass: Class) -> tuple[RecordedTask, ...]:
    """The tasks that the methods of a class create and hold in fields of records."""
    return tuple(each for function in klass.functions for each in _in(function))


def _in(function: Function) -> Iterator[RecordedTask]:
    for call in function.calls:
        creation = creation_in(function, call)
        recorded = record_of(creation) if creation is not None else None
        if creation is not None and recorded is not None and _is_own(recorded[1]):
            yield RecordedTask(recorded[1].name, recorded[0], creation)


def record_of(creation: TaskCreation) -> tuple[str, Retention] | None:
    """The field of a record that holds a task, and what holds the record, if nothing else does."""
    # Any other holder may end the task.
    held = [each for each in creation.retentions if each.how != "local"]
    if len(held) != 1:
        return None
    field, kept = _field_and_owner(creation.function, creation.call, held[0])
    own = [each for each in kept if each.how != "local"]
    return (field, own[0]) if field and len(own) == 1 else None


def _is_own(retention: Retention) -> bool:
    name = retention.name
    return (
        retention.how in ("attribute", "element")
        and name.startswith("self.")
        and (name.count(".") == 1)
    )


def _field_and_owner(
    function: Function, call: ast.Call, held: Retention
) -> tuple[str, list[Retention]]:
    """The field of the record that holds the task, and what holds the record."""
    if held.how == "passed":
        return _passed_to_record(function, call, held.node)
    if held.how == "outside" and held.name.count(".") == 1:
        # `job = Job(key); job.task = create_task(...); self._jobs[key] = job`
        name, _, field = held.name.partition(".")
        match function.assigned.get(name):
            case [ast.Call() as made] if _record(function, made) is not None:
                return field, [
                    each
                    for each in retentions_of(function, made)
                    if not isinstance(each.node, ast.Attribute)
                ]
    return "", []


def _passed_to_record(
    function: Function, call: ast.Call, node: ast.AST | None
) -> tuple[str, list[Retention]]:
    parents = function.module.parents
    made = parents.get(node) if isinstance(node, ast.keyword) else node
    if not isinstance(made, ast.Call) or (klass := _record(function, made)) is None:
        return "", []
    for parameter, argument in _arguments(klass, made):
        if argument is call or _is_name_of(function, argument, call):
            return _field_of(klass, parameter), retentions_of(function, made)
    return "", []


def _is_name_of(function: Function, node: ast.expr, call: ast.Call) -> bool:
    return isinstance(node, ast.Name) and function.assigned.get(node.id) == [call]


def _record(function: Function, made: ast.Call) -> Class | None:
    """The class of a record that is created, if it is in this file and its bases are known."""
    name = made.func.id if isinstance(made.func, ast.Name) else ""
    klass = function.module.classes.get(name)
    return klass if klass is not None and klass.is_complete else None


def _arguments(klass: Class, made: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    init = klass.method("__init__")
    if init is not None:
        yield from init.arguments(made)
    elif _is_dataclass(klass):
        fields = [
            stmt.target.id
            for stmt in klass.node.body
            if isinstance(stmt, ast.AnnAssign) and isinstance(stmt.target, ast.Name)
        ]
        yield from zip(fields, made.args, strict=False)
        yield from ((each.arg, each.value) for each in made.keywords if each.arg is not None)


def _is_dataclass(klass: Class) -> bool:
    named = [
        each.func if isinstance(each, ast.Call) else each for each in klass.node.decorator_list
    ]
    bases = {name.rpartition(".")[2] for name in klass.base_names}
    return any(last_name(each) in _RECORD_DECORATORS for each in named) or "NamedTuple" in bases


def _field_of(klass: Class, parameter: str) -> str:
    """The field in which a record stores an argument, and nowhere else; empty if that is not known."""
    init = klass.method("__init__")
    if init is None:
        return parameter
    fields = {
        init.own_attribute(target)
        for node in init.nodes
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Name)
        and node.value.id == parameter
        for target in node.targets
    }
    reads = sum(1 for _ in init.reads(parameter))
    return fields.pop() if len(fields) == 1 and reads == 1 else ""
