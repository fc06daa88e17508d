"""HF603: `gather(return_exceptions=True)` is awaited and nothing reads what it returns.

Reported: the call is a statement of its own, the coroutines are created in the same function, and
nothing there reads the outcome. Pedantic in a method that ends something, a handler or a `finally`, and
where only cleanup is gathered.
Not reported: where the function cancels something (then it is a join), where tasks from elsewhere are
joined, where the function awaits the gathered tasks once more, where the coroutines are known and each
handles its errors, where the tasks have done callbacks, and where a comment at the call mentions errors:
then it is intended.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from handfast._check.finding import Finding
from handfast._check.model.syntax.ancestors import AnyTry, ancestors, is_in_finally, last_name
from handfast._check.model.syntax.call_graph import resolve_function
from handfast._check.model.syntax.control_flow import suspends
from handfast._check.model.syntax.function import Function, names_in
from handfast._check.model.syntax.handlers import Handler
from handfast._check.model.syntax.module import Module
from handfast._check.model.tasks.method_roles import is_close_name
from handfast._check.rules.rule import Rule, related, report

_CODE = "HF603"
_GATHER = {"asyncio.gather", "asyncio.tasks.gather"}
# Names of functions that end something, beside those of close methods.
_ENDS = re.compile(r"abort|destroy")
_OUTCOME = {"exception", "result", "add_done_callback", "throw"}
_ON_PURPOSE = re.compile(
    r"(?i)return_exceptions|ignor|don.t care|best.effort|swallow|suppress|fail|error|exception"
)
# A function that only waits has no error of its own to lose.
_WAITING = {"wait", "join", "sleep", "wait_closed", "all_tasks", "wrap_future"}


def check(module: Module) -> Iterator[Finding]:
    for function in module.functions:
        for node in function.nodes:
            match node:
                case ast.Expr(ast.Await(ast.Call(called) as call)):
                    if function.name_of(called) in _GATHER and _returns_errors(call):
                        yield from _evaluate(module, function, call)


def _returns_errors(call: ast.Call) -> bool:
    return any(
        each.arg == "return_exceptions" and getattr(each.value, "value", None) is True
        for each in call.keywords
    )


def _evaluate(module: Module, function: Function, call: ast.Call) -> Iterator[Finding]:
    if not call.args or _cancels_or_reads(function) or _is_explained(module, call):
        return
    if _is_awaited_again(function, call):
        return
    coroutines = list(_coroutines(function, call))
    bodies = [body for each in coroutines for body in resolve_function(function, each.func)]
    if bodies and len(bodies) >= len(coroutines) and all(map(_handles_itself, bodies)):
        return
    if not coroutines or all(last_name(each.func) in _WAITING for each in coroutines):
        return
    ending = (
        is_close_name(function.name)
        or _ENDS.search(function.name) is not None
        or all(is_close_name(last_name(each.func)) for each in coroutines)
        or _is_in_cleanup(function, call)
    )
    unhandled = [body for body in bodies if not _handles_itself(body)]
    yield report(
        _CODE,
        module,
        call,
        f"`gather(return_exceptions=True)` in `{function.qualname}` returns exceptions as results, and "
        "nothing reads them, so a failure looks like a success: check the results, or drop "
        "`return_exceptions`",
        *(
            related(module, body.node, f"an error of `{body.qualname}` is lost")
            for body in unhandled[:1]
            if body.module is module
        ),
        pedantic=ending,
    )


def _is_explained(module: Module, call: ast.Call) -> bool:
    """Whether a comment at the call says that the errors are dropped on purpose."""
    around = range(call.lineno - 4, (call.end_lineno or call.lineno) + 1)
    comments = (module.source.line(each).partition("#")[2] for each in around)
    return any(_ON_PURPOSE.search(each) for each in comments)


def _cancels_or_reads(function: Function) -> bool:
    for call in function.calls:
        name = (
            call.func.attr if isinstance(call.func, ast.Attribute) else function.name_of(call.func)
        )
        if "cancel" in name or name in _OUTCOME:
            return True
    return False


def _is_awaited_again(function: Function, call: ast.Call) -> bool:
    """Whether the function awaits what it has gathered once more: `await one` raises the error of it."""
    gathered = {each.id for each in ast.walk(call) if isinstance(each, ast.Name)}
    for node in function.nodes:
        match node:
            case ast.For(ast.Name(name), source) | ast.comprehension(ast.Name(name), source):
                if not gathered.isdisjoint(names_in(source)):
                    gathered.add(name)
    last = call.end_lineno or call.lineno
    return any(
        isinstance(node, ast.Await)
        and isinstance(node.value, ast.Name)
        and node.value.id in gathered
        and node.lineno > last
        for node in function.nodes
    )


def _is_in_cleanup(function: Function, node: ast.AST) -> bool:
    """Whether a node is in a handler or a `finally`."""
    around = ancestors(function, node)
    return is_in_finally(function, node) or any(isinstance(up, ast.ExceptHandler) for up in around)


def _coroutines(function: Function, call: ast.Call) -> Iterator[ast.Call]:
    """The calls that create the gathered coroutines, as far as they are known."""
    for argument in call.args:
        yield from _created_by(function, argument, 0)


def _created_by(function: Function, node: ast.expr, depth: int) -> Iterator[ast.Call]:
    parts: list[ast.expr] = []
    match node:
        case ast.Starred(value):
            parts = [value]
        case ast.ListComp(element) | ast.GeneratorExp(element) | ast.SetComp(element):
            parts = [element]
        case ast.List(elements) | ast.Tuple(elements) | ast.Set(elements):
            parts = elements
        case ast.Call(func, [inner, *_]) if last_name(func) in ("create_task", "ensure_future"):
            parts = [inner]
        case ast.Call(ast.Name("tuple" | "list" | "set" | "sorted"), arguments):
            parts = arguments
        case ast.Call():
            yield node
        case ast.Name(name):
            parts = [*function.assigned.get(name, ()), *_added_to(function, name)]
    # Names may be assigned from each other, in a loop.
    for each in parts if depth < 6 else ():
        yield from _created_by(function, each, depth + 1)


def _added_to(function: Function, name: str) -> Iterator[ast.expr]:
    for call in function.calls:
        match call:
            case ast.Call(ast.Attribute(ast.Name(holder), "append" | "add"), [inner]):
                if holder == name:
                    yield inner


def _handles_itself(body: Function, depth: int = 3) -> bool:
    """Whether everything that may fail in a function is in a `try` with a broad handler, there or in
    what it awaits. A decorator may handle errors, too, so a decorated function counts."""
    decorated = not isinstance(body.node, ast.Lambda) and bool(body.node.decorator_list)
    return decorated or all(_keeps_errors(body, each, depth) for each in body.body)


def _keeps_errors(body: Function, stmt: ast.stmt, depth: int) -> bool:
    match stmt:
        case ast.Try() | ast.TryStar():
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
    """Whether an existing object is entered, such as a lock: that does not fail."""
    return isinstance(item.context_expr, (ast.Name, ast.Attribute))


def _is_harmless(stmt: ast.stmt) -> bool:
    """Whether a statement neither suspends nor raises."""
    return not any(isinstance(each, (ast.Await, ast.AsyncFor, ast.AsyncWith, ast.Raise))
                   for each in ast.walk(stmt))  # fmt: skip


def _is_caught(body: Function, tried: AnyTry) -> bool:
    return any(Handler(body, tried, each).is_broad for each in tried.handlers)


RULE = Rule(_CODE, check, needs=("return_exceptions",))
