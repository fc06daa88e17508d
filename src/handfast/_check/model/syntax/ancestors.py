"""Nodes around a node and below it.

`except*` has another type of node than `except`. A rule that names only `ast.Try` misses it without
an error, so rules use `TRY` and the functions here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from handfast._check.model.syntax.children import walk_here

if TYPE_CHECKING:
    from handfast._check.model.syntax.function import Function


AnyTry = ast.Try | ast.TryStar
TRY = (ast.Try, ast.TryStar)
Loop = ast.For | ast.AsyncFor | ast.While
LOOPS = (ast.For, ast.AsyncFor, ast.While)


# --- upwards -------------------------------------------------------------------------------------


def above(parents: Mapping[ast.AST, ast.AST], node: ast.AST) -> Iterator[ast.AST]:
    """The nodes around a node, the innermost first, up to the module."""
    up = parents.get(node)
    while up is not None:
        yield up
        up = parents.get(up)


def ancestors(function: Function, node: ast.AST) -> Iterator[ast.AST]:
    """The nodes around a node inside a function, the innermost first."""
    for up in above(function.module.parents, node):
        if up is function.node:
            return
        yield up


def steps_up(function: Function, node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """The same, each with the part of it through which the node is reached: `(part, ancestor)`."""
    part = node
    for up in ancestors(function, node):
        yield part, up
        part = up


def enclosing_loop(function: Function, node: ast.AST) -> Loop | None:
    """The innermost loop statement around a node."""
    return next((up for up in ancestors(function, node) if isinstance(up, LOOPS)), None)


def enclosing_tries(function: Function, node: ast.AST) -> Iterator[AnyTry]:
    """The `try` statements whose handlers see an exception of a node, the innermost first."""
    for part, up in steps_up(function, node):
        # Handlers see only what the body raises, not what an `else` or another handler does.
        if isinstance(up, TRY) and part in up.body:
            yield up


def is_in_finally(function: Function, node: ast.AST) -> bool:
    """Whether a node is part of a `finally`."""
    return any(
        isinstance(up, TRY) and part in up.finalbody for part, up in steps_up(function, node)
    )


# --- downwards -----------------------------------------------------------------------------------


def nodes_in(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """All nodes of a block, without the bodies of functions and classes defined in it."""
    for part in body:
        yield from walk_here(part)


def contains(body: Iterable[ast.AST], *kinds: type[ast.AST]) -> bool:
    """Whether a block has a node of one of these kinds."""
    return any(isinstance(each, kinds) for each in nodes_in(body))


def calls_in(body: Iterable[ast.AST]) -> Iterator[ast.Call]:
    """The calls of a block."""
    return (each for each in nodes_in(body) if isinstance(each, ast.Call))


def assignments(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The targets of an assignment, each with the value: `=`, annotated, or `:=`."""
    match node:
        case ast.Assign(targets, value):
            yield from ((target, value) for target in targets)
        case ast.AnnAssign(target, _, value) if value is not None:
            yield target, value
        case ast.NamedExpr(target, value):
            yield target, value


def is_true(test: ast.expr) -> bool:
    """Whether a test is a constant that is always true: `while True`, `while 1`."""
    return isinstance(test, ast.Constant) and bool(test.value)


def last_name(node: ast.AST | None) -> str:
    """The `c` of `a.b.c`, of `f().c` and of `c`, as it is written; empty for anything else.

    `Function.last_name_of` is the same with imports resolved.
    """
    match node:
        case ast.Attribute(attr=name) | ast.Name(name):
            return name
    return ""
