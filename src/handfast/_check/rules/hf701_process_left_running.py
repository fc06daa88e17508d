"""HF701: a child process is neither waited for nor killed on every path.

Reported: a child process in a local name that the function neither waits for nor kills, or not before an
early `return` or `raise`; and one that it waits for with a timeout, where nothing kills it when the
timeout expires. Pedantic: one that it waits for without a timeout, where nothing kills it when the waiter
is cancelled.
Not reported: where other code gets the process, or where a `finally` or a handler names it other than to
log its pid.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from handfast._check.finding import Finding
from handfast._check.model.syntax.ancestors import TRY, ancestors, last_name, nodes_in
from handfast._check.model.syntax.function import Function
from handfast._check.model.syntax.module import Module
from handfast._check.model.vocabulary import LOGGING
from handfast._check.rules.rule import Rule, line_of, related, report

_CODE = "HF701"
_STARTING = {
    f"asyncio.{module}create_subprocess_{kind}"
    for module in ("", "subprocess.")
    for kind in ("exec", "shell")
}
_WAITING = {"wait", "communicate"}
_KILLING = {"kill", "terminate", "send_signal"}
_TIMEOUTS = {"timeout", "timeout_at", "wait_for", "fail_after", "move_on_after"}


def check(module: Module) -> Iterator[Finding]:
    for function, call in module.calls():
        if function.is_async and function.name_of(call.func) in _STARTING:
            match module.parents.get(module.parents[call]):
                case ast.Assign([ast.Name(name)]) if len(function.assigned[name]) == 1:
                    yield from _in(function, call, name)


def _in(function: Function, call: ast.Call, name: str) -> Iterator[Finding]:
    module = function.module
    uses = list(_uses(function, name))
    if None in uses:
        return  # other code gets it
    waits = [each for each in uses if each is not None and each.attr in _WAITING]
    kills = any(each is not None and each.attr in _KILLING for each in uses)
    if not waits and not kills:
        yield report(
            _CODE,
            module,
            call,
            f"The child process in `{name}` is neither waited for nor killed, and runs on after "
            f"`{function.name}`: await `{name}.wait()`, and kill it if that is cancelled",
        )
    elif waits and not kills and (early := _early_exit(function, call, waits)) is not None:
        yield report(
            _CODE,
            module,
            call,
            f"The child process in `{name}` is neither waited for nor killed if the function is left on "
            f"line {line_of(early)}: kill it in a `finally`, and await it",
            related(module, early, "left here"),
        )
    elif waits and not kills and not _is_ended_on_error(function, name, call):
        timed = next((each for each in waits if _is_timed(function, each)), None)
        wait = timed or waits[0]
        when = "the timeout expires" if timed is not None else "the waiter is cancelled"
        yield report(
            _CODE,
            module,
            call,
            f"When {when} on line {line_of(wait)}, the child process in `{name}` runs on: kill it in a "
            "`finally`, and await it",
            related(module, wait, "waited for here"),
            pedantic=timed is None,
        )


def _early_exit(function: Function, call: ast.Call, waits: list[ast.Attribute]) -> ast.stmt | None:
    """A `return` or `raise` that is reached without a wait, and that no `try` is around."""
    flow = function.flow
    start = flow.of(call)
    ended = {flow.of(each) for each in waits}
    seen = set()
    todo = list(start.after) if start is not None else []
    while todo:
        step = todo.pop()
        if step in seen or step in ended:
            continue
        seen.add(step)
        if isinstance(step.stmt, ast.Return | ast.Raise):
            if not any(isinstance(up, TRY) for up in ancestors(function, step.stmt)):
                return step.stmt
        todo += step.after
    return None


def _uses(function: Function, name: str) -> Iterator[ast.Attribute | None]:
    """The attributes of the process that are used; None for a use that passes it on."""
    for where, node in function.reads(name):
        parent = where.module.parents.get(node)
        if isinstance(parent, ast.Attribute):
            # With its pid, other code can end it.
            given = isinstance(where.module.parents.get(parent), ast.Return | ast.Assign)
            yield None if parent.attr == "pid" and given else parent
        elif not isinstance(
            parent, ast.Compare | ast.If | ast.UnaryOp | ast.BoolOp | ast.FormattedValue
        ):
            yield None


def _is_ended_on_error(function: Function, name: str, call: ast.Call) -> bool:
    """Whether a `finally` or a handler names the process, or a context manager around may end it."""
    for node in function.nodes:
        if isinstance(node, TRY):
            ends = [*node.finalbody, *(part for each in node.handlers for part in each.body)]
            for each in nodes_in(ends):
                if isinstance(each, ast.Name) and each.id == name and not _is_shown(function, each):
                    return True
    return False


def _is_shown(function: Function, use: ast.Name) -> bool:
    """Whether only a log gets the number or the exit code of the process."""
    parents = function.module.parents
    up = parents.get(use)
    if not isinstance(up, ast.Attribute) or up.attr not in {"pid", "returncode"}:
        return False
    call = parents.get(up)
    return isinstance(call, ast.Call) and last_name(call.func) in LOGGING


def _is_timed(function: Function, node: ast.AST) -> bool:
    for up in ancestors(function, node):
        if isinstance(up, ast.Call) and last_name(up.func) == "wait_for":
            return True
        if isinstance(up, ast.AsyncWith | ast.With) and any(
            isinstance(item.context_expr, ast.Call)
            and last_name(item.context_expr.func) in _TIMEOUTS
            for item in up.items
        ):
            return True
    return False


RULE = Rule(_CODE, check, needs=("create_subprocess_",))
