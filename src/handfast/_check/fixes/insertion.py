"""What fixes have in common: inserting whole lines, the name of asyncio in a file, and free names.

Columns are those of the parser: bytes.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Container, Iterable, Iterator

from handfast._check.finding import Edit, Span
from handfast._check.model.syntax.ancestors import above
from handfast._check.model.syntax.function import Function
from handfast._check.model.syntax.module import Module


def is_alone_on_lines(module: Module, stmt: ast.stmt) -> bool:
    """Whether no other statement is on the lines of this one, so that lines can be inserted."""
    source = module.source
    first, last = source.line(stmt.lineno), source.line(stmt.end_lineno or stmt.lineno)
    rest = last.encode()[stmt.end_col_offset :].decode().strip()
    return (
        not first.encode()[: stmt.col_offset].strip()
        and (not rest or rest.startswith("#"))
        and not source.line(stmt.lineno - 1).endswith("\\")
    )


def after(module: Module, stmt: ast.stmt, *lines: str) -> Edit:
    """Insert lines after a statement; a comment on its last line stays there."""
    last = stmt.end_lineno or stmt.lineno
    column = len(module.source.line(last).encode()) + 1
    start = newline(module) + _indent(module, stmt)
    return insert(module, last, column, "".join(f"{start}{each}" for each in lines))


def before(module: Module, stmt: ast.stmt, *lines: str) -> Edit:
    """Insert lines before a statement and its decorators."""
    marks = [each.lineno for each in getattr(stmt, "decorator_list", ())]
    line, column = min([stmt.lineno, *marks]), stmt.col_offset + 1
    end = newline(module) + _indent(module, stmt)
    text = "".join(f"{each}{end}" for each in lines)
    return insert(module, line, column, text)


def insert(module: Module, line: int, column: int, text: str) -> Edit:
    """Insert text at a place."""
    return Edit(Span(module.path, line, column, line, column), text)


def _indent(module: Module, stmt: ast.stmt) -> str:
    return module.source.line(stmt.lineno)[: stmt.col_offset]


def newline(module: Module) -> str:
    """Return the line ending of the file."""
    text = module.source.text
    return "\r\n" if "\r\n" in text else "\n" if "\n" in text else "\r"


def top_statement(module: Module, node: ast.AST) -> ast.stmt:
    """Return the top-level statement that contains a node."""
    *_, top, _ = (node, *above(module.parents, node))
    assert isinstance(top, ast.stmt)
    return top


def asyncio_in(module: Module, *, above: int) -> str:
    """Return the name of asyncio in the module, if it is imported at the top level above a line."""
    for stmt in module.source.tree.body:
        if isinstance(stmt, ast.Import) and stmt.lineno < above:
            for name in stmt.names:
                if name.name == "asyncio" or (name.name.startswith("asyncio.") and not name.asname):
                    return name.asname or "asyncio"
    return ""


def is_hidden(function: Function, name: str) -> bool:
    """Whether a name of the module is shadowed in a function."""
    return any(name in each.parameters or name in each.local_names for each in _around(function))


def _around(function: Function) -> Iterator[Function]:
    around: Function | None = function
    while around is not None:
        yield around
        around = around.outer


# --- free names ----------------------------------------------------------------------------------


def free_among(names: Iterable[str], taken: Container[str]) -> str:
    """Return the first name that is not taken; empty if all are."""
    return next((name for name in names if name not in taken), "")


def mentioned(tree: ast.AST) -> Counter[str]:
    """Count every name in a piece of code, whatever it means there."""
    return Counter(name for node in ast.walk(tree) for name in _named(node))


def _named(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(name) | ast.Attribute(attr=name) | ast.arg(name):
            yield name
        case ast.FunctionDef(name) | ast.AsyncFunctionDef(name) | ast.ClassDef(name):
            yield name
        case ast.Global(names) | ast.Nonlocal(names):
            yield from names
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
            yield name
        case ast.MatchStar(str(name)) | ast.MatchMapping(rest=str(name)):
            yield name
        case ast.alias(name, asname):
            yield asname or name
        case ast.Constant(str(text)):
            yield text  # `getattr` may use it
