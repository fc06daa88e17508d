"""HF521: `wait_for` or `timeout` around the bare wait for a task is meant to bound it.

At the time-out both cancel the task, and then wait for its end without any bound. Found by default
where the code shows that its author thinks otherwise: after the time-out the task is taken for
running (it is cancelled, or waited for again), the body of the task takes cancellations, or a close
method gives a task of its object a sign to end and promises its caller to be back in time.
Pedantic: any other `wait_for(task)`.

Silent: the task is shielded, or it is not known to be a task.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from holdfast.check.finding import Finding, Related
from holdfast.check.model.deeds import deeds
from holdfast.check.model.flow import walk_here
from holdfast.check.model.function import Function
from holdfast.check.model.module import Module
from holdfast.check.model.roles import is_close_name
from holdfast.check.model.tasks import resolve_function
from holdfast.check.model.waits import Made, attribute_behind, making_of
from holdfast.check.rules.cancel_swallowed import swallowing_in
from holdfast.check.rules.rule import Rule, found, related

__all__ = ["RULE"]

_WAIT_FOR = {"asyncio.wait_for", "asyncio.tasks.wait_for"}
_TIMEOUTS = {"asyncio.timeout", "asyncio.timeout_at", "async_timeout.timeout"}
_ALIASES = {"timeout", "timeout_at", "asyncio_timeout", "async_timeout"}
_TIMEOUT_ERRORS = {"TimeoutError", "Exception", "BaseException"}


@dataclass(frozen=True, slots=True, eq=False)
class _Join:
    """A task that is waited for under a bound."""

    function: Function
    node: ast.AST
    task: ast.expr
    made: Made
    how: str

    @property
    def name(self) -> str:
        return self.function.name_of(self.task) or "the task"


def check(module: Module) -> Iterator[Finding]:
    text = module.source.text
    if "wait_for" not in text and "timeout" not in text:
        return
    for function in module.functions:
        if function.is_async:
            for join in _joins(function):
                yield _finding(join)


def _joins(function: Function) -> Iterator[_Join]:
    for node in function.nodes:
        match node:
            case ast.Await(ast.Call(func, arguments) as call) if arguments and (
                function.name_of(func) in _WAIT_FOR and not _is_without_bound(call)
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
    made = making_of(function, task)
    if made is not None:
        yield _Join(function, node, task, made, how)


def _is_timeout(function: Function, node: ast.expr) -> bool:
    if not isinstance(node, ast.Call):
        return False
    name = function.name_of(node.func)
    # A project may hand it on from a module of its own, one for each Python.
    is_handed_on = bool(function.module.names.known(ast.unparse(node.func).partition(".")[0]))
    return name in _TIMEOUTS or (is_handed_on and name.rpartition(".")[2] in _ALIASES)


def _is_without_bound(call: ast.Call) -> bool:
    given = [*call.args[1:2], *(each.value for each in call.keywords if each.arg == "timeout")]
    return any(isinstance(each, ast.Constant) and each.value is None for each in given)


def _finding(join: _Join) -> Finding:
    module = join.function.module
    why, places = _evidence(join)
    born = related(join.made.function.module, join.made.call, "the task is born here")
    return found(
        "HF521",
        module,
        join.node,
        f"`{join.how}` around `{join.name}` does not bound it: at the time-out it cancels the task, "
        f"born on line {join.made.call.lineno}, and waits for its end however long that takes{why}",
        born,
        *places,
        pedantic=not why,
    )


def _evidence(join: _Join) -> tuple[str, list[Related]]:
    module = join.function.module
    after = _taken_for_running(join)
    if after is not None:
        text = f"; line {getattr(after, 'lineno', 0)} takes it for still running"
        return text, [related(module, after, "by now the task has been cancelled and has ended")]
    swallower = _swallows(join.made)
    if swallower is not None:
        text = f"; line {getattr(swallower, 'lineno', 0)} takes the cancellation and goes on"
        return text, [
            related(
                join.made.function.module, swallower, "the task does not end by being cancelled"
            )
        ]
    sign = _asked_to_end(join)
    if sign is not None:
        text = f"; it was only asked to end, on line {getattr(sign, 'lineno', 0)}"
        return text, [related(module, sign, "the task may not heed this")]
    return "", []


def _asked_to_end(join: _Join) -> ast.AST | None:
    """The sign that a close method gives before it waits for a task of its object, and lets the
    time-out go out to who called."""
    function = join.function
    if not is_close_name(function.name) or not attribute_behind(function, join.task):
        return None
    if any(True for _ in _timeout_handlers(join)):
        return None
    for deed in deeds(function):
        is_before = getattr(deed.node, "lineno", 0) < getattr(join.node, "lineno", 0)
        if deed.kind == "signal" and deed.root.startswith("self.") and is_before:
            return deed.node
    return None


def _taken_for_running(join: _Join) -> ast.AST | None:
    """In the handler of the time-out the task is cancelled, or the loop waits for it again."""
    for around, handler in _timeout_handlers(join):
        for part in handler.body:
            for each in walk_here(part):
                match each:
                    case ast.Call(ast.Attribute(receiver, "cancel")) if _is_same(join, receiver):
                        return each
        if _waits_again(join, around, handler):
            return handler
    return None


def _timeout_handlers(join: _Join) -> Iterator[tuple[ast.Try, ast.ExceptHandler]]:
    parents = join.function.module.parents
    below: ast.AST = join.node
    up = parents.get(below)
    while up is not None and up is not join.function.node:
        if isinstance(up, ast.Try) and below in up.body:
            for handler in up.handlers:
                if _takes_timeout(handler):
                    yield up, handler
                    return
        below, up = up, parents.get(up)


def _takes_timeout(handler: ast.ExceptHandler) -> bool:
    kind = handler.type
    if kind is None:
        return True
    kinds = kind.elts if isinstance(kind, ast.Tuple) else [kind]
    names = [
        each.attr if isinstance(each, ast.Attribute) else getattr(each, "id", "") for each in kinds
    ]
    return any(name in _TIMEOUT_ERRORS for name in names)


def _is_same(join: _Join, node: ast.expr) -> bool:
    function = join.function
    return ast.dump(node) == ast.dump(join.task) or bool(
        isinstance(node, ast.Name) and function.roots(node) & function.roots(join.task)
    )


def _waits_again(join: _Join, around: ast.Try, handler: ast.ExceptHandler) -> bool:
    """A loop that was entered after the task was made, and goes round after the time-out."""
    last = handler.body[-1]
    if isinstance(last, (ast.Return, ast.Raise, ast.Break)):
        return False
    if not all(isinstance(each, (ast.Pass, ast.Continue, ast.Expr)) for each in handler.body):
        return False
    loop = join.function.module.parents.get(around)
    if not isinstance(loop, ast.While) or loop.body[-1] is not around:
        return False
    inside = {each for part in loop.body for each in walk_here(part)}
    mentioned = {ast.dump(each) for each in walk_here(loop.test) if isinstance(each, ast.expr)}
    endless = isinstance(loop.test, ast.Constant) or ast.dump(join.task) in mentioned
    return endless and join.made.call not in inside and join.made.function is join.function


def _swallows(made: Made) -> ast.AST | None:
    """The place in the body of the task, if it is known, that takes cancellations in a loop."""
    coro = made.call.args[0] if made.call.args else None
    if not isinstance(coro, ast.Call):
        return None
    for body in resolve_function(made.function, coro.func):
        for place in swallowing_in(body):
            return place
    return None


RULE = Rule("HF521", check)
