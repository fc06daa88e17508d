"""HF621: an exception group is caught and dropped as a whole.

Reported: a handler of `ExceptionGroup` or `BaseExceptionGroup` (or `except* Exception`, or `suppress` of
a group) that continues without raising, and neither names what it has caught nor logs it with its
traceback.
Not reported: where the exception is used in any way, and `except*` of narrow types, which is the right
form.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from handfast._check.finding import Finding
from handfast._check.model.syntax.function import Function
from handfast._check.model.syntax.handlers import Handler, handlers
from handfast._check.model.syntax.module import Module
from handfast._check.model.vocabulary import GROUPS
from handfast._check.rules.rule import Rule, related, report

_CODE = "HF621"


def check(module: Module) -> Iterator[Finding]:
    for function in (module.body, *module.functions):
        for handler in handlers(function):
            if _catches_all(handler) and handler.swallows and not handler.uses_it:
                yield _dropped(module, function, handler.node, handler.tried)
        for call in function.calls:
            if function.name_of(call.func) in ("contextlib.suppress", "suppress"):
                if any(function.last_name_of(each) in GROUPS for each in call.args):
                    yield _dropped(module, function, call, module.statement_of(call))


def _catches_all(handler: Handler) -> bool:
    if isinstance(handler.tried, ast.TryStar):
        return handler.is_broad
    return any(kind.rpartition(".")[2] in GROUPS for kind in handler.kinds)


def _dropped(module: Module, function: Function, node: ast.AST, tried: ast.stmt) -> Finding:
    return report(
        _CODE,
        module,
        node,
        f"`{function.qualname}` drops an exception group with all of its exceptions, including those "
        "that it does not expect: use `except*` with the types that it handles",
        related(module, tried, "every exception of every task in here is lost"),
    )


RULE = Rule(_CODE, check, any_library=True, needs=("ExceptionGroup|except*|except *",))
