"""HF103: a function cancels tasks that it has started and goes on without waiting for their end.

Found: a coroutine function that makes tasks, holds them in local names only, cancels them, and on no
way from there awaits them or hands them on. By default only where the body of the task is known and
has something to do after a cancel (an `await` in its clean-up, an `async with`) or works on and on,
or where the function closes what it has given to the task while the task may still use it; otherwise it is
pedantic. Silent: close methods, which HF303 has; tasks that only wait for one thing (`queue.get()`,
`event.wait()`), whose end takes no step of their own; tasks that somebody else holds too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from holdfast.check.finding import Finding
from holdfast.check.fixes import joined_after
from holdfast.check.model.flow import Node, catches_cancellation, suspends
from holdfast.check.model.function import Function
from holdfast.check.model.holders import handed_on, holders_of, is_held_here
from holdfast.check.model.module import Module
from holdfast.check.model.roles import is_close_name, tasks_of
from holdfast.check.model.services import awaited_from, endless_loop
from holdfast.check.model.tasks import Creation, resolve_function
from holdfast.check.rules.rule import Rule, found, related

__all__ = ["RULE", "check"]

_CODE = "HF103"
_CLOSING = {"close", "aclose", "stop", "disconnect", "shutdown", "terminate", "kill", "release"}
# Coroutines that do nothing but wait: they end in the very step in which the cancel arrives.
_WAITING = {
    "get", "wait", "sleep", "recv", "read", "readline", "readexactly", "readuntil", "receive",
    "acquire", "join", "anext", "__anext__", "put", "wait_closed", "drain", "wait_for",
    "receive_bytes", "receive_text", "receive_json", "getter", "next",
}  # fmt: skip


def check(module: Module) -> Iterator[Finding]:
    """Tasks that are cancelled and not waited for by the function that has started them."""
    seen: set[ast.Call] = set()
    for made in tasks_of(module):
        function = made.function
        if function.is_async and not is_close_name(function.name) and is_held_here(made):
            cancel = _cancelled_only(made)
            if cancel is not None and cancel not in seen and not _only_waits(made):
                seen.add(cancel)
                yield _finding(module, made, cancel)


def _finding(module: Module, made: Creation, cancel: ast.Call) -> Finding:
    cleanup = _cleanup(made)
    places = [related(module, made.call, "the task is made here")]
    if cleanup is not None and cleanup[0].module is module:
        places.append(related(module, cleanup[1], "what it still has to do after the cancel"))
    closed = _closed_under_it(made, cancel)
    if closed is not None:
        places.append(related(module, closed, "what the task uses is closed here"))
    return found(
        _CODE,
        module,
        cancel,
        f"The task made in line {made.call.lineno} is cancelled here, and `{made.function.name}` goes "
        "on without waiting for its end: await it after the cancel.",
        *places,
        fix=joined_after(made.function, cancel, made.bodies),
        pedantic=cleanup is None and closed is None and not _works(made),
    )


def _cancelled_only(made: Creation) -> ast.Call | None:
    """The first cancel of a task from which no way leads to a join."""
    function = made.function
    names = holders_of(made)
    handing = [function.flow.of(node) for node in handed_on(function, names)]
    for call in function.calls:
        match call.func:
            case ast.Attribute(ast.Name(name), "cancel") if name in names:
                step = function.flow.of(call)
                if step is None or step in handing or _is_over(made, names, step):
                    return None
                if any(each is not None and function.flow.reaches(step, each) for each in handing):
                    return None
                return call
    return None


def _is_over(made: Creation, names: frozenset[str], cancel: Node) -> bool:
    """Whether every way to a cancel comes by a wait for the end of all: then it asks for nothing."""
    flow = made.function.flow
    start = flow.of(made.call)
    waits = {
        flow.of(node)
        for node in made.function.nodes
        if isinstance(node, ast.Await) and _waits_for_all(node.value, names)
    }
    return start is not None and not flow.reaches(start, cancel, lambda node: node in waits)


def _waits_for_all(node: ast.expr, names: frozenset[str]) -> bool:
    match node:
        case ast.Call(ast.Attribute(attr="wait" | "gather"), arguments, keywords):
            if any(each.arg in ("timeout", "return_when") for each in keywords):
                return False
            named = (each for argument in arguments for each in ast.walk(argument))
            return any(isinstance(each, ast.Name) and each.id in names for each in named)
    return isinstance(node, ast.Name) and node.id in names


def _only_waits(made: Creation) -> bool:
    match made.coro:
        case ast.Call(ast.Attribute(attr=name) | ast.Name(name)):
            return name in _WAITING and not made.bodies
    return False


def _works(made: Creation) -> bool:
    """Whether the task is known to go round and round, doing more than to wait: a request or a write
    of it may be cut, and what it lost is told to nobody."""
    return any(
        isinstance(node, ast.Await) and _is_work(function, node)
        for body in made.bodies
        for function in awaited_from(body)
        if endless_loop(function) is not None
        for node in function.nodes
    )


def _is_work(function: Function, wait: ast.Await) -> bool:
    match wait.value:
        case ast.Call(ast.Attribute(attr=name) | ast.Name(name), arguments):
            # `wait_for(queue.get(), 1)` only waits as well.
            inner = [each for each in arguments if isinstance(each, ast.Call)]
            if name in _WAITING:
                return any(_called(each) not in _WAITING for each in inner)
            return not any(True for _ in resolve_function(function, wait.value.func))
    return False


def _called(call: ast.Call) -> str:
    match call.func:
        case ast.Attribute(attr=name) | ast.Name(name):
            return name
    return ""


def _cleanup(made: Creation) -> tuple[Function, ast.AST] | None:
    """What the body of a task does after a cancel that takes more than one step."""
    for body in made.bodies:
        for function in awaited_from(body):
            for node in function.nodes:
                if isinstance(node, ast.AsyncWith) or (
                    isinstance(node, (ast.Try, ast.TryStar)) and _waits_in_cleanup(node)
                ):
                    return function, node
    return None


def _waits_in_cleanup(node: ast.Try | ast.TryStar) -> bool:
    late = list(node.finalbody)
    for handler in node.handlers:
        if catches_cancellation(handler.type):
            late += handler.body
    return any(map(suspends, late))


def _closed_under_it(made: Creation, cancel: ast.Call) -> ast.AST | None:
    """Where the function closes something that it has given to the task, after the cancel."""
    function = made.function
    given = {
        node.id
        for node in (ast.walk(made.coro) if made.coro is not None else ())
        if isinstance(node, ast.Name) and node.id in function.local_names
    }
    around = function.module.parents.get(cancel)
    while around is not None and around is not function.node:
        if isinstance(around, (ast.With, ast.AsyncWith)):
            for item in around.items:
                if isinstance(item.optional_vars, ast.Name) and item.optional_vars.id in given:
                    return item.context_expr
        around = function.module.parents.get(around)
    return next(
        (each for each in _closes(function, given) if _is_after(function, cancel, each)), None
    )


def _closes(function: Function, names: set[str]) -> Iterator[ast.Call]:
    for call in function.calls:
        match call.func:
            case ast.Attribute(ast.Name(name), attr) if name in names and attr in _CLOSING:
                yield call


def _is_after(function: Function, first: ast.AST, then: ast.AST) -> bool:
    start, goal = function.flow.of(first), function.flow.of(then)
    return start is not None and goal is not None and function.flow.reaches(start, goal)


RULE = Rule(_CODE, check)
