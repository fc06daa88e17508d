"""HF603: `gather(return_exceptions=True)` is awaited and nobody reads what it returns.

Evidence: the call is a statement of its own, the coroutines are made in the same function, and
nothing there looks at the outcome of what was gathered.
Silent where the function cancels something (then it is a join), where tasks of elsewhere are
joined, where the coroutines are known and each handles its errors itself, where the tasks have done
callbacks, and where a comment at the call speaks of errors: then it is meant. In a close method, a
handler or a `finally`, and where all that is gathered are clean-ups, it is a matter of taste:
pedantic.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from holdfast.check.finding import Finding
from holdfast.check.model.flow import suspends
from holdfast.check.model.function import Function
from holdfast.check.model.handlers import Handler
from holdfast.check.model.module import Module
from holdfast.check.model.roles import is_close_name
from holdfast.check.model.tasks import resolve_function
from holdfast.check.rules.rule import Rule, found, related

__all__ = ["RULE"]

_CODE = "HF603"
_GATHER = {"asyncio.gather", "asyncio.tasks.gather"}
_LOOKING = {"exception", "result", "add_done_callback", "throw"}
_ON_PURPOSE = re.compile(
    r"(?i)return_exceptions|ignor|don.t care|best.effort|swallow|suppress|fail|error|exception"
)
# What only waits has no error to lose, or one that somebody else looks for.
_WAITING = {"wait", "join", "sleep", "wait_closed", "all_tasks", "wrap_future"}


def check(module: Module) -> Iterator[Finding]:
    if "return_exceptions" not in module.source.text:
        return
    for function in module.functions:
        for node in function.nodes:
            match node:
                case ast.Expr(ast.Await(ast.Call(called) as call)):
                    if function.name_of(called) in _GATHER and _returns_errors(call):
                        yield from _judge(module, function, call)


def _returns_errors(call: ast.Call) -> bool:
    return any(
        each.arg == "return_exceptions" and getattr(each.value, "value", None) is True
        for each in call.keywords
    )


def _judge(module: Module, function: Function, call: ast.Call) -> Iterator[Finding]:
    if not call.args or _cancels_or_looks(function) or _is_explained(module, call):
        return
    coroutines = list(_coroutines(function, call))
    bodies = [body for each in coroutines for body in resolve_function(function, each.func)]
    if bodies and len(bodies) >= len(coroutines) and all(map(_handles_itself, bodies)):
        return
    if not coroutines or all(_last_name(each) in _WAITING for each in coroutines):
        return
    ending = (
        is_close_name(function.name)
        or all(is_close_name(_last_name(each)) for each in coroutines)
        or _is_in_cleanup(function, call)
    )
    open_ones = [body for body in bodies if not _handles_itself(body)]
    yield found(
        _CODE,
        module,
        call,
        f"`gather(return_exceptions=True)` in `{function.qualname}` returns the errors as values, and "
        "nobody reads them: what failed looks like what succeeded",
        *(
            related(module, body.node, f"an error of `{body.qualname}` is lost")
            for body in open_ones[:1]
            if body.module is module
        ),
        pedantic=ending,
    )


def _is_explained(module: Module, call: ast.Call) -> bool:
    """Whether a comment at the call says that the errors are meant to be dropped."""
    around = range(call.lineno - 4, (call.end_lineno or call.lineno) + 1)
    comments = (module.source.line(each).partition("#")[2] for each in around)
    return any(_ON_PURPOSE.search(each) for each in comments)


def _cancels_or_looks(function: Function) -> bool:
    for call in function.calls:
        name = (
            call.func.attr if isinstance(call.func, ast.Attribute) else function.name_of(call.func)
        )
        if "cancel" in name or name in _LOOKING:
            return True
    return False


def _is_in_cleanup(function: Function, node: ast.AST) -> bool:
    """Whether a node stands in a handler or a `finally`."""
    up: ast.AST | None = node
    while up is not None and up is not function.node:
        inner, up = up, function.module.parents.get(up)
        if isinstance(up, ast.ExceptHandler):
            return True
        if isinstance(up, ast.Try) and inner in up.finalbody:
            return True
    return False


def _coroutines(function: Function, call: ast.Call) -> Iterator[ast.Call]:
    """The calls that make what is gathered, as far as they can be seen."""
    for argument in call.args:
        yield from _made_by(function, argument, 0)


def _made_by(function: Function, node: ast.expr, depth: int) -> Iterator[ast.Call]:
    if depth > 6:
        return
    match node:
        case ast.Starred(value):
            yield from _made_by(function, value, depth + 1)
        case ast.ListComp(element) | ast.GeneratorExp(element) | ast.SetComp(element):
            yield from _made_by(function, element, depth + 1)
        case ast.List(elements) | ast.Tuple(elements) | ast.Set(elements):
            for each in elements:
                yield from _made_by(function, each, depth + 1)
        case ast.Call(ast.Attribute(_, "create_task" | "ensure_future"), [inner, *_]):
            yield from _made_by(function, inner, depth + 1)
        case ast.Call(ast.Name("create_task" | "ensure_future"), [inner, *_]):
            yield from _made_by(function, inner, depth + 1)
        case ast.Call(ast.Name("tuple" | "list" | "set" | "sorted"), arguments):
            for each in arguments:
                yield from _made_by(function, each, depth + 1)
        case ast.Call():
            yield node
        case ast.Name(name):
            for value in function.assigned.get(name, ()):
                yield from _made_by(function, value, depth + 1)
            yield from _put_in(function, name, depth)


def _put_in(function: Function, name: str, depth: int) -> Iterator[ast.Call]:
    for call in function.calls:
        match call:
            case ast.Call(ast.Attribute(ast.Name(holder), "append" | "add"), [inner]):
                if holder == name:
                    yield from _made_by(function, inner, depth + 1)


def _last_name(call: ast.Call) -> str:
    match call.func:
        case ast.Attribute(_, name) | ast.Name(name):
            return name
    return ""


def _handles_itself(body: Function, depth: int = 3) -> bool:
    """Whether everything that may fail in a function stands in a `try` with a broad handler, there
    or in what it awaits. What a decorator does to errors is not known."""
    decorated = not isinstance(body.node, ast.Lambda) and bool(body.node.decorator_list)
    return decorated or all(_keeps_errors(body, each, depth) for each in body.body)


def _keeps_errors(body: Function, stmt: ast.stmt, depth: int) -> bool:
    match stmt:
        case ast.Try():
            return _is_caught(body, stmt) or _is_harmless(stmt)
        case ast.If(test, first, second) if not suspends(test):
            return all(_keeps_errors(body, each, depth) for each in (*first, *second))
        case ast.With(items, inner) | ast.AsyncWith(items, inner) if all(map(_is_named, items)):
            return all(_keeps_errors(body, each, depth) for each in inner)
        case (
            ast.Expr(ast.Await(ast.Call(called)))
            | ast.Return(ast.Await(ast.Call(called)))
            | ast.Assign(_, ast.Await(ast.Call(called)))
        ):
            run = list(resolve_function(body, called)) if depth else []
            return bool(run) and all(_handles_itself(each, depth - 1) for each in run)
    return _is_harmless(stmt)


def _is_named(item: ast.withitem) -> bool:
    """Whether what is entered is there already: a lock or a semaphore."""
    return isinstance(item.context_expr, (ast.Name, ast.Attribute))


def _is_harmless(stmt: ast.stmt) -> bool:
    """A statement that does not wait and calls nothing but loggers and clocks."""
    return not any(isinstance(each, (ast.Await, ast.AsyncFor, ast.AsyncWith, ast.Raise))
                   for each in ast.walk(stmt))  # fmt: skip


def _is_caught(body: Function, tried: ast.Try) -> bool:
    return any(Handler(body, tried, each).is_broad for each in tried.handlers)


RULE = Rule(_CODE, check)
