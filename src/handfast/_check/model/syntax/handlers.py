"""What handlers catch, and whether an exception ends in them.

Imports, second names and constants are followed: `from asyncio import CancelledError as Stopped`, and
`_ERRORS = (CancelledError, OSError)` in the function, the class or the module.

A handler swallows if a path through it continues without raising. Naming the exception, logging it
with its traceback and `exc_info` are uses of it.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from handfast._check.model.syntax.ancestors import TRY, AnyTry, assignments, last_name, nodes_in
from handfast._check.model.syntax.memo import remembered
from handfast._check.model.vocabulary import GROUPS

if TYPE_CHECKING:
    from handfast._check.model.syntax.control_flow import Step
    from handfast._check.model.syntax.function import Function
    from handfast._check.model.syntax.module import Class

_BROAD = {"Exception", "BaseException", "builtins.Exception", "builtins.BaseException"}
_REPORTING = {"exception", "format_exc", "print_exc", "exc_info", "print_exception", "capture_exception",
           "format_exception"}  # fmt: skip

# `Exception` is not here: CancelledError has derived from BaseException since Python 3.8.
_CANCELLATIONS = frozenset({"", "CancelledError", "BaseException"})
# anyio's function that returns the class.
_CANCELLED_CLASS = "get_cancelled_exc_class"
# A constant may be made of others, and of itself in a broken file.
_DEPTH = 3


def caught(function: Function, kind: ast.expr | None) -> tuple[str, ...]:
    """The full names of the exceptions that `except kind` catches; one empty name if it is bare."""
    return tuple(_caught(function, kind, _DEPTH)) if kind is not None else ("",)


def is_cancellation(name: str) -> bool:
    """Whether catching the exception of this full name catches a CancelledError of asyncio.

    That of `concurrent.futures` is another class since Python 3.8.
    """
    return name.rpartition(".")[2] in _CANCELLATIONS and not name.startswith("concurrent.")


def catches_cancellation(function: Function, kind: ast.expr | None) -> bool:
    """Whether `except kind` catches a CancelledError."""
    return any(map(is_cancellation, caught(function, kind)))


def cancel_handlers(function: Function, tried: AnyTry) -> list[ast.ExceptHandler]:
    """The handlers of a `try` that catch a CancelledError."""
    return [each for each in tried.handlers if catches_cancellation(function, each.type)]


def names_cancellation(function: Function, node: ast.AST) -> bool:
    """Whether a node names the class CancelledError: a test for it, or a `raise`."""
    match node:
        case ast.Name() | ast.Attribute():
            return (function.last_name_of(node) or last_name(node)) == "CancelledError"
        case ast.Call(func):
            return last_name(func) == _CANCELLED_CLASS
    return False


def _caught(function: Function, node: ast.expr, depth: int) -> Iterator[str]:
    match node:
        case ast.Tuple(elements):
            for each in elements:
                yield from _caught(function, each, depth)
        case ast.Starred(value):
            yield from _caught(function, value, depth)
        case ast.BinOp(left, ast.Add(), right):
            yield from _caught(function, left, depth)
            yield from _caught(function, right, depth)
        case ast.Call(func) if function.last_name_of(func) == _CANCELLED_CLASS:
            yield "asyncio.CancelledError"
        case ast.Name() | ast.Attribute():
            values = _constant(function, node) if depth else []
            found = [name for each in values for name in _caught(function, each, depth - 1)]
            yield from found or [function.module.names.resolve(node)]


def _constant(function: Function, node: ast.Name | ast.Attribute) -> list[ast.expr]:
    """What is assigned to a name in the function or the module, or to an attribute in the class."""
    module = function.module
    match node:
        case ast.Attribute(ast.Name(owner), attr):
            own = owner in (function.self_here, "cls")
            klass = function.klass if own else module.classes.get(owner)
            return _class_constants(klass).get(attr, []) if klass is not None else []
        case ast.Name(name):
            # Most names are of these kinds, and of one that is assigned nowhere.
            if hasattr(builtins, name) or module.names.known(name) or name in module.classes:
                return []
            return function.assigned.get(name) or module.body.assigned.get(name, [])
    return []


@remembered
def _class_constants(klass: Class) -> dict[str, list[ast.expr]]:
    """What is assigned in the body of a class, and in its bases in the same file, by name."""
    found: dict[str, list[ast.expr]] = {}
    for each in klass.classes_in_file:
        for stmt in each.node.body:
            for target, value in assignments(stmt):
                if isinstance(target, ast.Name):
                    found.setdefault(target.id, [value])
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Handler:
    """One `except`, with the `try` that it belongs to."""

    function: Function
    tried: AnyTry
    node: ast.ExceptHandler

    @property
    def kinds(self) -> tuple[str, ...]:
        """The full names of what it catches; empty for a bare `except`."""
        return caught(self.function, self.node.type) if self.node.type is not None else ()

    @property
    def is_broad(self) -> bool:
        return self.node.type is None or bool(_BROAD & set(self.kinds))

    @property
    def is_of_groups(self) -> bool:
        """Whether it only catches exception groups."""
        if isinstance(self.tried, ast.TryStar):
            return True
        return bool(self.kinds) and all(kind.rpartition(".")[2] in GROUPS for kind in self.kinds)

    @property
    def nodes(self) -> Iterator[ast.AST]:
        return nodes_in(self.node.body)

    @property
    def raises(self) -> bool:
        """Whether it has a `raise`."""
        return any(isinstance(each, ast.Raise) for each in self.nodes)

    @property
    def swallows(self) -> bool:
        """Whether a path through it continues without raising."""
        start = self.function.flow.of(self.node)
        return start is not None and "continues" in self.ends_after(start.after)

    def ends_after(self, steps: list[Step]) -> frozenset[str]:
        """How the handler can end after these steps: `raises`, `continues`, or both."""
        # Outside its body a handler has neither raised nor returned: execution continues.
        inside = {id(each) for stmt in self.node.body for each in ast.walk(stmt)}
        ends: set[str] = set()
        seen: set[Step] = set()
        todo = list(steps)
        while todo:
            node = todo.pop()
            if id(node.stmt) not in inside:
                ends.add("continues")
            elif isinstance(node.stmt, ast.Raise):
                ends.add("raises")
            elif node not in seen:
                seen.add(node)
                todo += node.after
        return frozenset(ends)

    @property
    def uses_it(self) -> bool:
        """Whether the exception is named, logged with its traceback, or kept."""
        for each in self.nodes:
            match each:
                case ast.Name(name) if self.node.name and name == self.node.name:
                    return True
                case ast.Attribute(_, attr) if attr in _REPORTING:
                    return True
                case ast.keyword("exc_info"):
                    return True
        return False


def handlers(function: Function) -> Iterator[Handler]:
    """Every handler of a function."""
    for node in function.nodes:
        if isinstance(node, TRY):
            for each in node.handlers:
                yield Handler(function, node, each)
