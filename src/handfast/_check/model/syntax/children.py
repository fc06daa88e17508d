"""Fast iteration over the children of a node; every walk over a tree uses it.

Contexts (`Load`, `Store`) and operators are left out: they are a third of a tree, no rule needs them
as nodes, and the parser uses one object for all places, so they have no parent of their own.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from typing import Any

LEAVES = frozenset({ast.Name, ast.Constant, ast.alias, ast.Pass, ast.Global, ast.Nonlocal})
"""Kinds of nodes that have nothing below them."""

_NO_NODES = frozenset(
    {
        *("ctx", "op", "ops", "id", "attr", "arg", "module", "level", "asname", "is_async"),
        *("simple", "conversion", "kind", "type_comment", "lineno", "tag", "rest", "kwd_attrs"),
    }
)
_INNER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_Parts = Callable[[Any], Sequence[ast.AST]]


def children(node: ast.AST) -> Sequence[ast.AST]:
    """The nodes right below this one, in source order."""
    kind = type(node)
    parts = _PARTS.get(kind)
    if parts is None:
        parts = _PARTS[kind] = _in_fields(kind)
    return parts(node)


def walk_here(node: ast.AST) -> Iterator[ast.AST]:
    """A node and all below it, without the bodies of functions and classes defined in it."""
    todo = [node]
    while todo:
        each = todo.pop()
        yield each
        if isinstance(each, _INNER) and each is not node:
            continue
        todo += children(each)


def _in_fields(kind: type[ast.AST]) -> _Parts:
    names = tuple(name for name in kind._fields if name not in _NO_NODES)

    def parts(node: ast.AST) -> Sequence[ast.AST]:
        found: list[ast.AST] = []
        for name in names:
            value = getattr(node, name, None)
            if isinstance(value, list):
                found += [each for each in value if isinstance(each, ast.AST)]
            elif isinstance(value, ast.AST):
                found.append(value)
        return found

    return parts


# Nine nodes in ten are of these kinds, and direct access to their fields takes a third of the time of
# the generic loop.
_PARTS: dict[type[ast.AST], _Parts] = {
    **dict.fromkeys(LEAVES, lambda node: ()),
    ast.Attribute: lambda node: (node.value,),
    ast.Call: lambda node: (node.func, *node.args, *node.keywords),
    ast.Expr: lambda node: (node.value,),
    ast.Await: lambda node: (node.value,),
    ast.keyword: lambda node: (node.value,),
    ast.Assign: lambda node: (*node.targets, node.value),
    ast.Subscript: lambda node: (node.value, node.slice),
    ast.BinOp: lambda node: (node.left, node.right),
    ast.BoolOp: lambda node: node.values,
    ast.UnaryOp: lambda node: (node.operand,),
    ast.Compare: lambda node: (node.left, *node.comparators),
    ast.Tuple: lambda node: node.elts,
    ast.List: lambda node: node.elts,
    ast.JoinedStr: lambda node: node.values,
    ast.Return: lambda node: () if node.value is None else (node.value,),
    ast.arg: lambda node: () if node.annotation is None else (node.annotation,),
    ast.If: lambda node: (node.test, *node.body, *node.orelse),
    ast.FormattedValue: lambda node: (
        (node.value,) if node.format_spec is None else (node.value, node.format_spec)
    ),
    ast.Starred: lambda node: (node.value,),
    ast.IfExp: lambda node: (node.test, node.body, node.orelse),
    ast.ImportFrom: lambda node: node.names,
    ast.Import: lambda node: node.names,
}
