"""HF502: a `return`, `break` or `continue` in a `finally` drops the exception, also a cancellation.

Reported: such a statement in the `finally` of a `try` in a coroutine function that can suspend.
Not reported: a `break` or `continue` of a loop inside the `finally`; a `try` that nothing suspends.
PEP 765 makes it a `SyntaxWarning` from Python 3.14 on.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from handfast._check.finding import Finding
from handfast._check.model.syntax.ancestors import LOOPS, TRY, AnyTry, steps_up
from handfast._check.model.syntax.function import Function
from handfast._check.model.syntax.module import Module
from handfast._check.model.tasks.awaited import awaits_in
from handfast._check.rules.rule import Rule, line_of, related, report


def check(module: Module) -> Iterator[Finding]:
    for function in module.functions:
        for node in function.nodes if function.is_async else ():
            if isinstance(node, ast.Return | ast.Break | ast.Continue):
                tried = _left(function, node)
                wait = next(_waits(tried), None) if tried is not None else None
                if wait is not None:
                    yield _finding(module, node, wait)


def _left(function: Function, node: ast.stmt) -> AnyTry | None:
    """The `try` whose `finally` a jump leaves."""
    for part, up in steps_up(function, node):
        if isinstance(up, TRY) and part in up.finalbody:
            return up
        if isinstance(up, LOOPS) and not isinstance(node, ast.Return):
            return None
    return None


def _waits(tried: AnyTry) -> Iterator[ast.AST]:
    handlers = [part for handler in tried.handlers for part in handler.body]
    return awaits_in([*tried.body, *handlers, *tried.orelse])


def _finding(module: Module, node: ast.stmt, wait: ast.AST) -> Finding:
    word = type(node).__name__.lower()
    return report(
        "HF502",
        module,
        node,
        f"This `{word}` in a `finally` drops the exception that is being raised, also the "
        f"CancelledError of the `await` on line {line_of(wait)}, so `cancel()` does not end the task: "
        f"move the `{word}` behind the `try`",
        related(module, wait, "an exception raised here is dropped"),
    )


RULE = Rule("HF502", check, needs=("finally", "async "))
