"""What handlers catch, and whether an exception ends in them.

A handler swallows if a path through it continues without raising. Naming the exception, logging it
with its traceback and `exc_info` are uses of it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from handfast._check.model.syntax.ancestors import TRY, AnyTry, nodes_in
from handfast._check.model.syntax.control_flow import Step
from handfast._check.model.syntax.function import Function
from handfast._check.model.vocabulary import GROUPS

_BROAD = {"Exception", "BaseException", "builtins.Exception", "builtins.BaseException"}
_REPORTING = {"exception", "format_exc", "print_exc", "exc_info", "print_exception", "capture_exception",
           "format_exception"}  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Handler:
    """One `except`, with the `try` that it belongs to."""

    function: Function
    tried: AnyTry
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
