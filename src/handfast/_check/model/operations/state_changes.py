"""What statements change in an object and take back again: flags, counters, attributes, entries."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from handfast._check.model.syntax.ancestors import AnyTry, ancestors
from handfast._check.model.syntax.function import Function


def changed(function: Function, node: ast.AST) -> str:
    """The attribute, or the element of one, that a statement counts up or sets to something."""
    match node:
        case ast.AugAssign(target, ast.Add()):
            return _state(function, target)
        case ast.Assign([target], value) if not _is_nothing(value):
            return _state(function, target)
    return ""


def undone(function: Function, body: list[ast.stmt]) -> Iterator[tuple[str, ast.stmt]]:
    """The same for statements that count down, reset or remove it."""
    for stmt in body:
        match stmt:
            case ast.AugAssign(target, ast.Sub()):
                yield _state(function, target), stmt
            case ast.Assign([target], value) if _is_nothing(value):
                yield _state(function, target), stmt
            case ast.Delete([target]):
                yield _state(function, target), stmt
            case ast.Expr(ast.Call(ast.Attribute(container, "pop"), [key, *_])):
                yield _state(function, ast.Subscript(container, key)), stmt


def _state(function: Function, node: ast.expr) -> str:
    """`self.x` or `self.x[key]`; empty for anything else."""
    match node:
        case ast.Subscript(ast.Attribute() as container, ast.Name() | ast.Attribute() as key):
            name, at = function.name_of(container), function.name_of(key)
            return f"{name}[{at}]" if name.startswith("self.") and at else ""
        case ast.Attribute() if attr := function.own_attribute(node):
            return f"self.{attr}"
    return ""


def _is_nothing(value: ast.expr) -> bool:
    match value:
        case ast.Constant(None | False | 0) | ast.List([]) | ast.Dict([]) | ast.Tuple([]):
            return True
    return False


def always_before(function: Function, stmt: ast.stmt, tried: AnyTry) -> bool:
    """Whether a statement always runs before a `try`: it stands above it, in its block or around it."""
    around = function.module.parents.get(stmt)
    if isinstance(around, ast.If) and stmt in around.body and not around.orelse:
        # `if self._client is None: self._client = Client()`
        tested = (each for each in ast.walk(around.test) if isinstance(each, ast.Attribute))
        if changed(function, stmt) in map(function.name_of, tested):
            stmt = around
    blocks = (up for up in (tried, *ancestors(function, tried)) if isinstance(up, ast.stmt))
    return any(stmt in block_around(function, up) for up in blocks)


def block_around(function: Function, node: ast.stmt) -> list[ast.stmt]:
    """The block in which a statement stands."""
    up = function.module.parents.get(node)
    blocks = (getattr(up, name, None) for name in ("body", "orelse", "finalbody"))
    return next((each for each in blocks if isinstance(each, list) and node in each), [])


def flags_set(function: Function, block: list[ast.stmt]) -> dict[str, tuple[ast.stmt, bool]]:
    """The attributes of the object that a block itself sets to True or False."""
    found: dict[str, tuple[ast.stmt, bool]] = {}
    for stmt in block:
        match stmt:
            case ast.Assign([target], ast.Constant(bool() as value)):
                if attr := function.own_attribute(target):
                    found[f"self.{attr}"] = stmt, value
    return found
