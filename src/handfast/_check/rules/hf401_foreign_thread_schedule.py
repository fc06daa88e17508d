"""HF401: a task or a callback is scheduled from a thread that is not the event loop's.

Reported: a function that is started on a thread in this module (the target of a thread, an executor, a
callback of a library that is known to use threads of its own) calls `create_task`, `ensure_future`,
`call_soon`, `call_later` or `call_at`, directly or through functions that it calls. Also a plain
method that passes `ensure_future` a loop which its object got from `get_running_loop()`: code on the
loop has no need to name it.
Not reported: where the thread creates, sets or runs a loop of its own, or tests on which thread it is.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from handfast._check.finding import Finding
from handfast._check.model.syntax.ancestors import assignments
from handfast._check.model.syntax.function import Function
from handfast._check.model.syntax.module import Module
from handfast._check.model.tasks.creation import is_loop
from handfast._check.model.threads.foreign_threads import foreign_threads, runs_own_loop
from handfast._check.rules.rule import Rule, related, report

_CODE = "HF401"
_PLAIN = {"asyncio.create_task", "asyncio.ensure_future"}
_METHODS = {"create_task", "ensure_future", "call_soon", "call_later", "call_at"}


def check(module: Module) -> Iterator[Finding]:
    on_thread = foreign_threads(module)
    for function, why in on_thread.items():
        for call in function.calls:
            name = _scheduling(function, call)
            if name:
                yield report(
                    _CODE,
                    module,
                    call,
                    f"`{name}` is called in `{function.qualname}`, which runs on a thread other than the "
                    "event loop's: it is not thread-safe and does not wake the loop; use "
                    "`loop.call_soon_threadsafe` or `asyncio.run_coroutine_threadsafe`",
                    related(
                        module, why.node, f"`{why.start.qualname}` is started on a thread here"
                    ),
                )
    if "ensure_future" not in module.source.text:
        return
    for klass in module.classes.values():
        for function in klass.methods.values():
            if function not in on_thread:
                yield from _with_stored_loop(module, function)


def _scheduling(function: Function, call: ast.Call) -> str:
    """The name of the call, if it schedules something on a loop."""
    name = function.name_of(call.func)
    if name in _PLAIN:
        return name
    match call.func:
        case ast.Attribute(receiver, attr) if attr in _METHODS and is_loop(function, receiver):
            return name or attr
    return ""


def _with_stored_loop(module: Module, function: Function) -> Iterator[Finding]:
    """`ensure_future(..., loop=self._loop)` in a plain method, with a loop that was running when
    the object was created."""
    if function.is_async or runs_own_loop(function):
        return
    for call in function.calls:
        if function.name_of(call.func) != "asyncio.ensure_future":
            continue
        for keyword in call.keywords:
            taken = _running_loop(function, keyword.value) if keyword.arg == "loop" else None
            if taken is not None:
                yield report(
                    _CODE,
                    module,
                    call,
                    f"`ensure_future` in `{function.qualname}` is passed a stored loop: called from "
                    "another thread, it does not wake that loop; use `run_coroutine_threadsafe`",
                    related(*taken, "the loop that ran when the object was created"),
                )


def _running_loop(function: Function, node: ast.expr) -> tuple[Module, ast.AST] | None:
    """Where the object stores the loop that was running."""
    name = function.name_of(node)
    klass = function.klass
    if klass is None or not name.startswith("self."):
        return None
    for each in klass.lineage:
        for method in each.functions:
            for stored in method.nodes:
                for target, value in assignments(stored):
                    if method.name_of(target) == name and (
                        method.roots(value) == {"asyncio.get_running_loop()"}
                    ):
                        return method.module, value
    return None


RULE = Rule(_CODE, check, needs=("create_task|ensure_future|call_soon|call_later|call_at",))
