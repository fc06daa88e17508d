"""What a function does, and what is done for it by the functions that it runs.

A deed of a method that is called (or awaited) counts at the call. `self.m()` is looked up in the
class that is asked about, so an inherited method meets the overriding one; what a parameter is
done, is done to what was given for it. What is only started as a task is not run here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from holdfast.check.model.deeds import Deed, Kind, deeds
from holdfast.check.model.flow import Node, catches_cancellation
from holdfast.check.model.function import Function
from holdfast.check.model.memo import remembered
from holdfast.check.model.module import Class
from holdfast.check.model.tasks import resolve_function

__all__ = [
    "Effect",
    "callees",
    "callers",
    "effects",
    "is_cleanup",
    "is_direct",
    "is_itself",
    "members",
    "resolve_in",
    "runs",
]

_DEEP = 4
_WRAPPERS = {"wait_for", "shield", "gather", "wait", "timeout"}


@dataclass(frozen=True, slots=True, eq=False)
class Effect:
    """A deed, seen from a function that does it or has it done."""

    kind: Kind
    root: str
    node: ast.AST
    """In the function that is asked about: the deed itself, or the call that leads to it."""
    step: Node | None
    deed: Deed
    """Where it is really done."""


@remembered
def members(klass: Class) -> tuple[Function, ...]:
    """The functions in whose bodies `self` may be an object of this class: no overridden ones."""
    return tuple(_members(klass))


def _members(klass: Class) -> Iterator[Function]:
    for each in klass.lineage:
        for function in each.functions:
            top = function
            while top.owner is None and top.outer is not None:
                top = top.outer
            if klass.method(top.name) is top:
                yield function


def effects(function: Function, klass: Class | None = None) -> tuple[Effect, ...]:
    """All that a function does or has done, in source order."""
    return _effects_to(function, klass, _DEEP)


def _effects_to(function: Function, klass: Class | None, depth: int) -> tuple[Effect, ...]:
    key = (effects, klass, depth)
    if key not in function.memo:
        once = {(e.kind, e.root, e.node, e.deed): e for e in _effects(function, klass, depth)}
        function.memo[key] = tuple(once.values())
    found: tuple[Effect, ...] = function.memo[key]
    return found


def _effects(function: Function, klass: Class | None, depth: int) -> Iterator[Effect]:
    for deed in deeds(function):
        yield Effect(deed.kind, deed.root, deed.node, deed.step, deed)
    if not depth:
        return
    for node, callee in callees(function, klass):
        step = function.flow.of(node)
        for effect in _effects_to(callee, klass, depth - 1):
            for root in _seen_from_outside(function, node, callee, effect.root):
                yield Effect(effect.kind, root, node, step, effect.deed)


def callees(function: Function, klass: Class | None) -> tuple[tuple[ast.AST, Function], ...]:
    """The functions that run as a part of this one, each with the call (or the property)."""
    key = (callees, klass)
    if key not in function.memo:
        function.memo[key] = tuple(_callees(function, klass))
    found: tuple[tuple[ast.AST, Function], ...] = function.memo[key]
    return found


def _callees(function: Function, klass: Class | None) -> Iterator[tuple[ast.AST, Function]]:
    for node in function.nodes:
        if isinstance(node, ast.Call):
            for callee in resolve_in(klass, function, node.func):
                if callee is not function and (not callee.is_async or _is_awaited(function, node)):
                    yield node, callee
        elif isinstance(node, ast.Attribute) and klass is not None:
            method = _method(klass, function, node)
            if method is not None and _is_property(method) and method is not function:
                yield node, method


def resolve_in(klass: Class | None, function: Function, node: ast.expr) -> Iterator[Function]:
    """The functions that an expression names, where `self` is an object of this class."""
    if klass is not None and isinstance(node, ast.Attribute):
        method = _method(klass, function, node)
        if method is not None:
            yield method
            return
        match node.value:
            case ast.Call(ast.Name("super")):
                yield from _inherited(klass, function, node.attr)
                return
    yield from resolve_function(function, node)


def _method(klass: Class, function: Function, node: ast.Attribute) -> Function | None:
    match node.value:
        case ast.Name(owner) if owner and owner == function.self_here:
            return klass.method(node.attr)
    return None


def _inherited(klass: Class, function: Function, name: str) -> Iterator[Function]:
    lineage = klass.lineage
    if function.klass in lineage:
        later = lineage[lineage.index(function.klass) + 1 :]
        yield from (each.methods[name] for each in later if name in each.methods)


def _is_property(method: Function) -> bool:
    if isinstance(method.node, ast.Lambda):
        return False
    names = (method.module.names.resolve(each) for each in method.node.decorator_list)
    return any(name.rpartition(".")[2] in ("property", "cached_property") for name in names)


def _is_awaited(function: Function, call: ast.Call) -> bool:
    """Whether the coroutine of a call is awaited where it is made, be it through `wait_for`."""
    up = function.module.parents.get(call)
    while isinstance(up, (ast.Call, ast.Starred, ast.List, ast.Tuple, ast.IfExp)):
        if isinstance(up, ast.Call):
            name = function.name_of(up.func).rpartition(".")[2]
            if name not in _WRAPPERS:
                return False
        up = function.module.parents.get(up)
    return isinstance(up, ast.Await)


def _seen_from_outside(
    function: Function, node: ast.AST, callee: Function, root: str
) -> Iterator[str]:
    if root in callee.parameters:
        if isinstance(node, ast.Call):
            argument = _argument(node, callee, root)
            if argument is not None:
                yield from function.roots(argument)
    else:
        yield root


def _argument(call: ast.Call, callee: Function, name: str) -> ast.expr | None:
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    at = callee.parameters.index(name) - (1 if callee.self_name else 0)
    return call.args[at] if 0 <= at < len(call.args) else None


def runs(function: Function, klass: Class | None) -> Iterator[tuple[Function, bool]]:
    """A function and all that run as a part of it, each with whether only its clean-up (a `finally`
    or a handler of the cancellation) leads there."""
    seen: dict[Function, bool] = {}
    todo = [(function, False)]
    while todo:
        each, in_cleanup = todo.pop()
        if each in seen and seen[each] <= in_cleanup:
            continue
        seen[each] = in_cleanup
        for node, callee in callees(each, klass):
            todo.append((callee, in_cleanup or is_cleanup(each, node)))
    yield from seen.items()


def is_cleanup(function: Function, node: ast.AST) -> bool:
    """Whether a node stands in a `finally`, or in a handler that a cancellation comes to."""
    parents = function.module.parents
    below: ast.AST = node
    up = parents.get(node)
    while up is not None and up is not function.node:
        if isinstance(up, (ast.Try, ast.TryStar)) and below in up.finalbody:
            return True
        if isinstance(up, ast.ExceptHandler) and catches_cancellation(up.type):
            return True
        below, up = up, parents.get(up)
    return False


def callers(klass: Class, function: Function) -> Iterator[tuple[Function, ast.AST]]:
    """The functions of a class that run this one, each with the call."""
    for each in members(klass):
        for node, callee in callees(each, klass):
            if callee is function:
                yield each, node


# What gives the elements of a container, or one of them.
_ELEMENTS = {"values", "items", "get", "pop", "copy", "popitem", "popleft", "setdefault"}
_COPIES = {"list", "set", "tuple", "sorted", "reversed", "frozenset", "iter", "next"}


def is_direct(deed: Deed) -> bool:
    """Whether it is done to the thing itself or its elements, not to something that they hold."""
    match deed.node:
        case ast.Call(ast.Attribute(receiver, _)):
            return is_itself(deed.function, receiver, deed.root)
    return True


def is_itself(
    function: Function, node: ast.expr, root: str, seen: frozenset[str] = frozenset()
) -> bool:
    """Whether an expression is the thing itself or its elements, not something that they hold."""
    match node:
        case ast.Call(ast.Attribute(value, method)) if method in _ELEMENTS:
            return is_itself(function, value, root, seen)
        case ast.Call(ast.Name(name), [first, *_]) if name in _COPIES:
            return is_itself(function, first, root, seen)
        case ast.Subscript(value) | ast.NamedExpr(_, value) | ast.Starred(value):
            return is_itself(function, value, root, seen)
        case ast.ListComp(element) | ast.SetComp(element) | ast.GeneratorExp(element):
            return is_itself(function, element, root, seen)
        case ast.BoolOp(_, values) | ast.Tuple(values) | ast.List(values):
            return any(is_itself(function, each, root, seen) for each in values)
        case ast.IfExp(_, one, other) | ast.BinOp(one, _, other):
            return any(is_itself(function, each, root, seen) for each in (one, other))
        case ast.Name(name) if name not in seen:
            if name == root:
                return True
            up: Function | None = function
            while up is not None:
                given = up.assigned.get(name, [])
                if any(is_itself(up, each, root, seen | {name}) for each in given):
                    return True
                up = up.outer
            return False
    return function.name_of(node) == root
