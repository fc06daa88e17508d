"""What handlers catch, and whether an exception ends in them.

A handler swallows if there is a way through it that goes on without raising. What it says about
the exception (its name, the logger, `exc_info`) is a use of it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from holdfast.check.model.flow import Node, walk_here
from holdfast.check.model.function import Function

__all__ = ["Handler", "handlers"]

_BROAD = {"Exception", "BaseException", "builtins.Exception", "builtins.BaseException"}
_GROUPS = {"ExceptionGroup", "BaseExceptionGroup"}
_SAYING = {"exception", "format_exc", "print_exc", "exc_info", "print_exception", "capture_exception",
           "format_exception"}  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Handler:
    """One `except`, with the `try` that it belongs to."""

    function: Function
    tried: ast.Try | ast.TryStar
    node: ast.ExceptHandler

    @property
    def kinds(self) -> tuple[str, ...]:
        """The full names of what it catches; empty for a bare `except`."""
        kind = self.node.type
        if kind is None:
            return ()
        each = kind.elts if isinstance(kind, ast.Tuple) else [kind]
        return tuple(self.function.module.names.resolve(one) for one in each)

    @property
    def is_broad(self) -> bool:
        return self.node.type is None or bool(_BROAD & set(self.kinds))

    @property
    def is_of_groups(self) -> bool:
        """Whether all that comes in is a group."""
        if isinstance(self.tried, ast.TryStar):
            return True
        return bool(self.kinds) and all(kind.rpartition(".")[2] in _GROUPS for kind in self.kinds)

    @property
    def nodes(self) -> Iterator[ast.AST]:
        for stmt in self.node.body:
            yield from walk_here(stmt)

    @property
    def raises(self) -> bool:
        """Whether it can raise by itself."""
        return any(isinstance(each, ast.Raise) for each in self.nodes)

    @property
    def swallows(self) -> bool:
        """Whether a way through it goes on without raising."""
        start = self.function.flow.of(self.node)
        return start is not None and "goes on" in self.ends_after(start.after)

    def ends_after(self, steps: list[Node]) -> frozenset[str]:
        """How the handler can end from these steps on: `raises`, `goes on`, or both."""
        inside = {id(each) for stmt in self.node.body for each in ast.walk(stmt)}
        ends: set[str] = set()
        seen: set[Node] = set()
        todo = list(steps)
        while todo:
            node = todo.pop()
            if id(node.stmt) not in inside:
                ends.add("goes on")
            elif isinstance(node.stmt, ast.Raise):
                ends.add("raises")
            elif node not in seen:
                seen.add(node)
                todo += node.after
        return frozenset(ends)

    @property
    def uses_it(self) -> bool:
        """Whether the exception is named, logged with its trace, or kept."""
        for each in self.nodes:
            match each:
                case ast.Name(name) if self.node.name and name == self.node.name:
                    return True
                case ast.Attribute(_, attr) if attr in _SAYING:
                    return True
                case ast.keyword("exc_info"):
                    return True
        return False


def handlers(function: Function) -> Iterator[Handler]:
    """Every handler of a function."""
    for node in function.nodes:
        if isinstance(node, (ast.Try, ast.TryStar)):
            for each in node.handlers:
                yield Handler(function, node, each)
