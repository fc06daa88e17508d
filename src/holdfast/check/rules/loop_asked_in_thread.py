"""HF403: `get_event_loop()` is called in code that runs on a thread without a loop.

Evidence: the function is started on a thread in this module; or a callback (a plain method `on_...`
that nobody here calls) hands a coroutine over with `run_coroutine_threadsafe` to a loop that it
asks for itself: the hand-over says that this is another thread, the question needs the loop's.
Silent where the function makes, sets or runs a loop, asks whether one is running, or expects the
`RuntimeError`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from holdfast.check.finding import Finding
from holdfast.check.model.function import Function
from holdfast.check.model.module import Module
from holdfast.check.model.roles import brings_loop, foreign
from holdfast.check.rules.rule import Rule, found, related

__all__ = ["RULE"]

_CODE = "HF403"
_ASKING = {"asyncio.get_event_loop", "asyncio.events.get_event_loop"}


def check(module: Module) -> Iterator[Finding]:
    on_thread = foreign(module)
    for function, why in on_thread.items():
        for call in _asked(function):
            yield found(
                _CODE,
                module,
                call,
                f"`{function.name_of(call.func)}()` is called in `{function.qualname}`, which runs on "
                "a thread that has no loop; ask where the loop runs and hand it over",
                related(module, why.node, f"`{why.start.qualname}` is put on a thread here"),
            )
    if "run_coroutine_threadsafe" not in module.source.text:
        return
    for function in module.functions:
        if function not in on_thread:
            yield from _handed_over(module, function)


def _asked(function: Function) -> Iterator[ast.Call]:
    """The questions for the loop that nobody has guarded."""
    for call in function.calls:
        if function.name_of(call.func) in _ASKING and not _is_guarded(function, call):
            yield call


def _is_guarded(function: Function, call: ast.AST) -> bool:
    """Whether the error is expected: the call stands in a `try` that has handlers."""
    up: ast.AST | None = call
    while up is not None and up is not function.node:
        inner, up = up, function.module.parents.get(up)
        if isinstance(up, ast.Try) and up.handlers and inner in up.body:
            return True
        if isinstance(up, ast.With) and "suppress" in ast.unparse(up.items[0].context_expr):
            return True
    return False


def _handed_over(module: Module, function: Function) -> Iterator[Finding]:
    if function.is_async or not function.name.startswith("on_") or brings_loop(function):
        return
    for call in function.calls:
        if function.name_of(call.func) != "asyncio.run_coroutine_threadsafe" or len(call.args) < 2:
            continue
        asked = [each for each in _asked(function) if _gives(function, call.args[1], each)]
        for each in asked:
            yield found(
                _CODE,
                module,
                each,
                f"`{function.qualname}` asks for the loop on the thread from which it then hands work "
                "over to it; ask where the loop runs and keep it",
                related(module, call, "the work is handed over here"),
            )


def _gives(function: Function, loop: ast.expr, asked: ast.Call) -> bool:
    return f"{function.name_of(asked.func)}()" in function.roots(loop)


RULE = Rule(_CODE, check)
