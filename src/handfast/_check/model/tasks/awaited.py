"""What an `await` waits for: a task that other code can reach as well, or a coroutine of its own.

Tasks with an owner count as well here: an `await` is right or wrong in the same way whether a group, a
framework or an attribute holds the task.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from handfast._check.model.syntax.ancestors import assignments
from handfast._check.model.syntax.call_graph import resolve_function
from handfast._check.model.syntax.children import walk_here
from handfast._check.model.syntax.function import Function
from handfast._check.model.syntax.memo import remembered
from handfast._check.model.syntax.module import Class
from handfast._check.model.tasks.creation import TaskCreation, any_creation_in
from handfast._check.model.vocabulary import WAITING

# Methods of a dict of tasks that return one of them.
_PART = {"get", "pop", "setdefault"}
_WAITS = WAITING | {"wrap_future"}


@remembered
def task_attributes(klass: Class) -> dict[str, tuple[TaskCreation, ...]]:
    """The attributes of a class, inherited ones too, that hold a task or tasks by key, each with
    where these are created."""
    found: dict[str, list[TaskCreation]] = {}
    for each in klass.lineage:
        for function in each.functions:
            for attr, creation in stored_creations(function):
                found.setdefault(attr, []).append(creation)
    return {attr: tuple(each) for attr, each in found.items()}


@remembered
def stored_creations(function: Function) -> tuple[tuple[str, TaskCreation], ...]:
    """The tasks that a function stores in attributes of `self`, each with the attribute."""
    return tuple(
        (attr, creation)
        for node in (function.nodes if _creates_any(function) else ())
        for target, value in assignments(node)
        if (attr := _attribute(function, target))
        and (creation := _creation(function, value)) is not None
    )


@remembered
def _creates_any(function: Function) -> bool:
    return any(any_creation_in(function, call) for call in function.calls)


def _attribute(function: Function, node: ast.expr) -> str:
    """The `x` of `self.x`, `self.x[key]`, `self.x.get(key)`; empty for anything else."""
    match node:
        case ast.Subscript(value):
            return _attribute(function, value)
        case ast.Call(ast.Attribute(value, method)) if method in _PART:
            return _attribute(function, value)
    return function.own_attribute(node)


def _creation(function: Function, value: ast.expr) -> TaskCreation | None:
    given = function.assigned.get(value.id, ()) if isinstance(value, ast.Name) else ()
    found = (any_creation_in(function, each) for each in (value, *given))
    return next((each for each in found if each is not None), None)


def creation_of(function: Function, node: ast.expr) -> TaskCreation | None:
    """Where the task was created that is the value of an expression; None if that is no known task."""
    creation = _creation(function, node)
    if creation is not None:
        return creation
    attr = source_attribute(function, node)
    if attr and function.klass is not None:
        return next(iter(task_attributes(function.klass).get(attr, ())), None)
    return None


def source_attribute(function: Function, node: ast.expr) -> str:
    """The attribute of `self` that an expression is, or that a local name was assigned from."""
    attr = _attribute(function, node)
    if attr or not isinstance(node, ast.Name):
        return attr
    # Assigned from two attributes, a name stands for neither.
    found = {_attribute(function, each) for each in function.assigned.get(node.id, ())} - {""}
    return found.pop() if len(found) == 1 else ""


def awaits_in(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """Every point in a block where the task can be cancelled; a `yield` is none."""
    for part in body:
        if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        for each in walk_here(part):
            if isinstance(each, (ast.Await, ast.AsyncFor, ast.AsyncWith)) or (
                isinstance(each, ast.comprehension) and each.is_async
            ):
                yield each


def is_joining(function: Function, node: ast.AST) -> bool:
    """Whether an `await` waits for something that was started elsewhere: a name, or names passed to
    `gather`, `wait` or `wait_for`.

    A CancelledError from such an `await` may be that of the other task, which was cancelled on
    purpose. Catching that one is right, and the source does not tell the two apart.
    """
    if not isinstance(node, ast.Await):
        return False
    return _is_started(function, node.value)


def _is_started(function: Function, node: ast.expr) -> bool:
    match node:
        case ast.Name(name):
            # A coroutine in a local name runs in this task all the same.
            values = function.assigned.get(name, [])
            return not values or not all(_is_coroutine(function, each) for each in values)
        # An attribute holds something that lives longer than this `await`.
        case ast.Attribute() | ast.Subscript():
            return True
        case ast.Starred(value):
            return _is_started(function, value)
        case ast.List(elements) | ast.Tuple(elements) | ast.Set(elements):
            return all(_is_started(function, each) for each in elements)
        case ast.IfExp(_, one, other):
            return _is_started(function, one) and _is_started(function, other)
        case ast.Call(func, arguments) if arguments:
            name = function.name_of(func)
            if name.rpartition(".")[2] in _WAITS:
                # The second argument of `wait_for` is the timeout.
                given = arguments[:1] if name.endswith("wait_for") else arguments
                return all(_is_started(function, each) for each in given)
            return any_creation_in(function, node) is not None
    return False


def _is_coroutine(function: Function, node: ast.expr) -> bool:
    if not isinstance(node, ast.Call):
        return False
    found = list(resolve_function(function, node.func))
    return bool(found) and all(each.is_async and not each.is_generator for each in found)


def stored_tasks(function: Function) -> Iterator[tuple[str, ast.stmt]]:
    """The attributes of `self` in which a function stores a task, each with the statement."""
    for node in function.nodes if _creates_any(function) else ():
        for target, value in assignments(node):
            attr = _attribute(function, target)
            if attr and _creation(function, value) is not None:
                yield attr, function.module.statement_of(node)
