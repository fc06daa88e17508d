"""Where whole lines can be put into a file, before or after a statement, and by what name asyncio is
known there. Columns are the parser's: bytes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from holdfast.check.finding import Edit, Place
from holdfast.check.model.function import Function
from holdfast.check.model.module import Module

__all__ = ["after", "asyncio_in", "before", "is_hidden", "newline", "stands_alone", "top_statement"]


def stands_alone(module: Module, stmt: ast.stmt) -> bool:
    """Whether no other statement shares a line with this one, so that lines can go in beside it."""
    source = module.source
    first, last = source.line(stmt.lineno), source.line(stmt.end_lineno or stmt.lineno)
    behind = last.encode()[stmt.end_col_offset :].decode().strip()
    return (
        not first.encode()[: stmt.col_offset].strip()
        and (not behind or behind.startswith("#"))
        and not source.line(stmt.lineno - 1).endswith("\\")
    )


def after(module: Module, stmt: ast.stmt, *lines: str) -> Edit:
    """The lines, below a statement that stands alone; a comment beside it stays there."""
    last = stmt.end_lineno or stmt.lineno
    start = newline(module) + _indent(module, stmt)
    return _insertion(module, last, len(module.source.line(last).encode()) + 1, start, lines)


def _insertion(module: Module, line: int, column: int, start: str, lines: tuple[str, ...]) -> Edit:
    place = Place(module.path, line, column, line, column)
    return Edit(place, "".join(f"{start}{each}" for each in lines))


def before(module: Module, stmt: ast.stmt, *lines: str) -> Edit:
    """The lines, above a statement that stands alone."""
    marks = [each.lineno for each in getattr(stmt, "decorator_list", ())]
    line, column = min([stmt.lineno, *marks]), stmt.col_offset + 1
    end = newline(module) + _indent(module, stmt)
    text = "".join(f"{each}{end}" for each in lines)
    return Edit(Place(module.path, line, column, line, column), text)


def _indent(module: Module, stmt: ast.stmt) -> str:
    return module.source.line(stmt.lineno)[: stmt.col_offset]


def newline(module: Module) -> str:
    """How the lines of the file end."""
    text = module.source.text
    return "\r\n" if "\r\n" in text else "\n" if "\n" in text else "\r"


def top_statement(module: Module, node: ast.AST) -> ast.stmt:
    """The statement of the module itself that a node is a part of."""
    while not isinstance(module.parents[node], ast.Module):
        node = module.parents[node]
    assert isinstance(node, ast.stmt)
    return node


def asyncio_in(module: Module, *, above: int) -> str:
    """What the module calls asyncio, if a line above this one imports it for the whole module."""
    for stmt in module.source.tree.body:
        if isinstance(stmt, ast.Import) and stmt.lineno < above:
            for name in stmt.names:
                if name.name == "asyncio" or (name.name.startswith("asyncio.") and not name.asname):
                    return name.asname or "asyncio"
    return ""


def is_hidden(function: Function, name: str) -> bool:
    """Whether a name of the module means something else in a function."""
    return any(name in each.parameters or name in each.local_names for each in _around(function))


def _around(function: Function) -> Iterator[Function]:
    around: Function | None = function
    while around is not None:
        yield around
        around = around.outer
