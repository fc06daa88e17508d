"""HF622: of an exception group only `group.exceptions[0]` is used.

Evidence: `x.exceptions[0]` where `x` is known to be a group (the name of a handler of groups, or
tested by `isinstance`), and no other use of `x.exceptions` in the function.
Silent where the number of exceptions is looked at (a group of one may be unwrapped), where the
`try` holds a task group that starts one task and waits for nothing else, where the group itself is
raised, logged or kept, and where the receiver is not known.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from holdfast.check.finding import Finding
from holdfast.check.model.flow import walk_here
from holdfast.check.model.function import Function
from holdfast.check.model.handlers import handlers
from holdfast.check.model.module import Module
from holdfast.check.rules.rule import Rule, found, related

__all__ = ["RULE"]

_CODE = "HF622"
_GROUPS = ("ExceptionGroup", "BaseExceptionGroup")


def check(module: Module) -> Iterator[Finding]:
    if ".exceptions" not in module.source.text:
        return
    for function in module.functions:
        uses = [each for each in function.nodes if _is_exceptions(each)]
        for use in uses if len(uses) == 1 else ():
            assert isinstance(use, ast.Attribute)
            assert isinstance(use.value, ast.Name)
            first = module.parents.get(use)
            known = _known_group(function, use.value.id)
            if known is None or not _is_first(first) or _is_used_whole(function, use.value):
                continue
            if _is_of_one(module.parents.get(known)):
                continue
            yield found(
                _CODE,
                module,
                first or use,
                f"`{function.qualname}` uses the first exception of a group and loses the others",
                related(module, known, "the group comes in here"),
            )


def _is_exceptions(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Attribute)
        and node.attr == "exceptions"
        and (isinstance(node.value, ast.Name))
    )


def _is_first(node: ast.AST | None) -> bool:
    return (
        isinstance(node, ast.Subscript)
        and isinstance(node.slice, ast.Constant)
        and (node.slice.value == 0)
    )


def _known_group(function: Function, name: str) -> ast.AST | None:
    for handler in handlers(function):
        if handler.node.name == name and handler.is_of_groups:
            return handler.node
    for node in function.nodes:
        match node:
            case ast.Call(ast.Name("isinstance"), [ast.Name(tested), kind]) if tested == name:
                kinds = kind.elts if isinstance(kind, ast.Tuple) else [kind]
                if all(function.name_of(each).endswith(_GROUPS) for each in kinds):
                    return node
    return None


def _is_of_one(tried: ast.AST | None) -> bool:
    """Whether a `try` holds nothing but a task group in which one task is started."""
    match tried:
        case ast.Try([ast.AsyncWith([ast.withitem(_, ast.Name(group))], body)]):
            starts = [node for stmt in body for node in walk_here(stmt) if _is_start(node, group)]
            again = (ast.Await, ast.For, ast.AsyncFor, ast.While, ast.AsyncWith, ast.comprehension)
            return len(starts) == 1 and not any(
                isinstance(node, again) for stmt in body for node in walk_here(stmt)
            )
    return False


def _is_start(node: ast.AST, group: str) -> bool:
    match node:
        case ast.Call(ast.Attribute(ast.Name(asked), "start_soon" | "create_task")):
            return asked == group
    return False


def _is_used_whole(function: Function, first: ast.Name) -> bool:
    """Whether the group goes anywhere as a whole: raised, logged, given to a call."""
    for node in function.nodes:
        if not isinstance(node, ast.Name) or node.id != first.id or node is first:
            continue
        parent = function.module.parents.get(node)
        asked = isinstance(parent, ast.Call) and function.name_of(parent.func) == "isinstance"
        if isinstance(node.ctx, ast.Load) and not asked:
            return True
    return False


RULE = Rule(_CODE, check)
