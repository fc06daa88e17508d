"""HF511: cleanup code awaits, and a second cancellation ends it half-way.

Reported: a `finally`, or an `__aexit__`, in which an `await` that nothing protects comes before the
rest of the cleanup. Pedantic, since it can happen to any cleanup, unless there is evidence of a second
cancellation (the function is the body of a task that is cancelled and then awaited with `wait_for`,
which cancels again at its timeout), or one cancellation is enough (what is skipped is the plain
release of a lock that the function has acquired).
Not reported: `handfast.shielded`, a shielded cancel scope, an inner `try` that runs the rest, and an
`await` that is the last statement.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from handfast._check.finding import Finding
from handfast._check.model.syntax.ancestors import TRY, calls_in
from handfast._check.model.syntax.function import Function
from handfast._check.model.syntax.handlers import cancel_handlers
from handfast._check.model.syntax.module import Module
from handfast._check.model.tasks.awaited import awaits_in, source_attribute, task_attributes
from handfast._check.model.vocabulary import LOGGING
from handfast._check.rules.rule import Rule, line_of, related, report

_LOGS = LOGGING | {"print"}


def check(module: Module) -> Iterator[Finding]:
    for function in module.functions:
        if function.is_async:
            for body in _cleanups(function):
                yield from _evaluate(function, body)


def _cleanups(function: Function) -> Iterator[list[ast.stmt]]:
    if function.name == "__aexit__":
        yield function.body
    for node in function.nodes:
        if isinstance(node, TRY) and node.finalbody:
            yield node.finalbody


def _evaluate(function: Function, body: list[ast.stmt]) -> Iterator[Finding]:
    for at, stmt in enumerate(body):
        wait = _unprotected(function, stmt)
        if wait is None:
            continue
        rest = next((each for each in body[at + 1 :] if _does_cleanup(function, each)), None)
        if rest is not None:
            yield _finding(function, wait, rest, _second_cancel(function))
        return


def _lock_left(function: Function, rest: ast.stmt) -> ast.AST | None:
    """Where the lock was acquired that the skipped statement releases."""
    match rest:
        case ast.Expr(ast.Call(ast.Attribute(lock, "release"), [])):
            name = function.name_of(lock)
            for call in function.calls:
                match call.func:
                    case ast.Attribute(taken, "acquire") if name == function.name_of(taken) != "":
                        return call
    return None


def _finding(function: Function, wait: ast.AST, rest: ast.stmt, second: ast.AST | None) -> Finding:
    module = function.module
    places = [related(module, rest, "this is skipped")]
    who = "A second cancellation at this `await`"
    if second is not None:
        places.append(related(module, second, "the task is cancelled, and cancelled again here"))
        who = f"The second cancellation, from line {line_of(second)},"
    taken = _lock_left(function, rest)
    if taken is not None:
        places.append(related(module, taken, "acquired here, and not released then"))
        who = "A cancellation at this `await`" if second is None else who
    return report(
        "HF511",
        module,
        wait,
        f"{who} ends the cleanup here, and line {rest.lineno} is skipped: protect it with "
        "`handfast.shielded`, or with a `try` and `finally` around the rest",
        *places,
        pedantic=second is None and taken is None,
    )


def _unprotected(function: Function, stmt: ast.stmt) -> ast.AST | None:
    """The first await of a statement at which a cancellation leaves the statement."""
    if isinstance(stmt, TRY) and cancel_handlers(function, stmt):
        return None
    if isinstance(stmt, (ast.With, ast.AsyncWith)) and _is_protecting(stmt):
        return None
    for each in awaits_in([stmt]):
        if isinstance(each, ast.Await) and _is_shielded(function, each.value):
            continue
        return each
    return None


def _is_protecting(stmt: ast.With | ast.AsyncWith) -> bool:
    text = "".join(ast.dump(item.context_expr) for item in stmt.items)
    return "shield" in text or "CancelledError" in text or "BaseException" in text


def _is_shielded(function: Function, node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and function.name_of(node.func) == "handfast.shielded"


def _does_cleanup(function: Function, stmt: ast.stmt) -> bool:
    """Whether a statement calls something other than a logger."""
    names = (function.last_name_of(call.func) for call in calls_in([stmt]))
    return any(name and name not in _LOGS for name in names)


def _second_cancel(body: Function) -> ast.AST | None:
    """Where the task that runs this is awaited with `wait_for`, after it was cancelled."""
    klass = body.klass
    if klass is None:
        return None
    attrs = {
        attr
        for attr, creations in task_attributes(klass).items()
        if any(body in each.bodies for each in creations)
    }
    for function in klass.functions if attrs else ():
        cancelled: set[str] = set()
        for call in function.calls:
            if isinstance(call.func, ast.Attribute) and call.func.attr == "cancel":
                cancelled.add(source_attribute(function, call.func.value))
            elif function.name_of(call.func) == "asyncio.wait_for" and call.args:
                if source_attribute(function, call.args[0]) in cancelled & attrs:
                    return call
    return None


RULE = Rule("HF511", check, needs=("finally|__aexit__",))
