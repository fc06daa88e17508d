"""`wait(..., return_when=FIRST_COMPLETED)` or with a timeout, and what happens to the tasks that are not
done.

A task that was created for such a wait alone is lost if it is not done then: the `pending` set is dropped
and no other name holds the task.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from handfast._check.model.syntax.call_graph import resolve_function
from handfast._check.model.syntax.function import Function
from handfast._check.model.tasks.creation import creation_in
from handfast._check.model.vocabulary import TASK_QUERIES, WAITING_FOR_INPUT

_Written = ast.List | ast.Set | ast.Tuple
_Comprehension = ast.ListComp | ast.SetComp
_WAITS = {"asyncio.wait", "asyncio.tasks.wait"}
_AS_COMPLETED = {"asyncio.as_completed", "asyncio.tasks.as_completed"}
_EARLY = {"FIRST_COMPLETED", "FIRST_EXCEPTION"}
# Methods of a task that do not end it.
_QUERIES = TASK_QUERIES | {"result"}


@dataclass(frozen=True, slots=True, eq=False)
class FirstCompletedWait:
    """A wait for the first of several tasks, and one that is created here and may be lost."""

    wait: ast.Call
    lost: ast.expr


def lost_tasks(function: Function) -> Iterator[FirstCompletedWait]:
    """The waits of a function that lose tasks which were not the first."""
    for call in function.calls:
        if function.name_of(call.func) in _WAITS and call.args and _ends_early(function, call):
            tasks = _tasks(function, call.args[0])
            if isinstance(tasks, _Comprehension):
                made = tasks.elt
                if isinstance(made, ast.Call) and creation_in(function, made):
                    if _is_rest_dropped(function, call):
                        yield FirstCompletedWait(call, made)
                continue
            if tasks is None or len(tasks.elts) < 2 or not _is_rest_dropped(function, call):
                continue
            lost = (
                each
                for each in tasks.elts
                if _is_lost(function, each, tasks) and not _only_sleeps(function, each)
            )
            yield from (
                FirstCompletedWait(call, _creation(function, each) or each)
                for each in islice(lost, 1)
            )


def left_in_as_completed(function: Function) -> Iterator[FirstCompletedWait]:
    """`for first in as_completed([a(), b()]): await first; break`: the loop always ends at the first."""
    for loop in function.nodes:
        match loop:
            case ast.For(_, ast.Call(func, [given, *_]) as call, [*_, ast.Break() | ast.Return()]):
                if function.name_of(func) not in _AS_COMPLETED:
                    continue
                tasks = _tasks(function, given)
                if isinstance(tasks, _Written) and len(tasks.elts) > 1:
                    lost = (each for each in tasks.elts if _is_lost(function, each, tasks))
                    yield from (FirstCompletedWait(call, each) for each in islice(lost, 1))


def _ends_early(function: Function, call: ast.Call) -> bool:
    for keyword in call.keywords:
        # A timeout that is no constant may be None.
        if keyword.arg == "timeout" and isinstance(keyword.value, ast.Constant):
            if keyword.value.value is not None:
                return True
        if keyword.arg == "return_when":
            match keyword.value:
                case ast.Constant(str() as word):
                    return word in _EARLY
                case value:
                    return function.last_name_of(value) in _EARLY
    return False


def _tasks(function: Function, given: ast.expr) -> _Written | _Comprehension | None:
    """The tasks of the wait, if they are created here: in the call, or in a name used only there."""
    match given:
        case ast.List() | ast.Set() | ast.Tuple() | ast.ListComp() | ast.SetComp():
            return given
        case ast.Name(name):
            match function.assigned.get(name):
                case [tasks] if _uses(function, name) == 1:
                    return _tasks(function, tasks) if not isinstance(tasks, ast.Name) else None
    return None


def _is_rest_dropped(function: Function, call: ast.Call) -> bool:
    """Whether the `pending` set is not used."""
    parents = function.module.parents
    waited = parents.get(call)
    if not isinstance(waited, ast.Await):
        return False
    match parents.get(waited):
        case ast.Expr():
            return True
        # `done, _ = await wait(...)`
        case ast.Assign([ast.Tuple([_, ast.Name(rest)])]):
            return not _uses(function, rest)
        # `done = (await wait(...))[0]`
        case ast.Subscript(_, ast.Constant(0)):
            return True
    return False


def _uses(function: Function, name: str) -> int:
    return sum(1 for _ in function.reads(name))


def _is_lost(function: Function, task: ast.expr, tasks: _Written) -> bool:
    """Whether only the wait holds a task: it is created in the call, or its name is not used again."""
    match task:
        case ast.Call():
            return creation_in(function, task) is not None or _is_coroutine(function, task)
        case ast.Name(name):
            created = _creation(function, task)
            return (
                created is not None
                and _is_beside(function, created, tasks)
                and not any(_is_held_by(function, each, tasks) for _, each in function.reads(name))
            )
    return False


def _only_sleeps(function: Function, task: ast.expr) -> bool:
    """Whether the task only sleeps: its timer holds it, it ends by itself, and it has no error."""
    match _creation(function, task) or task:
        case ast.Call(_, [ast.Call(slept), *_]) | ast.Call(slept):
            return function.name_of(slept) == "asyncio.sleep"
    return False


def _creation(function: Function, task: ast.expr) -> ast.Call | None:
    """Where the task of a name is created, if the name is assigned only once."""
    if not isinstance(task, ast.Name):
        return None
    match function.assigned.get(task.id):
        case [ast.Call() as call] if creation_in(function, call) is not None:
            return call
    return None


def _is_beside(function: Function, created: ast.Call, tasks: _Written) -> bool:
    """Whether it is created in the same block as the wait, and not once for a loop of waits."""
    statement_of, parents = function.module.statement_of, function.module.parents
    return parents.get(statement_of(created)) is parents.get(statement_of(tasks))


def _is_held_by(function: Function, use: ast.Name, tasks: _Written) -> bool:
    """Whether a use of the name may end the task, or pass it on."""
    match function.module.parents.get(use):
        case ast.Attribute(attr=attr):
            return attr not in _QUERIES
        case ast.Compare():
            return False
        case ast.List() | ast.Set() | ast.Tuple() as whole:
            return whole is not tasks
    return True


def _is_coroutine(function: Function, call: ast.Call) -> bool:
    """Whether a call returns a coroutine, which `wait` wraps in a task (up to Python 3.10)."""
    found = list(resolve_function(function, call.func))
    if found:
        return all(each.is_async and not each.is_generator for each in found)
    return isinstance(call.func, ast.Attribute) and call.func.attr in WAITING_FOR_INPUT
