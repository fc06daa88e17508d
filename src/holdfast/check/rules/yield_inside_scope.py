"""HF541: an async generator yields inside a task group, a cancel scope or a time-out.

Found also where the scope is under a name, in a context manager of the same module that yields
inside one, or in a published client that is known to keep a task group open.

Silent in context managers and fixtures, in functions that are handed to something that makes them
one (`asynccontextmanager(f)`, `Depends(f)`), and under a decorator that is not known.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from holdfast.check.finding import Finding
from holdfast.check.model.function import Function
from holdfast.check.model.module import Module
from holdfast.check.model.scopes import is_context_manager, yields_inside
from holdfast.check.rules.rule import Rule, found, related

__all__ = ["RULE"]

_HARMLESS = {"staticmethod", "classmethod", "override", "abstractmethod", "final", "overload"}
_MAKES_MANAGER = {
    "asynccontextmanager", "contextmanager", "Depends", "Security", "fixture", "Provide", "Provider",
    "lifespan",
}  # fmt: skip
_ITSELF = {"lifespan", "__aenter__", "_lifespan"}


def check(module: Module) -> Iterator[Finding]:
    for function in module.functions:
        if function.is_async and function.is_generator and not _is_hosted(function):
            yield from _findings(function)


def _findings(function: Function) -> Iterator[Finding]:
    module = function.module
    seen: set[ast.AST] = set()
    for node, item, name in yields_inside(function):
        if item in seen:  # one scope, one finding, however often it yields
            continue
        seen.add(item)
        yield found(
            "HF541",
            module,
            node,
            f"`{function.name}` yields inside `{name}`, entered on line "
            f"{item.context_expr.lineno}: while it rests here, the scope may cancel whatever the "
            "consumer is doing, and a consumer that leaves early has it closed in another task",
            related(module, item.context_expr, "the scope is entered here"),
        )


def _is_hosted(function: Function) -> bool:
    """Whether something enters and leaves the generator in one task."""
    if is_context_manager(function) or function.name in _ITSELF:
        return True
    for each in getattr(function.node, "decorator_list", ()):
        plain = each.func if isinstance(each, ast.Call) else each
        if function.name_of(plain).rpartition(".")[2] not in _HARMLESS:
            return True
    return _is_made_manager(function)


def _is_made_manager(function: Function) -> bool:
    for where, call in function.module.calls():
        if where.name_of(call.func).rpartition(".")[2] not in _MAKES_MANAGER:
            continue
        given = [*call.args, *(keyword.value for keyword in call.keywords)]
        if any(where.name_of(each).rpartition(".")[2] == function.name for each in given):
            return True
    return False


RULE = Rule("HF541", check)
