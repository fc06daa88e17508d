"""Counts the lines of code of each version: without blank lines, comments and docstrings."""

from __future__ import annotations

import ast
import io
import tokenize

from examples.programs import LIBRARIES, NAMES, version_file

__all__ = ["count", "table"]

_NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


def count(source: str) -> int:
    """How many lines of a source have code.

    >>> count("# why\\nx = 1\\n\\ny = 2\\n")
    2
    """
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            lines.difference_update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(lines)


def table() -> str:
    """The counts of all programs as a table."""
    rows = [f"{'lines of code':<19}" + "".join(f"{library:>10}" for library in LIBRARIES)]
    for name in NAMES:
        counts = [count(version_file(name, library).read_text()) for library in LIBRARIES]
        rows.append(f"{name:<19}" + "".join(f"{lines:>10}" for lines in counts))
    return "\n".join(rows)
