"""HF511: clean-up awaits, and a second cancellation ends it half-way.

Found: a `finally`, or an `__aexit__`, in which an `await` that nothing protects comes before the rest
of the clean-up. By default only with evidence of the second cancellation: the function is the body of
a task that somebody cancels and then waits for under `wait_for`, which cancels again at its time-out;
or where one cancellation is enough: what is skipped is the plain release of a lock that the function
has acquired. Without it this is pedantic: it can happen to any clean-up, and most of them take the risk.

Silent: `holdfast.shielded`, a shielded cancel scope, an inner `try` that keeps the rest, and an `await`
that is the last thing to be done.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from holdfast.check.finding import Finding
from holdfast.check.model.flow import catches_cancellation, walk_here
from holdfast.check.model.function import Function
from holdfast.check.model.module import Module
from holdfast.check.model.tasks import resolve_function
from holdfast.check.model.waits import attribute_behind, awaits_in, tasks_held_by
from holdfast.check.rules.rule import Rule, found, related

__all__ = ["RULE"]

_SAYS = {"debug", "info", "warning", "error", "exception", "log", "print", "critical"}


def check(module: Module) -> Iterator[Finding]:
    text = module.source.text
    if "finally" not in text and "__aexit__" not in text:
        return
    for function in module.functions:
        if function.is_async:
            for body in _cleanups(function):
                yield from _judge(function, body)


def _cleanups(function: Function) -> Iterator[list[ast.stmt]]:
    if function.name == "__aexit__":
        yield function.body
    for node in function.nodes:
        if isinstance(node, ast.Try) and node.finalbody:
            yield node.finalbody


def _judge(function: Function, body: list[ast.stmt]) -> Iterator[Finding]:
    for at, stmt in enumerate(body):
        wait = _unprotected(function, stmt)
        if wait is None:
            continue
        rest = next((each for each in body[at + 1 :] if _puts_away(function, each)), None)
        if rest is not None:
            yield _finding(function, wait, rest, _second_cancel(function))
        return


def _lock_left(function: Function, rest: ast.stmt) -> ast.AST | None:
    """Where the lock was acquired that the skipped statement would have released."""
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
    places = [related(module, rest, "this is skipped then")]
    who = "a second cancellation at this `await`"
    if second is not None:
        places.append(related(module, second, "the task is cancelled, and cancelled again here"))
        who = f"the second cancellation, from line {getattr(second, 'lineno', 0)},"
    taken = _lock_left(function, rest)
    if taken is not None:
        places.append(related(module, taken, "taken here, and never given back then"))
        who = "a cancellation at this `await`" if second is None else who
    return found(
        "HF511",
        module,
        wait,
        f"{who} ends the clean-up half-way: what begins on line {rest.lineno} is skipped",
        *places,
        pedantic=second is None and taken is None,
    )


def _unprotected(function: Function, stmt: ast.stmt) -> ast.AST | None:
    """The first await of a statement that a cancellation would leave it by."""
    if isinstance(stmt, ast.Try) and any(catches_cancellation(h.type) for h in stmt.handlers):
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
    return isinstance(node, ast.Call) and function.name_of(node.func) == "holdfast.shielded"


def _puts_away(function: Function, stmt: ast.stmt) -> bool:
    """Whether a statement does something, other than speak about it."""
    for each in walk_here(stmt):
        if isinstance(each, ast.Call):
            name = function.name_of(each.func).rpartition(".")[2]
            if name and name not in _SAYS:
                return True
    return False


def _second_cancel(body: Function) -> ast.AST | None:
    """Where the task that runs this is waited for under `wait_for`, after it was cancelled."""
    klass = body.klass
    if klass is None:
        return None
    attrs = {
        attr
        for attr, making in tasks_held_by(klass).items()
        for made in making
        if made.call.args
        and isinstance(made.call.args[0], ast.Call)
        and body in resolve_function(made.function, made.call.args[0].func)
    }
    for function in klass.functions if attrs else ():
        cancelled: set[str] = set()
        for call in function.calls:
            if isinstance(call.func, ast.Attribute) and call.func.attr == "cancel":
                cancelled.add(attribute_behind(function, call.func.value))
            elif function.name_of(call.func) == "asyncio.wait_for" and call.args:
                if attribute_behind(function, call.args[0]) in cancelled & attrs:
                    return call
    return None


RULE = Rule("HF511", check)
