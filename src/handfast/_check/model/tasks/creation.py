"""Where tasks are created, what they run, and what keeps a reference to them.

A task that a task group, a scope or a framework tracks is not in here: it has an owner. A receiver of
`create_task` that is not known to be an event loop is taken for such an owner. That misses loops with
odd names, and avoids a false alarm for each framework with a `create_task` of its own.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from handfast._check.model.syntax.ancestors import last_name
from handfast._check.model.syntax.call_graph import resolve_function
from handfast._check.model.syntax.function import Function
from handfast._check.model.syntax.memo import remembered
from handfast._check.model.syntax.module import Module
from handfast._check.model.vocabulary import INSPECTING, PUTTING_ONE

RetainedAs = Literal[
    "dropped", "local", "attribute", "element", "returned", "awaited", "passed", "outside"
]

_PLAIN = {
    "asyncio.create_task",
    "asyncio.ensure_future",
    "asyncio.tasks.create_task",
    "asyncio.tasks.ensure_future",
    "asyncio.async",
    "asyncio.Task",
    "asyncio.tasks.Task",
}
_METHODS = {"create_task", "ensure_future"}
_LAST = _METHODS | {"async", "Task"}
# `spawn = loop.create_task`, at the end of a line. Without it, no name is looked up.
# Two expressions that begin with a literal, which is found quickly.
_NAMED = tuple(
    re.compile(rf"{name}[ \t]*$", re.MULTILINE) for name in ("create_task", "ensure_future")
)
# Methods of a loop, a group or a framework that return a task.
_RETURNING_TASK = _METHODS | {"create_background_task", "async_create_task"}
# These may return something else, or nothing. For a dict of tasks that does not matter.
_TRACKING = _RETURNING_TASK | {"spawn", "async_create_background_task"}
# A receiver of one of these names is an event loop, whatever its type: parameters have no other mark.
_LOOP_NAMES = {
    "loop", "_loop", "event_loop", "_event_loop", "eventloop", "_eventloop", "asyncio_loop",
    "_asyncio_loop", "io_loop", "ioloop", "main_loop",
}  # fmt: skip
# A function of one of these names returns a loop, in whatever package it is defined.
_LOOP_GETTERS = {"get_running_loop", "get_event_loop", "new_event_loop"}
_LOOP_ROOTS = {f"asyncio.{module}{name}()" for module in ("", "events.") for name in _LOOP_GETTERS}
_ADDING = PUTTING_ONE | {"put_nowait", "push"}


@dataclass(frozen=True, slots=True)
class Retention:
    """What happens to a task where it is created: one of several things, if a name holds it."""

    how: RetainedAs
    name: str = ""
    """The attribute (`self._task`) or the local name."""
    key: ast.expr | None = None
    """The key in the container, if that is a dict."""
    node: ast.AST | None = None
    """The statement or the call that keeps it."""


@dataclass(eq=False)
class TaskCreation:
    """One place that creates a task."""

    call: ast.Call
    function: Function

    @property
    def coro(self) -> ast.expr | None:
        """What the task runs."""
        for keyword in self.call.keywords:
            if keyword.arg in ("coro", "coro_or_future"):
                return keyword.value
        return self.call.args[0] if self.call.args else None

    @property
    def runs_in(self) -> Function:
        """The function in which the expression `coro` is evaluated."""
        return self.function

    @cached_property
    def retentions(self) -> list[Retention]:
        """What happens to the task."""
        return retentions_of(self.function, self.call)

    @property
    def bodies(self) -> list[Function]:
        """The functions that the task runs, as far as they are known."""
        match self.coro:
            case ast.Call(func):
                return list(resolve_function(self.runs_in, func))
        return []


@remembered
def task_creations(module: Module) -> tuple[TaskCreation, ...]:
    """Every place in a module that creates a task which nothing tracks by itself."""
    found = (creation_in(function, call) for function, call in module.calls())
    return tuple(each for each in found if each is not None)


def task_bodies(module: Module) -> set[Function]:
    """The functions of a module that run as tasks."""
    return {body for creation in task_creations(module) for body in creation.bodies}


def creation_in(
    function: Function, call: ast.Call, *, tracked: bool = False
) -> TaskCreation | None:
    """The creation of a task, if the call is one; with `tracked` also of one that has an owner."""
    if not creates_task(function, call.func) and not (tracked and _creates_tracked(call)):
        return None
    return TaskCreation(call, function)


def any_creation_in(function: Function, node: ast.expr | None) -> TaskCreation | None:
    """The creation of a task, by the name of the call alone: code that waits for the task is right
    or wrong in the same way whether or not the task has an owner."""
    if not isinstance(node, ast.Call):
        return None
    by_name = isinstance(node.func, ast.Name)
    name = function.last_name_of(node.func) if by_name else last_name(node.func)
    return TaskCreation(node, function) if name in _RETURNING_TASK else None


def retentions_of(function: Function, node: ast.expr) -> list[Retention]:
    """What happens to the value of an expression, as if a task were created there."""
    return list(_retentions(function, node))


def is_loop(function: Function, node: ast.expr) -> bool:
    """Whether an expression is an event loop, by its name or by where it comes from."""
    if function.last_name_of(node) in _LOOP_NAMES:
        return True
    if isinstance(node, ast.Call) and function.last_name_of(node.func) in _LOOP_GETTERS:
        return True
    return bool(function.roots(node) & _LOOP_ROOTS)


def creates_task(function: Function, func: ast.expr) -> bool:
    """Whether an expression names a function that creates a task which nothing tracks."""
    # Evaluated for every call of a file, so the cheap tests come first.
    if isinstance(func, ast.Name):
        return function.module.names.known(func.id) in _PLAIN or _is_named_creator(function, func)
    if not isinstance(func, ast.Attribute) or func.attr not in _LAST:
        return False
    if function.name_of(func) in _PLAIN:
        return True
    return func.attr in _METHODS and is_loop(function, func.value)


def _is_named_creator(function: Function, func: ast.Name) -> bool:
    """Whether a name is assigned once: `spawn = asyncio.create_task`."""
    if not _names_creator(function.module):
        return False
    where: Function | None = function
    while where is not None and func.id not in where.local_names:
        if func.id in where.parameters:
            return False
        where = where.outer
    where = where or function.module.body
    match where.assigned.get(func.id):
        case [ast.Attribute() as named]:
            return creates_task(where, named)
    return False


@remembered
def _names_creator(module: Module) -> bool:
    text = module.source.text
    return any(
        not (text[: found.start()][-1:].isalnum() or text[: found.start()].endswith("_"))
        for each in _NAMED
        for found in each.finditer(text)
    )


def _creates_tracked(call: ast.Call) -> bool:
    """Whether an owner makes a task of its argument: a group, a scope, a framework."""
    return isinstance(call.func, ast.Attribute) and call.func.attr in _TRACKING


# --- what keeps it --------------------------------------------------------------------------------


def _retentions(
    function: Function, node: ast.expr, seen: frozenset[str] = frozenset()
) -> Iterator[Retention]:
    """What happens to the value of `node`; `seen` are the local names already followed."""
    parents = function.module.parents
    parent = parents.get(node)
    match parent:
        case ast.Expr() | None:
            yield Retention("dropped", node=parent)
        case ast.Await():
            yield Retention("awaited", node=parent)
        # The value of a lambda goes to whatever calls it.
        case ast.Return() | ast.Yield() | ast.Lambda():
            yield Retention("returned", node=parent)
        case ast.Assign(targets):
            for target in targets:
                yield from _retained_by_target(function, target, parent, seen)
        case ast.AnnAssign(target) | ast.AugAssign(target):
            yield from _retained_by_target(function, target, parent, seen)
        case ast.NamedExpr(target):
            yield from _retained_by_target(function, target, parent, seen)
            # `(task := create_task(...))` as a statement keeps the name and drops the value.
            yield from (
                each for each in _retentions(function, parent, seen) if each.how != "dropped"
            )
        case ast.Call():
            yield from _retained_by_call(function, node, parent)
        case ast.keyword():
            yield Retention("passed", node=parent)
        case ast.Tuple(elements) | ast.List(elements) if _own_targets(parents.get(parent), parent):
            for parts in _own_targets(parents.get(parent), parent):
                yield from _retained_by_target(
                    function, parts[elements.index(node)], parents[parent], seen
                )
        # In a display or a comprehension the task has the fate of the whole.
        case ast.Dict() | ast.List() | ast.Tuple() | ast.Set() | ast.Starred():
            yield from _retentions(function, parent, seen)
        case ast.IfExp() | ast.BoolOp():
            yield from _retentions(function, parent, seen)
        # `create_task(...).add_done_callback(...)` returns nothing, and the task keeps the callback.
        case ast.Attribute(attr="add_done_callback" | "set_name") if isinstance(node, ast.Call):
            yield Retention("dropped", node=parent)
        case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
            yield from _retentions(function, parent, seen)
        case _:
            # Not understood, so it may be kept: no finding.
            yield Retention("passed", node=parent)


def _own_targets(node: ast.AST | None, value: ast.Tuple | ast.List) -> list[list[ast.expr]]:
    """The targets of `a, b = x, y`, where each gets its own value; none where one gets all."""
    match node:
        case ast.Assign(targets) if node.value is value:
            found = [each.elts for each in targets if isinstance(each, (ast.Tuple, ast.List))]
            return [each for each in found if len(each) == len(value.elts)]
    return []


def _retained_by_target(
    function: Function, target: ast.expr, node: ast.AST, seen: frozenset[str]
) -> Iterator[Retention]:
    match target:
        case ast.Name(name):
            # The name and all that happens to it: `t = create_task(...); self._tasks.add(t)` is both
            # a local and an element.
            yield Retention("local", name, node=node)
            if not seen:
                yield from _retained_by_first(function, name)
            elif name not in seen:
                yield from _retained_by_local(function, name, seen | {name})
        case ast.Attribute() if attr := function.own_attribute(target):
            yield Retention("attribute", f"self.{attr}", node=node)
        case ast.Subscript(value, key):
            yield Retention("element", function.name_of(value), key, node)
        case _:
            yield Retention("outside", function.name_of(target), node=node)


def _retained_by_call(function: Function, node: ast.expr, call: ast.Call) -> Iterator[Retention]:
    match call.func:
        case ast.Attribute(receiver, attr) if attr in _ADDING and node in call.args:
            key = call.args[0] if attr == "setdefault" and len(call.args) > 1 else None
            yield Retention("element", function.name_of(receiver), key, call)
        case ast.Name(name) if name in INSPECTING:
            yield Retention("dropped", node=call)
        case _:
            yield Retention("passed", function.name_of(call.func), node=call)


@remembered
def _retained_by_first(function: Function, name: str) -> tuple[Retention, ...]:
    """The same for the first name, which many tasks of a function may have one after the other."""
    return tuple(_retained_by_local(function, name, frozenset({name})))


def _retained_by_local(function: Function, name: str, seen: frozenset[str]) -> Iterator[Retention]:
    """What else happens to a local name that holds the task, here and in functions inside."""
    for where, node in function.reads(name):
        for each in _retentions(where, node, seen):
            if each.how == "dropped" or isinstance(each.node, (ast.Attribute, ast.Expr)):
                continue  # `task.add_done_callback(...)` keeps nothing
            if not (each.how == "local" and each.name in seen):
                yield each
