"""HF401: a task or a callback of a loop is scheduled on a thread that is not the loop's.

Evidence: the function is started on a thread in this module (a thread's target, an executor, a
callback of a library that is known to bring its own threads), and calls `create_task`,
`ensure_future`, `call_soon`, `call_later` or `call_at`, directly or over functions that it calls.
Or: a plain method gives `ensure_future` the loop that its object has taken from
`get_running_loop()`: who is on the loop has no need to say which.
Silent where the thread makes, sets or runs a loop of its own, or asks on which thread it is.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from holdfast.check.finding import Finding
from holdfast.check.model.function import Function
from holdfast.check.model.module import Module
from holdfast.check.model.roles import brings_loop, foreign
from holdfast.check.model.tasks import is_loop
from holdfast.check.rules.rule import Rule, found, related

__all__ = ["RULE"]

_CODE = "HF401"
_PLAIN = {"asyncio.create_task", "asyncio.ensure_future"}
_METHODS = {"create_task", "ensure_future", "call_soon", "call_later", "call_at"}


def check(module: Module) -> Iterator[Finding]:
    on_thread = foreign(module)
    for function, why in on_thread.items():
        for call in function.calls:
            name = _scheduling(function, call)
            if name:
                yield found(
                    _CODE,
                    module,
                    call,
                    f"`{name}` is called in `{function.qualname}`, which runs on a thread that is not "
                    "the loop's: the loop is not woken",
                    related(module, why.node, f"`{why.start.qualname}` is put on a thread here"),
                )
    if "ensure_future" not in module.source.text:
        return
    for klass in module.classes.values():
        for function in klass.methods.values():
            if function not in on_thread:
                yield from _with_a_loop_of_old(module, function)


def _scheduling(function: Function, call: ast.Call) -> str:
    """The name of the call, if it schedules something on a loop."""
    name = function.name_of(call.func)
    if name in _PLAIN:
        return name
    match call.func:
        case ast.Attribute(receiver, attr) if attr in _METHODS and is_loop(function, receiver):
            return name or attr
    return ""


def _with_a_loop_of_old(module: Module, function: Function) -> Iterator[Finding]:
    """`ensure_future(..., loop=self._loop)` in a plain method, with a loop that was running when
    the object was made."""
    if function.is_async or brings_loop(function):
        return
    for call in function.calls:
        if function.name_of(call.func) != "asyncio.ensure_future":
            continue
        for keyword in call.keywords:
            taken = _running_loop(function, keyword.value) if keyword.arg == "loop" else None
            if taken is not None:
                yield found(
                    _CODE,
                    module,
                    call,
                    f"`ensure_future` in `{function.qualname}` is given a loop of old: on another "
                    "thread that loop is not woken; use `run_coroutine_threadsafe`",
                    related(*taken, "the loop that ran when the object was made"),
                )


def _running_loop(function: Function, node: ast.expr) -> tuple[Module, ast.AST] | None:
    """Where the object has taken its loop from the one that was running."""
    name = function.name_of(node)
    klass = function.klass
    if klass is None or not name.startswith("self."):
        return None
    for each in klass.lineage:
        for method in each.functions:
            for value, target in _assignments(method):
                if method.name_of(target) == name and (
                    method.roots(value) == {"asyncio.get_running_loop()"}
                ):
                    return method.module, value
    return None


def _assignments(function: Function) -> Iterator[tuple[ast.expr, ast.expr]]:
    for node in function.nodes:
        match node:
            case ast.Assign([target], value):
                yield value, target
            case ast.AnnAssign(target, _, value) if value is not None:
                yield value, target


RULE = Rule(_CODE, check)
