"""What an `await` waits for: a task that somebody else holds as well, or work of its own.

Here a task counts whoever tracks it: for the one who waits, it is the same whether a group, a
framework or an attribute holds it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from holdfast.check.model.flow import walk_here
from holdfast.check.model.function import Function
from holdfast.check.model.memo import remembered
from holdfast.check.model.module import Class
from holdfast.check.model.tasks import resolve_function

__all__ = [
    "Made", "attribute_behind", "awaits_in", "is_joining", "is_making", "making_of", "stored_tasks",
    "tasks_held_by",
]  # fmt: skip

_MAKERS = {"create_task", "ensure_future", "create_background_task", "async_create_task"}
_PART = {"get", "pop", "setdefault"}
_WAITS = {"wait", "wait_for", "gather", "shield", "as_completed", "wrap_future"}


@dataclass(frozen=True, slots=True, eq=False)
class Made:
    """A call that makes a task, and the function in which it stands."""

    call: ast.Call
    function: Function


def is_making(function: Function, node: ast.expr | None) -> bool:
    """Whether an expression makes a task, tracked or not."""
    if not isinstance(node, ast.Call):
        return False
    match node.func:
        case ast.Attribute(_, attr):
            return attr in _MAKERS
        case ast.Name():
            return function.name_of(node.func).rpartition(".")[2] in _MAKERS
    return False


@remembered
def tasks_held_by(klass: Class) -> dict[str, tuple[Made, ...]]:
    """The attributes of a class, inherited ones too, that hold a task or tasks by key, each with
    where these are made."""
    found: dict[str, list[Made]] = {}
    for each in klass.lineage:
        for function in filter(_makes_any, each.functions):
            for node in function.nodes:
                for target, value in _stored(node):
                    attr = _attribute(function, target)
                    made = _made(function, value) if attr else None
                    if made is not None:
                        found.setdefault(attr, []).append(made)
    return {attr: tuple(each) for attr, each in found.items()}


@remembered
def _makes_any(function: Function) -> bool:
    return any(is_making(function, call) for call in function.calls)


def _stored(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    match node:
        case ast.Assign(targets, value):
            yield from ((target, value) for target in targets)
        case ast.AnnAssign(target, _, value) if value is not None:
            yield target, value
        case ast.NamedExpr(target, value):
            yield target, value


def _attribute(function: Function, node: ast.expr) -> str:
    """The `x` of `self.x`, `self.x[key]`, `self.x.get(key)`; empty for anything else."""
    match node:
        case ast.Attribute(ast.Name(owner), attr) if owner and owner == function.self_here:
            return attr
        case ast.Subscript(value):
            return _attribute(function, value)
        case ast.Call(ast.Attribute(value, method)) if method in _PART:
            return _attribute(function, value)
    return ""


def _made(function: Function, value: ast.expr) -> Made | None:
    if is_making(function, value):
        assert isinstance(value, ast.Call)
        return Made(value, function)
    if isinstance(value, ast.Name):
        for each in function.assigned.get(value.id, ()):
            if is_making(function, each):
                assert isinstance(each, ast.Call)
                return Made(each, function)
    return None


def making_of(function: Function, node: ast.expr) -> Made | None:
    """Where the task was made that an expression stands for; None if it is not known to be one."""
    made = _made(function, node)
    if made is not None:
        return made
    attr = attribute_behind(function, node)
    if attr and function.klass is not None:
        return next(iter(tasks_held_by(function.klass).get(attr, ())), None)
    return None


def attribute_behind(function: Function, node: ast.expr) -> str:
    """The attribute of `self` that an expression is, or a local name was taken from."""
    attr = _attribute(function, node)
    if attr or not isinstance(node, ast.Name):
        return attr
    found = {_attribute(function, each) for each in function.assigned.get(node.id, ())} - {""}
    return found.pop() if len(found) == 1 else ""


def awaits_in(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """Every point in a block where the task can be cancelled; a yield is not one of them."""
    for part in body:
        if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        for each in walk_here(part):
            if isinstance(each, (ast.Await, ast.AsyncFor, ast.AsyncWith)) or (
                isinstance(each, ast.comprehension) and each.is_async
            ):
                yield each


def is_joining(function: Function, node: ast.AST) -> bool:
    """Whether an await waits for what was started elsewhere: a bare name, or such names given to
    `gather`, `wait` or `wait_for`. Whose cancellation comes out of that, reading cannot tell."""
    if not isinstance(node, ast.Await):
        return False
    return _is_held(function, node.value)


def _is_held(function: Function, node: ast.expr) -> bool:
    match node:
        case ast.Name(name):
            # A coroutine under a name is work of one's own all the same.
            values = function.assigned.get(name, [])
            return not values or not all(_is_coroutine(function, each) for each in values)
        case ast.Attribute() | ast.Subscript():
            return True
        case ast.Starred(value):
            return _is_held(function, value)
        case ast.List(elements) | ast.Tuple(elements) | ast.Set(elements):
            return all(_is_held(function, each) for each in elements)
        case ast.IfExp(_, one, other):
            return _is_held(function, one) and _is_held(function, other)
        case ast.Call(func, arguments) if arguments:
            name = function.name_of(func)
            if name.rpartition(".")[2] in _WAITS:
                given = arguments[:1] if name.endswith("wait_for") else arguments
                return all(_is_held(function, each) for each in given)
            return is_making(function, node)
    return False


def _is_coroutine(function: Function, node: ast.expr) -> bool:
    if not isinstance(node, ast.Call):
        return False
    found = list(resolve_function(function, node.func))
    return bool(found) and all(each.is_async and not each.is_generator for each in found)


def stored_tasks(function: Function) -> Iterator[tuple[str, ast.stmt]]:
    """The attributes of `self` that a function gives a task, each with the statement."""
    for node in function.nodes if _makes_any(function) else ():
        for target, value in _stored(node):
            attr = _attribute(function, target)
            if attr and _made(function, value) is not None:
                yield attr, function.module.statement_of(node)
