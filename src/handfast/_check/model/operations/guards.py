"""Checks of an attribute before it is used, and whether calls of a function can overlap."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from handfast._check.model.operations.effects import effects
from handfast._check.model.operations.operations import Operation
from handfast._check.model.syntax.ancestors import LOOPS, TRY, ancestors, enclosing_loop, steps_up
from handfast._check.model.syntax.call_graph import callers
from handfast._check.model.syntax.control_flow import Step
from handfast._check.model.syntax.function import Function
from handfast._check.model.syntax.module import Class

_COMPOUND = (ast.If, *LOOPS, ast.With, ast.AsyncWith, *TRY)


def presence_checks(function: Function, root: str, klass: Class | None = None) -> set[Step]:
    """The steps that check whether an attribute is set, or set it: by a test, or by a call of a
    method that does."""
    found: set[Step] = set()
    for effect in effects(function, klass):
        if effect.root != root or effect.step is None:
            continue
        # A method that reads the attribute is taken to check it: `if not self._is_open(): return`.
        elsewhere = effect.operation.function is not function
        if (
            effect.kind in ("read", "use") and (_is_test(effect.step) or elsewhere)
        ) or effect.kind == "put":
            found.add(effect.step)
    return found


def _is_test(step: Step) -> bool:
    return isinstance(step.stmt, (ast.If, ast.While, ast.Assert, ast.Match))


def is_checked_inline(function: Function, node: ast.AST, root: str) -> bool:
    """Whether the same expression checks first: `self.x and self.x.y`, `self.x.y if self.x else 0`."""
    # No other code runs within an expression without an `await`, so the check still holds at the use.
    for below, up in steps_up(function, node):
        before: list[ast.expr] = []
        if isinstance(up, ast.stmt):
            break
        if isinstance(up, ast.BoolOp) and isinstance(below, ast.expr):
            before = up.values[: up.values.index(below)]
        elif isinstance(up, ast.IfExp) and below is not up.test:
            before = [up.test]
        if any(root in function.roots(each) for test in before for each in _expressions(test)):
            return True
    return False


def _expressions(node: ast.AST) -> list[ast.expr]:
    return [each for each in ast.walk(node) if isinstance(each, (ast.Attribute, ast.Name))]


def tests_around(function: Function, node: ast.AST) -> list[tuple[ast.If | ast.While, bool]]:
    """The `if` and `while` statements around a node, each with whether the node is in its body."""
    return [
        (up, below in up.body)
        for below, up in steps_up(function, node)
        if isinstance(up, (ast.If, ast.While)) and below is not up.test
    ]


def is_serial(klass: Class, function: Function, depth: int = 4) -> bool:
    """Whether all calls of a function are in loops that await each: two never overlap."""
    # Without any known caller the function may be called from anywhere, at any time.
    above = [(each, call) for each, call in callers(klass, function) if each is not function]
    return bool(above and depth) and all(
        enclosing_loop(each, call) is not None or is_serial(klass, each, depth - 1)
        for each, call in above
    )


def is_presence_test(function: Function, test: ast.expr, root: str) -> bool:
    """Whether a test checks if an attribute is set: `self.x`, `not self.x`, `self.x is None`."""
    match test:
        case ast.BoolOp(_, values):
            return any(is_presence_test(function, each, root) for each in values)
        case ast.UnaryOp(ast.Not(), operand):
            return is_presence_test(function, operand, root)
        case ast.NamedExpr(_, value):
            return is_presence_test(function, value, root)
        case ast.Compare(
            left, [ast.Is() | ast.IsNot() | ast.Eq() | ast.NotEq()], [ast.Constant(None)]
        ):
            return is_presence_test(function, left, root)
        case ast.Attribute():
            return function.name_of(test) == root
    return False


def enclosing_steps(
    function: Function, nodes: Iterable[ast.AST], apart_from: Iterable[ast.AST]
) -> set[Step]:
    """The steps of nodes and of the compound statements around them.

    `if self._task: await self._task` then joins on every path: a branch that is not taken is
    assumed to mean that there is no task. Without this every guarded join would be a false alarm.
    A statement that is also around one of the other nodes does not count.
    """
    others = {up for node in apart_from for up in (node, *ancestors(function, node))}
    found: set[Step] = set()
    for node in nodes:
        for up in (node, *ancestors(function, node)):
            step = function.flow.of(up)
            if step is not None and (isinstance(up, _COMPOUND) or up is node) and up not in others:
                found.add(step)
    return found


def is_guard(operation: Operation, *kinds: type[ast.stmt]) -> bool:
    """Whether an operation is the presence test of a statement of one of these kinds."""
    step = operation.step
    return (
        step is not None
        and isinstance(step.stmt, kinds)
        and isinstance(step.stmt, (ast.If, ast.While))
        and is_presence_test(operation.function, step.stmt.test, operation.root)
    )
