"""Which locks are held where: by a `with` around it, or by everybody who calls the function."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from holdfast.check.model.function import Function
from holdfast.check.model.tasks import resolve_function

__all__ = ["locks_held"]

_DEPTH = 4


def locks_held(function: Function, node: ast.AST, depth: int = 0) -> frozenset[str]:
    """The names of what is held at a node by `with` or `async with`, callers counted."""
    own = _around(function, node)
    if depth >= _DEPTH or not function.name.startswith("_"):
        return own  # who else calls a public method, nobody can say
    calls = [locks_held(caller, call, depth + 1) for caller, call in _callers(function)]
    return own | frozenset.intersection(*calls) if calls else own


def _around(function: Function, node: ast.AST) -> frozenset[str]:
    held: set[str] = set()
    up: ast.AST | None = node
    while up is not None and up is not function.node:
        if isinstance(up, ast.With | ast.AsyncWith):
            held |= {function.name_of(item.context_expr) for item in up.items}
        up = function.module.parents.get(up)
    return frozenset(held - {""})


def _callers(function: Function) -> Iterator[tuple[Function, ast.Call]]:
    klass = function.klass
    for caller in klass.functions if klass is not None else function.module.functions:
        for call in caller.calls:
            if _names(call.func, function.name) and function in resolve_function(caller, call.func):
                yield caller, call


def _names(called: ast.expr, name: str) -> bool:
    match called:
        case ast.Attribute(_, last) | ast.Name(last):
            return last == name
    return False
