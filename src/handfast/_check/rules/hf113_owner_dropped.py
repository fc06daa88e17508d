"""HF113: an object with tasks is closed at the end of a function, and an exception skips that.

Reported: a local name that is assigned a new object of a class whose `__init__`, or a method called on
it here, starts a task; that is closed by one of its close methods in the same function; and an `await`
between, from which an exception or a cancellation leaves the function without the close.
Not reported: where other code gets the object (passed, stored, returned, in an `async with`), where
the close is in a `finally`, and where the class is not known.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from handfast._check.finding import Finding
from handfast._check.model.syntax.ancestors import is_in_finally
from handfast._check.model.syntax.control_flow import Step
from handfast._check.model.syntax.function import Function
from handfast._check.model.syntax.module import Class, Module
from handfast._check.model.tasks.creation import TaskCreation
from handfast._check.model.tasks.method_roles import close_methods, is_close_name
from handfast._check.model.tasks.owned import owned_tasks
from handfast._check.rules.rule import CREATING, Rule, line_of, related, related_in, report

_CODE = "HF113"
_CLOSING = (
    "close(|stop(|shutdown|shut_down|kill|terminate|disconnect|clean|tear|dispose|release|cancel|finish"
    "|exit(|destroy|unload|join|drain|end(|quit("
)


def check(module: Module) -> Iterator[Finding]:
    """Objects whose close an exception skips."""
    for function in module.functions:
        if function.is_async:
            for node in function.nodes:
                match node:
                    case ast.Assign([ast.Name(name)], ast.Call() as call):
                        yield from _skipped_close(module, function, name, call)


def _skipped_close(
    module: Module, function: Function, name: str, call: ast.Call
) -> Iterator[Finding]:
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
    if started is None or not closes or any(is_in_finally(function, each) for each in closes):
        return
    wait = _path_past(function, call, closes)
    if wait is None:
        return
    yield report(
        _CODE,
        module,
        call,
        f"`{name}` starts a task, and an exception or a cancellation on line {line_of(wait.stmt)} leaves "
        f"`{function.name}` without closing it: close it in a `finally` or an `async with`",
        related(module, closes[-1], "an exception before this line skips it"),
        related(module, wait.stmt, "for example one that is raised here"),
        related_in(module, started.function.module, started.call, "the task is created here"),
    )


def _calls_on(function: Function, name: str) -> list[tuple[str, ast.Call]] | None:
    """The methods that are called on a local name; None if other code gets the object."""
    parents = function.module.parents
    calls: list[tuple[str, ast.Call]] = []
    for where, node in function.reads(name):
        parent = parents.get(node)
        if where is not function or not isinstance(parent, ast.Attribute):
            return None
        call = parents.get(parent)
        if isinstance(call, ast.Call) and call.func is parent:
            calls.append((parent.attr, call))
    return calls


def _started(klass: Class, methods: set[str]) -> TaskCreation | None:
    """The task that one of these methods starts and the object keeps."""
    for owned in owned_tasks(klass):
        for creation in owned.creations:
            if creation.function.name in methods:
                return creation
    return None


def _path_past(function: Function, call: ast.Call, closes: list[ast.Call]) -> Step | None:
    """A step after the creation that suspends, and from which an exception skips every close."""
    flow = function.flow
    start = flow.of(call)
    closing = {flow.of(each) for each in closes}
    for step in flow.nodes:
        if step.suspends and step is not start and step not in closing:
            if flow.reaches(start, step, closing) and flow.reaches(step, flow.raised, closing):
                return step
    return None


RULE = Rule(_CODE, check, needs=("await|async ", _CLOSING, f"{CREATING}|<objects>"))
