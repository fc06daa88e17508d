"""How a method ends a task of its object: where it cancels the task, and where it joins it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass

from handfast._check.model.operations.effects import Effect, effects, is_direct
from handfast._check.model.operations.guards import enclosing_steps
from handfast._check.model.syntax.ancestors import TRY, AnyTry, contains, last_name
from handfast._check.model.syntax.call_graph import runs
from handfast._check.model.syntax.function import Function
from handfast._check.model.syntax.handlers import cancel_handlers
from handfast._check.model.syntax.module import Class

_TIMEOUT = re.compile(r"timeout|_after|_at$")
_SUSPENDING = (ast.Await, ast.AsyncFor, ast.AsyncWith, ast.Yield)


@dataclass(frozen=True, slots=True, eq=False)
class TaskTeardown:
    """What a method does to end the task of one attribute."""

    function: Function
    cancels: tuple[Effect, ...]
    joins: tuple[Effect, ...]

    def may_run_at(self, node: ast.AST) -> bool:
        """Whether the task may not have been joined yet at a node."""
        return self._is_reached_without(self.joins, node)

    def is_untouched_at(self, node: ast.AST) -> bool:
        """Whether the task may have been neither cancelled nor joined yet at a node."""
        return self._is_reached_without((*self.cancels, *self.joins), node)

    def _is_reached_without(self, ends: Iterable[Effect], node: ast.AST) -> bool:
        flow = self.function.flow
        ended = enclosing_steps(self.function, (each.node for each in ends), [node])
        return flow.reaches(flow.entry, flow.of(node), ended)


def teardown_of(klass: Class, function: Function, root: str) -> TaskTeardown:
    """How a method ends the task of an attribute."""
    own = [each for each in effects(function, klass) if each.root == root and each.step]
    return TaskTeardown(
        function,
        tuple(each for each in own if each.kind == "cancel" and is_direct(each.operation)),
        tuple(each for each in own if each.kind == "join"),
    )


def is_whole_close(function: Function) -> bool:
    """Whether a close method ends the whole object: one with a required argument ends a part of it,
    such as `close(key)`."""
    if isinstance(function.node, ast.Lambda):
        return False
    if function.name.startswith("__"):
        return True  # the arguments of `__aexit__` are the exception
    given = function.node.args
    required = (
        len([*given.posonlyargs, *given.args]) - len(given.defaults) - bool(function.self_name)
    )
    lacking = sum(default is None for default in given.kw_defaults)
    return required <= 0 and not lacking


def cleans_up(body: Function, klass: Class | None) -> bool:
    """Whether a task with this body has code that runs when it is cancelled."""
    return any(_has_cleanup(function) for function, _ in runs(body, klass))


def _has_cleanup(function: Function) -> bool:
    for node in function.nodes:
        # Outside an `await` no cancellation arrives.
        if isinstance(node, (ast.With, *TRY)) and not contains(node.body, *_SUSPENDING):
            continue
        if isinstance(node, TRY):
            handlers = [each.body for each in cancel_handlers(function, node)]
            if any(_does_something(body) for body in [node.finalbody, *handlers]):
                return True
        if isinstance(node, (ast.With, ast.AsyncWith)):
            return True
    return False


def suspends_in_cleanup(body: Function, klass: Class | None) -> bool:
    """Whether a task with this body waits for something when it is cancelled, so that it runs on."""
    return any(
        contains([*node.finalbody, *_of_cancellations(function, node)], ast.Await)
        if isinstance(node, TRY)
        else isinstance(node, ast.AsyncWith) and any(map(_leaves_resource, node.items))
        for function, _ in runs(body, klass)
        for node in function.nodes
    )


def _leaves_resource(item: ast.withitem) -> bool:
    """Whether `async with` binds what a call has made: a process, a connection. Leaving it suspends;
    leaving a lock or a time-out does not."""
    match item:
        case ast.withitem(ast.Call(func), ast.expr()):
            return not _TIMEOUT.search(last_name(func))
    return False


def _of_cancellations(function: Function, tried: AnyTry) -> list[ast.stmt]:
    return [stmt for handler in cancel_handlers(function, tried) for stmt in handler.body]


def _does_something(body: list[ast.stmt]) -> bool:
    return any(not isinstance(each, (ast.Pass, ast.Raise, ast.Return, ast.Break)) for each in body)
