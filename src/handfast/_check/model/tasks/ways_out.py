"""Where an exception leaves a function while a task of it runs, past everything that ends the task."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from handfast._check.model.operations.guards import enclosing_steps
from handfast._check.model.syntax.ancestors import TRY, contains, last_name, nodes_in, steps_up
from handfast._check.model.syntax.control_flow import Step
from handfast._check.model.syntax.function import Function
from handfast._check.model.syntax.handlers import cancel_handlers
from handfast._check.model.tasks.creation import TaskCreation

# Waiting for a task in one of these does not pass a cancellation on to it.
_NOT_CANCELLING = {"wait", "shield", "as_completed"}


def ends_task(function: Function, use: ast.AST) -> bool:
    """Whether what is done with the task ends it, also when that is interrupted."""
    parents = function.module.parents
    up = parents.get(use)
    while isinstance(up, ast.expr) and not isinstance(up, ast.Await):
        if isinstance(up, ast.Call) and last_name(up.func) in _NOT_CANCELLING:
            return False
        up = parents.get(up)
    return True


def ways_past(creation: TaskCreation, ends: list[ast.AST]) -> Iterator[Step]:
    """The steps that suspend while the task may run, and from which an exception skips every end."""
    function = creation.function
    flow = function.flow
    start = flow.of(creation.call)
    if not flow.reaches(start, flow.end):
        return  # an endless loop has no way on which all goes well
    ending = enclosing_steps(function, ends, [creation.call])
    for step in _while_running(start, ending):
        if step.suspends and step not in ending and not is_covered(function, step.stmt, ends):
            skipped = enclosing_steps(function, ends, [step.stmt])
            if flow.reaches(step, flow.raised, skipped):
                yield step


def _while_running(start: Step | None, ending: set[Step]) -> list[Step]:
    """The steps that follow a step that has not failed, up to the ends, in the order of the source."""
    found: dict[Step, None] = {}
    todo = list(start.after) if start is not None else []
    while todo:
        step = todo.pop()
        if step not in found and step is not start:
            found[step] = None
            if step not in ending:
                todo += _next_steps(step)
    # First those that are written after it: the others are ends of blocks and the next rounds of loops.
    line = _line(start) if start is not None else 0
    return sorted(found, key=lambda each: (_line(each) < line, _line(each)))


def _next_steps(step: Step) -> Iterator[Step]:
    yield from step.after
    # What `timer.cancel()` could raise before the cancel in a `finally` is no way out.
    if step.suspends:
        yield from step.cancelling
        # `asyncio.wait` returns the errors of the tasks: nothing but a cancellation leaves it.
        if not _is_wait(step.stmt):
            yield from step.raising


def _is_wait(stmt: ast.AST) -> bool:
    match stmt:
        case ast.Assign(value=ast.Await(ast.Call(func))) | ast.Expr(ast.Await(ast.Call(func))):
            return ast.unparse(func) == "asyncio.wait"
    return False


def _line(step: Step) -> int:
    return getattr(step.stmt, "lineno", 0)


def is_covered(function: Function, node: ast.AST, ends: list[ast.AST]) -> bool:
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
