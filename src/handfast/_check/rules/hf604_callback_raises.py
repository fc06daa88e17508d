"""HF604: a done callback raises, and no caller can handle it.

Reported in two forms, each with evidence from two places. The callback removes its task from a
container with `remove`, `del` or a `pop` without a default, and a function clears the same container
before it suspends, while the task may still be running. Or the callback calls `task.exception()` without
a test of `task.cancelled()`, and the same class cancels that task, or the callback sets a future that
others await: then `exception()` raises `CancelledError`. Also `except Exception as error:` around
`task.result()` that passes the error on: of a cancelled task nothing is passed on.
Not reported: where the callback guards itself by a membership test, a `try` or a `suppress`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from handfast._check.finding import Finding
from handfast._check.model.operations.containers import Change, changes, changes_of, done_callbacks
from handfast._check.model.operations.operations import Operation, operations
from handfast._check.model.syntax.ancestors import TRY, ancestors, calls_in, last_name, steps_up
from handfast._check.model.syntax.function import Function
from handfast._check.model.syntax.handlers import cancel_handlers, handlers
from handfast._check.model.syntax.module import Module
from handfast._check.model.tasks.creation import task_creations
from handfast._check.model.tasks.future_fields import is_declared_future
from handfast._check.model.tasks.method_roles import is_start_name
from handfast._check.model.vocabulary import LOGGING
from handfast._check.rules.rule import Rule, related, report

_CODE = "HF604"
_RAISING = {"remove", "del", "pop"}
_FUTURE = re.compile(r"(?!concurrent\.)(?:.*\.)?(?:ensure_future|create_task|create_future)\(\)")


def check(module: Module) -> Iterator[Finding]:
    for callback, call in done_callbacks(module).items():
        yield from _removes(module, callback)
        yield from _reads_exception(module, callback, call)
        yield from _passes_errors_on(module, callback, call)
    for function in module.functions:
        for change in changes(function):
            if change.method == "remove" and _is_given(module, change.node):
                yield from _evaluate(module, change)


def _is_given(module: Module, node: ast.AST) -> bool:
    """Whether a bound method is itself passed to `add_done_callback`."""
    match module.parents.get(node):
        case ast.Call(ast.Attribute(_, "add_done_callback"), arguments):
            return node in arguments
    return False


def _removes(module: Module, callback: Function) -> Iterator[Finding]:
    for change in changes(callback):
        if change.method in _RAISING and not _guarded(callback, change.node, change.name):
            if change.method != "pop" or _pops_by_key(module, change.node):
                yield from _evaluate(module, change)


def _pops_by_key(module: Module, node: ast.AST) -> bool:
    match module.parents.get(node):
        case ast.Call(func, [_], []):
            return func is node
    return False


def _evaluate(module: Module, change: Change) -> Iterator[Finding]:
    if not change.name.startswith("self.") and change.name not in module.body.assigned:
        return
    cleared = next(_cleared_elsewhere(change), None)
    if cleared is None:
        return
    yield report(
        _CODE,
        module,
        change.node,
        f"This done callback raises if `{change.name}` no longer has the entry, and "
        f"`{cleared.function.qualname}` clears it: use `discard` or `pop(key, None)`",
        related(module, cleared.node, "cleared here"),
        # A start method is rarely called while tasks of the last start still run.
        pedantic=is_start_name(cleared.function.name),
    )


def _cancels_before(other: Change) -> bool:
    """Whether a coroutine cancels the tasks and clears the container without a suspension between: the
    callbacks run after that."""
    flow = other.function.flow
    step = flow.of(other.node)
    return any(
        each.kind == "cancel"
        and each.root == other.name
        and flow.reaches(each.step, step)
        and not flow.suspends_between(each.step, step)
        for each in operations(other.function)
    )


def _cleared_elsewhere(change: Change) -> Iterator[Change]:
    """Where a function removes the entry without a join: a plain one, or one that has just cancelled."""
    for other in changes_of(change.function, change.name):
        if other.function in (change.function, change.function.outer) or other.kind == "put":
            continue
        if other.function.name == "__init__":
            continue
        if other.function.is_async and not _cancels_before(other):
            continue
        if other.function.module is change.function.module and not _same_role(other, change):
            yield other


def _same_role(other: Change, change: Change) -> bool:
    """Whether the other is a done callback, too, or removes single entries."""
    callbacks = done_callbacks(change.function.module)
    bound = _is_given(change.function.module, other.node)
    return other.function in callbacks or bound or other.kind == "take"


def _guarded(function: Function, node: ast.AST, name: str) -> bool:
    """Whether a test comes first, or the error is handled."""
    for inner, up in steps_up(function, node):
        match up:
            case ast.If(test) if inner is not test:
                return True
            case ast.Try() | ast.TryStar() | ast.With():
                return True
    return any(
        name in ast.unparse(each.test)
        for each in function.nodes
        if isinstance(each, ast.If | ast.IfExp) and each.lineno <= getattr(node, "lineno", 0)
    )


# --- exception() of a cancelled task -------------------------------------------------------------


def _reads_exception(module: Module, callback: Function, call: ast.Call) -> Iterator[Finding]:
    own = callback.parameters[1:] if callback.self_name else callback.parameters
    own = own[_bound(call) :]
    if len(own) != 1 or _tests_cancelled(callback):
        return
    task = next(iter(own))
    read = next((each for each in callback.calls if _is_exception_call(each, task)), None)
    if read is None or _guarded_by_try(callback, read):
        return
    cancelled = next(
        (each for each in _cancelled(module, call) if not _sets_flag(each, callback)), None
    )
    if cancelled is not None:
        yield report(
            _CODE,
            module,
            read,
            f"`exception()` of a cancelled task raises CancelledError in the done callback "
            f"`{callback.qualname}`: test `cancelled()` first",
            related(module, call, "the callback is added here"),
            related(module, cancelled.node, "the task is cancelled here"),
        )
    elif (passed := _passes_on(callback)) is not None:
        # Whatever cancels the task, at the latest the end of the program: the waiter is not woken.
        yield report(
            _CODE,
            module,
            read,
            f"`exception()` of a cancelled task raises CancelledError in the done callback "
            f"`{callback.qualname}`, and the future is never set: test `cancelled()` first",
            related(module, call, "the callback is added here"),
            related(module, passed, "not reached if the task was cancelled"),
        )


def _bound(call: ast.Call) -> int:
    """How many arguments `add_done_callback(partial(callback, x))` binds before that of the task."""
    match call.args:
        case [ast.Call(func, [_, *bound]), *_] if last_name(func) == "partial":
            return len(bound)
    return 0


def _passes_on(callback: Function) -> ast.Call | None:
    """Where a callback sets another future, which a waiter holds."""
    setting = ("set_result", "set_exception")
    return next((each for each in callback.calls if last_name(each.func) in setting), None)


def _passes_errors_on(module: Module, callback: Function, call: ast.Call) -> Iterator[Finding]:
    """`try: value = task.result() except Exception as error: observer.on_error(error)`."""
    own = callback.parameters[1:] if callback.self_name else callback.parameters
    own = own[_bound(call) :]
    if len(own) != 1 or _tests_cancelled(callback) or not _is_of_asyncio(module, call):
        return
    for handler in handlers(callback):
        name = handler.node.name
        reads = any(_is_result_call(each, own[0]) for each in calls_in(handler.tried.body))
        if not reads or not name or "Exception" not in handler.kinds:
            continue
        if cancel_handlers(callback, handler.tried):
            continue
        passed = next(
            (each for each in calls_in(handler.node.body) if _is_passed_on(each, name)), None
        )
        if passed is not None:
            yield report(
                _CODE,
                module,
                handler.node.type or handler.node,
                f"`result()` of a cancelled task raises CancelledError, which passes this `except "
                f"Exception` of the done callback `{callback.qualname}`, so that nothing learns of the end: "
                "test `cancelled()` first",
                related(module, call, "the callback is added here"),
                related(module, passed, "only errors get here"),
            )


def _is_of_asyncio(module: Module, call: ast.Call) -> bool:
    """Whether a callback is added to a future of asyncio: the CancelledError of a thread's is an
    `Exception`."""
    function = module.function_around(call)
    assert isinstance(call.func, ast.Attribute)
    receiver = call.func.value
    return is_declared_future(function, receiver) or any(
        map(_FUTURE.fullmatch, function.roots(receiver))
    )


def _is_result_call(call: ast.Call, name: str) -> bool:
    match call.func:
        case ast.Attribute(ast.Name(task), "result"):
            return task == name and not call.args
    return False


def _is_passed_on(call: ast.Call, error: str) -> bool:
    """Whether a call passes an error on, and not only to a log."""
    given = any(isinstance(each, ast.Name) and each.id == error for each in call.args)
    return given and isinstance(call.func, ast.Attribute) and call.func.attr not in LOGGING


def _is_exception_call(call: ast.Call, name: str) -> bool:
    match call.func:
        case ast.Attribute(ast.Name(task), "exception"):
            return task == name and not call.args
    return False


def _tests_cancelled(callback: Function) -> bool:
    return any(
        (isinstance(each, ast.Attribute) and each.attr in ("cancelled", "CancelledError"))
        or (isinstance(each, ast.Name) and each.id == "CancelledError")
        for each in callback.nodes
    )  # fmt: skip


def _guarded_by_try(callback: Function, node: ast.AST) -> bool:
    for up in ancestors(callback, node):
        if isinstance(up, ast.With):
            return True
        if isinstance(up, TRY) and any(
            each.type is None or "BaseException" in ast.unparse(each.type) for each in up.handlers
        ):
            return True
    return False


def _sets_flag(cancelled: Operation, callback: Function) -> bool:
    """Whether the function that cancels sets an attribute that the callback reads."""
    flags = {
        cancelled.function.name_of(target)
        for node in cancelled.function.nodes
        if isinstance(node, ast.Assign)
        for target in node.targets
    }
    return any(isinstance(each, ast.Attribute) and callback.name_of(each) in flags
               for each in callback.nodes)  # fmt: skip


def _cancelled(module: Module, call: ast.Call) -> Iterator[Operation]:
    """Where the task with the callback is cancelled."""
    function = module.function_around(call)
    assert isinstance(call.func, ast.Attribute)
    receiver = function.name_of(call.func.value)
    names = {receiver} if receiver.startswith("self.") else set()
    for creation in task_creations(module):
        retained = [each.name for each in creation.retentions]
        if creation.function is function and receiver in retained:
            names |= {name for name in retained if name.startswith("self.")}
    klass = function.klass
    for other in klass.functions if klass is not None else ():
        for each in operations(other):
            if each.kind == "cancel" and each.root in names:
                yield each


RULE = Rule(_CODE, check, needs=("add_done_callback",))
