"""HF541: an async generator yields inside a task group, a cancel scope or a timeout.

Reported also where the scope is in a local name, in a context manager of the same module that yields
inside one, or in a published client that is known to keep a task group open.
Not reported: context managers and fixtures, functions that are passed to something that makes them
one (`asynccontextmanager(f)`, `Depends(f)`), and functions with a decorator that is not known.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from handfast._check.finding import Finding
from handfast._check.model.syntax.cancel_scopes import is_context_manager, yields_inside
from handfast._check.model.syntax.function import Function
from handfast._check.model.syntax.memo import remembered
from handfast._check.model.syntax.module import Module
from handfast._check.rules.rule import Rule, related, report

_HARMLESS = {"staticmethod", "classmethod", "override", "abstractmethod", "final", "overload"}
_MANAGER_MAKERS = {
    "asynccontextmanager", "contextmanager", "Depends", "Security", "fixture", "Provide", "Provider",
    "lifespan",
}  # fmt: skip
_ITSELF = {"lifespan", "__aenter__", "_lifespan"}


def check(module: Module) -> Iterator[Finding]:
    for function in module.functions:
        if function.is_async and function.is_generator and not _is_entered_once(function):
            yield from _findings(function)


def _findings(function: Function) -> Iterator[Finding]:
    module = function.module
    seen: set[ast.AST] = set()
    for node, item, name in yields_inside(function):
        if item in seen:  # one finding for each scope
            continue
        seen.add(item)
        yield report(
            "HF541",
            module,
            node,
            f"`{function.name}` yields inside `{name}`, entered on line "
            f"{item.context_expr.lineno}: while it is suspended here, the scope may cancel the consumer, "
            "and after an early exit of the consumer another task may close the scope; make it a context "
            "manager, or send the items through a queue",
            related(module, item.context_expr, "the scope is entered here"),
        )


def _is_entered_once(function: Function) -> bool:
    """Whether a context manager enters and leaves the generator in one task."""
    if is_context_manager(function) or function.name in _ITSELF:
        return True
    for each in getattr(function.node, "decorator_list", ()):
        plain = each.func if isinstance(each, ast.Call) else each
        if function.last_name_of(plain) not in _HARMLESS:
            return True
    return _is_made_manager(function)


def _is_made_manager(function: Function) -> bool:
    return function.name in _made_managers(function.module)


@remembered
def _made_managers(module: Module) -> frozenset[str]:
    """The names of what is passed to `asynccontextmanager` and its like."""
    return frozenset(
        where.last_name_of(each)
        for where, call in module.calls()
        if where.last_name_of(call.func) in _MANAGER_MAKERS
        for each in (*call.args, *(keyword.value for keyword in call.keywords))
    )


RULE = Rule("HF541", check, any_library=True, needs=("yield", "async ", "with "))
