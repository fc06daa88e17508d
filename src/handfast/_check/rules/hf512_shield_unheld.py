"""HF512: `shield` is passed a coroutine, and no reference is kept to the task inside.

Reported: `asyncio.shield(work())` and `asyncio.shield(create_task(work()))`, awaited, dropped or in a
local name. Pedantic in a handler, and where a handler around it catches the cancellation.
Not reported: where an object stores the future that `shield` returns, where a name or an attribute is
shielded, where the call returns a future that other code holds (an executor's, or `gather` of names),
and where the called function is no coroutine function, only waits, or by its name (`get_task()`)
returns a task that it keeps.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from handfast._check.finding import Finding
from handfast._check.model.syntax.ancestors import (
    TRY,
    contains,
    last_name,
    steps_up,
)
from handfast._check.model.syntax.call_graph import resolve_function
from handfast._check.model.syntax.function import Function
from handfast._check.model.syntax.handlers import cancel_handlers
from handfast._check.model.syntax.module import Module
from handfast._check.model.tasks.creation import any_creation_in
from handfast._check.rules.rule import Rule, related, report

_SHIELDS = {"asyncio.shield", "asyncio.tasks.shield"}
# Calls that return a future which other code holds.
_HELD = re.compile(
    r"run_in_executor|run_coroutine_threadsafe|wrap_future|create_future|submit|spawn|start_soon"
    r"|get|pop|_?get_\w+|\w*(?:future|fut|task|Future|Task)s?|cast|partial|async_add_executor_job"
    r"|to_thread|run_sync"
    r"|join|append"
)
# The executor holds the future that the task awaits, and so the task.
_IN_THREAD = {"to_thread", "run_sync", "run_in_executor"}
_GATHERS = {"asyncio.gather", "asyncio.wait"}


def check(module: Module) -> Iterator[Finding]:
    for function, call in module.calls():
        if function.name_of(call.func) not in _SHIELDS or not call.args:
            continue
        inner = call.args[0]
        if not isinstance(inner, ast.Call) or _is_stored(module, call):
            continue
        if _is_unheld(function, inner):
            yield _finding(function, call, inner)


def _finding(function: Function, call: ast.Call, inner: ast.Call) -> Finding:
    module = function.module
    body = next(iter(_coroutines(function, inner)), None)
    name = function.name_of(inner.func) or "the coroutine"
    places = (
        [related(module, body.node, f"`{body.name}` continues without an owner")] if body else []
    )
    return report(
        "HF512",
        module,
        call,
        f"`shield` is passed `{name}(...)`, and no reference is kept to the task inside: when the "
        "waiter is cancelled, the task continues without an owner; create the task first, keep it, and "
        "shield that",
        *places,
        pedantic=_is_last(function, call),
        # One set for all of them is the fix.
        cause="no reference",
    )


def _is_last(function: Function, call: ast.Call) -> bool:
    """Whether the task is about to end anyway, and the shielded work is its last; or whether the function
    expects the cancellation here."""
    for part, up in steps_up(function, call):
        if isinstance(up, ast.ExceptHandler):
            return True
        if isinstance(up, TRY) and part in up.body:
            taken = cancel_handlers(function, up)
            if any(not contains(each.body, ast.Raise) for each in taken):
                return True
    return False


def _is_stored(module: Module, call: ast.Call) -> bool:
    """Whether an object keeps the outer future, which holds the inner task until it is done."""
    match module.parents.get(call):
        case ast.Assign([ast.Attribute() | ast.Subscript()]):
            return True
        case ast.AnnAssign(ast.Attribute() | ast.Subscript()):
            return True
    return False


def _coroutines(function: Function, inner: ast.Call) -> Iterator[Function]:
    if any_creation_in(function, inner) and inner.args and isinstance(inner.args[0], ast.Call):
        inner = inner.args[0]
    yield from resolve_function(function, inner.func)


def _is_unheld(function: Function, inner: ast.Call) -> bool:
    name = function.name_of(inner.func)
    plain = name.rpartition(".")[2]
    if name in _GATHERS:
        return any(isinstance(each, ast.Call) for each in inner.args)
    if name == "asyncio.wait_for":
        work = inner.args[0] if inner.args else None
        return isinstance(work, ast.Call) and _is_unheld(function, work)
    if any_creation_in(function, inner) is not None:
        # `self.create_task(...)`, `hass.async_create_task(...)`: the owner tracks it.
        given = inner.args[0] if inner.args else None
        called = last_name(given.func) if isinstance(given, ast.Call) else ""
        return name.startswith("asyncio.") and called not in _IN_THREAD
    known = list(resolve_function(function, inner.func))
    if "wait" in plain:  # a task that only waits loses nothing
        return False
    if known:
        return all(each.is_async and not each.is_generator for each in known)
    return bool(plain) and _HELD.fullmatch(plain) is None


RULE = Rule("HF512", check, needs=("shield",))
