"""HF542: a context manager is entered in one task and exited in another.

Reported: an attribute whose `__aenter__` is called in one method and whose `__aexit__` in another, or
an exit stack on which a scope is entered in one method and which is closed in another. Pedantic unless
it is known to be bound to its task: a task group, a cancel scope, a client built on them. Other
context managers may be exited anywhere. Also an exit stack that is closed in a new task; pedantic if
the task is not one of an anyio task group.
Not reported: where the two are the class's own `__aenter__` and `__aexit__` or called by them, where
one calls the other, or where one task of the module does both.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from handfast._check.finding import Finding
from handfast._check.model.syntax.ancestors import assignments, last_name
from handfast._check.model.syntax.call_graph import reached_from
from handfast._check.model.syntax.cancel_scopes import scope_of
from handfast._check.model.syntax.function import Function
from handfast._check.model.syntax.module import Class, Module
from handfast._check.model.tasks.creation import task_creations
from handfast._check.rules.rule import Rule, related, report

_STACK_IN = {"enter_async_context"}
_LEAVES = {"__aexit__", "aclose"}
_STARTING = {"create_task", "ensure_future", "start_soon", "spawn"}
_STEPS = {"__aenter__", *_STACK_IN, *_LEAVES}


@dataclass(frozen=True, slots=True, eq=False)
class _Step:
    """One enter or exit of the context manager in an attribute."""

    attr: str
    function: Function
    node: ast.Call
    scope: str
    """The name of the scope that is entered; empty if that is not known."""
    how: str


def check(module: Module) -> Iterator[Finding]:
    for klass in module.classes.values():
        steps = [step for function in klass.functions for step in _steps(klass, function)]
        for attr in dict.fromkeys(step.attr for step in steps if step.how != "leave"):
            finding = _evaluate(klass, [step for step in steps if step.attr == attr])
            if finding is not None:
                yield finding
    if "AsyncExitStack" in module.source.text:
        yield from _closed_in_task(module)


def _closed_in_task(module: Module) -> Iterator[Finding]:
    """`start_soon(stack.aclose)`: whatever was entered on the stack is exited in the new task."""
    for function, call in module.calls():
        if last_name(call.func) not in _STARTING or not call.args:
            continue
        given = call.args[0].func if isinstance(call.args[0], ast.Call) else call.args[0]
        match given:
            case ast.Attribute(stack, method) if method in _LEAVES and _is_stack(function, stack):
                yield report(
                    "HF542",
                    module,
                    call,
                    f"`{function.name_of(stack)}` is closed in a task of its own, and the scopes that "
                    "were entered on it belong to the task that entered them: close it there",
                    # What is entered on a stack is seldom known. With anyio's task groups it is
                    # usually bound to its task; langgraph closes one with none of these on it.
                    pedantic=last_name(call.func) != "start_soon"
                    and not _has_scope(function, stack),
                )


def _has_scope(function: Function, stack: ast.expr) -> bool:
    """Whether the function enters a scope on the stack."""
    return any(
        isinstance(call.func, ast.Attribute)
        and call.func.attr in _STACK_IN
        and call.args
        and function.name_of(call.func.value) == function.name_of(stack)
        and scope_of(function, call.args[0])
        for call in function.calls
    )


def _is_stack(function: Function, node: ast.expr) -> bool:
    """Whether an expression is an exit stack: a local one, or one that the class creates."""
    attr = function.own_attribute(node)
    if not attr:
        return any(root.endswith("AsyncExitStack()") for root in function.roots(node))
    return any(
        other.own_attribute(target) == attr and last_name(value.func) == "AsyncExitStack"
        for other in (function.klass.functions if function.klass is not None else ())
        for each in other.nodes
        for target, value in assignments(each)
        if isinstance(value, ast.Call)
    )


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
    """The attribute that an expression is, or that a local name is assigned from or stored in."""
    if not isinstance(node, ast.Name):
        return function.own_attribute(node)
    for each in function.nodes:
        match each:
            case ast.Assign(targets, ast.Name(given)) if given == node.id:
                return next(filter(None, map(function.own_attribute, targets)), "")
            case ast.Assign([ast.Name(target)], ast.Attribute() as value) if target == node.id:
                return function.own_attribute(value)
    return ""


def _scope_in(klass: Class, attr: str) -> str:
    """The scope that an attribute is given anywhere in the class."""
    for function in klass.functions:
        for node in function.nodes:
            match node:
                case ast.Assign(targets, value) if any(
                    function.own_attribute(each) == attr for each in targets
                ):
                    name = scope_of(function, value)
                    if name:
                        return name
    return ""


def _evaluate(klass: Class, steps: list[_Step]) -> Finding | None:
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
    places += [related(module, call, "this task runs one of the two") for call, _ in tasks]
    return report(
        "HF542",
        module,
        leave.node,
        f"{what} is entered in `{enter.function.name}` on line {enter.node.lineno} and exited in "
        f"`{leave.function.name}`, which another task may call: enter and exit it in one task, with "
        "`async with`",
        *places,
        pedantic=not enter.scope,
    )


def _is_pair(klass: Class, enter: Function, leave: Function) -> bool:
    """Whether they are, or are called by, the class's own `__aenter__` and `__aexit__`, or one of them
    calls the other."""
    if enter in reached_from(leave) or leave in reached_from(enter):
        return True
    own = klass.all_methods
    first, last = own.get("__aenter__"), own.get("__aexit__")
    if first is None or last is None:
        return False
    return enter in reached_from(first) and leave in reached_from(last)


def _tasks_with(klass: Class, enter: Function, leave: Function) -> Iterator[tuple[ast.Call, bool]]:
    """The tasks of the module that reach one of the two, each with whether they reach both."""
    for creation in task_creations(klass.module):
        reached = {each for body in creation.bodies for each in reached_from(body)}
        if enter in reached or leave in reached:
            yield creation.call, enter in reached and leave in reached


RULE = Rule(
    "HF542", check, any_library=True, needs=("__aenter__|enter_async_context|AsyncExitStack",)
)
