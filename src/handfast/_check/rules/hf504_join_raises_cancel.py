"""HF504: a task is cancelled and then awaited, and its CancelledError leaves the function.

Reported: `task.cancel()`, and then `await task` with no handler and no `suppress` around it; or a loop with
the first and one with the second. The function must be a close method, or have a rest that is skipped.
Pedantic: any other function, and a task whose coroutine is not known.
Not reported: where that coroutine, or one that it awaits, keeps the CancelledError, and where a caller
in the same file catches it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from handfast._check.finding import Finding
from handfast._check.model.operations.state_changes import block_around
from handfast._check.model.syntax.ancestors import (
    ancestors,
    contains,
    enclosing_loop,
    enclosing_tries,
    last_name,
)
from handfast._check.model.syntax.call_graph import awaited_from
from handfast._check.model.syntax.function import Function
from handfast._check.model.syntax.handlers import (
    cancel_handlers,
    catches_cancellation,
    handlers,
)
from handfast._check.model.syntax.module import Module
from handfast._check.model.tasks.awaited import creation_of
from handfast._check.model.tasks.cancel_catches import cancel_catches
from handfast._check.model.tasks.method_roles import is_close_name
from handfast._check.model.tasks.owned import bodies_in, owned_tasks
from handfast._check.rules.rule import Rule, line_of, related, report

# What may hold a task.
_HOLDERS = (ast.Name, ast.Attribute, ast.Subscript)


def check(module: Module) -> Iterator[Finding]:
    for function in module.functions:
        for node in function.nodes if function.is_async else ():
            if isinstance(node, ast.Await):
                cancel = _cancel_before(function, node)
                if cancel is None or _is_caught(function, node) or _is_expected(function):
                    continue
                bodies = _bodies(function, node)
                if not any(map(_keeps_cancel, bodies)):
                    yield _finding(function, node, cancel, bool(bodies))


def _finding(function: Function, wait: ast.Await, cancel: ast.Call, is_known: bool) -> Finding:
    rest = _skipped(function, wait)
    skipped = f", and line {line_of(rest)} is skipped" if rest is not None else ""
    return report(
        "HF504",
        function.module,
        wait,
        f"The task was cancelled on line {line_of(cancel)}, so this `await` raises its CancelledError, which "
        f"leaves `{function.name}`{skipped}: wait with `asyncio.wait([task])`, which does not raise it",
        related(function.module, cancel, "cancelled here"),
        pedantic=not is_known or not (rest is not None or is_close_name(function.name)),
    )


def _cancel_before(function: Function, wait: ast.Await) -> ast.Call | None:
    """Where the function has just cancelled the task: above in the block, or in a loop like this one."""
    stmt = function.module.statement_of(wait)
    if not isinstance(stmt, ast.Expr) or not isinstance(wait.value, _HOLDERS):
        return None
    task = ast.unparse(wait.value)
    around = function.module.parents.get(stmt)
    for each in _above(function, stmt):
        if _stores(each, task):
            return None
        found = _cancels(each, task)
        if found is not None or contains([each], ast.Await):
            return found
    if isinstance(around, ast.For) and ast.unparse(around.target) == task:
        for each in _above(function, around):
            if isinstance(each, ast.For) and ast.unparse(each.iter) == ast.unparse(around.iter):
                return _cancels(each, ast.unparse(each.target))
    return None


def _above(function: Function, stmt: ast.stmt) -> Iterator[ast.stmt]:
    """The statements above one in its block, the nearest first."""
    block = block_around(function, stmt)
    return reversed(block[: block.index(stmt)] if stmt in block else [])


def _stores(stmt: ast.stmt, task: str) -> bool:
    return any(
        isinstance(getattr(node, "ctx", None), ast.Store) and ast.unparse(node) == task
        for node in ast.walk(stmt)
    )


def _cancels(stmt: ast.stmt, task: str) -> ast.Call | None:
    """The cancel of a task in a statement that may then go on."""
    if contains([stmt], ast.Return, ast.Raise, ast.Break, ast.Continue):
        return None
    for node in ast.walk(stmt):
        match node:
            case ast.Call(ast.Attribute(value, "cancel")) if ast.unparse(value) == task:
                return node
    return None


def _is_caught(function: Function, wait: ast.Await) -> bool:
    if any(cancel_handlers(function, tried) for tried in enclosing_tries(function, wait)):
        return True
    return any(
        # `with suppress(...)`, and any other that may be like it.
        isinstance(up, ast.With)
        # The function ends with a CancelledError either way.
        or (isinstance(up, ast.ExceptHandler) and catches_cancellation(function, up.type))
        for up in ancestors(function, wait)
    )


def _bodies(function: Function, wait: ast.Await) -> list[Function]:
    """What the awaited task runs, as far as that is known; of a loop variable, what each of them runs."""
    creation = creation_of(function, wait.value)
    creations = [creation] if creation is not None else []
    loop = enclosing_loop(function, wait)
    if not creations and isinstance(loop, ast.For) and function.klass is not None:
        roots = function.roots(loop.iter)
        for owned in owned_tasks(function.klass):
            creations += owned.creations if owned.root in roots else []
    found = [bodies_in(function.klass, each) for each in creations]
    return [body for each in found for body in each] if all(found) else []


def _keeps_cancel(body: Function) -> bool:
    """Whether a coroutine may end without the CancelledError that it gets."""
    for function in awaited_from(body):
        if any(catch.handler is None for catch in cancel_catches(function)):
            return True  # `suppress`
        for handler in handlers(function):
            if catches_cancellation(function, handler.node.type) and handler.swallows:
                return True
    return False


def _is_expected(function: Function) -> bool:
    """Whether a caller in this file catches the CancelledError."""
    return any(
        last_name(call.func) == function.name
        and any(cancel_handlers(other, tried) for tried in enclosing_tries(other, call))
        for other, call in function.module.calls()
    )


def _skipped(function: Function, wait: ast.Await) -> ast.stmt | None:
    """The next statement of the function."""
    stmt: ast.AST | None = function.module.statement_of(wait)
    while isinstance(stmt, ast.stmt) and stmt is not function.node:
        block = block_around(function, stmt)
        rest = block[block.index(stmt) + 1 :] if stmt in block else []
        if rest:
            return rest[0] if not isinstance(rest[0], ast.Return) else None
        stmt = function.module.parents.get(stmt)
    return None


RULE = Rule("HF504", check, needs=(".cancel(", "await "))
