"""Names for what a fix brings in: none that means something in the code already."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Container, Iterable, Iterator

__all__ = ["free_among", "mentioned"]


def free_among(names: Iterable[str], taken: Container[str]) -> str:
    """The first of these that is not taken; empty if all are."""
    return next((name for name in names if name not in taken), "")


def mentioned(tree: ast.AST) -> Counter[str]:
    """Every name that occurs in a piece of code, whatever it stands for there, and how often."""
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
            yield text  # it may be asked for by its name
