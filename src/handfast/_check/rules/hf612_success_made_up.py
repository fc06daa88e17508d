"""HF612: the handler of a broad exception returns or yields a success.

Reported: a literal in the value that the handler returns claims success (`success=True`,
`"status": "ok"`, `"is_error": False`), and the value does not hold the exception. A plain `return True`
counts where the path without an error returns True as well and another path False; that is pedantic,
since True may mean anything.
Not reported: where the handler can raise before, and where the result names an error, too.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from handfast._check.finding import Finding
from handfast._check.model.syntax.children import walk_here
from handfast._check.model.syntax.control_flow import suspends
from handfast._check.model.syntax.function import Function
from handfast._check.model.syntax.handlers import Handler, handlers
from handfast._check.model.syntax.module import Module
from handfast._check.rules.rule import Rule, related, report

_CODE = "HF612"
_YES = {"success", "ok", "succeeded", "is_success", "successful", "completed"}
_NO = {"is_error", "failed", "has_error", "error_occurred"}
_STATE = {"status", "state", "result", "subtype", "outcome"}
_GOOD = {"ok", "success", "succeeded", "successful", "completed", "complete", "done", "passed"}
_BAD = re.compile(r".*(error|exception|fail|warning|reason|detail|fallback|degraded|skipped).*")
_QUESTION = re.compile(r"_*(is|has|should|can|needs?|must|will|was|supports?|exists?|allow)_.*")


def check(module: Module) -> Iterator[Finding]:
    for function in module.functions:
        if not function.is_async:
            continue
        for handler in handlers(function):
            if handler.is_broad and any(map(suspends, handler.tried.body)):
                yield from _evaluate(module, handler)


def _evaluate(module: Module, handler: Handler) -> Iterator[Finding]:
    for node in handler.nodes:
        if not isinstance(node, (ast.Return, ast.Yield)) or node.value is None:
            continue
        claims = _claims_success(node.value) and not _names(node.value, handler.node.name)
        plain = not claims and _is_true(node.value) and _true_is_success(handler)
        if claims or plain:
            yield report(
                _CODE,
                module,
                node,
                f"`{handler.function.qualname}` returns a success after any exception, so its caller "
                "cannot see the failure: return an error, or raise",
                related(module, handler.node, "any exception is caught here"),
                pedantic=plain,
            )


def _claims_success(value: ast.expr) -> bool:
    """Whether a literal claims success, and nothing in it names an error."""
    match value:
        case ast.Dict(keys, values):
            pairs = [(_text(key), each) for key, each in zip(keys, values, strict=True)]
        case ast.Call(_, _, keywords):
            pairs = [(each.arg or "", each.value) for each in keywords]
        case _:
            return False
    names = [name.lower() for name, _ in pairs]
    if any(_BAD.fullmatch(name) and name not in _NO for name in names):
        return False
    return any(_is_good(name.lower(), each) for name, each in pairs)


def _is_good(name: str, value: ast.expr) -> bool:
    match value:
        case ast.Constant(True):
            return name in _YES
        case ast.Constant(False):
            return name in _NO
        case ast.Constant(str(text)):
            return name in _STATE and text.lower() in _GOOD
    return False


def _text(key: ast.expr | None) -> str:
    return key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else ""


def _names(value: ast.expr, name: str | None) -> bool:
    return any(isinstance(each, ast.Name) and each.id == name for each in ast.walk(value))


def _is_true(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is True


def _true_is_success(handler: Handler) -> bool:
    """Whether the path without an error returns True, and another path False."""
    function = handler.function
    if _QUESTION.fullmatch(function.name):
        return False
    normal = [each for stmt in handler.tried.body for each in walk_here(stmt)]
    return _gives(normal, True) and _gives(_outside(function, handler), False)


def _outside(function: Function, handler: Handler) -> list[ast.AST]:
    inside = set(handler.nodes)
    return [each for each in function.nodes if each not in inside]


def _gives(nodes: list[ast.AST], wanted: bool) -> bool:
    return any(
        isinstance(each, ast.Return)
        and isinstance(each.value, ast.Constant)
        and each.value.value is wanted
        for each in nodes
    )


RULE = Rule(_CODE, check, needs=("Exception|except:|except :", "async ", "return|yield"))
