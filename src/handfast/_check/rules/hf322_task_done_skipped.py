"""HF322: `task_done()` is skipped for an item, and `await queue.join()` then never returns.

Reported: a worker that takes one item in each iteration with `await queue.get()` and calls
`queue.task_done()` in the same function, where a `continue`, a handler of all exceptions, or an exception
that ends the worker leads past it; and an `await` of `join()` of a queue of the same name in the file.
Not reported: where a `finally` calls it, where another function of the file calls it for this queue, where
several items are taken before, and where the wait for `join()` has a timeout or also waits for the workers.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from handfast._check.finding import Finding
from handfast._check.model.syntax.ancestors import (
    ancestors,
    enclosing_loop,
    is_in_finally,
    last_name,
)
from handfast._check.model.syntax.children import walk_here
from handfast._check.model.syntax.control_flow import Step
from handfast._check.model.syntax.function import Function
from handfast._check.model.syntax.module import Module
from handfast._check.rules.rule import Rule, line_of, related, report

_CODE = "HF322"
_BROAD = {"Exception", "BaseException"}
_TAKING = {"get", "get_nowait"}


class _Skip(NamedTuple):
    """A way past `task_done`: the step that fails, or the `continue`; and whether the worker ends."""

    cause: Step
    ends_worker: bool


def check(module: Module) -> Iterator[Finding]:
    """Workers that do not count an item as done."""
    joins = list(_joins(module))
    for function in module.functions if joins else ():
        done = _calls_on(function, {"task_done"})
        if not function.is_async or not done:
            continue
        name = ast.unparse(_receiver(done[0]))
        join = next((each for each in joins if _plain(each) == _plain(done[0])), None)
        get = _only_get(function, name, done)
        if join is None or get is None or _is_called_elsewhere(module, function, done[0]):
            continue
        skip = _way_past(function, get, done)
        if skip is not None:
            yield _finding(function, done[0], join, skip)


def _finding(function: Function, done: ast.Call, join: ast.Call, skip: _Skip) -> Finding:
    module = function.module
    place, line = skip.cause.stmt, line_of(skip.cause.stmt)
    what = f"If the `await` on line {line} fails" if skip.cause.suspends else f"From line {line} on"
    more = ", and the worker ends" if skip.ends_worker else ""
    return report(
        _CODE,
        module,
        done,
        f"{what}, `{ast.unparse(done)}` is skipped{more}: `await {ast.unparse(join)}` on line "
        f"{line_of(join)} then waits for ever; call `task_done` in a `finally`",
        related(module, place, "from here it is not reached"),
        related(module, join, "waits until each item is done"),
    )


def _joins(module: Module) -> Iterator[ast.Call]:
    """Each `await queue.join()` that nothing else ends."""
    for _, call in module.calls():
        match call.func:
            case ast.Attribute(_, "join") if not call.args:
                if isinstance(module.parents.get(call), ast.Await):
                    yield call


def _receiver(call: ast.Call) -> ast.expr:
    assert isinstance(call.func, ast.Attribute)
    return call.func.value


def _plain(call: ast.Call) -> str:
    return last_name(_receiver(call))


def _calls_on(function: Function, methods: set[str], name: str = "") -> list[ast.Call]:
    """The calls of methods of one receiver, or of any without a name, in source order."""
    return [
        call
        for call in function.calls
        if isinstance(call.func, ast.Attribute)
        and call.func.attr in methods
        and (not name or ast.unparse(call.func.value) == name)
    ]


def _is_called_elsewhere(module: Module, function: Function, done: ast.Call) -> bool:
    return any(
        isinstance(call.func, ast.Attribute)
        and call.func.attr == "task_done"
        and _plain(call) == _plain(done)
        and where is not function
        and not _calls_on(where, _TAKING, ast.unparse(call.func.value))
        for where, call in module.calls()
    )


def _only_get(function: Function, name: str, done: list[ast.Call]) -> ast.Call | None:
    """The one `get` of a worker, if each item that it takes is done in the same iteration."""
    gets = _calls_on(function, _TAKING, name)
    if len(gets) != 1 or any(ast.unparse(_receiver(each)) != name for each in done):
        return None
    get = gets[0]
    stmt = function.module.statement_of(get)
    loop = enclosing_loop(function, get)
    if loop is None or not isinstance(stmt, ast.Assign | ast.AnnAssign):
        return None
    if any(
        is_in_finally(function, each) or enclosing_loop(function, each) is not loop for each in done
    ):
        return None
    return get


def _way_past(function: Function, get: ast.Call, done: list[ast.Call]) -> _Skip | None:
    """A way from the `get` to the next one, or out of the function by an exception, without `task_done`."""
    flow = function.flow
    start, ends = flow.of(get), {flow.of(each) for each in done}
    if start is None or any(isinstance(up, ast.With) for up in ancestors(function, get)):
        return None
    seen: set[Step] = set()
    todo: list[tuple[Step, Step | None]] = [(each, None) for each in start.after]
    while todo:
        step, cause = todo.pop()
        if step is start or step is flow.raised:
            if cause is not None:
                return _Skip(cause, step is flow.raised)
            continue
        if step in ends or step in seen:
            continue
        seen.add(step)
        if isinstance(step.stmt, ast.Continue):
            cause = cause or step
        todo += [(each, cause) for each in step.after]
        if _may_fail(step):
            todo += [(each, cause or step) for each in _raised_to(step)]
    return None


def _may_fail(step: Step) -> bool:
    """Whether a step raises, or awaits more than a pause: an error is likely there."""
    return isinstance(step.stmt, ast.Raise) or (
        step.suspends
        and any(
            isinstance(each, ast.Await | ast.AsyncWith | ast.AsyncFor) and not _is_pause(each)
            for each in walk_here(step.stmt)
        )
    )


def _is_pause(node: ast.AST) -> bool:
    match node:
        case ast.Await(ast.Call(func)):
            return last_name(func) in {"sleep", "put", "release"}
    return False


def _raised_to(step: Step) -> list[Step]:
    """Where any exception of a step goes: to the first handler of all, or past those of some."""
    for each in step.raising:
        match each.stmt:
            case ast.ExceptHandler(kind) if kind is None or last_name(kind) in _BROAD:
                return [each]
    return [each for each in step.raising if not isinstance(each.stmt, ast.ExceptHandler)]


RULE = Rule(_CODE, check, needs=("task_done(", ".join(", "await "))
