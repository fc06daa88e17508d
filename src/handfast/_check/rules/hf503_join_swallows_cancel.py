"""HF503: a waiter takes its own cancellation for that of the task or future that it awaits.

Reported: a handler (or `suppress`) catches the CancelledError of an `await` of a task or future that
other code holds, and does not raise it again: the waiter continues with its work, returns something, or
raises another error. Where the function has cancelled the task itself, only if it then creates another
one or is in a loop: it starts over and cannot be cancelled. Pedantic: elsewhere, and where the function
ends, unless it is a close method: the caller of that continues.
Not reported: where `cancelling()`, `uncancel()`, `cancelled()` or `done()` tell the two apart; entry
points of programs; in a handler that raises its own error; in a loop `while not x.done()` that waits
until the end whatever comes; awaits of coroutines, which HF501 checks.
"""

from __future__ import annotations

import ast
import re
import sys
from bisect import bisect_right
from collections.abc import Iterator

from handfast._check.finding import Finding
from handfast._check.model.syntax.ancestors import (
    enclosing_loop,
    is_in_finally,
    last_name,
    nodes_in,
)
from handfast._check.model.syntax.function import Function
from handfast._check.model.syntax.memo import remembered
from handfast._check.model.syntax.module import Module
from handfast._check.model.tasks.awaited import awaits_in, creation_of, source_attribute
from handfast._check.model.tasks.cancel_catches import CancelCatch, cancel_catches, entry_points
from handfast._check.model.tasks.creation import any_creation_in
from handfast._check.model.tasks.method_roles import is_close_name
from handfast._check.rules.rule import Rule, line_of, related, report

_COUNTING = {"cancelling", "uncancel", "current_task"}
# Before the `await` they only tell whether there is something to wait for.
_ASKING = {"cancelled", "done"}
_TASK_NAME = re.compile(r"(?i)(?:.*_)?(?:task|fut|future|waiter)(?:_\w+)?")
_TASKS_NAME = re.compile(r"(?i)(?:self\.)?\w*(?:tasks|futures|futs|waiters)")
_PASSING = {"wait_for", "shield", "gather"}


def check(module: Module) -> Iterator[Finding]:
    for function in module.functions:
        for catch in cancel_catches(function) if function.is_async else ():
            wait = next((each for each in _joins(catch)), None)
            if wait is None or _tells_apart(catch, wait) or function in entry_points(module):
                continue
            if _waits_it_out(catch):
                continue
            ends = catch.translates()
            if ends or catch.swallows():
                yield _finding(catch, wait, ends)


def _joins(catch: CancelCatch) -> Iterator[ast.Await]:
    """The awaits of held tasks and futures, if there is nothing else to wait for in the block."""
    if not catch.kinds & {"CancelledError", "BaseException", ""} or catch.is_raised_around():
        return
    for each in awaits_in(catch.around.body):
        if isinstance(each, ast.Await) and not catch.is_caught_inside(each):
            if _is_task(catch.function, each.value):
                yield each


def _waited(node: ast.expr) -> ast.expr:
    """What is waited for inside `wait_for` and its like."""
    match node:
        case ast.Call(func, [first, *_]) if last_name(func) in _PASSING:
            return _waited(first)
    return node


def _is_task(function: Function, node: ast.expr) -> bool:
    match node:
        case ast.Call(func, [first, *_]) if last_name(func) in _PASSING:
            return _is_task(function, first)
        case ast.Name(name):
            if creation_of(function, node) is not None or _creates_future(function, node):
                return True
            known = function.assigned.get(name)
            if not known:
                return _TASK_NAME.fullmatch(name) is not None
            return any(map(_TASKS_NAME.fullmatch, function.roots(node)))
        case ast.Starred(value):
            return any(map(_TASKS_NAME.fullmatch, function.roots(value)))
        case ast.Attribute() | ast.Subscript():
            attr = source_attribute(function, node) or last_name(node)
            return creation_of(function, node) is not None or bool(_TASK_NAME.fullmatch(attr))
    return False


def _creates_future(function: Function, node: ast.expr) -> bool:
    return any(root.endswith("create_future()") for root in function.roots(node))


def _tells_apart(catch: CancelCatch, wait: ast.Await) -> bool:
    function = catch.function
    telling = _telling(function)
    if not telling:
        return False
    waited = {function.name_of(each) for each in ast.walk(wait.value) if isinstance(each, ast.expr)}
    caught = catch.around.body[-1].end_lineno or 0
    # A test after the next `await` is about that one.
    later = _await_lines(function)
    at = bisect_right(later, caught)
    last = later[at] if at < len(later) else sys.maxsize
    return any(
        isinstance(node, ast.Name)
        or node.attr in _COUNTING
        or (caught < node.lineno <= last and function.name_of(node.value) in waited)
        for node in telling
    )


@remembered
def _await_lines(function: Function) -> list[int]:
    return sorted(each.lineno for each in function.nodes if isinstance(each, ast.Await))


def _waits_it_out(catch: CancelCatch) -> bool:
    """`while not future.done(): try: await waiter; except CancelledError: continue`."""
    loop = enclosing_loop(catch.function, catch.around)
    return (
        isinstance(loop, ast.While)
        and not catch.may_end
        and any(
            isinstance(each, ast.Attribute) and each.attr == "done" for each in ast.walk(loop.test)
        )
    )


@remembered
def _telling(function: Function) -> tuple[ast.Attribute | ast.Name, ...]:
    """Where a function counts cancellations, or asks whether something has ended."""
    return tuple(
        node
        for node in function.nodes
        if (isinstance(node, ast.Attribute) and node.attr in _COUNTING | _ASKING)
        or (isinstance(node, ast.Name) and node.id in _COUNTING)
    )


def _finding(catch: CancelCatch, wait: ast.Await, raised: str) -> Finding:
    function = catch.function
    module = function.module
    if catch.cancels_before(_waited(wait.value)):
        sure = not is_close_name(function.name) and (_loops(catch) or _starts_another(catch))
    else:
        # A close method is no body of a task: its caller continues.
        sure = bool(raised) or _goes_on(catch) or is_close_name(function.name)
    if is_in_finally(function, catch.around):
        sure = False  # the first error continues after the `finally`
    happens = f"it raises `{raised}`" if raised else "the function continues"
    return report(
        "HF503",
        module,
        catch.head,
        f"If the waiter itself is cancelled at the `await` on line {line_of(wait)}, this takes it for "
        f"the end of the awaited task, and {happens}: raise the CancelledError again if "
        "`asyncio.current_task().cancelling()`, or wait with `asyncio.wait([...])`",
        related(module, wait, "both cancellations arrive here"),
        pedantic=not sure,
    )


def _goes_on(catch: CancelCatch) -> bool:
    """Whether the function does more than to end: it returns something, raises, or suspends again."""
    function = catch.function
    if _returns_something(function):
        return True
    return not catch.may_end and any(
        isinstance(step.stmt, ast.Raise)
        or (step.suspends and not isinstance(step.stmt, ast.AsyncWith))
        for step in catch.steps_after()
    )


@remembered
def _returns_something(function: Function) -> bool:
    return any(isinstance(each, ast.Return) and not _is_none(each.value) for each in function.nodes)


def _is_none(node: ast.expr | None) -> bool:
    return node is None or (isinstance(node, ast.Constant) and node.value is None)


def _starts_another(catch: CancelCatch) -> bool:
    """Whether a task is created after the catch: in a close method, that was the last one."""
    after = catch.steps_after()
    function = catch.function
    return any(
        any_creation_in(function, call) and function.flow.of(call) in after
        for call in function.calls
    )


def _loops(catch: CancelCatch) -> bool:
    """Whether the waiter starts over: a loop around it continues after the catch."""
    loop = enclosing_loop(catch.function, catch.around)
    if not isinstance(loop, ast.While) or catch.may_end:
        return False
    return bool(
        catch.repeats([each for each in nodes_in(loop.body) if isinstance(each, ast.Await)])
    )


RULE = Rule(
    "HF503",
    check,
    needs=("CancelledError|BaseException|except:|except :", "await"),
)
