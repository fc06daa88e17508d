"""HF302: a session, pool, executor or loop is closed before the tasks that use it have ended.

Reported: a close method closes such an attribute, suspends, and only then cancels or joins a task of
the object that uses the attribute. Also a method that ends the task of one key and then closes an
attribute that the tasks of the other keys use.
Not reported: connections, sockets and streams, because closing one is the usual way to make its reader
end; a task that was cancelled or joined before; for one key, a close under any test.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import islice

from handfast._check.finding import Finding
from handfast._check.model.operations.effects import Effect, effects, is_direct
from handfast._check.model.operations.operations import Operation, operations
from handfast._check.model.operations.teardown import TaskTeardown, teardown_of
from handfast._check.model.syntax.ancestors import enclosing_loop
from handfast._check.model.syntax.call_graph import runs
from handfast._check.model.syntax.function import Function
from handfast._check.model.syntax.module import Class, Module
from handfast._check.model.tasks.creation import TaskCreation
from handfast._check.model.tasks.method_roles import close_methods_in_file
from handfast._check.model.tasks.owned import Owned, Use, bodies_in, own_tasks, uses
from handfast._check.model.vocabulary import CLOSING
from handfast._check.rules.rule import (
    OWNING,
    Rule,
    line_of,
    once_per_place,
    related,
    related_in,
    report,
)

_USED = re.compile(r"self\.\w*?(session|pool|loop|executor|engine|db|database|http|http_client)")

_CLOSED = re.compile(r"(is_)?(closed|closing|shutdown|running|connected)")


@once_per_place
def check(module: Module) -> Iterator[Finding]:
    for klass in module.classes.values():
        for owned in own_tasks(klass):
            for method in close_methods_in_file(klass):
                teardown = teardown_of(klass, method, owned.root)
                for close in effects(method, klass) if teardown.cancels or teardown.joins else ():
                    use = _used_after(klass, owned, teardown, close)
                    if use is not None:
                        yield _finding(method, owned, close, use)
            yield from _shared_by_keys(klass, owned)


def _shared_by_keys(klass: Class, owned: Owned) -> Iterator[Finding]:
    """What a method closes with one of several tasks, although the others use it."""
    keyed = [
        each
        for each in owned.creations
        if any(kept.key is not None and kept.name == owned.root for kept in each.retentions)
    ]
    for method in klass.functions if keyed else ():
        taken = _taken_by_key(method, owned.root)
        if taken is None or enclosing_loop(method, taken) is not None:
            continue
        for close in operations(method):
            if close.kind == "close" and _is_unconditional(close) and close.root != owned.root:
                for creation in keyed:
                    for function, place in islice(_users(klass, creation, close.root), 1):
                        yield _finding_of_keys(method, owned, close, (function, place))


def _taken_by_key(method: Function, root: str) -> ast.Call | None:
    """Where a method takes one task, by a key that it is given."""
    for call in method.calls:
        match call.func, call.args:
            case ast.Attribute(container, "pop"), [ast.Name(key), *_]:
                if key in method.parameters and method.name_of(container) == root:
                    return call
    return None


def _is_unconditional(close: Operation) -> bool:
    """Whether `await self._session.close()` is a statement in the body of its method, before which no
    branch returns."""
    match close.node:
        case ast.Call(ast.Attribute(receiver, _)) if close.function.own_attribute(receiver):
            stmt = close.function.module.statement_of(close.node)
            return stmt in close.function.body and not any(
                isinstance(each, ast.Return | ast.Raise) and each.lineno < stmt.lineno
                for each in close.function.nodes
            )
    return False


def _finding_of_keys(
    method: Function, owned: Owned, close: Operation, use: tuple[Function, ast.AST]
) -> Finding:
    module = method.module
    return report(
        "HF302",
        module,
        close.node,
        f"`{method.qualname}` ends the task of one key in `{owned.root}` and closes `{close.root}`, which "
        f"the tasks of the other keys still use (line {line_of(use[1])}): close it with the last one, or "
        "where the whole object is closed",
        related_in(module, use[0].module, use[1], "each task uses it here"),
    )


def _used_after(
    klass: Class, owned: Owned, teardown: TaskTeardown, close: Effect
) -> tuple[Function, ast.AST] | None:
    if close.kind != "close" or close.root == owned.root or not _USED.fullmatch(close.root):
        return None
    if not is_direct(close.operation) or not teardown.is_untouched_at(close.node):
        return None
    if not _suspends_before_end(teardown, close):
        return None
    for creation in owned.creations:
        bodies = bodies_in(klass, creation)
        if not any(each is teardown.function for body in bodies for each, _ in runs(body, klass)):
            for place in _users(klass, creation, close.root):
                return place
    return None


def _suspends_before_end(teardown: TaskTeardown, close: Effect) -> bool:
    """Whether the task is ended after the close, and can run between."""
    flow, step = teardown.function.flow, close.step
    return step is not None and any(
        flow.reaches(step, each.step) and (step.suspends or flow.suspends_between(step, each.step))
        for each in (*teardown.cancels, *teardown.joins)
        if each.step is not step
    )


def _users(klass: Class, creation: TaskCreation, root: str) -> Iterator[tuple[Function, ast.AST]]:
    """Where a task uses an attribute: `create_task(self.session.get())` is a use, too."""
    for use in uses(klass, creation):
        if use.root == root and not _only_tests_or_closes(use):
            yield use.function, use.node
    match creation.coro:
        case ast.Call(ast.Attribute(receiver)) if creation.function.name_of(receiver) == root:
            yield creation.function, creation.coro


def _only_tests_or_closes(use: Use) -> bool:
    """Whether a use is only `self.session.closed`, then the close is the signal to end, or a close
    itself: a second one does no harm."""
    read = use.function.module.parents.get(use.node)
    return isinstance(read, ast.Attribute) and (
        _CLOSED.fullmatch(read.attr) is not None or read.attr in CLOSING
    )


def _finding(
    method: Function, owned: Owned, close: Effect, use: tuple[Function, ast.AST]
) -> Finding:
    creation = owned.creations[0]
    return report(
        "HF302",
        close.operation.function.module,
        close.operation.node,
        f"`{method.qualname}` closes `{close.root}` before the task in `{owned.root}` that uses it "
        f"(line {line_of(use[1])}) has ended: cancel and await the task first",
        related(use[0].module, use[1], "the task uses it here"),
        related(creation.function.module, creation.call, "the task is created here"),
    )


RULE = Rule("HF302", check, needs=(OWNING, "session|pool|loop|executor|engine|db|database|http"))
