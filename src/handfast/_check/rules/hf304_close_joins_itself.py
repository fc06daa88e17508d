"""HF304: a task calls a method of its object which cancels or awaits that same task.

Reported: the body of a task that an object keeps awaits a close method of the object, and this method
awaits the task, or cancels it and then suspends. A task that a framework tracks counts as well. Also any
other method that cancels it, as a `flush` that cancels the timer which calls it; if that is a plain
method, only if the caller suspends after the call.
Not reported: where the method compares the task or names `current_task`, where it catches
CancelledError around the `await` (a task that has cancelled itself gets that error there), and where an
argument of the task's own call (`close(reconnect=True)`) leads past it, and where the task first
sets the attribute to None. Pedantic where the task only does so for a value of one type, which another
task may handle.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from itertools import islice

from handfast._check.finding import Finding
from handfast._check.model.operations.effects import Effect, is_itself
from handfast._check.model.operations.guards import tests_around
from handfast._check.model.operations.teardown import teardown_of
from handfast._check.model.syntax.ancestors import ancestors, last_name
from handfast._check.model.syntax.call_graph import (
    callees,
    callers,
    closure,
    reached_from,
    runs,
)
from handfast._check.model.syntax.function import Function
from handfast._check.model.syntax.module import Class, Module
from handfast._check.model.tasks.awaited import stored_creations
from handfast._check.model.tasks.cancel_catches import cancel_catches
from handfast._check.model.tasks.creation import TaskCreation
from handfast._check.model.tasks.method_roles import close_methods_in_file
from handfast._check.model.tasks.owned import bodies_in, own_tasks
from handfast._check.rules.rule import OWNING, Rule, line_of, once_per_place, related, report


@once_per_place
def check(module: Module) -> Iterator[Finding]:
    for klass in module.classes.values():
        methods = _ending_methods(klass)
        for root, creations in _tasks(klass).items() if methods else ():
            bodies = [body for creation in creations for body in bodies_in(klass, creation)]
            run = {function for body in bodies for function, _ in runs(body, klass)}
            for method in (each for each in methods if each in run):
                calls = [
                    (function, call)
                    for function, call in callers(klass, method)
                    if function in run
                    and (method.is_async or _goes_on(function, call))
                    and not _compares(function, root)
                    and not _is_cleared_before(function, call, root, bodies)
                ]
                found = (
                    (function, call, end)
                    for end in _ends(klass, method, root)
                    for function, call in calls
                    if end.operation.function.module is module
                    and not _is_led_past(method, end, call)
                )
                for function, call, end in islice(found, 1):
                    # `if isinstance(frame, StopFrame)`: perhaps this task never gets such a frame.
                    sure = not _is_by_type(function, call) and any(
                        function in closure(body, _run_for_any_type(klass)) for body in bodies
                    )
                    yield _finding(module, method, root, end, call, pedantic=not sure)


def _ending_methods(klass: Class) -> list[Function]:
    """The close methods of a class, and those that cancel something."""
    close = [each for each in close_methods_in_file(klass) if each.is_async]
    return close + [
        each
        for each in klass.methods.values()
        if each not in close and any(last_name(call.func) == "cancel" for call in each.calls)
    ]


def _is_cleared_before(
    function: Function, call: ast.AST, root: str, bodies: list[Function]
) -> bool:
    """Whether the task drops itself before it calls the method: `self._timer = None`."""
    return any(
        isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Constant)
        and node.value.value is None
        and any(each.name_of(target) == root for target in node.targets)
        and (each is not function or node.lineno < line_of(call))
        for each in {function, *bodies}
        for node in each.nodes
    )


def _run_for_any_type(klass: Class) -> Callable[[Function], Iterator[Function]]:
    """What a function runs, without what it only runs for some types of a value."""
    return lambda function: (
        callee for node, callee in callees(function, klass) if not _is_by_type(function, node)
    )


def _is_by_type(function: Function, node: ast.AST) -> bool:
    return any(
        isinstance(each, ast.Name) and each.id == "isinstance"
        for test, _ in tests_around(function, node)
        for each in ast.walk(test.test)
    )


def _tasks(klass: Class) -> dict[str, list[TaskCreation]]:
    """The tasks that an object keeps, by attribute; also those that a framework tracks, which it creates
    itself."""
    found = {owned.root: list(owned.creations) for owned in own_tasks(klass)}
    for function in klass.functions:
        for attr, creation in stored_creations(function):
            found.setdefault(f"self.{attr}", []).append(creation)
    return found


def _ends(klass: Class, method: Function, root: str) -> list[Effect]:
    """Where a method cannot continue if the task runs it."""
    ends = teardown_of(klass, method, root)
    if any(_compares(each, root) for each in reached_from(method)):
        return []
    joins = [each for each in ends.joins if _waits_for_itself(each)]
    if joins or any(map(_is_caught, ends.joins)):
        return joins
    flow = method.flow
    return [
        each
        for each in ends.cancels
        if (
            not method.is_async
            or _is_awaited_cancel(each)
            or any(step.suspends and flow.reaches(each.step, step) for step in flow.nodes)
        )
        and each.operation.function is method
        and not _is_caught(each)
    ]


def _goes_on(function: Function, call: ast.AST) -> bool:
    """Whether the function suspends after a call, and not only in the next round of a loop."""
    start = function.flow.of(call)
    return any(
        step.suspends
        and step is not start
        and line_of(step.stmt) > line_of(call)
        and isinstance(step.stmt, ast.stmt)
        and function.flow.reaches(start, step)
        for step in function.flow.nodes
    )


def _is_awaited_cancel(cancel: Effect) -> bool:
    """`await self.cancel_task(self._task)` cancels and then waits."""
    node = cancel.operation.node
    return isinstance(node, ast.Call) and isinstance(
        cancel.operation.function.module.parents.get(node), ast.Await
    )


def _is_led_past(method: Function, end: Effect, call: ast.AST) -> bool:
    """Whether the arguments of a call are constants for which a test in the method is false."""
    given = dict(method.arguments(call)) if isinstance(call, ast.Call) else {}
    for test, is_body in tests_around(method, end.node):
        negated = isinstance(test.test, ast.UnaryOp) and isinstance(test.test.op, ast.Not)
        match test.test:
            case ast.Name(name) | ast.UnaryOp(ast.Not(), ast.Name(name)):
                value = given.get(name)
                if isinstance(value, ast.Constant) and bool(value.value) is (negated is is_body):
                    return True
    return False


def _compares(function: Function, root: str) -> bool:
    """Whether a function tests which task it runs in."""
    for node in function.nodes:
        if isinstance(node, ast.Attribute | ast.Name) and last_name(node) == "current_task":
            return True
        if isinstance(node, ast.Compare) and not isinstance(node.comparators[0], ast.Constant):
            if any(is_itself(function, each, root) for each in (node.left, *node.comparators)):
                return True
    return False


def _waits_for_itself(join: Effect) -> bool:
    node, function = join.operation.node, join.operation.function
    if _is_caught(join):
        return False
    return isinstance(node, ast.Await) and (
        is_itself(function, node.value, join.root)
        or (
            isinstance(node.value, ast.Call)
            and any(is_itself(function, each, join.root) for each in node.value.args)
        )
    )


def _is_caught(effect: Effect) -> bool:
    """Whether the function catches a CancelledError there."""
    function, node = effect.operation.function, effect.operation.node
    around = {catch.around for catch in cancel_catches(function) if catch.swallows()}
    return any(up in around for up in ancestors(function, node))


def _finding(
    module: Module, method: Function, root: str, end: Effect, call: ast.AST, pedantic: bool
) -> Finding:
    does = "awaits" if end.kind == "join" else "cancels"
    cut = (
        "the method is cut short there"
        if method.is_async
        else "it is cut short at its next `await`"
    )
    return report(
        "HF304",
        module,
        end.operation.node,
        f"`{method.qualname}` {does} the task in `{root}`, and that task itself calls it on line "
        f"{line_of(call)}: {cut}; skip the task if it is "
        "`asyncio.current_task()`",
        related(method.module, call, "the task calls the close method here"),
        pedantic=pedantic,
    )


RULE = Rule("HF304", check, needs=(OWNING,))
