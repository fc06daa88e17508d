"""HF103: a function cancels tasks that it has created and does not wait until they have ended.

Reported: a coroutine function that creates tasks, holds them in local names only, cancels them, and on
no path from there awaits them or passes them on. Pedantic, unless the body of the task is known and
has something to do after a cancel (an `await` in its cleanup, an `async with`) or works in an endless
loop while the function ends at once, or the function closes something that it has passed to the task.
Not reported: close methods, which HF303 checks; tasks that only wait for one thing (`queue.get()`,
`event.wait()`), because they end in the step in which they are cancelled; tasks that other code holds
too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from handfast._check.finding import Finding
from handfast._check.fixes import joined_after
from handfast._check.model.syntax.ancestors import TRY, AnyTry, ancestors, last_name
from handfast._check.model.syntax.call_graph import awaited_from, resolve_function
from handfast._check.model.syntax.control_flow import Step, suspends
from handfast._check.model.syntax.function import Function
from handfast._check.model.syntax.handlers import cancel_handlers
from handfast._check.model.syntax.memo import remembered
from handfast._check.model.syntax.module import Module
from handfast._check.model.tasks.creation import TaskCreation, task_creations
from handfast._check.model.tasks.endless import endless_loop
from handfast._check.model.tasks.local_holders import escapes, holders_of, is_only_held_locally
from handfast._check.model.tasks.method_roles import is_close_name
from handfast._check.model.vocabulary import CLOSING, WAITING_FOR_INPUT
from handfast._check.rules.rule import CREATING, Rule, once_per_place, related, report

_CODE = "HF103"
# Coroutines that do nothing but wait: they end in the step in which the cancel arrives.
_WAITING = WAITING_FOR_INPUT | {
    "readexactly", "readuntil", "receive", "anext", "__anext__", "put", "wait_closed", "drain",
    "wait_for", "receive_bytes", "receive_text", "receive_json", "getter", "next",
}  # fmt: skip


@once_per_place
def check(module: Module) -> Iterator[Finding]:
    """Tasks that the function which created them cancels and does not wait for."""
    for creation in task_creations(module):
        function = creation.function
        if (
            function.is_async
            and not is_close_name(function.name)
            and is_only_held_locally(creation)
        ):
            cancel = _cancelled_only(creation)
            if cancel is not None and not _only_waits(creation):
                yield _finding(module, creation, cancel)


def _finding(module: Module, creation: TaskCreation, cancel: ast.Call) -> Finding:
    cleanup = _cleanup(creation)
    places = [related(module, creation.call, "the task is created here")]
    if cleanup is not None and cleanup[0].module is module:
        places.append(related(module, cleanup[1], "the task still runs this after the cancel"))
    closed = _closed_under_it(creation, cancel)
    if closed is not None:
        places.append(related(module, closed, "closed here while the task may still use it"))
    return report(
        _CODE,
        module,
        cancel,
        f"The task created on line {creation.call.lineno} is cancelled here, and "
        f"`{creation.function.name}` does not wait until it has ended: await it after the cancel",
        *places,
        fix=joined_after(creation.function, cancel, creation.bodies),
        pedantic=cleanup is None
        and closed is None
        and (_always_suspends_after(creation.function, cancel) or not _works(creation)),
    )


def _always_suspends_after(function: Function, cancel: ast.Call) -> bool:
    """Whether the function always waits for something else after the cancel: meanwhile the task ends."""
    flow = function.flow
    step = flow.of(cancel)
    waits = {each for each in flow.nodes if each.suspends and each is not step}
    return not flow.reaches(step, flow.end, waits)


def _cancelled_only(creation: TaskCreation) -> ast.Call | None:
    """The first cancel of a task from which no path leads to a join."""
    function = creation.function
    names = holders_of(creation)
    if names.isdisjoint(_cancelled_names(function)):
        return None
    escaping = [function.flow.of(node) for node in escapes(function, names)]
    for call in function.calls:
        match call.func:
            case ast.Attribute(ast.Name(name), "cancel") if name in names:
                step = function.flow.of(call)
                if step is None or step in escaping or _is_over(creation, names, step):
                    return None
                if any(function.flow.reaches(step, each) for each in escaping):
                    return None
                return call
    return None


@remembered
def _cancelled_names(function: Function) -> frozenset[str]:
    return frozenset(
        call.func.value.id
        for call in function.calls
        if isinstance(call.func, ast.Attribute)
        and call.func.attr == "cancel"
        and isinstance(call.func.value, ast.Name)
    )


def _is_over(creation: TaskCreation, names: frozenset[str], cancel: Step) -> bool:
    """Whether every path to a cancel has waited for all tasks: then there is nothing to cancel."""
    flow = creation.function.flow
    start = flow.of(creation.call)
    known = _waits_for_all(creation.function)
    waits = {flow.of(node) for name in names for node in known.get(name, ())}
    return start is not None and not flow.reaches(start, cancel, waits)


@remembered
def _waits_for_all(function: Function) -> dict[str, list[ast.AST]]:
    """The awaits of a function that wait for all tasks in a name, by that name."""
    found: dict[str, list[ast.AST]] = {}
    for node in function.nodes:
        for name in _all_waited_for(node.value) if isinstance(node, ast.Await) else ():
            found.setdefault(name, []).append(node)
    return found


def _all_waited_for(node: ast.expr) -> set[str]:
    match node:
        case ast.Call(ast.Attribute(attr="wait" | "gather"), arguments, keywords):
            if any(each.arg in ("timeout", "return_when") for each in keywords):
                return set()
            named = (each for argument in arguments for each in ast.walk(argument))
            return {each.id for each in named if isinstance(each, ast.Name)}
        case ast.Name(name):
            return {name}
    return set()


def _only_waits(creation: TaskCreation) -> bool:
    called = last_name(creation.coro.func) if isinstance(creation.coro, ast.Call) else ""
    return called in _WAITING and not creation.bodies


def _works(creation: TaskCreation) -> bool:
    """Whether the task is known to loop and to do more than wait: a request or a write may be cut
    off, and nothing reports it."""
    return any(
        isinstance(node, ast.Await) and _is_work(function, node)
        for body in creation.bodies
        for function in awaited_from(body)
        if endless_loop(function) is not None
        for node in function.nodes
    )


def _is_work(function: Function, wait: ast.Await) -> bool:
    match wait.value:
        case ast.Call(ast.Attribute(attr=name) | ast.Name(name), arguments):
            # `wait_for(queue.get(), 1)` only waits, too.
            inner = [each for each in arguments if isinstance(each, ast.Call)]
            if name in _WAITING or name.startswith("wait_"):
                return any(last_name(each.func) not in _WAITING for each in inner)
            return not any(True for _ in resolve_function(function, wait.value.func))
    return False


def _cleanup(creation: TaskCreation) -> tuple[Function, ast.AST] | None:
    """What the task runs after a cancel that takes more than one step."""
    for body in creation.bodies:
        for function in awaited_from(body):
            for node in function.nodes:
                if isinstance(node, ast.AsyncWith) or (
                    isinstance(node, TRY) and _waits_in_cleanup(function, node)
                ):
                    return function, node
    return None


def _waits_in_cleanup(function: Function, node: AnyTry) -> bool:
    late = list(node.finalbody)
    for handler in cancel_handlers(function, node):
        late += handler.body
    return any(map(suspends, late))


def _closed_under_it(creation: TaskCreation, cancel: ast.Call) -> ast.AST | None:
    """Where the function closes something that it has passed to the task, after the cancel."""
    function = creation.function
    given = {
        node.id
        for node in (ast.walk(creation.coro) if creation.coro is not None else ())
        if isinstance(node, ast.Name) and node.id in function.local_names
    }
    for around in ancestors(function, cancel):
        if isinstance(around, (ast.With, ast.AsyncWith)):
            for item in around.items:
                if isinstance(item.optional_vars, ast.Name) and item.optional_vars.id in given:
                    return item.context_expr
    flow = function.flow
    after = (
        each for each in _closes(function, given) if flow.reaches(flow.of(cancel), flow.of(each))
    )
    return next(after, None)


def _closes(function: Function, names: set[str]) -> Iterator[ast.Call]:
    for call in function.calls if names else ():
        match call.func:
            case ast.Attribute(ast.Name(name), attr) if name in names and attr in CLOSING:
                yield call


RULE = Rule(_CODE, check, needs=(CREATING, ".cancel("))
