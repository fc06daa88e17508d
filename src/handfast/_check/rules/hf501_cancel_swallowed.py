"""HF501: a task catches its own cancellation and continues.

Reported: a handler that catches a `CancelledError` inside a loop and lets the loop continue; a bare
`except` or `except BaseException` that drops it in a function that others await, or in a loop with a
flag; a handler that names it beside errors and logs all of them as a failure, or that names it alone
and raises another error in its place. Pedantic: where a
handler names it and ends, where the loop has a flag, at the end of what may be the body of a task, in
close methods, where only cleanup is awaited, and where the handler returns a result that by its name is
that of a cancellation.
Not reported, because it is right: a task that was cancelled is joined; the error is raised again,
stored or passed on; nothing in the `try` suspends; the function is the entry point of the program;
`uncancel()` is called.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from handfast._check.finding import Finding
from handfast._check.model.syntax.ancestors import (
    ancestors,
    calls_in,
    enclosing_loop,
    is_in_finally,
    is_true,
    last_name,
    nodes_in,
)
from handfast._check.model.syntax.call_graph import resolve_function
from handfast._check.model.syntax.control_flow import Step
from handfast._check.model.syntax.function import Function
from handfast._check.model.syntax.memo import remembered
from handfast._check.model.syntax.module import Module
from handfast._check.model.tasks.cancel_catches import (
    BROAD,
    CancelCatch,
    Repeats,
    cancel_catches,
    entry_points,
)
from handfast._check.model.tasks.method_roles import is_close_name
from handfast._check.model.vocabulary import LOGGING
from handfast._check.rules.rule import Rule, line_of, related, report

_FAILURE = LOGGING - {"debug", "info", "log"}
# Errors that end what the task does, by their names: the code has an idea of a cancellation of its own.
_ENDING = re.compile(
    r"(?i)cancel|abort|interrupt|exit|stop|timeout|timedout|http|shutdown|terminat"
)


def check(module: Module) -> Iterator[Finding]:
    for function in module.functions:
        for catch in cancel_catches(function) if function.is_async else ():
            waits = catch.own_waits()
            if not waits or _is_exempt(function):
                continue
            if catch.swallows():
                yield _finding(catch, waits)
            elif raised := catch.translates():
                yield from _translated(catch, waits, raised)


@remembered
def _is_exempt(function: Function) -> bool:
    """Whether nothing above could have cancelled it, or it counts its cancellations itself."""
    return function in entry_points(function.module) or any(
        isinstance(call.func, ast.Attribute) and call.func.attr in ("uncancel", "cancelling")
        for call in function.calls
    )


def _finding(catch: CancelCatch, waits: list[ast.AST]) -> Finding:
    function = catch.function
    module = function.module
    again = catch.repeats(waits)
    callers = _awaited_by(function)
    sure = again == "always" or (not again and _is_dropped_for_others(catch, callers))
    sure = sure or _is_blind(catch, again) or _is_logged_as_failure(catch)
    if is_close_name(function.name) or _is_last_effort(catch, waits) or _returns_result(catch):
        sure = False
    places = [related(module, waits[0], "the CancelledError is raised at this await")]
    if sure and not again and callers:
        places.append(related(module, callers[0], "the caller continues as well"))
    return report(
        "HF501",
        module,
        catch.head,
        f"{_described(catch)} catches the task's own CancelledError, raised at the `await` on line "
        f"{line_of(waits[0])}, {'and the loop continues' if again else 'and the task continues'}: "
        "`cancel()` does not end it; let CancelledError propagate",
        *places,
        pedantic=not sure,
    )


def _translated(catch: CancelCatch, waits: list[ast.AST], raised: str) -> Iterator[Finding]:
    """`except CancelledError: raise OtherError`: what awaits this takes it for a failure."""
    function = catch.function
    if _ENDING.search(raised) or is_close_name(function.name):
        return
    yield report(
        "HF501",
        function.module,
        catch.head,
        f"{_described(catch)} replaces the task's own CancelledError, raised at the `await` on line "
        f"{line_of(waits[0])}, with `{raised}`: the callers take it for a failure and continue, so "
        "`cancel()` does not end the task; let CancelledError propagate",
        related(function.module, waits[0], "the CancelledError is raised at this await"),
    )


def _described(catch: CancelCatch) -> str:
    names = ", ".join(sorted(catch.kinds - {""}))
    if catch.handler is None:
        return f"`suppress({names})`"
    return "A bare `except`" if "" in catch.kinds else f"`except {names}`"


def _returns_result(catch: CancelCatch) -> bool:
    """Whether the handler tells the caller of the cancellation: `return cancelled_result(context)`."""
    return catch.handler is not None and any(
        isinstance(each, ast.Return)
        and isinstance(each.value, ast.Call)
        and "cancel" in last_name(each.value.func).lower()
        for each in nodes_in(catch.handler.body)
    )


# --- how certain it is ---------------------------------------------------------------------------


def _is_dropped_for_others(catch: CancelCatch, callers: list[ast.Call]) -> bool:
    """Whether it is dropped in a function that others await and that is no body of a task."""
    if not callers or _is_passed_on(catch.function):
        return False
    if catch.kinds & BROAD or {"Exception", "CancelledError"} <= catch.kinds:
        return True
    # A handler that names it may have a reason; but a caller that goes on waiting was to be cancelled.
    module = catch.function.module
    return any(_is_in_endless_loop(module, each) or _waits_again(module, each) for each in callers)


def _is_blind(catch: CancelCatch, again: Repeats) -> bool:
    """Whether a handler of everything just continues the loop: only the flag of the loop ends it, and
    `cancel()` does not set that."""
    handler = catch.handler
    if again != "maybe" or handler is None or not catch.kinds & BROAD or catch.may_end:
        return False
    return isinstance(enclosing_loop(catch.function, catch.around), ast.While) and all(
        isinstance(each, (ast.Pass, ast.Continue, ast.Expr)) for each in handler.body
    )


def _is_logged_as_failure(catch: CancelCatch) -> bool:
    """Whether it is named beside errors, and all of them are logged as a failure."""
    if catch.handler is None or "CancelledError" not in catch.kinds or len(catch.kinds) < 2:
        return False
    return any(
        isinstance(call.func, ast.Attribute) and call.func.attr in _FAILURE
        for call in calls_in(catch.handler.body)
    )


def _is_in_endless_loop(module: Module, call: ast.AST) -> bool:
    return any(
        isinstance(up, ast.While) and is_true(up.test)
        for up in ancestors(module.function_around(call), call)
    )


def _waits_again(module: Module, call: ast.Call) -> bool:
    """Whether the caller waits for something else after this call."""
    flow = module.function_around(call).flow
    start = flow.of(call)
    seen: set[Step] = set()
    todo = list(start.after) if start is not None else []
    while todo:
        step = todo.pop()
        if step not in seen:
            seen.add(step)
            todo += step.after
    return any(step.suspends for step in seen - {start})


def _is_passed_on(function: Function) -> bool:
    """Whether the function is also passed to a call, perhaps as the body of a task: there a dropped
    CancelledError ends the task, if not as cancelled."""
    parents = function.module.parents
    for where in (function.module.body, *function.module.functions):
        for node in where.nodes:
            if not isinstance(node, (ast.Name, ast.Attribute)) or last_name(node) != function.name:
                continue
            if not isinstance(node.ctx, ast.Load):
                continue
            parent = parents.get(node)
            if not isinstance(parent, ast.Call) or parent.func is not node:
                return True
            if not isinstance(parents.get(parent), (ast.Await, ast.Attribute)):
                return True
    return False


def _is_last_effort(catch: CancelCatch, waits: list[ast.AST]) -> bool:
    """Whether only close methods are awaited, or it is in a `finally`, after which the first error
    propagates."""
    calls = [each.value for each in waits if isinstance(each, ast.Await)]
    names = [catch.function.last_name_of(each.func) for each in calls if isinstance(each, ast.Call)]
    if len(names) == len(waits) and all(map(is_close_name, names)):
        return True
    return is_in_finally(catch.function, catch.around)


def _awaited_by(function: Function) -> list[ast.Call]:
    """The places in the module that await a call of this function."""
    awaiting = _awaited_functions(function.module).get(function, [])
    return [call for other, call in awaiting if other is not function]


@remembered
def _awaited_functions(module: Module) -> dict[Function, list[tuple[Function, ast.Call]]]:
    """The awaited calls of a module, each with the function around it, by the function they call."""
    found: dict[Function, list[tuple[Function, ast.Call]]] = {}
    for other, call in module.calls():
        if isinstance(module.parents.get(call), ast.Await):
            for each in resolve_function(other, call.func):
                found.setdefault(each, []).append((other, call))
    return found


RULE = Rule(
    "HF501",
    check,
    needs=("CancelledError|BaseException|except:|except :|get_cancelled_exc_class",),
)
