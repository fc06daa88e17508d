"""Where tasks are made, what they run, and who keeps them.

A task that a task group, a scope or a framework tracks is not in here: it has an owner. Where it
is not plain what the receiver of a `create_task` is, it is taken for such an owner.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from holdfast.check.model.function import Function
from holdfast.check.model.module import Module

__all__ = ["Creation", "Kept", "creation_in", "creations", "is_loop", "kept_by"]

KeptAs = Literal[
    "dropped", "local", "attribute", "element", "returned", "awaited", "passed", "outside"
]

_PLAIN = {
    "asyncio.create_task",
    "asyncio.ensure_future",
    "asyncio.tasks.create_task",
    "asyncio.tasks.ensure_future",
    "asyncio.async",
}
_METHODS = {"create_task", "ensure_future"}
_LAST = _METHODS | {"async"}
_TRACKING = {
    *_METHODS, "spawn", "async_create_task", "async_create_background_task",
    "create_background_task",
}  # fmt: skip
_LOOP_NAMES = {"loop", "_loop", "event_loop", "_event_loop", "io_loop", "ioloop", "main_loop"}
_LOOP_MAKERS = {
    "asyncio.get_running_loop()",
    "asyncio.get_event_loop()",
    "asyncio.new_event_loop()",
    "asyncio.events.get_running_loop()",
    "asyncio.events.get_event_loop()",
}
# A function of these names gives a loop, whoever has written it.
_LOOP_GIVERS = {"get_running_loop", "get_event_loop", "new_event_loop"}
_ADDING = {"add", "append", "appendleft", "insert", "put_nowait", "setdefault", "push"}


@dataclass(frozen=True, slots=True)
class Kept:
    """What becomes of a task where it is made."""

    how: KeptAs
    name: str = ""
    """The attribute (`self._task`) or the local name."""
    key: ast.expr | None = None
    """Under which it stands in a container, if that is a dict."""
    node: ast.AST | None = None
    """The statement or the call that keeps it."""


@dataclass(slots=True, eq=False)
class Creation:
    """One place that makes a task."""

    call: ast.Call
    function: Function
    coro: ast.expr | None
    kept: list[Kept] = field(default_factory=list)

    @property
    def bodies(self) -> list[Function]:
        """The functions that the task runs, as far as they are known."""
        match self.coro:
            case ast.Call(func):
                return list(resolve_function(self.function, func))
        return []

    def kept_in(self, how: KeptAs) -> list[Kept]:
        return [each for each in self.kept if each.how == how]


def creations(module: Module) -> Iterator[Creation]:
    """Every place in a module that makes a task that nobody tracks by itself."""
    for function, call in module.calls():
        made = creation_in(function, call)
        if made is not None:
            yield made


def creation_in(function: Function, call: ast.Call, *, tracked: bool = False) -> Creation | None:
    """The making of a task, if the call is one; with `tracked` also of one that has an owner."""
    if not _makes_task(function, call) and not (tracked and _makes_tracked(call)):
        return None
    coro = call.args[0] if call.args else None
    for keyword in call.keywords:
        if keyword.arg in ("coro", "coro_or_future"):
            coro = keyword.value
    made = Creation(call, function, coro)
    made.kept = list(_kept(function, call))
    return made


def kept_by(function: Function, node: ast.expr) -> list[Kept]:
    """What becomes of the value of an expression, as of a task that is made there."""
    return list(_kept(function, node))


def is_loop(function: Function, node: ast.expr) -> bool:
    """Whether an expression is an event loop, by its name or by where it comes from."""
    name = function.name_of(node)
    if name.rpartition(".")[2] in _LOOP_NAMES:
        return True
    if (
        isinstance(node, ast.Call)
        and function.name_of(node.func).rpartition(".")[2] in _LOOP_GIVERS
    ):
        return True
    return bool(function.roots(node) & _LOOP_MAKERS)


def _makes_task(function: Function, call: ast.Call) -> bool:
    # Asked for every call of a file: what only looks up names comes last.
    func = call.func
    if isinstance(func, ast.Name):
        return function.module.names.known(func.id) in _PLAIN
    if not isinstance(func, ast.Attribute) or func.attr not in _LAST:
        return False
    if function.name_of(call.func) in _PLAIN:
        return True
    match call.func:
        case ast.Attribute(receiver, attr) if attr in _METHODS:
            return is_loop(function, receiver)
    return False


def _makes_tracked(call: ast.Call) -> bool:
    """Whether an owner makes a task of what it is given: a group, a scope, a framework."""
    return isinstance(call.func, ast.Attribute) and call.func.attr in _TRACKING


def resolve_function(function: Function, node: ast.expr) -> Iterator[Function]:
    """The functions of this module that an expression names."""
    match node:
        case ast.Attribute(ast.Name(owner), attr) if owner == function.self_here and owner:
            method = function.klass.method(attr) if function.klass is not None else None
            if method is not None:
                yield method
        case ast.Name(name):
            inner = next((each for each in _visible(function) if each.name == name), None)
            found = inner or function.module.find_function(name)
            if found is not None:
                yield found
        case ast.Call(func, arguments) if function.name_of(func).endswith("partial") and arguments:
            yield from resolve_function(function, arguments[0])


def resolve_anywhere(function: Function, node: ast.expr) -> Iterator[Function]:
    """The same, and the imported functions of the project."""
    found = list(resolve_function(function, node))
    project = function.module.project
    if not found and project is not None and isinstance(node, (ast.Name, ast.Attribute)):
        elsewhere = project.find_function(function.name_of(node))
        found = [elsewhere] if elsewhere is not None else []
    yield from found


def _visible(function: Function) -> Iterator[Function]:
    """The functions that are defined in this one or around it."""
    outer: Function | None = function
    while outer is not None:
        yield from outer.inner
        outer = outer.outer


# --- who keeps it --------------------------------------------------------------------------------


def _kept(function: Function, node: ast.expr, seen: frozenset[str] = frozenset()) -> Iterator[Kept]:
    """What becomes of the value of `node`; `seen` are the local names that were followed already."""
    parents = function.module.parents
    parent = parents.get(node)
    match parent:
        case ast.Expr() | None:
            yield Kept("dropped", node=parent)
        case ast.Await():
            yield Kept("awaited", node=parent)
        case ast.Return() | ast.Yield() | ast.Lambda():
            yield Kept("returned", node=parent)
        case ast.Assign(targets):
            for target in targets:
                yield from _kept_by(function, target, parent, seen)
        case ast.AnnAssign(target) | ast.AugAssign(target):
            yield from _kept_by(function, target, parent, seen)
        case ast.NamedExpr(target):
            yield from _kept_by(function, target, parent, seen)
            yield from (each for each in _kept(function, parent, seen) if each.how != "dropped")
        case ast.Call():
            yield from _kept_by_call(function, node, parent)
        case ast.keyword():
            yield Kept("passed", node=parent)
        case ast.Tuple(elements) | ast.List(elements) if _own_targets(parents.get(parent), parent):
            for parts in _own_targets(parents.get(parent), parent):
                yield from _kept_by(function, parts[elements.index(node)], parents[parent], seen)
        case ast.Dict() | ast.List() | ast.Tuple() | ast.Set() | ast.Starred() | ast.IfExp():
            yield from _kept(function, parent, seen)
        case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
            yield from _kept(function, parent, seen)
        case _:
            yield Kept("passed", node=parent)


def _own_targets(node: ast.AST | None, value: ast.Tuple | ast.List) -> list[list[ast.expr]]:
    """The targets of `a, b = x, y`, where each takes its own; none where one takes all."""
    match node:
        case ast.Assign(targets) if node.value is value:
            found = [each.elts for each in targets if isinstance(each, (ast.Tuple, ast.List))]
            return [each for each in found if len(each) == len(value.elts)]
    return []


def _kept_by(
    function: Function, target: ast.expr, node: ast.AST, seen: frozenset[str]
) -> Iterator[Kept]:
    match target:
        case ast.Name(name):
            yield Kept("local", name, node=node)
            if name not in seen:
                yield from _kept_by_local(function, name, seen | {name})
        case ast.Attribute(ast.Name(owner), attr) if owner == function.self_here and owner:
            yield Kept("attribute", f"self.{attr}", node=node)
        case ast.Subscript(ast.Attribute(ast.Name(owner), attr), key) if (
            owner == function.self_here and owner
        ):
            yield Kept("element", f"self.{attr}", key, node)
        case ast.Subscript(value, key):
            yield Kept("element", function.name_of(value), key, node)
        case _:
            yield Kept("outside", function.name_of(target), node=node)


def _kept_by_call(function: Function, node: ast.expr, call: ast.Call) -> Iterator[Kept]:
    match call.func:
        case ast.Attribute(receiver, attr) if attr in _ADDING and node in call.args:
            key = call.args[0] if attr == "setdefault" and len(call.args) > 1 else None
            yield Kept("element", function.name_of(receiver), key, call)
        case _:
            yield Kept("passed", function.name_of(call.func), node=call)


def _kept_by_local(function: Function, name: str, seen: frozenset[str]) -> Iterator[Kept]:
    """What else is done with a local name that holds the task, here and in functions inside."""
    for where in (function, *_inside(function)):
        for each in where.nodes:
            if isinstance(each, ast.Name) and each.id == name and isinstance(each.ctx, ast.Load):
                yield from (
                    kept
                    for kept in _kept(where, each, seen)
                    if not (kept.how == "local" and kept.name in seen)
                    and not isinstance(kept.node, (ast.Attribute, ast.Expr))
                    and kept.how != "dropped"
                )


def _inside(function: Function) -> Iterator[Function]:
    for each in function.inner:
        yield each
        yield from _inside(each)
