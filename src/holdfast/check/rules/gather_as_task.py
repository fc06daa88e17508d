"""HF121: `create_task` is given a future, which is no coroutine, so it raises `TypeError`.

Found: `gather(...)`, `shield(...)`, a call into an executor or another task given to the `create_task` of
asyncio, of a loop or of a task group, directly or by a local name that holds nothing else.
Silent: `ensure_future`, which takes futures; `wait` and `wait_for`, which are coroutines; receivers
that are neither a loop nor a task group.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from holdfast.check.finding import Finding
from holdfast.check.model.function import Function
from holdfast.check.model.module import Module
from holdfast.check.model.tasks import is_loop
from holdfast.check.rules.rule import Rule, found, related

__all__ = ["RULE", "check"]

_CODE = "HF121"
_FUTURES = {
    "asyncio.gather", "asyncio.shield", "asyncio.wrap_future", "asyncio.ensure_future",
    "asyncio.create_task", "asyncio.run_coroutine_threadsafe",
}  # fmt: skip
_OF_LOOPS = {"run_in_executor", "create_future"}


def check(module: Module) -> Iterator[Finding]:
    """Futures that are given to `create_task`."""
    if "create_task" not in module.source.text:
        return
    for function, call in module.calls():
        if call.args and _takes_coroutines(function, call):
            for made, name in _futures(function, call.args[0]):
                yield found(
                    _CODE,
                    module,
                    call,
                    f"`create_task` raises TypeError here: `{name}` gives a future, not a coroutine, "
                    "and what it was given has been started already; make one task for each, or "
                    "await it.",
                    *(
                        [related(module, made, "the future is made here")]
                        * (made is not call.args[0])
                    ),
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
    """What makes the future, if all that the expression can be is a future."""
    match given:
        case ast.Name(name) if name not in function.parameters:
            values = function.assigned.get(name, [])
        case _:
            values = [given]
    made = [(value, _future_of(function, value)) for value in values]
    if made and all(name for _, name in made):
        yield made[0]


def _future_of(function: Function, value: ast.expr) -> str:
    match value:
        case ast.Call(ast.Attribute(receiver, attr)) if attr in _OF_LOOPS:
            return attr if is_loop(function, receiver) else ""
        case ast.Call(func):
            name = function.name_of(func)
            return name.rpartition(".")[2] if name in _FUTURES else ""
    return ""


RULE = Rule(_CODE, check)
