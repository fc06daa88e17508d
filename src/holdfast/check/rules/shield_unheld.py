"""HF512: `shield` is given a coroutine, and nobody holds the task inside.

Found: `asyncio.shield(work())` and `asyncio.shield(create_task(work()))`, awaited, dropped or under
a local name.

Silent: an object stores the future that it gives, a name or an attribute is shielded, the call gives
a future that somebody else holds (an executor's, one of `gather` over names), the function called is
no coroutine function, only waits, or keeps its own task by its name (`get_task()`).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from holdfast.check.finding import Finding
from holdfast.check.model.function import Function
from holdfast.check.model.module import Module
from holdfast.check.model.tasks import resolve_function
from holdfast.check.model.waits import is_making
from holdfast.check.rules.rule import Rule, found, related

__all__ = ["RULE"]

_SHIELDS = {"asyncio.shield", "asyncio.tasks.shield"}
# Calls that give a future which has a holder.
_HELD = re.compile(
    r"run_in_executor|run_coroutine_threadsafe|wrap_future|create_future|submit|spawn|start_soon"
    r"|get|pop|_?get_\w+|\w*(?:future|fut|task|Future|Task)s?|cast|partial|async_add_executor_job"
    r"|to_thread|run_sync"
    r"|join|append"
)
_GATHERS = {"asyncio.gather", "asyncio.wait"}


def check(module: Module) -> Iterator[Finding]:
    if "shield" not in module.source.text:
        return
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
        [related(module, body.node, f"`{body.name}` runs on here without an owner")] if body else []
    )
    return found(
        "HF512",
        module,
        call,
        f"`shield` is given `{name}(...)`, and nobody holds the task inside: when the waiter is "
        "cancelled, it runs on without an owner, and the end of the loop cuts it",
        *places,
    )


def _is_stored(module: Module, call: ast.Call) -> bool:
    """Whether an object keeps the outer future: as long as that waits, it holds the inner task."""
    match module.parents.get(call):
        case ast.Assign([ast.Attribute() | ast.Subscript()]):
            return True
        case ast.AnnAssign(ast.Attribute() | ast.Subscript()):
            return True
    return False


def _coroutines(function: Function, inner: ast.Call) -> Iterator[Function]:
    if is_making(function, inner) and inner.args and isinstance(inner.args[0], ast.Call):
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
    if is_making(function, inner):
        # `self.create_task(...)`, `hass.async_create_task(...)`: somebody tracks it.
        return name.startswith("asyncio.")
    known = list(resolve_function(function, inner.func))
    if "wait" in plain:  # what only waits has nothing that could be cut
        return False
    if known:
        return all(each.is_async and not each.is_generator for each in known)
    return bool(plain) and _HELD.fullmatch(plain) is None


RULE = Rule("HF512", check)
