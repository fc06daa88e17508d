"""HF621: an exception group is caught and dropped as a whole.

Evidence: a handler of `ExceptionGroup` or `BaseExceptionGroup` (or `except* Exception`, or
`suppress` of a group) that goes on without raising, and neither names what it has caught nor logs
it with its trace.
Silent where the exception is used in any way, and for `except*` of narrow kinds: that is the right
form.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from holdfast.check.finding import Finding
from holdfast.check.model.function import Function
from holdfast.check.model.handlers import Handler, handlers
from holdfast.check.model.module import Module
from holdfast.check.rules.rule import Rule, found, related

__all__ = ["RULE"]

_CODE = "HF621"
_GROUPS = {"ExceptionGroup", "BaseExceptionGroup"}


def check(module: Module) -> Iterator[Finding]:
    if "ExceptionGroup" not in module.source.text and "except*" not in module.source.text:
        return
    for function in (module.body, *module.functions):
        for handler in handlers(function):
            if _takes_all(handler) and handler.swallows and not handler.uses_it:
                yield _dropped(module, function, handler.node, handler.tried)
        for call in function.calls:
            if function.name_of(call.func) in ("contextlib.suppress", "suppress"):
                if any(function.name_of(each).rpartition(".")[2] in _GROUPS for each in call.args):
                    yield _dropped(module, function, call, module.statement_of(call))


def _takes_all(handler: Handler) -> bool:
    if isinstance(handler.tried, ast.TryStar):
        return handler.is_broad
    return any(kind.rpartition(".")[2] in _GROUPS for kind in handler.kinds)


def _dropped(module: Module, function: Function, node: ast.AST, tried: ast.stmt) -> Finding:
    return found(
        _CODE,
        module,
        node,
        f"`{function.qualname}` drops an exception group with all that is in it, also what it did not "
        "expect; `except*` takes out what it names",
        related(module, tried, "every error of every child in here is lost"),
    )


RULE = Rule(_CODE, check)
