"""HF612: the handler of a broad exception returns or yields a success.

Evidence: what the handler gives out says that it worked, in a literal: `success=True`,
`"status": "ok"`, `"is_error": False`; and does not hold the exception. A plain `return True`
counts where the way without an error returns True as well and another way False: pedantic,
since True may mean anything.
Silent where the handler can raise before, and where the result names an error too.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from holdfast.check.finding import Finding
from holdfast.check.model.flow import suspends, walk_here
from holdfast.check.model.function import Function
from holdfast.check.model.handlers import Handler, handlers
from holdfast.check.model.module import Module
from holdfast.check.rules.rule import Rule, found, related

__all__ = ["RULE"]

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
                yield from _judge(module, handler)


def _judge(module: Module, handler: Handler) -> Iterator[Finding]:
    for node in handler.nodes:
        if not isinstance(node, (ast.Return, ast.Yield)) or node.value is None:
            continue
        said = _says_success(node.value) and not _names(node.value, handler.node.name)
        plain = not said and _is_true(node.value) and _true_is_success(handler)
        if said or plain:
            yield found(
                _CODE,
                module,
                node,
                f"`{handler.function.qualname}` makes up a success for whatever has failed: the caller "
                "is told that it worked",
                related(module, handler.node, "any exception ends here"),
                pedantic=plain,
            )


def _says_success(value: ast.expr) -> bool:
    """Whether a literal says that it worked, and nothing in it says that it did not."""
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
    """Whether the way without an error gives True, and False is given elsewhere."""
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


RULE = Rule(_CODE, check)
