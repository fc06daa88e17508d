"""HF542: a resource is entered in one task and left in another.

Found: an attribute whose `__aenter__` is called in one method and whose `__aexit__` in another, or
an exit stack that a scope is put on in one method and that is closed in another. By default only if
it is known to be bound to its task: a task group, a cancel scope, a client built on them. What is
not known may be left anywhere: pedantic.

Silent: enter and leave are the class's own `__aenter__` and `__aexit__` or called by them, one of the
two calls the other, or one task of the module does both.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from holdfast.check.finding import Finding
from holdfast.check.model.function import Function
from holdfast.check.model.module import Class, Module
from holdfast.check.model.roles import reached_from, tasks_of
from holdfast.check.model.scopes import scope_of
from holdfast.check.rules.rule import Rule, found, related

__all__ = ["RULE"]

_STACK_IN = {"enter_async_context"}
_LEAVES = {"__aexit__", "aclose"}
_STEPS = {"__aenter__", *_STACK_IN, *_LEAVES}


@dataclass(frozen=True, slots=True, eq=False)
class _Step:
    """One entering or leaving of what an attribute holds."""

    attr: str
    function: Function
    node: ast.Call
    scope: str
    """The scope that is entered; empty if that is not known."""
    how: str


def check(module: Module) -> Iterator[Finding]:
    text = module.source.text
    if "__aenter__" not in text and "enter_async_context" not in text:
        return
    for klass in module.classes.values():
        steps = [step for function in klass.functions for step in _steps(klass, function)]
        for attr in dict.fromkeys(step.attr for step in steps if step.how != "leave"):
            finding = _judge(klass, [step for step in steps if step.attr == attr])
            if finding is not None:
                yield finding


def _steps(klass: Class, function: Function) -> Iterator[_Step]:
    for call in function.calls:
        if not isinstance(call.func, ast.Attribute) or call.func.attr not in _STEPS:
            continue
        attr = _attribute(function, call.func.value)
        if not attr:
            continue
        method = call.func.attr
        if method == "__aenter__":
            yield _Step(attr, function, call, _scope_in(klass, attr), "enter")
        elif method in _STACK_IN and call.args:
            yield _Step(attr, function, call, scope_of(function, call.args[0]), "stack")
        elif method in _LEAVES:
            yield _Step(attr, function, call, "", "leave")


def _attribute(function: Function, node: ast.expr) -> str:
    """The attribute that an expression is, or that a local name is taken from or stored in."""
    match node:
        case ast.Attribute(ast.Name(owner), attr) if owner and owner == function.self_here:
            return attr
        case ast.Name(name):
            for each in function.nodes:
                match each:
                    case ast.Assign(targets, ast.Name(given)) if given == name:
                        return next(
                            filter(
                                None,
                                (
                                    _attribute(function, t)
                                    for t in targets
                                    if isinstance(t, ast.Attribute)
                                ),
                            ),
                            "",
                        )
                    case ast.Assign([ast.Name(target)], ast.Attribute() as value) if target == name:
                        return _attribute(function, value)
    return ""


def _scope_in(klass: Class, attr: str) -> str:
    """The scope that an attribute is given anywhere in the class."""
    for function in klass.functions:
        for node in function.nodes:
            match node:
                case ast.Assign(targets, value) if any(
                    _attribute(function, each) == attr
                    for each in targets
                    if isinstance(each, ast.Attribute)
                ):
                    name = scope_of(function, value)
                    if name:
                        return name
    return ""


def _judge(klass: Class, steps: list[_Step]) -> Finding | None:
    enters = [step for step in steps if step.how != "leave"]
    leaves = [step for step in steps if step.how == "leave"]
    enter = next((step for step in enters if step.scope), enters[0])
    if enter.how == "stack" and not enter.scope:
        return None
    if not leaves or any(step.function is enter.function for step in leaves):
        return None
    if any(_is_pair(klass, enter.function, leave.function) for leave in leaves):
        return None
    return _finding(klass, enter, leaves[0])


def _finding(klass: Class, enter: _Step, leave: _Step) -> Finding | None:
    tasks = list(_tasks_with(klass, enter.function, leave.function))
    if any(both for _, both in tasks):
        return None
    module = klass.module
    what = f"`self.{enter.attr}`" + (f" (`{enter.scope}`)" if enter.scope else "")
    places = [related(module, enter.node, "entered here")]
    places += [related(module, call, "one of the two runs in this task") for call, _ in tasks]
    return found(
        "HF542",
        module,
        leave.node,
        f"{what} is entered in `{enter.function.name}` on line {enter.node.lineno} and left in "
        f"`{leave.function.name}`: as soon as two tasks share the object, it is left in another task "
        "than it was entered in",
        *places,
        pedantic=not enter.scope,
    )


def _is_pair(klass: Class, enter: Function, leave: Function) -> bool:
    """Whether they are, or are called by, the class's own way of being entered and left, or one of
    them calls the other."""
    if enter in reached_from(leave) or leave in reached_from(enter):
        return True
    own = klass.all_methods
    first, last = own.get("__aenter__"), own.get("__aexit__")
    if first is None or last is None:
        return False
    return enter in reached_from(first) and leave in reached_from(last)


def _tasks_with(klass: Class, enter: Function, leave: Function) -> Iterator[tuple[ast.Call, bool]]:
    """The tasks of the module that reach one of the two, each with whether they reach both."""
    for made in tasks_of(klass.module):
        reached = {each for body in made.bodies for each in reached_from(body)}
        if enter in reached or leave in reached:
            yield made.call, enter in reached and leave in reached


RULE = Rule("HF542", check)
