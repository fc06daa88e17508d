"""HF521: `wait_for` or `timeout` around the plain `await` of a task does not limit its duration.

At the timeout both cancel the task, and then wait until it has ended, however long that takes.
Reported where the body of the task catches cancellations, where a loop awaits the task again after the
timeout, or where a close method only signals a task of its object to end and then awaits it with a
timeout. Pedantic: any other `wait_for(task)`, also where the task is cancelled once more after the
timeout: mostly it has ended by then.
Not reported: a shielded task, and an expression that is not known to be a task.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from handfast._check.finding import Finding, Related
from handfast._check.model.operations.operations import operations
from handfast._check.model.syntax.ancestors import (
    AnyTry,
    calls_in,
    enclosing_tries,
    last_name,
    nodes_in,
)
from handfast._check.model.syntax.children import walk_here
from handfast._check.model.syntax.function import Function
from handfast._check.model.syntax.module import Module
from handfast._check.model.tasks.awaited import creation_of, source_attribute
from handfast._check.model.tasks.cancel_catches import endless_catches
from handfast._check.model.tasks.creation import TaskCreation
from handfast._check.model.tasks.method_roles import is_close_name
from handfast._check.rules.rule import Rule, line_of, related, report

_WAIT_FOR = {"asyncio.wait_for", "asyncio.tasks.wait_for"}
_TIMEOUTS = {"asyncio.timeout", "asyncio.timeout_at", "async_timeout.timeout"}
_ALIASES = {"timeout", "timeout_at", "asyncio_timeout", "async_timeout"}
_TIMEOUT_ERRORS = {"TimeoutError", "Exception", "BaseException"}


@dataclass(frozen=True, slots=True, eq=False)
class _Join:
    """A task that is awaited with a timeout."""

    function: Function
    node: ast.AST
    task: ast.expr
    creation: TaskCreation
    how: str

    @property
    def name(self) -> str:
        return self.function.name_of(self.task) or "the task"


def check(module: Module) -> Iterator[Finding]:
    for function in module.functions:
        if function.is_async:
            for join in _joins(function):
                yield _finding(join)


def _joins(function: Function) -> Iterator[_Join]:
    for node in function.nodes:
        match node:
            case ast.Await(ast.Call(func, arguments) as call) if arguments and (
                function.name_of(func) in _WAIT_FOR and not _is_without_timeout(call)
            ):
                yield from _join(function, call, arguments[0], "wait_for")
            case ast.AsyncWith(items, [ast.stmt() as only]) if any(
                _is_timeout(function, item.context_expr) for item in items
            ):
                for each in walk_here(only):
                    if isinstance(each, ast.Await):
                        yield from _join(function, each, each.value, "timeout")


def _join(function: Function, node: ast.AST, task: ast.expr, how: str) -> Iterator[_Join]:
    if not isinstance(task, (ast.Name, ast.Attribute, ast.Subscript)):
        return
    creation = creation_of(function, task)
    if creation is not None:
        yield _Join(function, node, task, creation, how)


def _is_timeout(function: Function, node: ast.expr) -> bool:
    if not isinstance(node, ast.Call):
        return False
    name = function.name_of(node.func)
    # A project may re-export it from a module of its own, for several versions of Python.
    is_reexported = bool(function.module.names.known(ast.unparse(node.func).partition(".")[0]))
    return name in _TIMEOUTS or (is_reexported and name.rpartition(".")[2] in _ALIASES)


def _is_without_timeout(call: ast.Call) -> bool:
    given = [*call.args[1:2], *(each.value for each in call.keywords if each.arg == "timeout")]
    return any(isinstance(each, ast.Constant) and each.value is None for each in given)


def _finding(join: _Join) -> Finding:
    module = join.function.module
    why, places, sure = _evidence(join)
    return report(
        "HF521",
        module,
        join.node,
        f"`{join.how}` around `{join.name}` does not limit how long this takes: at the timeout it "
        f"cancels the task, created on line {join.creation.call.lineno}, and waits until that has "
        f"ended{why}; use `asyncio.wait` with a timeout",
        related(join.creation.function.module, join.creation.call, "the task is created here"),
        *places,
        pedantic=not sure,
    )


def _evidence(join: _Join) -> tuple[str, list[Related], bool]:
    """Why the wait may take longer, the places that show it, and whether that is certain."""
    module = join.function.module
    swallower = _swallows(join.creation)
    after = _treated_as_running(join)
    if after is not None:
        text = f", but line {line_of(after)} treats it as running"
        places = [related(module, after, "here the task has been cancelled and has ended")]
        # The second cancel does nothing; a loop that waits again has lost the task.
        return text, places, swallower is not None or not isinstance(after, ast.Call)
    if swallower is not None:
        text = f", but line {line_of(swallower)} catches the cancellation and continues"
        where = join.creation.function.module
        return (
            text,
            [related(where, swallower, "the task does not end when it is cancelled")],
            True,
        )
    signal = _signal_before(join)
    if signal is not None:
        text = f", but it was only signalled to end, on line {line_of(signal)}"
        return text, [related(module, signal, "the task may not react to this")], True
    return "", [], False


def _signal_before(join: _Join) -> ast.AST | None:
    """The signal that a close method sends before it awaits a task of its object, and lets the
    TimeoutError propagate to its caller."""
    function = join.function
    if not is_close_name(function.name) or not source_attribute(function, join.task):
        return None
    if any(True for _ in _timeout_handlers(join)):
        return None
    for operation in operations(function):
        is_before = line_of(operation.node) < line_of(join.node)
        if operation.kind == "signal" and operation.root.startswith("self.") and is_before:
            return operation.node
    return None


def _treated_as_running(join: _Join) -> ast.AST | None:
    """Where the handler of the timeout cancels the task, or the loop awaits it again."""
    for around, handler in _timeout_handlers(join):
        for call in calls_in(handler.body):
            match call.func:
                case ast.Attribute(receiver, "cancel") if _is_same(join, receiver):
                    return call
        if _waits_again(join, around, handler):
            return handler
    return None


def _timeout_handlers(join: _Join) -> Iterator[tuple[AnyTry, ast.ExceptHandler]]:
    for around in enclosing_tries(join.function, join.node):
        for handler in around.handlers:
            if _catches_timeout(handler):
                yield around, handler
                return


def _catches_timeout(handler: ast.ExceptHandler) -> bool:
    kind = handler.type
    if kind is None:
        return True
    kinds = kind.elts if isinstance(kind, ast.Tuple) else [kind]
    return any(last_name(each) in _TIMEOUT_ERRORS for each in kinds)


def _is_same(join: _Join, node: ast.expr) -> bool:
    function = join.function
    return ast.dump(node) == ast.dump(join.task) or bool(
        isinstance(node, ast.Name) and function.roots(node) & function.roots(join.task)
    )


def _waits_again(join: _Join, around: AnyTry, handler: ast.ExceptHandler) -> bool:
    """Whether a loop that was entered after the task was created continues after the timeout."""
    last = handler.body[-1]
    if isinstance(last, (ast.Return, ast.Raise, ast.Break)):
        return False
    if not all(isinstance(each, (ast.Pass, ast.Continue, ast.Expr)) for each in handler.body):
        return False
    loop = join.function.module.parents.get(around)
    if not isinstance(loop, ast.While) or loop.body[-1] is not around:
        return False
    inside = set(nodes_in(loop.body))
    mentioned = {ast.dump(each) for each in walk_here(loop.test) if isinstance(each, ast.expr)}
    endless = isinstance(loop.test, ast.Constant) or ast.dump(join.task) in mentioned
    return endless and join.creation.call not in inside and join.creation.function is join.function


def _swallows(creation: TaskCreation) -> ast.AST | None:
    """The place in the body of the task, if it is known, that catches cancellations in a loop."""
    return next((place for body in creation.bodies for place in endless_catches(body)), None)


RULE = Rule(
    "HF521", check, needs=("wait_for|timeout", "create_task|_background_task|ensure_future")
)
