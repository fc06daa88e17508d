"""HF604: a done callback raises, and has no caller to raise to.

Two forms, each with evidence from two places.
The callback takes its task out of a container with `remove`, `del` or a `pop` without a default,
and a plain function empties or takes from the same container while the task may still be running.
Or the callback asks for `task.exception()` without asking `task.cancelled()` first, and the
same class cancels that task: then `exception()` raises `CancelledError`.
Silent where the callback guards itself: a test of membership, a `try`, a `suppress`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from holdfast.check.finding import Finding
from holdfast.check.model.containers import Change, changes, changes_of, done_callbacks
from holdfast.check.model.deeds import Deed, deeds
from holdfast.check.model.function import Function
from holdfast.check.model.module import Module
from holdfast.check.model.roles import tasks_of
from holdfast.check.rules.rule import Rule, found, related

__all__ = ["RULE"]

_CODE = "HF604"
_RAISING = {"remove", "del", "pop"}


def check(module: Module) -> Iterator[Finding]:
    if "add_done_callback" not in module.source.text:
        return
    for callback, call in done_callbacks(module).items():
        yield from _removes(module, callback)
        yield from _asks_unguarded(module, callback, call)
    for function in module.functions:
        for change in changes(function):
            if change.method == "remove" and _is_given(module, change.node):
                yield from _judge(module, change)


def _is_given(module: Module, node: ast.AST) -> bool:
    """Whether a bound method is given to `add_done_callback` itself."""
    match module.parents.get(node):
        case ast.Call(ast.Attribute(_, "add_done_callback"), arguments):
            return node in arguments
    return False


def _removes(module: Module, callback: Function) -> Iterator[Finding]:
    for change in changes(callback):
        if change.method in _RAISING and not _guarded(callback, change.node, change.name):
            if change.method != "pop" or _pops_by_key(module, change.node):
                yield from _judge(module, change)


def _pops_by_key(module: Module, node: ast.AST) -> bool:
    match module.parents.get(node):
        case ast.Call(func, [_], []):
            return func is node
    return False


def _judge(module: Module, change: Change) -> Iterator[Finding]:
    if not change.name.startswith("self.") and change.name not in module.body.assigned:
        return
    emptied = next(_emptied_elsewhere(change), None)
    if emptied is None:
        return
    yield found(
        _CODE,
        module,
        change.node,
        f"this done callback raises where `{change.name}` no longer has the entry: "
        f"`{emptied.function.qualname}` empties it meanwhile; use `discard` or `pop(key, None)`",
        related(module, emptied.node, "emptied here"),
    )


def _emptied_elsewhere(change: Change) -> Iterator[Change]:
    """Where a plain function, with no chance to join, takes the entry away."""
    for other in changes_of(change.function, change.name):
        if other.function in (change.function, change.function.outer) or other.how == "put":
            continue
        if other.function.is_async or other.function.name == "__init__":
            continue
        if other.function.module is change.function.module and not _same_role(other, change):
            yield other


def _same_role(other: Change, change: Change) -> bool:
    """Whether the other is a done callback too, or only makes the container anew for good."""
    callbacks = done_callbacks(change.function.module)
    bound = _is_given(change.function.module, other.node)
    return other.function in callbacks or bound or other.how == "take"


def _guarded(function: Function, node: ast.AST, name: str) -> bool:
    """Whether somebody has looked first, or expects the error."""
    up: ast.AST | None = node
    while up is not None and up is not function.node:
        inner, up = up, function.module.parents.get(up)
        match up:
            case ast.If(test) if inner is not test:
                return True
            case ast.Try() | ast.With():
                return True
    return any(
        name in ast.unparse(each.test)
        for each in function.nodes
        if isinstance(each, ast.If | ast.IfExp) and each.lineno <= getattr(node, "lineno", 0)
    )


# --- exception() of a cancelled task -------------------------------------------------------------


def _asks_unguarded(module: Module, callback: Function, call: ast.Call) -> Iterator[Finding]:
    own = callback.parameters[1:] if callback.self_name else callback.parameters
    if len(own) != 1 or _looks_for_cancel(callback):
        return
    task = next(iter(own))
    asked = next((each for each in callback.calls if _asks_exception(each, task)), None)
    if asked is None or _guarded_by_try(callback, asked):
        return
    cancelled = next(
        (each for each in _cancelled(module, call) if not _tells(each, callback)), None
    )
    if cancelled is not None:
        yield found(
            _CODE,
            module,
            asked,
            f"`exception()` of a task that was cancelled raises `CancelledError` in the done callback "
            f"`{callback.qualname}`; ask `cancelled()` first",
            related(module, call, "the callback is added here"),
            related(module, cancelled.node, "the task is cancelled here"),
        )


def _asks_exception(call: ast.Call, name: str) -> bool:
    match call.func:
        case ast.Attribute(ast.Name(task), "exception"):
            return task == name and not call.args
    return False


def _looks_for_cancel(callback: Function) -> bool:
    return any(
        (isinstance(each, ast.Attribute) and each.attr in ("cancelled", "CancelledError"))
        or (isinstance(each, ast.Name) and each.id == "CancelledError")
        for each in callback.nodes
    )  # fmt: skip


def _guarded_by_try(callback: Function, node: ast.AST) -> bool:
    up: ast.AST | None = node
    while up is not None and up is not callback.node:
        up = callback.module.parents.get(up)
        if isinstance(up, ast.With):
            return True
        if isinstance(up, ast.Try) and any(
            each.type is None or "BaseException" in ast.unparse(each.type) for each in up.handlers
        ):
            return True
    return False


def _tells(cancelled: Deed, callback: Function) -> bool:
    """Whether who cancels sets something that the callback asks for."""
    told = {
        cancelled.function.name_of(target)
        for node in cancelled.function.nodes
        if isinstance(node, ast.Assign)
        for target in node.targets
    }
    return any(isinstance(each, ast.Attribute) and callback.name_of(each) in told
               for each in callback.nodes)  # fmt: skip


def _cancelled(module: Module, call: ast.Call) -> Iterator[Deed]:
    """Where the task that the callback is added to is cancelled."""
    function = module.function_around(call)
    assert isinstance(call.func, ast.Attribute)
    receiver = function.name_of(call.func.value)
    names = {receiver} if receiver.startswith("self.") else set()
    for made in tasks_of(module):
        if made.function is function and any(each.name == receiver for each in made.kept):
            names |= {each.name for each in made.kept if each.name.startswith("self.")}
    klass = function.klass
    for each in klass.functions if klass is not None else ():
        for deed in deeds(each):
            if deed.kind == "cancel" and deed.root in names:
                yield deed


RULE = Rule(_CODE, check)
