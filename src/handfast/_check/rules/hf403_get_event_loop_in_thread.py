"""HF403: `get_event_loop()` is called in code that runs on a thread without an event loop.

Reported: the function is started on a thread in this module; or a callback (a plain method `on_...`)
passes a coroutine with `run_coroutine_threadsafe` to a loop that it gets from `get_event_loop()`: the
first says that this is another thread, the second only works on the loop's thread.
Not reported: where the function creates, sets or runs a loop, tests whether one is running, or handles
the `RuntimeError`; in a file that sets a policy, which may give every thread a loop.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from handfast._check.finding import Finding
from handfast._check.model.syntax.ancestors import ancestors, enclosing_tries
from handfast._check.model.syntax.function import Function
from handfast._check.model.syntax.module import Module
from handfast._check.model.threads.foreign_threads import foreign_threads, runs_own_loop
from handfast._check.rules.rule import Rule, related, report

_CODE = "HF403"
_GETTERS = {"asyncio.get_event_loop", "asyncio.events.get_event_loop"}


def check(module: Module) -> Iterator[Finding]:
    if "set_event_loop_policy" in module.source.text:
        return
    on_thread = foreign_threads(module)
    for function, why in on_thread.items():
        for call in _loop_lookups(function):
            yield report(
                _CODE,
                module,
                call,
                f"`{function.name_of(call.func)}()` is called in `{function.qualname}`, which runs on "
                "a thread that has no event loop: get the loop where it runs, and pass it on",
                related(module, why.node, f"`{why.start.qualname}` is started on a thread here"),
            )
    if "run_coroutine_threadsafe" not in module.source.text:
        return
    for function in module.functions:
        if function not in on_thread:
            yield from _passed_from_thread(module, function)


def _loop_lookups(function: Function) -> Iterator[ast.Call]:
    """The calls of `get_event_loop` whose error nothing handles."""
    for call in function.calls:
        if function.name_of(call.func) in _GETTERS and not _is_guarded(function, call):
            yield call


def _is_guarded(function: Function, call: ast.AST) -> bool:
    """Whether the error is handled: the call is in a `try` with handlers, or in a `suppress`."""
    return any(each.handlers for each in enclosing_tries(function, call)) or any(
        isinstance(up, ast.With) and "suppress" in ast.unparse(up.items[0].context_expr)
        for up in ancestors(function, call)
    )


def _passed_from_thread(module: Module, function: Function) -> Iterator[Finding]:
    if function.is_async or not function.name.startswith("on_") or runs_own_loop(function):
        return
    for call in function.calls:
        if function.name_of(call.func) != "asyncio.run_coroutine_threadsafe" or len(call.args) < 2:
            continue
        roots = function.roots(call.args[1])
        for each in _loop_lookups(function):
            if f"{function.name_of(each.func)}()" not in roots:
                continue
            yield report(
                _CODE,
                module,
                each,
                f"`{function.qualname}` gets the event loop on a thread other than the loop's, and then "
                "passes a coroutine to it: get the loop where it runs, and store it",
                related(module, call, "the coroutine is passed on here"),
            )


RULE = Rule(_CODE, check, needs=("get_event_loop",))
