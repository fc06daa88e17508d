"""HF412: a close method works on a copy of its set of tasks, awaits, and then clears the set.

Reported, with evidence from two places: in a close method, a copy of a container of tasks (or the
arguments of `gather` and `wait`), a suspension, then the container cleared or the copy subtracted;
and another method that creates a task and adds it, without a check of anything that the close method
has set before.
Not reported: where the close loops `while` the container is not empty, where only a start method or a
task that the close method ends adds tasks, and where the adding method checks whether it is closed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from handfast._check.finding import Finding
from handfast._check.model.operations.containers import Change, changes
from handfast._check.model.syntax.control_flow import Step
from handfast._check.model.syntax.function import Function
from handfast._check.model.syntax.module import Module
from handfast._check.model.tasks.creation import TaskCreation, task_creations
from handfast._check.model.tasks.method_roles import is_close_name, is_start_name
from handfast._check.model.tasks.owned import run_in
from handfast._check.model.vocabulary import COPYING
from handfast._check.rules.rule import OWNING, Rule, related, related_in, report

_CODE = "HF412"
_COPYING = COPYING | {"copy"}
_WAITING = {"asyncio.gather", "asyncio.wait", "asyncio.tasks.gather", "asyncio.tasks.wait"}
_CLOSED = re.compile(
    r"clos|stopp|stopping|shut|finish|terminat|cancel|exit|dead|running|alive|started|connected"
)


def check(module: Module) -> Iterator[Finding]:
    for function in module.functions:
        if function.is_async and function.klass is not None and is_close_name(function.name):
            yield from _evaluate(module, function)


def _evaluate(module: Module, function: Function) -> Iterator[Finding]:
    for cleared in changes(function):
        if cleared.kind == "put" or not cleared.name.startswith("self."):
            continue
        if cleared.kind == "take" and cleared.method not in ("-=", "difference_update"):
            continue
        copied = _copy_before(function, cleared)
        late = _late_task(function, cleared.name) if copied is not None else None
        if copied is None or late is None or _loops_until_empty(function, cleared):
            continue
        yield report(
            _CODE,
            module,
            cleared.node,
            f"`{function.qualname}` loses the tasks that are added while it waits: `{cleared.name}` is "
            f"cleared after it was copied, and `{late.function.qualname}` may have added to it; repeat "
            "until it is empty, or refuse new tasks first",
            related(module, copied, "copied here"),
            related_in(module, late.function.module, late.call, "a task is added here"),
        )  # fmt: skip


def _copy_before(function: Function, cleared: Change) -> ast.AST | None:
    """The copy, if the function can suspend between it and the clearing."""
    flow = function.flow
    goal = flow.of(cleared.node)
    if goal is None:
        return None
    for node in function.nodes:
        start = flow.of(node) if _copies(function, node, cleared.name) else None
        if start is not None and start is not goal and _waits_between(function, start, goal):
            return node
    return None


def _waits_between(function: Function, start: Step, goal: Step) -> bool:
    flow = function.flow
    if start.suspends:
        return flow.reaches(start, goal)
    return flow.suspends_between(start, goal)


def _copies(function: Function, node: ast.AST, name: str) -> bool:
    """Whether a node copies the container, or waits for all of its tasks."""
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


def _loops_until_empty(function: Function, cleared: Change) -> bool:
    """Whether the function loops until the container is empty."""
    return any(
        isinstance(node, ast.While) and cleared.name in _names_in(function, node.test)
        for node in function.nodes
    )


def _late_task(function: Function, name: str) -> TaskCreation | None:
    """A task that another method adds to the container even while the object is being closed."""
    klass = function.klass
    assert klass is not None
    flags = _flags_set(function)
    ended = run_in(klass, {name for node in function.nodes for name in _names_in(function, node)})
    for part in klass.lineage:
        for creation in task_creations(part.module):
            adding = creation.function
            if adding.klass is not part or adding is function or _starts_once(adding):
                continue
            added = (each.name for each in creation.retentions if each.how == "element")
            if adding in ended or name not in added:
                continue
            if not _checks_open(adding, flags, name):
                return creation
    return None


def _starts_once(adding: Function) -> bool:
    """Whether a method starts the object, and not one of many jobs."""
    outer = adding
    while outer.outer is not None:
        outer = outer.outer
    return is_start_name(outer.name) and len(outer.parameters) < 2


def _flags_set(function: Function) -> set[str]:
    """The attributes that a close method sets."""
    found: set[str] = set()
    for node in function.nodes:
        match node:
            case ast.Assign(targets):
                found |= {function.name_of(each) for each in targets}
            case ast.Call(ast.Attribute(holder, "set" | "clear")):
                found.add(function.name_of(holder))
    return {each for each in found if each.startswith("self.")}


def _checks_open(adding: Function, flags: set[str], registry: str) -> bool:
    """Whether a method, or every caller of it, checks whether the object is still open."""
    names = {name for node in adding.nodes for name in _names_in(adding, node)} - {registry}
    own = {each for each in names if each.startswith("self.")}
    if own & flags or any(_CLOSED.search(each) for each in own):
        return True
    callers = _callers(adding) if adding.name.startswith("_") else []
    return bool(callers) and all(_checks_open(each, flags, registry) for each in callers)


def _callers(adding: Function) -> list[Function]:
    return [
        each
        for each in (adding.klass.functions if adding.klass is not None else ())
        if each is not adding
        and f"self.{adding.name}" in (each.name_of(call.func) for call in each.calls)
    ]


def _names_in(function: Function, node: ast.AST) -> set[str]:
    return {function.name_of(each) for each in ast.walk(node) if isinstance(each, ast.Attribute)}


RULE = Rule(_CODE, check, needs=(OWNING, "close|clear|-=|difference_update"))
