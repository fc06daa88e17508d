"""HF101: a task that nothing holds.

Found: a `create_task` or `ensure_future` of asyncio or of an event loop, whatever the loop is called,
whose value is dropped, or that only a weak container holds; a task in a local name that is not used
again, or only to name it or to hang a callback on it (pedantic where the function waits before it
ends); a task that a function of the project returns and its caller drops; a lambda that only makes
a task and is given to somebody who drops what it returns; a task made for a `wait` for the first of
several, whose set of those that are not done is thrown away. Silent: task groups, scopes and
frameworks that track (their receivers are no loops), futures that somebody else holds, and programs
that start their loop right there.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from holdfast.check.finding import Finding
from holdfast.check.fixes import kept_until_done
from holdfast.check.model.containers import holds_weakly
from holdfast.check.model.function import Function
from holdfast.check.model.memo import remembered
from holdfast.check.model.module import Module
from holdfast.check.model.races import lost_races
from holdfast.check.model.roles import tasks_of
from holdfast.check.model.tasks import (
    Creation,
    Kept,
    creation_in,
    kept_by,
    resolve_anywhere,
    resolve_function,
)
from holdfast.check.rules.rule import Rule, found, related

__all__ = ["RULE", "check"]

_CODE = "HF101"
_HINT = "keep it in a set until it is done, or start it in a scope or task group"
# What can be done with a task without holding it. The callbacks are held by the task.
_NOT_HOLDING = {"add_done_callback", "set_name", "get_name"}
_HOLDING = {"attribute", "element", "outside", "passed", "returned"}
_TELLING = {
    "call_exception_handler", "debug", "info", "warning", "error", "exception", "log", "print",
    "str", "repr", "id", "isinstance",
}  # fmt: skip
# Who calls what it is given, and drops what that returns; where the function stands.
_DROPPING = {
    "add_signal_handler": 1, "call_soon": 0, "call_soon_threadsafe": 0, "call_later": 1,
    "call_at": 1, "add_reader": 1, "add_writer": 1, "add_done_callback": 0,
}  # fmt: skip
_ENTRIES = {"main", "amain", "async_main", "main_async"}
_STARTING = r"run_until_complete|(\w+_)?run"
_RUNNING = {"run_forever", "run_until_complete", "run"}
# What gives a future that somebody else holds.
_HELD = {"run_in_executor", "wrap_future", "run_coroutine_threadsafe", "create_future"}


def check(module: Module) -> Iterator[Finding]:
    """Tasks that nothing holds."""
    for made in tasks_of(module):
        if not _is_left_alone(made):
            yield from _dropped(module, made)
    yield from _dropped_by_caller(module)
    if "return_when" in module.source.text:
        yield from _lost_in_race(module)


def _dropped(module: Module, made: Creation) -> Iterator[Finding]:
    how = [kept.how for kept in made.kept]
    if how == ["dropped"]:
        yield found(
            _CODE,
            module,
            made.call,
            f"The task made here is held by nothing: {_HINT}.",
            fix=kept_until_done(made.function, made.call),
        )
    elif how == ["returned"] and (taker := _takes_lambda(module, made)):
        yield found(
            _CODE,
            module,
            made.call,
            f"The task made here is held by nothing, since `{taker}` drops what it is given back: "
            f"{_HINT}.",
        )
    elif weak := _held_weakly(made):
        yield found(
            _CODE,
            module,
            made.call,
            f"The task made here is held only weakly, by `{weak.name}`: {_HINT}.",
            *([related(module, weak.node, "put in here")] if weak.node is not None else []),
        )
    elif how == ["local"] and _is_lost(made):
        name = made.kept[0].name
        yield found(
            _CODE,
            module,
            made.call,
            f"The task made here is held only by the local name `{name}`, which is gone when "
            f"`{made.function.name}` ends: {_HINT}.",
            related(module, made.function.node, f"`{name}` lives as long as a call of this"),
            fix=kept_until_done(made.function, made.call),
            # While the function waits, it does hold the task: perhaps for as long as that takes.
            pedantic=_goes_on(made),
        )


def _held_weakly(made: Creation) -> Kept | None:
    """The container that lets go of the task by itself, if it is all that there is to hold it."""
    holders = [kept for kept in made.kept if kept.how != "local"]
    if all(kept.how == "element" and holds_weakly(made.function, kept.name) for kept in holders):
        return holders[0] if holders else None
    return None


def _is_left_alone(made: Creation) -> bool:
    """A program that runs its loop right here, a future of somebody else, a task that holds itself."""
    function = made.function
    if _runs_loop(function):
        return True
    if any(map(_registers_itself, made.bodies)):
        return True
    match made.coro:
        case ast.Call() as given:
            return _called(given) in _HELD
        case ast.Name(name) | ast.Attribute(attr=name):
            # `ensure_future` gives a future back as it is: somebody has made that one.
            is_ensured = _called(made.call) == "ensure_future"
            return is_ensured and ("fut" in name.lower() or "task" in name.lower())
    return False


def _runs_loop(function: Function) -> bool:
    return any(
        # `create_task(run())` with a `run` of one's own runs no loop.
        _called(call) in _RUNNING and not any(resolve_function(function, call.func))
        for call in function.calls
    )


def _registers_itself(body: Function) -> bool:
    """Whether a task puts itself away: to ask which one is running, to compare it or to tell of it
    is not that."""
    return any(
        kept.how in _HOLDING
        and not isinstance(kept.node, (ast.Compare, ast.Attribute, ast.BoolOp))
        and kept.name.rpartition(".")[2] not in _TELLING
        for call in body.calls
        if _called(call) == "current_task"
        for kept in kept_by(body, call)
    )


def _called(call: ast.Call) -> str:
    """The last word of what is called."""
    match call.func:
        case ast.Attribute(attr=name) | ast.Name(name):
            return name
    return ""


def _takes_lambda(module: Module, made: Creation) -> str:
    """Who is given the lambda that makes the task, if it drops what the lambda returns."""
    given = made.function.node
    taker = module.parents.get(given)
    if isinstance(given, ast.Lambda) and isinstance(taker, ast.Call):
        name = _called(taker)
        where = _DROPPING.get(name, -1)
        if 0 <= where < len(taker.args) and taker.args[where] is given:
            return name
    return ""


# --- held by a local name only --------------------------------------------------------------------


def _is_lost(made: Creation) -> bool:
    function, name = made.function, made.kept[0].name
    if (
        function is function.module.body
        or _is_declared_outside(function, name)
        or _is_used(function, name)
    ):
        return False
    step = function.flow.of(made.call)
    return step is not None and function.flow.reaches(step, function.flow.end)


def _is_declared_outside(function: Function, name: str) -> bool:
    return any(
        isinstance(node, (ast.Global, ast.Nonlocal)) and name in node.names
        for node in function.nodes
    )


def _is_used(function: Function, name: str) -> bool:
    """Whether a local name is read for more than what holds nothing, here or in an inner function."""
    parents = function.module.parents
    for where in (function, *_all_inner(function)):
        for node in where.nodes:
            if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
                use = parents.get(node)
                if not (isinstance(use, ast.Attribute) and use.attr in _NOT_HOLDING):
                    return True
            if isinstance(node, ast.Call) and _called(node) == "locals":
                return True
    return False


def _all_inner(function: Function) -> Iterator[Function]:
    for each in function.inner:
        yield each
        yield from _all_inner(each)


def _goes_on(made: Creation) -> bool:
    """Whether the function waits for anything after the task is made, and so holds it meanwhile."""
    flow = made.function.flow
    step = flow.of(made.call)
    return step is not None and any(
        node.suspends and flow.reaches(step, node) for node in flow.nodes
    )


# --- returned, and dropped by who called ----------------------------------------------------------


def _dropped_by_caller(module: Module) -> Iterator[Finding]:
    for function, call in module.calls():
        if not isinstance(module.parents.get(call), ast.Expr):
            continue
        if creation_in(function, call) is not None or _runs_loop(function):
            continue
        for giver in resolve_anywhere(function, call.func):
            made = _given_away(giver)
            if made is not None:
                yield found(
                    _CODE,
                    module,
                    call,
                    f"`{giver.name}` returns the task that it makes, and it is dropped here: "
                    f"{_HINT}.",
                    related(giver.module, made.call, "the task is made here"),
                    fix=kept_until_done(function, call),
                )


@remembered
def _given_away(function: Function) -> Creation | None:
    """The task that a plain function makes and returns, and that nobody else holds."""
    if function.is_async or isinstance(function.node, ast.Lambda):
        return None
    for call in function.calls:
        made = creation_in(function, call)
        ways = {kept.how for kept in made.kept} if made is not None else set()
        if made is not None and "returned" in ways <= {"returned", "local"}:
            return None if _is_left_alone(made) else made
    return None


# --- raced, and not the first ---------------------------------------------------------------------


def _lost_in_race(module: Module) -> Iterator[Finding]:
    programs = set(_programs(module))
    for function in module.functions:
        if function in programs or _runs_loop(function):
            continue  # when a program ends, its loop cancels what is left
        for race in lost_races(function):
            yield found(
                _CODE,
                module,
                race.lost,
                "If another task is done first, the one made here runs on, held by nothing: cancel "
                "and join what `wait` gives back as pending.",
                related(module, race.wait, "what is not done is thrown away here"),
            )


def _programs(module: Module) -> Iterator[Function]:
    """What a loop is started for: `run(main())`."""
    yield from (each for each in module.functions if each.name.strip("_") in _ENTRIES)
    for function, call in module.calls():
        match call.args:
            case [ast.Call(given), *_] if re.fullmatch(_STARTING, _called(call)):
                yield from resolve_function(function, given)


RULE = Rule(_CODE, check)
