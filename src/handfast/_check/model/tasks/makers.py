"""Functions of the project that create a task and return it, and the calls of them.

`task = self._start(work())` holds a task in the same way as `task = create_task(work())`, if `_start`
keeps no reference itself. One that keeps the task in a set, or passes it on, has an owner for it, and
its calls are in no rule.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from handfast._check.model.syntax.ancestors import last_name
from handfast._check.model.syntax.call_graph import resolve_anywhere, resolve_function
from handfast._check.model.syntax.function import Function
from handfast._check.model.syntax.memo import remembered
from handfast._check.model.syntax.module import Class, Module
from handfast._check.model.tasks.creation import (
    Retention,
    TaskCreation,
    creation_in,
    retentions_of,
    task_creations,
)

_HARMLESS_DECORATORS = {"staticmethod", "classmethod", "abstractmethod", "override", "final"}


@dataclass(eq=False)
class MadeTask(TaskCreation):
    """A call of a function that returns the task that it creates."""

    maker: Function
    created: TaskCreation
    """Where the maker creates it."""

    @cached_property
    def retentions(self) -> list[Retention]:
        awaited = self.function.module.parents.get(self.call)
        if not self.maker.is_async:
            return retentions_of(self.function, self.call)
        # Without an `await` there is only a coroutine, and no task yet.
        return retentions_of(self.function, awaited) if isinstance(awaited, ast.Await) else []

    @property
    def coro(self) -> ast.expr | None:
        return self._given or self.created.coro

    @property
    def runs_in(self) -> Function:
        return self.function if self._given is not None else self.maker

    @cached_property
    def _given(self) -> ast.expr | None:
        """What the task runs, if it is an argument of the call."""
        match self.created.coro:
            case ast.Name(name) if name in self.maker.parameters:
                return dict(self.maker.arguments(self.call)).get(name)
        return None


@remembered
def makers_in(module: Module) -> dict[Function, TaskCreation]:
    """The functions of a module that return a task which they create and keep nowhere, each with
    where they do."""
    found: dict[Function, TaskCreation] = {}
    for creation in task_creations(module):
        function = creation.function
        how = {each.how for each in creation.retentions}
        if isinstance(module.parents.get(creation.call), ast.IfExp):
            continue  # `return group.start(work) if group else create_task(work)`
        if "returned" in how <= {"returned", "local"} and not _is_unfit(function):
            found.setdefault(function, creation)
    return found


def _is_unfit(function: Function) -> bool:
    # What a generator yields, and what a lambda returns, goes to an unknown caller. An unknown decorator
    # may keep what the function returns.
    node = function.node
    return (
        function.is_generator
        or isinstance(node, ast.Lambda)
        or not {last_name(each) for each in node.decorator_list} <= _HARMLESS_DECORATORS
    )


def made_task(function: Function, call: ast.Call) -> MadeTask | None:
    """The task that a call returns, because the function that it calls creates it. Of a coroutine
    function it is the result of the `await`."""
    # This runs for every call of a file, so it first looks at no more than the name.
    name = last_name(call.func)
    if name not in maker_names(function.module) or creation_in(function, call) is not None:
        return None
    for callee in _callees(function, call, name):
        created = makers_in(callee.module).get(callee)
        if created is not None and callee is not function:
            return MadeTask(call, function, callee, created)
    return None


@remembered
def maker_names(module: Module) -> frozenset[str]:
    """The names of functions that may return a task: those of the file, and of the project."""
    own = {each.name for each in makers_in(module)}
    return frozenset(own if module.project is None else own | module.project.task_makers)


def _callees(function: Function, call: ast.Call, name: str) -> Iterator[Function]:
    found = list(resolve_function(function, call.func))
    project = function.module.project
    if not found and project is not None and project.makes_task(name):
        found = list(resolve_anywhere(function, call.func))
    if not found and isinstance(call.func, ast.Attribute):
        klass = _class_of(function, call.func.value)
        method = klass.method(name) if klass is not None else None
        found = [method] if method is not None else []
    yield from found


def _class_of(function: Function, node: ast.expr) -> Class | None:
    """The class of this file of which an expression is an object, or which it names."""
    module = function.module
    if isinstance(node, ast.Name) and node.id in module.classes:
        return module.classes[node.id]
    if attr := function.own_attribute(node):
        values = _assigned_to(function.klass).get(attr, []) if function.klass is not None else []
    elif isinstance(node, ast.Name):
        values = function.assigned.get(node.id, [])
    else:
        values = [node]
    # None is what it is before it is set.
    called = {_called(each) for each in values if not _is_none(each)}
    return module.classes.get(called.pop()) if len(called) == 1 else None


def _called(value: ast.expr) -> str:
    return value.func.id if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) else ""


def _is_none(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is None


@remembered
def _assigned_to(klass: Class) -> dict[str, list[ast.expr]]:
    """What the attributes of `self` are assigned in the file of the class."""
    found: dict[str, list[ast.expr]] = {}
    for part in klass.classes_in_file:
        for function in part.functions:
            for node in function.nodes:
                match node:
                    case ast.Assign(targets, value):
                        pass
                    case ast.AnnAssign(target, _, ast.expr() as value):
                        targets = [target]
                    case _:
                        continue
                for each in targets:
                    if attr := function.own_attribute(each):
                        found.setdefault(attr, []).append(value)
    return found
