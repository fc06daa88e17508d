"""HF205: an attribute that holds a task is overwritten while the old task may still run.

Reported: a method that by its name is called repeatedly (a callback, `restart`, `reconnect`), or that
passes an argument on to the task, stores a task in an attribute without a look at the one that is there,
or any method does so in an endless loop; the task runs until it is cancelled, or the class cancels it;
and the class cancels or joins only what is in the attribute.
Not reported: under any test, after an early return, where the method or a caller in the class reads the
attribute first, where the method joins the task, and where the task is also kept elsewhere.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from handfast._check.finding import Finding
from handfast._check.model.operations.effects import effects
from handfast._check.model.operations.operations import Operation, operations
from handfast._check.model.syntax.ancestors import (
    ancestors,
    contains,
    enclosing_loop,
    is_true,
)
from handfast._check.model.syntax.call_graph import awaited_from, callers, members
from handfast._check.model.syntax.function import Function, names_in
from handfast._check.model.syntax.module import Class, Module
from handfast._check.model.tasks.creation import TaskCreation
from handfast._check.model.tasks.endless import endless_loop
from handfast._check.model.tasks.method_roles import is_start_name
from handfast._check.model.tasks.owned import Owned, bodies_in, creates_tasks, owned_tasks
from handfast._check.rules.rule import CREATING, Rule, once_per_place, related, report

_REPEATED = re.compile(
    r"_*(on|handle|async_handle)_(?!start|setup|init|load|boot|create)\w+|connection_made|_*(re_?(start|connect"
    r"|set|new|fresh|load|open|join|subscribe|schedule)|schedule|reschedule)\w*"
)

_CALLBACK = re.compile(r"_*(on|handle|async_handle)_|connection_lost")


@once_per_place
def check(module: Module) -> Iterator[Finding]:
    for klass in module.classes.values():
        for owned in owned_tasks(klass) if creates_tasks(klass) else ():
            for creation in owned.creations:
                method = creation.function
                if method.klass is klass and _is_repeated(creation):
                    yield from _finding(klass, owned, creation)


def _is_repeated(creation: TaskCreation) -> bool:
    """Whether the method is called repeatedly, by its name, or because the task is for an argument; or
    whether the task is created in a loop that waits for input."""
    method = creation.function
    if _REPEATED.fullmatch(method.name) or _is_in_endless_loop(creation):
        return True
    if is_start_name(method.name) or not isinstance(creation.coro, ast.Call):
        return False
    given = {name for each in creation.coro.args for name in names_in(each)}
    return not given.isdisjoint(method.parameters[1:])


def _is_in_endless_loop(creation: TaskCreation) -> bool:
    match enclosing_loop(creation.function, creation.call):
        case ast.While(test) as loop:
            return is_true(test) and contains(loop.body, ast.Await)
        case ast.AsyncFor():
            return True
    return False


def _finding(klass: Class, owned: Owned, creation: TaskCreation) -> Iterator[Finding]:
    method, root = creation.function, owned.root
    if [each.how for each in creation.retentions] != ["attribute"]:
        return
    if _is_looked_at(klass, method, root) or _is_conditional(method, creation.call):
        return
    if any(_is_looked_at(klass, each, root) for each, _ in callers(klass, method)):
        return
    loop = _loop(klass, creation)
    end = _end(klass, root)
    # `on_disconnect` comes between two `on_connect`, and ends the task there.
    if end is None or _CALLBACK.match(end.function.name):
        return
    if loop is not None or (end.kind == "cancel" and not _REPEATED.fullmatch(method.name)):
        yield report(
            "HF205",
            klass.module,
            creation.call,
            f"`{method.qualname}` stores a task in `{root}` without a look at the one that is there: the "
            "old one may still run, and no reference is left to end it; cancel and await it first",
            related(loop[0].module, loop[1], "its loop has no exit") if loop is not None else None,
            related(end.function.module, end.node, "only the last task is ended here"),
        )


def _is_looked_at(klass: Class, function: Function, root: str) -> bool:
    """Whether a function does anything with the task of an attribute but store it."""
    return any(each.root == root and each.kind != "put" for each in effects(function, klass))


def _is_conditional(method: Function, node: ast.AST) -> bool:
    line = getattr(node, "lineno", 0)
    return any(isinstance(up, ast.If) for up in ancestors(method, node)) or any(
        isinstance(each, ast.Return | ast.Raise) and each.lineno < line for each in method.nodes
    )


def _loop(klass: Class, creation: TaskCreation) -> tuple[Function, ast.While] | None:
    for body in bodies_in(klass, creation):
        for function in awaited_from(body):
            loop = endless_loop(function)
            if loop is not None:
                return function, loop
    return None


def _end(klass: Class, root: str) -> Operation | None:
    return next(
        (
            each
            for function in members(klass)
            for each in operations(function)
            if each.root == root and each.kind in ("cancel", "join")
        ),
        None,
    )


RULE = Rule("HF205", check, needs=(CREATING,))
