"""HF412: a close method works on a snapshot of its live tasks, waits, and then clears the registry.

Evidence from two places: in a close method, a snapshot of a container of tasks (a copy, or the
arguments of `gather` and `wait`), a suspension, then the container emptied or the snapshot
subtracted; and another method that starts a task and puts it there, without asking for anything
that the close method has set before.
Silent where the close goes on `while` the registry is not empty, where the tasks are started by a
start method only or in a task that the close method deals with, and where the adding method asks
whether it is closed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from holdfast.check.finding import Finding
from holdfast.check.model.containers import Change, changes
from holdfast.check.model.flow import Node
from holdfast.check.model.function import Function
from holdfast.check.model.module import Module
from holdfast.check.model.roles import is_close_name, is_start_name, run_in, tasks_of
from holdfast.check.model.tasks import Creation
from holdfast.check.rules.rule import Rule, found, related

__all__ = ["RULE"]

_CODE = "HF412"
_COPYING = {"list", "set", "tuple", "frozenset", "sorted", "copy"}
_WAITING = {"asyncio.gather", "asyncio.wait", "asyncio.tasks.gather", "asyncio.tasks.wait"}
_CLOSED = re.compile(
    r"clos|stopp|stopping|shut|finish|terminat|cancel|exit|dead|running|alive|started|connected"
)


def check(module: Module) -> Iterator[Finding]:
    for function in module.functions:
        if function.is_async and function.klass is not None and is_close_name(function.name):
            yield from _judge(module, function)


def _judge(module: Module, function: Function) -> Iterator[Finding]:
    for cleared in changes(function):
        if cleared.how == "put" or not cleared.name.startswith("self."):
            continue
        if cleared.how == "take" and cleared.method not in ("-=", "difference_update"):
            continue
        snapshot = _snapshot_before(function, cleared)
        late = _latecomer(function, cleared.name) if snapshot is not None else None
        if snapshot is None or late is None or _goes_on(function, cleared):
            continue
        yield found(
            _CODE,
            module,
            cleared.node,
            f"`{function.qualname}` forgets the tasks that come while it waits: `{cleared.name}` is "
            f"emptied after the snapshot, and `{late.function.qualname}` may have added to it",
            related(module, snapshot, "the snapshot is taken here"),
            *([related(module, late.call, "a latecomer is started here")]
              if late.function.module is module else []),
        )  # fmt: skip


def _snapshot_before(function: Function, cleared: Change) -> ast.AST | None:
    """The snapshot, if the function can suspend between it and the clearing."""
    flow = function.flow
    goal = flow.of(cleared.node)
    if goal is None:
        return None
    for node in function.nodes:
        start = flow.of(node) if _copies(function, node, cleared.name) else None
        if start is not None and start is not goal and _waits_between(function, start, goal):
            return node
    return None


def _waits_between(function: Function, start: Node, goal: Node) -> bool:
    flow = function.flow
    if start.suspends:
        return flow.reaches(start, goal)
    return flow.suspends_between(start, goal)


def _copies(function: Function, node: ast.AST, name: str) -> bool:
    """Whether a node takes a copy of the container, or waits for all that is in it."""
    match node:
        case ast.Call(ast.Name(copying), [argument]) if copying in _COPYING:
            return _is(function, argument, name)
        case ast.Call(ast.Attribute(holder, "copy"), []):
            return _is(function, holder, name)
        case ast.Call(called, arguments) if function.name_of(called) in _WAITING:
            return any(_is(function, each, name) for each in arguments)
    return False


def _is(function: Function, node: ast.expr, name: str) -> bool:
    match node:
        case ast.Starred(value) | ast.Call(ast.Attribute(value, "values" | "keys"), []):
            return _is(function, value, name)
    return isinstance(node, ast.Attribute) and function.name_of(node) == name


def _goes_on(function: Function, cleared: Change) -> bool:
    """Whether the function waits again as long as the container has something in it."""
    return any(
        isinstance(node, ast.While) and cleared.name in _names_in(function, node.test)
        for node in function.nodes
    )


def _latecomer(function: Function, name: str) -> Creation | None:
    """A task that another method puts into the container, whether or not it is being closed."""
    klass = function.klass
    assert klass is not None
    told = _told(function)
    ended = run_in(klass, {name for node in function.nodes for name in _names_in(function, node)})
    for part in klass.lineage:
        for made in tasks_of(part.module):
            adding = made.function
            if adding.klass is not part or adding is function or _starts_once(adding):
                continue
            if adding in ended or not any(kept.name == name for kept in made.kept_in("element")):
                continue
            if not _asks(adding, told, name):
                return made
    return None


def _starts_once(adding: Function) -> bool:
    """Whether a method starts the object, and not one job of many."""
    outer = adding
    while outer.outer is not None:
        outer = outer.outer
    return is_start_name(outer.name) and len(outer.parameters) < 2


def _told(function: Function) -> set[str]:
    """The attributes that a close method sets."""
    found: set[str] = set()
    for node in function.nodes:
        match node:
            case ast.Assign(targets):
                found |= {function.name_of(each) for each in targets}
            case ast.Call(ast.Attribute(holder, "set" | "clear")):
                found.add(function.name_of(holder))
    return {each for each in found if each.startswith("self.")}


def _asks(adding: Function, told: set[str], registry: str) -> bool:
    """Whether a method, or everybody who calls it, asks if the object is still open."""
    names = {name for node in adding.nodes for name in _names_in(adding, node)} - {registry}
    own = {each for each in names if each.startswith("self.")}
    if own & told or any(_CLOSED.search(each) for each in own):
        return True
    callers = _callers(adding) if adding.name.startswith("_") else []
    return bool(callers) and all(_asks(each, told, registry) for each in callers)


def _callers(adding: Function) -> list[Function]:
    return [
        each
        for each in (adding.klass.functions if adding.klass is not None else ())
        if each is not adding and f"self.{adding.name}" in map(each.name_of, _called(each))
    ]


def _called(function: Function) -> list[ast.expr]:
    return [call.func for call in function.calls]


def _names_in(function: Function, node: ast.AST) -> set[str]:
    return {function.name_of(each) for each in ast.walk(node) if isinstance(each, ast.Attribute)}


RULE = Rule(_CODE, check)
