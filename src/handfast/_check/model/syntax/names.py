"""Full names: imports are followed, and attribute chains are written out.

`asyncio.create_task`, `aio.create_task` after `import asyncio as aio`, and `create_task` after
`from asyncio import create_task` are all `asyncio.create_task`; `self.loop.create_task` stays so.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")
_SIMPLE = frozenset(
    {ast.Expr, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return, ast.Raise, ast.Import,
     ast.ImportFrom, ast.Assert, ast.Delete, ast.Pass, ast.Break, ast.Continue}
)  # fmt: skip


class Names:
    """The imports of one module."""

    __slots__ = ("_known", "_packages")

    def __init__(self, tree: ast.Module, package: str = "") -> None:
        self._known: dict[str, str] = {}
        for node in _statements(tree):
            if isinstance(node, ast.Import):
                for name in node.names:
                    first = name.name.partition(".")[0]
                    self._known[name.asname or first] = name.name if name.asname else first
            elif isinstance(node, ast.ImportFrom):
                origin = _absolute(node, package)
                for name in node.names:
                    self._known[name.asname or name.name] = f"{origin}.{name.name}"
        self._packages = {part for name in set(self._known.values()) for part in _prefixes(name)}

    def known(self, name: str) -> str:
        """The full name of an imported name; empty if it is not imported."""
        return self._known.get(name, "")

    def imports(self, package: str) -> bool:
        """Whether anything is imported from a package."""
        return package in self._packages

    def resolve(self, node: ast.expr) -> str:
        """The full name of an expression; empty if it is no name."""
        text = dotted(node)
        first, dot, rest = text.partition(".")
        known = self._known.get(first)
        return f"{known}{dot}{rest}" if known else text


def _prefixes(name: str) -> Iterator[str]:
    """`a.b.c`, `a.b` and `a`."""
    while name:
        yield name
        name = name.rpartition(".")[0]


def _statements(tree: ast.Module) -> Iterator[ast.AST]:
    """Every statement of a file. Imports are statements, so expressions are not searched."""
    found: list[ast.AST] = list(tree.body)
    for node in found:  # it grows during the loop
        yield node
        if type(node) not in _SIMPLE:
            for part in _BLOCKS:
                found += getattr(node, part, ())


def dotted(node: ast.expr) -> str:
    """`a.b.c` as it is written; a call or a subscript in the middle is `()` or `[]`, so that
    `loop().create_task` differs from `loop.create_task`."""
    parts: list[str] = []
    while True:
        match node:
            case ast.Attribute(value, attr):
                parts.append(attr)
                node = value
            case ast.Name(name):
                parts.append(name)
                return ".".join(reversed(parts))
            case ast.Call(function) if parts:
                parts.append("()")
                node = function
            case ast.Subscript(value) if parts:
                parts.append("[]")
                node = value
            case _:
                return ""


def _absolute(node: ast.ImportFrom, package: str) -> str:
    if not node.level:
        return node.module or ""
    parts = package.split(".") if package else []
    kept = parts[: len(parts) - (node.level - 1)] if node.level > 1 else parts
    return ".".join([*kept, node.module] if node.module else kept)
