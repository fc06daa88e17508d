"""HF113: an owner of tasks is closed at the end of a function, and an exception passes that by.

Found: a local name that is given a new object of a class whose `__init__`, or a method that is called on it
here, starts a task; that is closed by one of its close methods in the same function; and an `await`
between, from which an exception or a cancellation leaves the function without that close. Silent:
where the object gets into other hands (passed, stored, returned, in an `async with`), where the close
stands in a `finally`, and where the class is not known.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from holdfast.check.finding import Finding
from holdfast.check.model.flow import Node
from holdfast.check.model.function import Function
from holdfast.check.model.holders import all_inner
from holdfast.check.model.module import Class, Module
from holdfast.check.model.owned import owned_tasks
from holdfast.check.model.roles import close_methods, is_close_name
from holdfast.check.model.tasks import Creation
from holdfast.check.rules.rule import Rule, found, related

__all__ = ["RULE", "check"]

_CODE = "HF113"


def check(module: Module) -> Iterator[Finding]:
    """Owners whose close is passed by."""
    for function in module.functions:
        if function.is_async:
            for node in function.nodes:
                match node:
                    case ast.Assign([ast.Name(name)], ast.Call() as call):
                        yield from _passed_by(module, function, name, call)


def _passed_by(module: Module, function: Function, name: str, call: ast.Call) -> Iterator[Finding]:
    calls = _calls_on(function, name)
    if calls is None or len(function.assigned.get(name, ())) != 1:
        return
    if not any(is_close_name(method) for method, _ in calls):
        return
    klass = module.find_class(function.name_of(call.func))
    if klass is None:
        return
    started = _started(klass, {"__init__", *(method for method, _ in calls)})
    closing = {method.name for method in close_methods(klass)}
    closes = [each for method, each in calls if method in closing]
    if started is None or not closes or any(_is_in_finally(module, each) for each in closes):
        return
    wait = _way_past(function, call, closes)
    if wait is None:
        return
    places = [
        related(module, closes[-1], "an exception before this passes it by"),
        related(module, wait.stmt, "such as one that is raised here"),
    ]
    if started.function.module is module:
        places.append(related(module, started.call, "the task that lives on is made here"))
    yield found(
        _CODE,
        module,
        call,
        f"`{name}` starts a task, and an exception or a cancellation in line {wait.stmt.lineno}"  # type: ignore[attr-defined]
        f" leaves `{function.name}` without closing it: close it in a `finally` or an `async with`.",
        *places,
    )


def _calls_on(function: Function, name: str) -> list[tuple[str, ast.Call]] | None:
    """The methods that are called on a local name; None if it gets into other hands."""
    parents = function.module.parents
    if any(
        isinstance(node, ast.Name) and node.id == name
        for each in all_inner(function)
        for node in each.nodes
    ):
        return None
    found_calls: list[tuple[str, ast.Call]] = []
    for node in function.nodes:
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
            match parents.get(node):
                case ast.Attribute(attr=attr) as parent:
                    up = parents.get(parent)
                    if isinstance(up, ast.Call) and up.func is parent:
                        found_calls.append((attr, up))
                case _:
                    return None
    return found_calls


def _started(klass: Class, methods: set[str]) -> Creation | None:
    """The task that one of these methods starts and the object keeps."""
    for owned in owned_tasks(klass):
        for made in owned.creations:
            if made.function.name in methods:
                return made
    return None


def _is_in_finally(module: Module, node: ast.AST) -> bool:
    """Whether a close stands in a `finally`: what may still cut that short is another matter."""
    up: ast.AST | None = node
    while up is not None:
        below, up = up, module.parents.get(up)
        if isinstance(up, (ast.Try, ast.TryStar)) and below in up.finalbody:
            return True
    return False


def _way_past(function: Function, call: ast.Call, closes: list[ast.Call]) -> Node | None:
    """A step that suspends after the object is made, and from which no close is on the way out."""
    flow = function.flow
    start = flow.of(call)
    closing = {flow.of(each) for each in closes}

    def is_close(node: Node) -> bool:
        return node in closing

    for node in flow.nodes if start is not None else ():
        if node.suspends and node is not start and node not in closing:
            if start is not None and flow.reaches(start, node, is_close):
                if flow.reaches(node, flow.raised, is_close):
                    return node
    return None


RULE = Rule(_CODE, check)
