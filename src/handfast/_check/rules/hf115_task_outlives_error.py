"""HF115: a function cancels its task when all goes well, and an error or a cancellation skips that.

Reported: a task that only local names hold and that the function cancels, with an `await` between from
which an exception or a cancellation leaves the function without the cancel. `asyncio.wait` cancels
nothing: if it is cancelled itself, the tasks that it was given continue. Also a task that `__aenter__`
keeps in an attribute, with an `await` after it: if that fails, `__aexit__`, which would cancel the task, is
never called.
Not reported: where a `finally`, a handler or a `with` ends the task, where the function awaits the task
there (that passes a cancellation on), where other code gets the task, and in a function that never
returns by itself.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from handfast._check.finding import Finding
from handfast._check.model.operations.guards import enclosing_steps
from handfast._check.model.operations.teardown import teardown_of
from handfast._check.model.syntax.ancestors import (
    TRY,
    ancestors,
    contains,
    last_name,
    nodes_in,
    steps_up,
)
from handfast._check.model.syntax.call_graph import awaited_from, callers
from handfast._check.model.syntax.control_flow import Step
from handfast._check.model.syntax.function import Function
from handfast._check.model.syntax.handlers import cancel_handlers
from handfast._check.model.syntax.memo import remembered
from handfast._check.model.syntax.module import Class, Module
from handfast._check.model.tasks.cancel_catches import entry_points
from handfast._check.model.tasks.creation import TaskCreation, task_creations
from handfast._check.model.tasks.local_holders import escapes, holders_of, is_only_held_locally
from handfast._check.model.tasks.owned import owned_tasks
from handfast._check.rules.rule import CREATING, Rule, line_of, related, related_in, report

_CODE = "HF115"
# Waiting for a task in one of these does not pass a cancellation on to it.
_NOT_CANCELLING = {"wait", "shield", "as_completed"}


def check(module: Module) -> Iterator[Finding]:
    """Tasks that only the way without an error ends."""
    seen: set[tuple[Function, ast.AST]] = set()
    for creation in task_creations(module):
        function = creation.function
        if not function.is_async or function in entry_points(module):
            continue
        if is_only_held_locally(creation):
            found = _left(creation)
            # Tasks that are started side by side are left together: one finding for all.
            if found is not None and (function, found[0].stmt) not in seen:
                seen.add((function, found[0].stmt))
                yield _finding(module, creation, *found)
    for klass in module.classes.values():
        if "__aenter__" in klass.methods and "__aexit__" in klass.methods:
            yield from _left_on_entry(klass)


def _left(creation: TaskCreation) -> tuple[Step, ast.Call] | None:
    """Where an exception leaves the function while the task runs, and where it is cancelled else."""
    function = creation.function
    names = holders_of(creation)
    shown = [
        (method, call)
        for name in sorted(names)
        for method, call in _end_calls(function).get(name, ())
    ]
    cancels = [call for method, call in shown if method == "cancel"]
    if not cancels:
        return None
    ends: list[ast.AST] = [call for _, call in shown]
    ends += [each for each in escapes(function, names) if _ends(function, each)]
    wait = _way_past(creation, ends)
    return (wait, cancels[0]) if wait is not None else None


def _finding(module: Module, creation: TaskCreation, wait: Step, cancel: ast.Call) -> Finding:
    return report(
        _CODE,
        module,
        creation.call,
        f"An error or a cancellation at the `await` on line {line_of(wait.stmt)} leaves "
        f"`{creation.function.name}` before it cancels this task, which then runs on: cancel it in a "
        "`finally`, or start it in a task group",
        related(module, wait.stmt, "for example one that is raised here"),
        related(module, cancel, "only cancelled here"),
    )


@remembered
def _end_calls(function: Function) -> dict[str, list[tuple[str, ast.Call]]]:
    """The calls that end a task, or read its result, which only a task that has ended has, by name."""
    found: dict[str, list[tuple[str, ast.Call]]] = {}
    for call in function.calls:
        match call.func:
            case ast.Attribute(ast.Name(name), "cancel" | "result" | "exception" as method):
                found.setdefault(name, []).append((method, call))
    return found


def _ends(function: Function, use: ast.AST) -> bool:
    """Whether what is done with the task ends it, also when that is interrupted."""
    parents = function.module.parents
    up = parents.get(use)
    while isinstance(up, ast.expr) and not isinstance(up, ast.Await):
        if isinstance(up, ast.Call) and last_name(up.func) in _NOT_CANCELLING:
            return False
        up = parents.get(up)
    return True


def _way_past(creation: TaskCreation, ends: list[ast.AST]) -> Step | None:
    """A step that suspends while the task may run, and from which an exception skips every end."""
    function = creation.function
    flow = function.flow
    start = flow.of(creation.call)
    if not flow.reaches(start, flow.end):
        return None  # an endless loop has no way on which all goes well
    ending = enclosing_steps(function, ends, [creation.call])
    for step in _while_running(start, ending):
        if step.suspends and step not in ending and not _is_covered(function, step.stmt, ends):
            skipped = enclosing_steps(function, ends, [step.stmt])
            if flow.reaches(step, flow.raised, skipped):
                return step
    return None


def _while_running(start: Step | None, ending: set[Step]) -> list[Step]:
    """The steps that follow a step that has not failed, up to the ends, in the order of the source."""
    found: dict[Step, None] = {}
    todo = list(start.after) if start is not None else []
    while todo:
        step = todo.pop()
        if step not in found and step is not start:
            found[step] = None
            if step not in ending:
                todo += step.out() if _may_raise(step) else step.after
    # First those that are written after it: the others are ends of blocks and the next rounds of loops.
    line = line_of(start.stmt) if start is not None else 0
    return sorted(found, key=lambda each: (line_of(each.stmt) < line, line_of(each.stmt)))


def _may_raise(step: Step) -> bool:
    """Whether a step does more than to read names, as `for task in (reader, writer)` does."""
    match step.stmt:
        case ast.If(test) | ast.While(test):
            parts: list[ast.AST] = [test]
        case ast.For(target):
            parts = [target]
        case ast.AnnAssign(_, _, value) if value is not None:
            parts = [value]
        case ast.Try() | ast.TryStar():  # the begin of its `finally`
            return False
        case stmt:
            parts = [stmt]
    return any(not isinstance(each, _HARMLESS) for each in nodes_in(parts))


# A step of these alone raises no error.
_HARMLESS = (
    ast.Name, ast.Constant, ast.Tuple, ast.List, ast.Assign, ast.AnnAssign, ast.IfExp, ast.Compare,
    ast.Is, ast.IsNot, ast.UnaryOp, ast.Not, ast.BoolOp, ast.boolop, ast.expr_context, ast.Pass,
    ast.Break, ast.Continue,
)  # fmt: skip


def _is_covered(function: Function, node: ast.AST, ends: list[ast.AST]) -> bool:
    """Whether a `finally` or a handler of cancellations around an `await` ends the task, or the `await`
    is in such a `finally` itself; or whether a handler keeps the cancellation."""
    for below, up in steps_up(function, node):
        if not isinstance(up, TRY):
            continue
        if _has_any(up.finalbody, ends):
            return True
        for handler in cancel_handlers(function, up) if below in up.body else ():
            if _has_any(handler.body, ends) or not contains(handler.body, ast.Raise):
                return True
    return False


def _has_any(body: list[ast.stmt], nodes: list[ast.AST]) -> bool:
    inside = {id(each) for each in nodes_in(body)}
    return any(id(each) in inside for each in nodes)


# --- __aenter__ -----------------------------------------------------------------------------------


def _left_on_entry(klass: Class) -> Iterator[Finding]:
    """Tasks that `__aenter__` leaves running if it fails itself."""
    enter, leave = klass.methods["__aenter__"], klass.methods["__aexit__"]
    inside = {each for each in awaited_from(enter) if each.klass is klass}
    for owned in owned_tasks(klass):
        cancels = teardown_of(klass, leave, owned.root).cancels
        for creation in owned.creations if cancels else ():
            function = creation.function
            if function not in inside or not _is_bare(function, creation.call):
                continue
            if function is not enter and not all(
                each is enter and _is_bare(each, call) for each, call in callers(klass, function)
            ):
                continue
            wait = _wait_after(function, creation.call)
            if wait is not None:
                yield report(
                    _CODE,
                    klass.module,
                    creation.call,
                    f"If the `await` on line {line_of(wait)} fails or is cancelled, `__aenter__` ends with "
                    f"that error, `__aexit__` is never called, and the task in `{owned.root}` runs on: "
                    "create it last, or cancel it in an `except BaseException`",
                    related(klass.module, wait, "for example an error that is raised here"),
                    related_in(
                        klass.module, cancels[0].operation.function.module,
                        cancels[0].operation.node, "only cancelled here",
                    ),
                )  # fmt: skip


def _wait_after(function: Function, node: ast.AST) -> ast.AST | None:
    """An `await` after a node, outside any `try` and `with`."""
    flow = function.flow
    start = flow.of(node)
    steps = (each for each in flow.nodes if each.suspends and flow.reaches(start, each))
    return next(
        (each.stmt for each in steps if each is not start and _is_bare(function, each.stmt)), None
    )


def _is_bare(function: Function, node: ast.AST) -> bool:
    """Whether nothing around a node sees its error."""
    if isinstance(node, (*TRY, ast.With, ast.AsyncWith)):
        return False
    return not any(isinstance(up, (*TRY, ast.AsyncWith)) for up in ancestors(function, node))


RULE = Rule(_CODE, check, needs=(CREATING, ".cancel("))
