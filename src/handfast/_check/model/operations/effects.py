"""Effects: the operations of a function and of the functions that run as part of it.

An operation in a method that is called (or awaited) counts at the call. `self.m()` is looked up in
the class that is checked, so an inherited method finds the overriding one. Effects on a parameter
apply to the argument. A coroutine that is only started as a task does not run here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from handfast._check.model.operations.operations import Kind, Operation, operations
from handfast._check.model.syntax.call_graph import callees
from handfast._check.model.syntax.control_flow import Step
from handfast._check.model.syntax.function import Function, value_parts
from handfast._check.model.syntax.memo import remembered
from handfast._check.model.syntax.module import Class
from handfast._check.model.vocabulary import ELEMENTS, ITERATING

# Calls are followed this far: `close`, `_shutdown`, `_stop_all`, `_stop_one`, `_end`. Each level
# multiplies the work, and recursion would have no end.
_DEPTH = 4


@dataclass(frozen=True, slots=True, eq=False)
class Effect:
    """An operation, as seen from a function that does it or calls what does it."""

    kind: Kind
    root: str
    node: ast.AST
    """In the function that is checked: the operation itself, or the call that leads to it."""
    step: Step | None
    operation: Operation
    """The operation, in the function that contains it."""


def effects(function: Function, klass: Class | None = None) -> tuple[Effect, ...]:
    """The effects of a function where `self` is an object of `klass`, in source order."""
    return _effects_to(function, klass, _DEPTH)


@remembered
def _effects_to(function: Function, klass: Class | None, depth: int) -> tuple[Effect, ...]:
    # One call can lead to the same operation by several parameters or paths: it counts once.
    once = {(e.kind, e.root, e.node, e.operation): e for e in _effects(function, klass, depth)}
    return tuple(once.values())


def _effects(function: Function, klass: Class | None, depth: int) -> Iterator[Effect]:
    for each in operations(function):
        yield Effect(each.kind, each.root, each.node, each.step, each)
    for node, callee in callees(function, klass) if depth else ():
        step = function.flow.of(node)
        for effect in _effects_to(callee, klass, depth - 1):
            for root in _root_at_call(function, node, callee, effect.root):
                yield Effect(effect.kind, root, node, step, effect.operation)


def _root_at_call(function: Function, node: ast.AST, callee: Function, root: str) -> Iterator[str]:
    """What a root of the callee is called by the caller."""
    if root not in callee.parameters:
        yield root
    elif isinstance(node, ast.Call):
        for parameter, argument in callee.arguments(node):
            if parameter == root:
                yield from function.roots(argument)


@remembered
def _is_local_itself(function: Function, name: str, root: str) -> bool:
    return _is_name_itself(function, name, root, frozenset())


def _is_name_itself(function: Function, name: str, root: str, seen: frozenset[str]) -> bool:
    up: Function | None = function
    while up is not None:
        values = up.assigned.get(name, [])
        if any(is_itself(up, each, root, seen | {name}) for each in values):
            return True
        up = up.outer
    return False


def is_direct(operation: Operation) -> bool:
    """Whether an operation is on the value of its root or an element, not on an attribute of it.

    `self._client.task.cancel()` has the root `self._client`, and does not cancel the client.
    """
    match operation.node:
        case ast.Call(ast.Attribute(receiver, _)):
            return is_itself(operation.function, receiver, operation.root)
    return True


def is_itself(
    function: Function, node: ast.expr, root: str, seen: frozenset[str] = frozenset()
) -> bool:
    """Whether an expression is the value of a root or an element of it, not an attribute of it."""
    match node:
        case ast.Call(ast.Attribute(value, method)) if method in ELEMENTS:
            return is_itself(function, value, root, seen)
        case ast.Call(ast.Name(name), [first, *_]) if name in ITERATING:
            return is_itself(function, first, root, seen)
        case ast.Await():  # the result of a task is not the task
            return False
        case ast.Name(name) if name not in seen:
            # Only for the first name: what a value of it is may depend on the names seen before.
            return name == root or (
                _is_name_itself(function, name, root, seen)
                if seen
                else _is_local_itself(function, name, root)
            )
    return function.name_of(node) == root or any(
        is_itself(function, each, root, seen) for each in value_parts(node)
    )
