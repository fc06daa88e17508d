"""HF114: the first failure of a `gather` ends the wait, and the other coroutines continue.

Reported: an awaited `gather` of several coroutines without `return_exceptions`, where the code then
closes something that the coroutines were given, or handles the error and continues.
Pedantic for a comprehension: there the coroutines are mostly alike, and fail together. Pedantic also
where the error is handled, unless one of the coroutines is an endless loop and nothing is closed in a
`finally`: the others end by themselves, or by what is closed.
Not reported: gathers of tasks that the function cancels.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from handfast._check.finding import Finding
from handfast._check.model.syntax.ancestors import TRY, AnyTry, calls_in, steps_up
from handfast._check.model.syntax.call_graph import resolve_function
from handfast._check.model.syntax.function import Function, names_in
from handfast._check.model.syntax.handlers import Handler
from handfast._check.model.syntax.module import Module
from handfast._check.model.tasks.endless import endless_loop
from handfast._check.model.vocabulary import CLOSING
from handfast._check.rules.rule import Rule, line_of, related, report

_ADVICE = "use `asyncio.TaskGroup`, which cancels and awaits them"


def check(module: Module) -> Iterator[Finding]:
    for function, call in module.calls():
        if function.name_of(call.func) != "asyncio.gather" or not function.is_async:
            continue
        if not isinstance(module.parents.get(call), ast.Await) or not _may_fail(call):
            continue
        given = [each for each in call.args if isinstance(each, ast.Call | ast.Starred)]
        if len(given) > 1 or any(isinstance(each, ast.Starred) for each in given):
            yield from _run_on(function, call, given)


def _may_fail(call: ast.Call) -> bool:
    return not any(
        each.arg is None or (each.arg == "return_exceptions" and not _is_false(each.value))
        for each in call.keywords
    )


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and not node.value


def _run_on(function: Function, call: ast.Call, given: Sequence[ast.expr]) -> Iterator[Finding]:
    module = function.module
    used = {name for each in given for name in names_in(each)} - {function.self_here}
    for part, up in steps_up(function, call):
        if isinstance(up, TRY) and part in up.body:
            if _cancels(up):
                return
            closed = _closed(up, used)
            if closed:
                name, end = closed
                yield report(
                    "HF114",
                    module,
                    call,
                    f"When one of these coroutines fails, the others continue, and `{name}` is closed "
                    f"on line {line_of(end)} while they use it: {_ADVICE}",
                    related(module, end, "closed here"),
                    pedantic=any(isinstance(each, ast.Starred) for each in given),
                )
                return
            handler = _handled(function, up)
            if handler is not None:
                yield report(
                    "HF114",
                    module,
                    call,
                    "When one of these coroutines fails, the error is handled, and the others continue "
                    f"beside whatever comes next: {_ADVICE}",
                    related(module, handler, "the error is handled here"),
                    pedantic=any(isinstance(each, ast.Starred) for each in given)
                    or not _goes_on(function, up, call),
                )
                return


def _cancels(tried: AnyTry) -> bool:
    ends = [*tried.finalbody, *(part for each in tried.handlers for part in each.body)]
    return any(
        isinstance(call.func, ast.Attribute) and "cancel" in call.func.attr
        for call in calls_in(ends)
    )


def _closed(tried: AnyTry, used: set[str]) -> tuple[str, ast.Call] | None:
    """What the `finally` closes and the coroutines were given."""
    for call in calls_in(tried.finalbody):
        match call.func:
            case ast.Attribute(ast.Name(name), method) if method in CLOSING and name in used:
                return name, call
    return None


def _goes_on(function: Function, tried: AnyTry, call: ast.Call) -> bool:
    """Whether one of the coroutines is an endless loop that a `finally` does not end."""
    return not any(calls_in(tried.finalbody)) and any(
        endless_loop(each) is not None
        for inner in calls_in(call.args)
        for each in resolve_function(function, inner.func)
    )


def _handled(function: Function, tried: AnyTry) -> ast.ExceptHandler | None:
    """The handler of all errors after which the function goes on."""
    for each in tried.handlers:
        handler = Handler(function, tried, each)
        if handler.is_broad and handler.swallows and not handler.raises:
            return each
    return None


RULE = Rule("HF114", check, needs=("gather", "finally|except"))
