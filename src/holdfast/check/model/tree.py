"""The parts of a node, quickly: what every walk over a tree is made of.

Left out is what no rule asks for as a node: the contexts (`Load`, `Store`) and operators, which are a
third of a tree, and one object for all places.
"""

from __future__ import annotations

import ast

__all__ = ["LEAVES", "children"]

LEAVES = frozenset({ast.Name, ast.Constant, ast.alias, ast.Pass})
"""Kinds of nodes that have nothing below them."""

_NO_NODES = frozenset(
    {
        *("ctx", "op", "ops", "id", "attr", "arg", "module", "level", "asname", "is_async"),
        *("simple", "conversion", "kind", "type_comment", "lineno", "tag", "rest", "kwd_attrs"),
    }
)
_PARTS: dict[type[ast.AST], tuple[str, ...]] = {
    ast.Constant: (),
    ast.Name: (),
    ast.alias: (),
    ast.Global: (),
    ast.Nonlocal: (),
    ast.arg: ("annotation",),
}


def children(node: ast.AST) -> list[ast.AST]:
    """The nodes right below this one, in source order."""
    kind = type(node)
    parts = _PARTS.get(kind)
    if parts is None:
        parts = _PARTS[kind] = tuple(name for name in kind._fields if name not in _NO_NODES)
    found: list[ast.AST] = []
    for name in parts:
        value = getattr(node, name, None)
        if isinstance(value, list):
            found += [each for each in value if isinstance(each, ast.AST)]
        elif isinstance(value, ast.AST):
            found.append(value)
    return found
