"""HF101: no reference is kept to a task.

Reported: a `create_task` or `ensure_future` of asyncio or of an event loop whose result is dropped, or
kept only in a weak container; a task in a local name that is not used again, or only to name it or to
add a callback (pedantic if the function suspends before it ends); a task that a function of the
project returns, or a coroutine function when it is awaited, and its caller drops or has in a local
name; a task in a local list of which only another element is used, or none; a `gather` that a coroutine
function does not await; `create_task` itself, or a lambda or function that returns a task, given to a
function that drops the result of its callback, or to a `map` whose results are dropped; a task created for
`wait(..., return_when=FIRST_COMPLETED)` or `wait(..., timeout=1)` whose `pending` set is dropped.
Pedantic: a single task that by its name reports or closes something, that first sleeps for a given
time, or that never suspends.
Not reported: task groups, scopes and frameworks that track their tasks (their receivers are no
loops), futures that other code or an executor holds, programs that run their loop right there, and
lines with a `noqa` for RUF006 or ASYNC300, which are the same finding.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from handfast._check.finding import Finding
from handfast._check.fixes import kept_until_done
from handfast._check.model.operations.containers import holds_weakly
from handfast._check.model.syntax.ancestors import last_name
from handfast._check.model.syntax.call_graph import (
    awaited_from,
    resolve_function,
)
from handfast._check.model.syntax.function import Function
from handfast._check.model.syntax.memo import remembered
from handfast._check.model.syntax.module import Module
from handfast._check.model.tasks.creation import (
    Retention,
    TaskCreation,
    creates_task,
    retentions_of,
    task_creations,
)
from handfast._check.model.tasks.endless import endless_loop
from handfast._check.model.tasks.first_completed import left_in_as_completed, lost_tasks
from handfast._check.model.tasks.local_holders import is_another, is_in_lost_list
from handfast._check.model.tasks.makers import made_task, maker_names, makers_in
from handfast._check.model.vocabulary import CALLING_BACK, LOGGING
from handfast._check.rules.rule import CREATING, Rule, related, report

_CODE = "HF101"
_ADVICE = (
    "the garbage collector may end it halfway, without an error; keep it in a set until it is done, or "
    "start it in a scope or task group"
)
# Dropped tasks of one package are one finding: they have the same fix, for example one set.
_CAUSE = "no reference"
# Uses of a task that keep no reference to it. The callbacks are kept by the task.
_NOT_HOLDING = {"add_done_callback", "set_name", "get_name"}
_HOLDING = {"attribute", "element", "outside", "passed", "returned"}
_REPORTING = LOGGING | {"call_exception_handler", "print", "str", "repr", "id", "isinstance"}
_ENTRY_POINTS = {"main", "amain", "async_main", "main_async"}
_STARTING = r"run_until_complete|(\w+_)?run"
_RUNNING = {"run_forever", "run_until_complete", "run"}
# Calls that return a future which other code holds.
_HELD = {"run_in_executor", "to_thread", "wrap_future", "run_coroutine_threadsafe", "create_future"}
_GATHER = {"asyncio.gather", "asyncio.tasks.gather"}
# As a statement it is indented, and has no `await` before it.
_GATHERED = ("  asyncio.gather(", "  gather(", "\tasyncio.gather(", "\tgather(")
# Calls that use up an iterator.
_CONSUMING = {"list", "tuple", "set", "deque", "any", "all", "sum"}
# Words in the name of a coroutine function whose task is best effort.
_BEST_EFFORT = {
    "log", "logs", "logging", "logger", "audit", "metric", "metrics", "telemetry", "analytics", "alert",
    "alerts", "alerting", "progress", "notify", "notification", "notifications", "stats", "close",
    "aclose", "aexit", "cleanup", "unwatch", "unregister", "detach", "drop",
}  # fmt: skip
# The same finding of ruff and of flake8-async, suppressed.
_FIRST_WORDS = ("return_when", "timeout=", "as_completed")
_NOQA = re.compile(r"#\s*noqa\b.*\b(?:RUF006|ASYNC300)\b", re.IGNORECASE)


def check(module: Module) -> Iterator[Finding]:
    """Tasks that nothing keeps a reference to."""
    for creation in task_creations(module):
        if not _is_exempt(creation):
            yield from _dropped(module, creation)
    yield from _dropped_by_caller(module)
    yield from _handed_over(module)
    if any(word in module.source.text for word in _GATHERED):
        yield from _gathered(module)
    if any(word in module.source.text for word in _FIRST_WORDS):
        yield from _lost_in_first_completed(module)


def _dropped(module: Module, creation: TaskCreation) -> Iterator[Finding]:
    how = [each.how for each in creation.retentions if not _is_of_another(creation, each)]
    call, function = creation.call, creation.function
    if how == ["dropped"]:
        yield report(
            _CODE,
            module,
            call,
            f"No reference is kept to {_named(creation)}: {_ADVICE}",
            fix=kept_until_done(function, call),
            pedantic=_is_best_effort(creation),
            cause=_CAUSE,
        )
    elif how == ["returned"] and (taker := _takes_lambda(module, creation)):
        yield report(
            _CODE,
            module,
            call,
            f"No reference is kept to {_named(creation)}, because `{taker}` drops what its callback "
            f"returns: {_ADVICE}",
            pedantic=_ends_at_once(creation.bodies),
            cause=_CAUSE,
        )
    elif weak := _held_weakly(creation):
        yield report(
            _CODE,
            module,
            call,
            f"Only a weak reference is kept to {_named(creation)}, in `{weak.name}`: {_ADVICE}",
            related(module, weak.node, "added here") if weak.node is not None else None,
        )
    elif (how == ["local"] and _is_lost(creation)) or is_in_lost_list(creation):
        name = creation.retentions[-1].name
        yield report(
            _CODE,
            module,
            call,
            f"The only reference to {_named(creation)} is the local name `{name}`, which is gone when "
            f"`{function.name}` returns: {_ADVICE}",
            related(module, function.node, f"`{name}` is local to this function"),
            fix=kept_until_done(function, call),
            # While the function waits, it does hold the task: perhaps for long enough. But of several
            # it waits for another one.
            pedantic=(_suspends_later(creation) and not _others_used(creation))
            or _ends_at_once(creation.bodies),
            cause=_CAUSE,
        )


def _gathered(module: Module) -> Iterator[Finding]:
    """`gather(a(), b())` as a statement: nothing waits for it, and nothing holds its tasks."""
    for function, call in module.calls():
        if function.name_of(call.func) in _GATHER and function.is_async and call.args:
            if isinstance(module.parents.get(call), ast.Expr) and not _runs_loop(function):
                yield report(
                    _CODE,
                    module,
                    call,
                    "Nothing awaits this `gather`, and no reference is kept to it: its tasks may run on "
                    f"after `{function.name}`, or be garbage-collected halfway, and their errors are lost; "
                    "await it",
                )


def _named(creation: TaskCreation) -> str:
    name = _coroutine_name(creation)
    return f"the task of `{name}`" if name else "the task created here"


def _coroutine_name(creation: TaskCreation) -> str:
    coro = creation.coro
    return creation.runs_in.name_of(coro.func) if isinstance(coro, ast.Call) else ""


def _is_best_effort(creation: TaskCreation) -> bool:
    """Whether little is lost if the task is: it reports or closes something, by its name, or is a
    timer, which the loop holds while it sleeps. A task with an endless loop never is."""
    if any(endless_loop(each) for body in creation.bodies for each in awaited_from(body)):
        return False
    words = set(re.split(r"[._()]+", _coroutine_name(creation).lower()))
    return (
        not words.isdisjoint(_BEST_EFFORT)
        or any(map(_is_timer, creation.bodies))
        or _ends_at_once(creation.bodies)
    )


def _ends_at_once(bodies: Iterable[Function]) -> bool:
    """Whether coroutine functions never suspend: the loop holds a task until its first step."""
    known = list(bodies)
    return bool(known) and not any(_may_suspend(node) for body in known for node in body.nodes)


def _may_suspend(node: ast.AST) -> bool:
    match node:
        # Few queues have a limit, and a new lock is free.
        case ast.Await(ast.Call(ast.Attribute(attr="put"))):
            return False
        case ast.AsyncWith(items):
            return not all(_is_new_lock(each.context_expr) for each in items)
    return isinstance(node, ast.Await | ast.AsyncFor | ast.comprehension) and (
        not isinstance(node, ast.comprehension) or bool(node.is_async)
    )


def _is_new_lock(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and last_name(node.func) == "Lock"


def _is_timer(body: Function) -> bool:
    """Whether a coroutine function first sleeps for a time that it is given, and then does something."""
    first = [each for each in body.body if not _is_docstring(each)][:2]
    match first:
        case [ast.Expr(ast.Await(ast.Call(func, [delay]))), _]:
            return body.last_name_of(func) == "sleep" and not isinstance(delay, ast.Constant)
    return False


def _is_docstring(stmt: ast.stmt) -> bool:
    return isinstance(stmt, ast.Expr) and isinstance(stmt.value, ast.Constant)


def _held_weakly(creation: TaskCreation) -> Retention | None:
    """The weak container, if nothing else keeps the task."""
    holders = [each for each in creation.retentions if each.how != "local"]
    if all(
        each.how == "element" and holds_weakly(creation.function, each.name) for each in holders
    ):
        return holders[0] if holders else None
    return None


def _is_exempt(creation: TaskCreation) -> bool:
    """Whether the function runs its loop right here, the coroutine is a future that other code
    holds, or the task stores a reference to itself."""
    if _runs_loop(creation.function) or any(map(_registers_itself, creation.bodies)):
        return True
    if _NOQA.search(creation.function.module.source.line(creation.call.lineno)):
        return True
    match creation.coro:
        case ast.Call(given):
            return last_name(given) in _HELD
        case ast.Name() | ast.Attribute() as given if any(
            each.is_async for each in resolve_function(creation.function, given)
        ):
            return True  # the function itself and no coroutine: that is a TypeError
        case ast.Name(name) | ast.Attribute(attr=name):
            # `ensure_future` returns a future as it is: other code has created that one.
            is_ensured = last_name(creation.call.func) == "ensure_future"
            return is_ensured and ("fut" in name.lower() or "task" in name.lower())
    return False


@remembered
def _runs_loop(function: Function) -> bool:
    return any(
        # `create_task(run())` with a `run` of the project runs no loop.
        last_name(call.func) in _RUNNING and not any(resolve_function(function, call.func))
        for call in function.calls
    )


def _registers_itself(body: Function) -> bool:
    """Whether a task stores `current_task()`: to compare or to log it does not count."""
    return any(
        each.how in _HOLDING
        and not isinstance(each.node, (ast.Compare, ast.Attribute, ast.BoolOp))
        and each.name.rpartition(".")[2] not in _REPORTING
        for call in body.calls
        if last_name(call.func) == "current_task"
        for each in retentions_of(body, call)
    )


def _takes_lambda(module: Module, creation: TaskCreation) -> str:
    """The function that is given the lambda which creates the task, if it drops the result."""
    given = creation.function.node
    taker = module.parents.get(given)
    if isinstance(given, ast.Lambda) and isinstance(taker, ast.Call):
        name = last_name(taker.func)
        where = CALLING_BACK.get(name, -1)
        if 0 <= where < len(taker.args) and taker.args[where] is given:
            return name
    return ""


# --- held by a local name only --------------------------------------------------------------------


def _is_lost(creation: TaskCreation) -> bool:
    function, name = creation.function, creation.retentions[0].name
    if function is function.module.body or _is_used(creation, name):
        return False
    if any(
        isinstance(node, (ast.Global, ast.Nonlocal)) and name in node.names
        for node in function.nodes
    ):
        return False
    return function.flow.reaches(function.flow.of(creation.call), function.flow.end)


def _is_used(creation: TaskCreation, name: str) -> bool:
    """Whether a local name is read in a way that may keep a reference, here or in functions inside."""
    function = creation.function
    parents = function.module.parents
    for _, node in function.reads(name):
        use = parents.get(node)
        if isinstance(use, ast.Attribute) and use.attr in _NOT_HOLDING:
            continue
        if use is None or not is_another(creation, use):
            return True
    return any(
        last_name(call.func) == "locals"
        for each in (function, *function.all_inner)
        for call in each.calls
    )


def _others_used(creation: TaskCreation) -> bool:
    """Whether the name is that of a list, of which other elements are used."""
    parents = creation.function.module.parents
    reads = creation.function.reads(creation.retentions[0].name)
    return any(isinstance(parents.get(node), ast.Subscript) for _, node in reads)


def _is_of_another(creation: TaskCreation, retention: Retention) -> bool:
    return (
        retention.how == "passed"
        and retention.node is not None
        and is_another(creation, retention.node)
    )


def _suspends_later(creation: TaskCreation) -> bool:
    """Whether the function suspends after the task is created, and so holds it meanwhile."""
    flow = creation.function.flow
    start = flow.of(creation.call)
    return any(step.suspends and flow.reaches(start, step) for step in flow.nodes)


# --- returned, and dropped by the caller ----------------------------------------------------------


def _dropped_by_caller(module: Module) -> Iterator[Finding]:
    names = maker_names(module)
    for function, call in module.calls() if names else ():
        made = made_task(function, call) if last_name(call.func) in names else None
        if made is None or _is_exempt(made) or _is_exempt(made.created):
            continue
        if [each.how for each in made.retentions] != ["dropped"]:
            yield from _dropped(module, made)
            continue
        yield report(
            _CODE,
            module,
            call,
            f"`{made.maker.name}` returns the task that it creates, and no reference to it is "
            f"kept here: {_ADVICE}",
            related(made.maker.module, made.created.call, "the task is created here"),
            fix=None if made.maker.is_async else kept_until_done(function, call),
            pedantic=_is_best_effort(made),
            cause=_CAUSE,
        )


def _returned_task(function: Function) -> TaskCreation | None:
    """The task that a plain function creates and returns, if it keeps no reference itself."""
    created = makers_in(function.module).get(function)
    if created is None or function.is_async or _is_exempt(created):
        return None
    return created


# --- handed over as a function, and dropped by its caller -------------------------------------------


def _handed_over(module: Module) -> Iterator[Finding]:
    """`loop.call_later(5, asyncio.create_task, work())`, and callbacks that return their task."""
    for function, call in module.calls():
        taker = last_name(call.func)
        where = 0 if taker == "map" else CALLING_BACK.get(taker, -1)
        if not 0 <= where < len(call.args):
            continue
        if taker == "map" and not _is_consumed(function, call):
            continue
        given = call.args[where]
        match given:
            case ast.Call(func, [first, *_]) if function.last_name_of(func) == "partial":
                given = first
        if creates_task(function, given) and not _runs_loop(function):
            yield report(
                _CODE,
                module,
                call,
                f"`{taker}` calls `{function.name_of(given)}` and drops the task that it returns, so no "
                f"reference is kept to it: {_ADVICE}",
                pedantic=_ends_at_once(_handed_bodies(function, call, where)),
                cause=_CAUSE,
            )
        elif isinstance(given, ast.Name | ast.Attribute):
            for callback in resolve_function(function, given):
                creation = _returned_task(callback)
                if creation is not None:
                    yield report(
                        _CODE,
                        module,
                        creation.call,
                        f"No reference is kept to {_named(creation)}, because `{taker}` drops what its "
                        f"callback `{callback.name}` returns: {_ADVICE}",
                        related(module, call, "the callback is passed on here"),
                        pedantic=_ends_at_once(creation.bodies),
                        cause=_CAUSE,
                    )


def _is_consumed(function: Function, call: ast.Call) -> bool:
    """Whether something calls the function of a `map` for each item and drops the results."""
    parents = function.module.parents
    around = parents.get(call)
    while isinstance(around, ast.Call) and last_name(around.func) in _CONSUMING:
        if isinstance(parents.get(around), ast.Expr):
            return True
        around = parents.get(around)
    return False


def _handed_bodies(function: Function, call: ast.Call, where: int) -> list[Function]:
    """The coroutine functions in `call_soon(create_task, work())`."""
    match call.args[where:]:
        case [_, ast.Call(func), *_]:
            return list(resolve_function(function, func))
    return []


# --- not the first of a wait ----------------------------------------------------------------------


def _lost_in_first_completed(module: Module) -> Iterator[Finding]:
    programs = set(_programs(module))
    for function in module.functions:
        if function in programs or _runs_loop(function):
            continue  # when a program ends, `asyncio.run` cancels the tasks that are left
        for each in lost_tasks(function):
            yield report(
                _CODE,
                module,
                each.lost,
                "A task that is created here and not done when `wait` returns continues without a "
                "reference: cancel and await the tasks that `wait` returns as pending",
                related(module, each.wait, "the pending tasks are dropped here"),
            )
        for each in left_in_as_completed(function):
            yield report(
                _CODE,
                module,
                each.lost,
                "The loop ends at the first of these, and the others continue without a reference: create "
                "tasks, and cancel and await them after the loop",
                related(module, each.wait, "only the first is awaited here"),
            )


def _programs(module: Module) -> Iterator[Function]:
    """The entry points of programs: `run(main())`."""
    yield from (each for each in module.functions if each.name.strip("_") in _ENTRY_POINTS)
    for function, call in module.calls():
        match call.args:
            case [ast.Call(given), *_] if re.fullmatch(_STARTING, last_name(call.func)):
                yield from resolve_function(function, given)


RULE = Rule(
    _CODE,
    check,
    needs=(
        f"{CREATING}|<makers>|FIRST_COMPLETED|FIRST_EXCEPTION|as_completed|{'|'.join(_GATHERED)}",
    ),
)
