"""Waits for the first of several tasks, and what becomes of the others.

A race is lost for a task that was made for it alone: nobody can reach it afterwards, because the
set of those that are not done is thrown away and no name holds it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from holdfast.check.model.function import Function
from holdfast.check.model.tasks import creation_in, resolve_function

__all__ = ["Race", "lost_races"]

_Field = ast.List | ast.Set | ast.Tuple
_WAITS = {"asyncio.wait", "asyncio.tasks.wait"}
_EARLY = {"FIRST_COMPLETED", "FIRST_EXCEPTION"}
# What gives a coroutine of the standard library, as long as it is called on nothing stranger.
_WAITING = {"get", "wait", "sleep", "recv", "read", "readline", "join", "acquire"}
# What can be asked of a task without doing anything about it.
_ASKING = {"done", "result", "exception", "cancelled", "add_done_callback", "set_name", "get_name"}


@dataclass(frozen=True, slots=True, eq=False)
class Race:
    """A wait for the first of several tasks, and one of them that is made here and lost."""

    wait: ast.Call
    lost: ast.expr


def lost_races(function: Function) -> Iterator[Race]:
    """The waits of a function that lose the tasks which were not the first."""
    for call in function.calls:
        if function.name_of(call.func) in _WAITS and call.args and _ends_early(function, call):
            field = _field(function, call.args[0])
            if field is None or len(field.elts) < 2 or not _is_rest_dropped(function, call):
                continue
            lost = (
                each
                for each in field.elts
                if _is_lost(function, each, field) and not _only_sleeps(function, each)
            )
            yield from (Race(call, _made(function, each) or each) for each in islice(lost, 1))


def _ends_early(function: Function, call: ast.Call) -> bool:
    for keyword in call.keywords:
        if keyword.arg == "return_when":
            match keyword.value:
                case ast.Constant(str() as word):
                    return word in _EARLY
                case value:
                    return function.name_of(value).rpartition(".")[2] in _EARLY
    return False


def _field(function: Function, given: ast.expr) -> _Field | None:
    """What is raced, if it is written out: in the call, or under a name that does nothing else."""
    match given:
        case ast.List() | ast.Set() | ast.Tuple():
            return given
        case ast.Name(name):
            match function.assigned.get(name):
                case [ast.List() | ast.Set() | ast.Tuple() as field] if _uses(function, name) == 1:
                    return field
    return None


def _is_rest_dropped(function: Function, call: ast.Call) -> bool:
    """Whether nobody looks at what was not done."""
    parents = function.module.parents
    waited = parents.get(call)
    if not isinstance(waited, ast.Await):
        return False
    match parents.get(waited):
        case ast.Expr():
            return True
        case ast.Assign([ast.Tuple([_, ast.Name(rest)])]):
            return not _uses(function, rest)
        case ast.Subscript(_, ast.Constant(0)):
            return True
    return False


def _uses(function: Function, name: str) -> int:
    return sum(1 for _ in _reads(function, name))


def _reads(function: Function, name: str) -> Iterator[ast.Name]:
    todo = [function]
    for where in todo:  # it grows while we go
        todo += where.inner
        for node in where.nodes:
            if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
                yield node


def _is_lost(function: Function, runner: ast.expr, field: _Field) -> bool:
    """Whether nobody but the wait holds it: it is made in the call, or its name does no more."""
    match runner:
        case ast.Call():
            return creation_in(function, runner) is not None or _is_coroutine(function, runner)
        case ast.Name(name):
            made = _made(function, runner)
            return (
                made is not None
                and _is_beside(function, made, field)
                and not any(_is_held_by(function, each, field) for each in _reads(function, name))
            )
    return False


def _only_sleeps(function: Function, runner: ast.expr) -> bool:
    """A nap that lost is held by the loop's clock, ends by itself, and has no error to lose."""
    match _made(function, runner) or runner:
        case ast.Call(_, [ast.Call(slept), *_]) | ast.Call(slept):
            return function.name_of(slept) == "asyncio.sleep"
    return False


def _made(function: Function, runner: ast.expr) -> ast.Call | None:
    """Where the task of a name is made, if that is the only thing that it ever names."""
    if not isinstance(runner, ast.Name):
        return None
    match function.assigned.get(runner.id):
        case [ast.Call() as call] if creation_in(function, call) is not None:
            return call
    return None


def _is_beside(function: Function, made: ast.Call, field: _Field) -> bool:
    """Whether it is made in the same block: not once for many rounds of a loop."""
    statement_of, parents = function.module.statement_of, function.module.parents
    return parents.get(statement_of(made)) is parents.get(statement_of(field))


def _is_held_by(function: Function, use: ast.Name, field: _Field) -> bool:
    """Whether a use of the name may end the task, or give it to somebody."""
    match function.module.parents.get(use):
        case ast.Attribute(attr=attr):
            return attr not in _ASKING
        case ast.Compare():
            return False
        case ast.List() | ast.Set() | ast.Tuple() as whole:
            return whole is not field
    return True


def _is_coroutine(function: Function, call: ast.Call) -> bool:
    """Whether a call gives a coroutine, of which `wait` makes a task by itself."""
    found = list(resolve_function(function, call.func))
    if found:
        return all(each.is_async and not each.is_generator for each in found)
    return isinstance(call.func, ast.Attribute) and call.func.attr in _WAITING
