"""HF121: `create_task` is given a future, which is no coroutine, so it raises `TypeError`.

Reported: `gather(...)`, `shield(...)`, a call into an executor or another task passed to the
`create_task` of asyncio, of a loop or of a task group, directly or by a local name that holds nothing
else.
Not reported: `ensure_future`, which takes futures; `wait` and `wait_for`, which are coroutines;
receivers that are neither a loop nor a task group.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from handfast._check.finding import Finding
from handfast._check.model.syntax.function import Function
from handfast._check.model.syntax.module import Module
from handfast._check.model.tasks.creation import is_loop
from handfast._check.rules.rule import Rule, related, report

_CODE = "HF121"
_FUTURES = {
    "asyncio.gather", "asyncio.shield", "asyncio.wrap_future", "asyncio.ensure_future",
    "asyncio.create_task", "asyncio.run_coroutine_threadsafe",
}  # fmt: skip
_OF_LOOPS = {"run_in_executor", "create_future"}


def check(module: Module) -> Iterator[Finding]:
    """Futures that are passed to `create_task`."""
    for function, call in module.calls():
        if call.args and _takes_coroutines(function, call):
            for future, name in _futures(function, call.args[0]):
                yield report(
                    _CODE,
                    module,
                    call,
                    f"`create_task` raises TypeError here, because `{name}` returns a future and not a "
                    "coroutine; its awaitables have been scheduled already: create one task for each, "
                    "or await the future",
                    related(module, future, "the future is created here")
                    if future is not call.args[0]
                    else None,
                )


def _takes_coroutines(function: Function, call: ast.Call) -> bool:
    if function.name_of(call.func) in ("asyncio.create_task", "asyncio.tasks.create_task"):
        return True
    match call.func:
        case ast.Attribute(receiver, "create_task"):
            return is_loop(function, receiver) or _is_task_group(function, receiver)
    return False


def _is_task_group(function: Function, receiver: ast.expr) -> bool:
    return function.roots(receiver) == {"asyncio.TaskGroup()"}


def _futures(function: Function, given: ast.expr) -> Iterator[tuple[ast.expr, str]]:
    """What creates the future, if every value of the expression is one."""
    match given:
        case ast.Name(name) if name not in function.parameters:
            values = function.assigned.get(name, [])
        case _:
            values = [given]
    futures = [(value, _future_of(function, value)) for value in values]
    if futures and all(name for _, name in futures):
        yield futures[0]


def _future_of(function: Function, value: ast.expr) -> str:
    match value:
        case ast.Call(ast.Attribute(receiver, attr)) if attr in _OF_LOOPS:
            return attr if is_loop(function, receiver) else ""
        case ast.Call(func):
            name = function.name_of(func)
            return name.rpartition(".")[2] if name in _FUTURES else ""
    return ""


RULE = Rule(_CODE, check, needs=("create_task",))
