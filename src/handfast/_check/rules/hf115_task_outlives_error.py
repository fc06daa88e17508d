"""HF115: a function cancels its task when all goes well, and an error or a cancellation skips that.

Reported: a task that only local names hold and that the function cancels, itself or with a function like
`cancel_all(tasks)`, with an `await` between from which an exception or a cancellation leaves the function
without the cancel. `asyncio.wait` cancels nothing: if it is cancelled itself, the tasks that it was given
continue. Also a task that the function only awaits, if the function first awaits another one of its tasks,
if it is a generator that yields between, or if the task waits for a queue or an event that is created
here, and so may wait for ever; pedantic for any other `await` between. Also a task that `__aenter__` keeps
in an attribute, with an `await` after it: if that fails, `__aexit__`, which would cancel the task, is never
called. Pedantic in a test, after which the event loop ends.
Not reported: where a `finally`, a handler or a `with` ends the task, where the function awaits the task
there (that passes a cancellation on), where other code gets the task, and in a function that never
returns by itself.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from handfast._check.finding import Finding
from handfast._check.model.operations.teardown import teardown_of
from handfast._check.model.syntax.ancestors import (
    TRY,
    ancestors,
    enclosing_tries,
    last_name,
    nodes_in,
)
from handfast._check.model.syntax.call_graph import awaited_from, callers
from handfast._check.model.syntax.cancel_scopes import is_context_manager
from handfast._check.model.syntax.children import walk_here
from handfast._check.model.syntax.control_flow import Step
from handfast._check.model.syntax.function import Function, names_in
from handfast._check.model.syntax.handlers import Handler, cancel_handlers
from handfast._check.model.syntax.memo import remembered
from handfast._check.model.syntax.module import Class, Module
from handfast._check.model.tasks.cancel_catches import entry_points
from handfast._check.model.tasks.creation import TaskCreation, creation_in, task_creations
from handfast._check.model.tasks.local_holders import (
    escapes,
    holders_of,
    is_cancelling,
    is_only_held_locally,
)
from handfast._check.model.tasks.owned import owned_tasks
from handfast._check.model.tasks.ways_out import ends_task, is_covered, ways_past
from handfast._check.rules.rule import CREATING, Rule, line_of, related, related_in, report

_CODE = "HF115"
# A task that waits for one of these waits for the function that has created it.
_FEEDING = {"Queue", "LifoQueue", "PriorityQueue", "Event", "Condition"}
_WAITS = {"get", "put", "wait", "is_set"}


def check(module: Module) -> Iterator[Finding]:
    """Tasks that only the way without an error ends."""
    seen: set[tuple[Function, ast.AST]] = set()
    for creation in task_creations(module):
        function = creation.function
        if not function.is_async or function in entry_points(module):
            continue
        if is_only_held_locally(creation):
            left = _left(creation)
            # Tasks that are started side by side are left together: one finding for all.
            if left is not None and (function, left.wait.stmt) not in seen:
                seen.add((function, left.wait.stmt))
                yield _finding(creation, left)
    for klass in module.classes.values():
        if "__aenter__" in klass.methods and "__aexit__" in klass.methods:
            yield from _left_on_entry(klass)


@dataclass(frozen=True, slots=True, eq=False)
class _Left:
    """Where an exception leaves the function while the task runs."""

    wait: Step
    cancel: ast.Call | None
    """Where the function cancels the task else; None if it only awaits it."""
    why: str
    """What leaves the function, as the begin of a sentence; empty if nothing shows that the task
    has to end then."""


def _left(creation: TaskCreation) -> _Left | None:
    function, names = creation.function, holders_of(creation)
    shown = [call for name in sorted(names) for call in _end_calls(function).get(name, ())]
    given = [each for each in escapes(function, names) if ends_task(function, each)]
    cancels = [call for call in shown if last_name(call.func) == "cancel"]
    cancels += [call for each in given for call in _cancelling(function, each)]
    if cancels:
        wait = next(ways_past(creation, [*shown, *given]), None)
        why = _ANY_ERROR.format(line_of(wait.stmt)) if wait is not None else ""
        return _Left(wait, cancels[0], why) if wait is not None else None
    return _joined_late(creation, given) if not shown else None


_ANY_ERROR = "An error or a cancellation at the `await` on line {}"


def _finding(creation: TaskCreation, left: _Left) -> Finding:
    function, module = creation.function, creation.function.module
    cancel = left.cancel
    return report(
        _CODE,
        module,
        creation.call,
        f"{left.why or _ANY_ERROR.format(line_of(left.wait.stmt))} leaves `{function.name}` before it "
        f"{'cancels' if cancel is not None else 'awaits'} this task, which then runs on: cancel it in a "
        "`finally`, or start it in a task group",
        related(module, left.wait.stmt, "for example one that is raised here"),
        related(module, cancel, "only cancelled here") if cancel is not None else None,
        pedantic=not left.why or function.name.startswith("test_"),
    )


@remembered
def _end_calls(function: Function) -> dict[str, list[ast.Call]]:
    """The calls that end a task, or read its result, which only a task that has ended has, by name."""
    found: dict[str, list[ast.Call]] = {}
    for call in function.calls:
        match call.func:
            case ast.Attribute(ast.Name(name), "cancel" | "result" | "exception"):
                found.setdefault(name, []).append(call)
    return found


def _cancelling(function: Function, use: ast.AST) -> Iterator[ast.Call]:
    """The statement `await cancel_all(tasks)`, if the task is among these."""
    parents = function.module.parents
    up = parents.get(use)
    while isinstance(up, ast.expr):
        if isinstance(up, ast.Call) and is_cancelling(last_name(up.func)):
            yield up
        up = parents.get(up)


# --- a task that is only awaited ------------------------------------------------------------------


def _joined_late(creation: TaskCreation, joins: list[ast.AST]) -> _Left | None:
    """A task that the function does not cancel, and awaits only after something else that may fail."""
    function, names = creation.function, holders_of(creation)
    if not any(_is_awaited(function, each) for each in joins) or _is_sleep(creation):
        return None
    # A `with` may end what it binds, and `finally: stop.set()` ends the task.
    if names & _entered(function) or _fed_by(creation) & _cleaned_up(function):
        return None
    ends = [*joins, *_waited_out(function, names)]
    ways = [*ways_past(creation, ends), *_first_of_two(creation, ends)]
    known = ((wait, why) for wait in ways if (why := _evidence(creation, wait)))
    wait, why = next(known, (next(iter(ways), None), ""))
    return _Left(wait, None, why) if wait is not None else None


def _evidence(creation: TaskCreation, wait: Step) -> str:
    """What leaves the function, if it is certain that the task should end then; else empty."""
    function, line = creation.function, line_of(wait.stmt)
    if any(isinstance(each, ast.Yield) for each in walk_here(wait.stmt)):
        if is_context_manager(function):
            return (
                f"An error in the block of the `async with`, raised at the `yield` on line {line},"
            )
        return f"A consumer that stops at the `yield` on line {line}"
    if _fed_by(creation) or (_awaits_sibling(creation, wait) and not _is_handled(function, wait)):
        return _ANY_ERROR.format(line)
    return ""


def _awaits_sibling(creation: TaskCreation, wait: Step) -> bool:
    """Whether a step awaits another task that only this function holds."""
    function = creation.function
    waited = {
        name
        for each in nodes_in([wait.stmt])
        if isinstance(each, ast.Await) and isinstance(each.value, ast.Name)
        for name in names_in(each)
    } - holders_of(creation)
    return any(
        creation_in(function, value) is not None
        for name in waited
        for value in function.assigned.get(name, ())
        if isinstance(value, ast.Call)
    )


def _first_of_two(creation: TaskCreation, ends: list[ast.AST]) -> Iterator[Step]:
    """The step `return await a, await b`, for the task b."""
    function = creation.function
    flow = function.flow
    for use in ends:
        match function.module.statement_of(use):
            case ast.Return(ast.Tuple([ast.Await(), *rest])) | ast.Assign(
                _, ast.Tuple([ast.Await(), *rest])
            ):
                step = flow.of(use)
                others = {flow.of(each) for each in ends} - {step}
                if step is None or is_covered(function, step.stmt, ends):
                    continue
                if any(use in ast.walk(each) for each in rest):
                    if flow.reaches(flow.of(creation.call), step, others):
                        yield step


def _fed_by(creation: TaskCreation) -> set[str]:
    """The queues and events that the task waits for and that its function has created."""
    function = creation.function
    found: set[str] = set()
    for body in creation.bodies:
        given = dict(body.arguments(creation.coro)) if isinstance(creation.coro, ast.Call) else {}
        for call in body.calls:
            match call.func:
                case ast.Attribute(ast.Name(name), method) if method in _WAITS:
                    passed = given.get(name)
                    if isinstance(passed, ast.Name):
                        name = passed.id
                    elif body not in function.all_inner:
                        continue
                    if any(_blocks(each, method) for each in function.assigned.get(name, ())):
                        found.add(name)
    return found


def _blocks(made: ast.expr, method: str) -> bool:
    """Whether a method of a new queue or event may wait for ever; `put` does if the queue has a limit."""
    if not isinstance(made, ast.Call) or last_name(made.func) not in _FEEDING:
        return False
    return method != "put" or bool(made.args or made.keywords)


def _is_handled(function: Function, wait: Step) -> bool:
    """Whether an error at a step does not leave the function."""
    return any(
        (handler := Handler(function, tried, each)).is_broad and not handler.raises
        for tried in enclosing_tries(function, wait.stmt)
        for each in tried.handlers
    )


def _is_awaited(function: Function, use: ast.AST) -> bool:
    """Whether a use of the task is a part of an `await`."""
    up = function.module.parents.get(use)
    while isinstance(up, ast.expr) and not isinstance(up, ast.Await):
        up = function.module.parents.get(up)
    return isinstance(up, ast.Await)


def _waited_out(function: Function, names: frozenset[str]) -> list[ast.AST]:
    """The calls of `asyncio.wait` that only return when all of the tasks have ended."""
    return [
        call
        for call in function.calls
        if last_name(call.func) == "wait"
        and not call.keywords
        and len(call.args) == 1
        and not names.isdisjoint(names_in(call.args[0]))
    ]


def _is_sleep(creation: TaskCreation) -> bool:
    return isinstance(creation.coro, ast.Call) and last_name(creation.coro.func) == "sleep"


@remembered
def _cleaned_up(function: Function) -> frozenset[str]:
    """The names that a `finally` or a handler of cancellations reads."""
    blocks = [
        part
        for node in function.nodes
        if isinstance(node, TRY)
        for part in (*node.finalbody, *cancel_handlers(function, node))
    ]
    return frozenset(each.id for each in nodes_in(blocks) if isinstance(each, ast.Name))


@remembered
def _entered(function: Function) -> frozenset[str]:
    """The names that a `with` binds: what they hold ends with the block."""
    return frozenset(
        item.optional_vars.id
        for node in function.nodes
        if isinstance(node, ast.With | ast.AsyncWith)
        for item in node.items
        if isinstance(item.optional_vars, ast.Name)
    )


# --- __aenter__ -----------------------------------------------------------------------------------


def _left_on_entry(klass: Class) -> Iterator[Finding]:
    """Tasks that `__aenter__` leaves running if it fails itself."""
    enter, leave = klass.methods["__aenter__"], klass.methods["__aexit__"]
    inside = {each for each in awaited_from(enter) if each.klass is klass}
    for owned in owned_tasks(klass):
        cancels = teardown_of(klass, leave, owned.root).cancels
        for creation in owned.creations if cancels else ():
            function = creation.function
            if function not in inside or not _is_bare(function, creation.call):
                continue
            if function is not enter and not all(
                each is enter and _is_bare(each, call) for each, call in callers(klass, function)
            ):
                continue
            wait = _wait_after(function, creation.call)
            if wait is not None:
                yield report(
                    _CODE,
                    klass.module,
                    creation.call,
                    f"If the `await` on line {line_of(wait)} fails or is cancelled, `__aenter__` ends with "
                    f"that error, `__aexit__` is never called, and the task in `{owned.root}` runs on: "
                    "create it last, or cancel it in an `except BaseException`",
                    related(klass.module, wait, "for example an error that is raised here"),
                    related_in(
                        klass.module, cancels[0].operation.function.module,
                        cancels[0].operation.node, "only cancelled here",
                    ),
                )  # fmt: skip


def _wait_after(function: Function, node: ast.AST) -> ast.AST | None:
    """An `await` after a node, outside any `try` and `with`."""
    flow = function.flow
    start = flow.of(node)
    steps = (each for each in flow.nodes if each.suspends and flow.reaches(start, each))
    return next(
        (each.stmt for each in steps if each is not start and _is_bare(function, each.stmt)), None
    )


def _is_bare(function: Function, node: ast.AST) -> bool:
    """Whether nothing around a node sees its error."""
    if isinstance(node, (*TRY, ast.With, ast.AsyncWith)):
        return False
    return not any(isinstance(up, (*TRY, ast.AsyncWith)) for up in ancestors(function, node))


RULE = Rule(_CODE, check, needs=(CREATING, "await"))
