"""Looks at an attribute before it is used, and locks that are held over a stretch of code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from holdfast.check.model.effects import callers, effects, members
from holdfast.check.model.flow import Node
from holdfast.check.model.function import Function
from holdfast.check.model.memo import remembered
from holdfast.check.model.module import Class

__all__ = [
    "heads_around",
    "is_looked_at",
    "is_presence_test",
    "is_serial",
    "locks_held",
    "locks_over",
    "looks",
    "tests_around",
]

# `self._lock`, `self._lock_of(key)`, `self._locks.setdefault(key, Lock())`.
_LOCK_NAME = re.compile(r"(?i).*(lock|mutex|sem(aphore)?|cond(ition)?)s?(_(for|of|by)\w*)?$")
_ENTRIES = {"get", "setdefault"}
_COMPOUND = (ast.If, ast.While, ast.For, ast.AsyncFor, ast.With, ast.AsyncWith, ast.Try)
_LOOPS = (ast.While, ast.For, ast.AsyncFor)
_LOCK_MADE = {"Lock", "Semaphore", "BoundedSemaphore", "Condition", "RLock"}


def looks(function: Function, root: str, klass: Class | None = None) -> set[Node]:
    """The steps that look whether something is there, or put it there: by a test, or by a call of a
    method that does."""
    found: set[Node] = set()
    for effect in effects(function, klass):
        if effect.root != root or effect.step is None:
            continue
        elsewhere = effect.deed.function is not function
        if (
            effect.kind in ("read", "use") and (_is_test(effect.step) or elsewhere)
        ) or effect.kind == "put":
            found.add(effect.step)
    return found


def _is_test(step: Node) -> bool:
    return isinstance(step.stmt, (ast.If, ast.While, ast.Assert, ast.Match))


def is_looked_at(function: Function, node: ast.AST, root: str) -> bool:
    """Whether the same expression looks first: `self.x and self.x.y`, `self.x.y if self.x else 0`."""
    parents = function.module.parents
    below, up = node, parents.get(node)
    while up is not None and not isinstance(up, ast.stmt):
        before: list[ast.expr] = []
        if isinstance(up, ast.BoolOp) and isinstance(below, ast.expr):
            before = up.values[: up.values.index(below)]
        elif isinstance(up, ast.IfExp) and below is not up.test:
            before = [up.test]
        if any(root in function.roots(each) for test in before for each in _expressions(test)):
            return True
        below, up = up, parents.get(up)
    return False


def _expressions(node: ast.AST) -> list[ast.expr]:
    return [each for each in ast.walk(node) if isinstance(each, (ast.Attribute, ast.Name))]


def tests_around(function: Function, node: ast.AST) -> list[tuple[ast.If | ast.While, bool]]:
    """The tests that decide whether a node is reached by standing around it; True: in the body."""
    found: list[tuple[ast.If | ast.While, bool]] = []
    parents = function.module.parents
    below, up = node, parents.get(node)
    while up is not None and up is not function.node:
        if isinstance(up, (ast.If, ast.While)) and below is not up.test:
            found.append((up, below in up.body))
        below, up = up, parents.get(up)
    return found


def locks_held(function: Function, node: ast.AST, klass: Class | None = None) -> set[str]:
    """The locks that are held where a node stands, by name."""
    found: set[str] = set()
    parents = function.module.parents
    below, up = node, parents.get(node)
    while up is not None and up is not function.node:
        if isinstance(up, (ast.With, ast.AsyncWith)) and not isinstance(below, ast.withitem):
            for item in up.items:
                name = _lock_name(function, item.context_expr)
                if _LOCK_NAME.match(name) or (klass is not None and name in _made_locks(klass)):
                    found.add(name)
        below, up = up, parents.get(up)
    return found


def _lock_name(function: Function, node: ast.expr) -> str:
    while isinstance(node, (ast.Call, ast.Subscript)):
        node = node.func if isinstance(node, ast.Call) else node.value
        if isinstance(node, ast.Attribute) and node.attr in _ENTRIES:
            node = node.value
    return function.name_of(node)


@remembered
def _made_locks(klass: Class) -> frozenset[str]:
    """The attributes of a class that are given a lock."""
    return frozenset(
        function.name_of(target)
        for function in members(klass)
        for node in function.nodes
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
        if function.name_of(node.value.func).rpartition(".")[2] in _LOCK_MADE
        for target in node.targets
    )


def locks_over(klass: Class, function: Function, node: ast.AST, depth: int = 3) -> set[str]:
    """The same, with those that every caller of a private method holds."""
    held = locks_held(function, node, klass)
    if not depth or not function.name.startswith("_") or function.name.startswith("__"):
        return held
    above = [locks_over(klass, each, call, depth - 1) for each, call in callers(klass, function)]
    return held | set.intersection(*above) if above else held


def is_serial(klass: Class, function: Function, depth: int = 4) -> bool:
    """Whether all calls of a function come from a loop that waits for each: it never meets itself."""
    above = [(each, call) for each, call in callers(klass, function) if each is not function]
    return bool(above and depth) and all(
        _is_in_loop(each, call) or is_serial(klass, each, depth - 1) for each, call in above
    )


def _is_in_loop(function: Function, node: ast.AST) -> bool:
    up = function.module.parents.get(node)
    while up is not None and up is not function.node:
        if isinstance(up, _LOOPS):
            return True
        up = function.module.parents.get(up)
    return False


def is_presence_test(function: Function, test: ast.expr, root: str) -> bool:
    """Whether a test asks if an attribute is there: `self.x`, `not self.x`, `self.x is None`."""
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


def heads_around(
    function: Function, nodes: Iterable[ast.AST], apart_from: Iterable[ast.AST]
) -> set[Node]:
    """The steps of nodes, and the heads of what stands around them: a branch not taken is taken to
    mean that there was nothing to do. What also stands around the other nodes does not count."""
    others = {up for node in apart_from for up in _upwards(function, node)}
    found: set[Node] = set()
    for node in nodes:
        for up in _upwards(function, node):
            step = function.flow.of(up)
            if step is not None and (isinstance(up, _COMPOUND) or up is node) and up not in others:
                found.add(step)
    return found


def _upwards(function: Function, node: ast.AST) -> Iterable[ast.AST]:
    up: ast.AST | None = node
    while up is not None and up is not function.node:
        yield up
        up = function.module.parents.get(up)
