"""HF622: of an exception group only `group.exceptions[0]` is used.

Reported: `x.exceptions[0]` where `x` is known to be a group (the name of a handler of groups, or tested
by `isinstance`), and no other use of `x.exceptions` in the function.
Not reported: where the number of exceptions is tested (a group of one may be unwrapped), where the
`try` holds a task group that starts one task and awaits nothing else, where the group itself is
raised, logged or kept, and where the type of `x` is not known.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from handfast._check.finding import Finding
from handfast._check.model.syntax.ancestors import TRY, contains, nodes_in
from handfast._check.model.syntax.function import Function
from handfast._check.model.syntax.handlers import handlers
from handfast._check.model.syntax.module import Module
from handfast._check.model.vocabulary import GROUPS
from handfast._check.rules.rule import Rule, related, report

_CODE = "HF622"


def check(module: Module) -> Iterator[Finding]:
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
            yield report(
                _CODE,
                module,
                first or use,
                f"`{function.qualname}` uses the first exception of a group and loses the others: handle "
                "each, with `except*` or a loop",
                related(module, known, "the group is caught here"),
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
                if all(function.name_of(each).endswith(tuple(GROUPS)) for each in kinds):
                    return node
    return None


def _is_of_one(tried: ast.AST | None) -> bool:
    """Whether a `try` has only a task group that starts one task."""
    match tried.body if isinstance(tried, TRY) else []:
        case [ast.AsyncWith([ast.withitem(_, ast.Name(group))], body)]:
            starts = [node for node in nodes_in(body) if _is_start(node, group)]
            again = (ast.Await, ast.For, ast.AsyncFor, ast.While, ast.AsyncWith, ast.comprehension)
            return len(starts) == 1 and not contains(body, *again)
    return False


def _is_start(node: ast.AST, group: str) -> bool:
    match node:
        case ast.Call(ast.Attribute(ast.Name(receiver), "start_soon" | "create_task")):
            return receiver == group
    return False


def _is_used_whole(function: Function, first: ast.Name) -> bool:
    """Whether the group is used as a whole: raised, logged, passed to a call."""
    for node in function.nodes:
        if not isinstance(node, ast.Name) or node.id != first.id or node is first:
            continue
        parent = function.module.parents.get(node)
        is_test = isinstance(parent, ast.Call) and function.name_of(parent.func) == "isinstance"
        if isinstance(node.ctx, ast.Load) and not is_test:
            return True
    return False


RULE = Rule(
    _CODE, check, any_library=True, needs=(".exceptions", "ExceptionGroup|except*|except *")
)
