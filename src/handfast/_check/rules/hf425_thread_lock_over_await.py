"""HF425: a lock of `threading` is held over an `await`.

Reported: in a coroutine, a `with` of a lock or semaphore that `threading` creates, or its `acquire()`
without arguments, and an `await` before the release. Pedantic: an `RLock` or a `Condition`, which another
task of the same thread enters as well: it blocks the loop only if a thread holds it.
Not reported: locks of which any assignment is something else or not known, `acquire` with a timeout or
`blocking=False`, and code that runs its loop right there.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from handfast._check.finding import Finding
from handfast._check.model.syntax.ancestors import assignments
from handfast._check.model.syntax.function import Function
from handfast._check.model.syntax.memo import remembered
from handfast._check.model.syntax.module import Class, Module
from handfast._check.model.tasks.awaited import awaits_in
from handfast._check.rules.rule import Rule, line_of, related, report

_CODE = "HF425"
_LOCKS = {
    f"threading.{name}" for name in ("Lock", "RLock", "Condition", "Semaphore", "BoundedSemaphore")
}
_REENTRANT = {"RLock", "Condition"}


def check(module: Module) -> Iterator[Finding]:
    """Locks that keep the event loop from running the task that holds them."""
    for function in module.functions:
        if function.is_async:
            for node, lock, wait in _held_over(function):
                kind = _lock_class(function, lock)
                if kind:
                    yield _finding(function, node, lock, wait, kind)


def _finding(
    function: Function, node: ast.AST, lock: ast.expr, wait: ast.AST, kind: str
) -> Finding:
    module, name = function.module, ast.unparse(lock)
    return report(
        _CODE,
        module,
        node,
        f"`{name}` is a `threading.{kind}`, and `{function.name}` holds it over the `await` on line "
        f"{line_of(wait)}: the next task that wants it blocks the event loop, and the one that holds it "
        "never resumes; use `asyncio.Lock`, or release it before the `await`",
        related(module, wait, "held while the task is suspended here"),
        pedantic=kind in _REENTRANT,
    )


def _held_over(function: Function) -> Iterator[tuple[ast.AST, ast.expr, ast.AST]]:
    """The names that may be locks, each with where it is taken and where it is held over an `await`."""
    for node in function.nodes:
        match node:
            case ast.With(items, body):
                wait = next(awaits_in(body), None)
                if wait is not None:
                    yield from ((node, each.context_expr, wait) for each in items)
            case ast.Call(ast.Attribute(lock, "acquire"), [], []):
                stopped = _suspended_after(function, node, lock)
                if stopped is not None:
                    yield node, lock, stopped


def _suspended_after(function: Function, call: ast.Call, lock: ast.expr) -> ast.AST | None:
    """Where the function may suspend between an `acquire` and the `release`."""
    if isinstance(function.module.parents.get(call), ast.Await):
        return None
    flow, name = function.flow, function.name_of(lock)
    released = {
        flow.of(each)
        for each in function.calls
        if isinstance(each.func, ast.Attribute)
        and each.func.attr == "release"
        and function.name_of(each.func.value) == name
    }
    start = flow.of(call)
    waits = (step for step in flow.nodes if step.suspends and step is not start)
    found = (step.stmt for step in waits if flow.reaches(start, step, released))
    return next(found, None) if released else None


# --- which lock it is -----------------------------------------------------------------------------


def _lock_class(function: Function, node: ast.expr) -> str:
    """The class of `threading` of which an expression is an object, if that is certain."""
    if attr := function.own_attribute(node):
        klass = function.klass
        return _agreed(_of_attributes(klass).get(attr, [])) if klass is not None else ""
    if not isinstance(node, ast.Name):
        return ""
    where: Function | None = function
    while where is not None and node.id not in where.local_names:
        if node.id in where.parameters:
            return _annotated(where, node.id)
        where = where.outer
    where = where or function.module.body
    return _agreed([_created(where, each) for each in where.assigned.get(node.id, ())])


def _agreed(kinds: list[str]) -> str:
    return kinds[0] if len(set(kinds)) == 1 else ""


def _annotated(function: Function, parameter: str) -> str:
    given = function.node.args
    for each in (*given.posonlyargs, *given.args, *given.kwonlyargs):
        if each.arg == parameter and each.annotation is not None:
            return _class_named(function, each.annotation)
    return ""


@remembered
def _of_attributes(klass: Class) -> dict[str, list[str]]:
    """The attributes of a class, each with the lock class of every value; empty for other values."""
    found: dict[str, list[str]] = {}
    for part in klass.lineage:
        body = part.module.body
        for stmt in part.node.body:
            for target, value in assignments(stmt):
                if isinstance(target, ast.Name):
                    found.setdefault(target.id, []).append(_created(body, value))
        for function in part.functions:
            for node in function.nodes:
                for target, value in assignments(node):
                    if attr := function.own_attribute(target):
                        found.setdefault(attr, []).append(_created(function, value))
    return found


def _created(function: Function, value: ast.expr) -> str:
    match value:
        # A dataclass: `field(default_factory=threading.Lock)`.
        case ast.Call(_, [], [ast.keyword("default_factory", factory)]):
            return _class_named(function, factory)
        case ast.Call(func):
            return _class_named(function, func)
        case ast.Name(name) if name in function.parameters:
            return _annotated(function, name)
    return ""


def _class_named(function: Function, node: ast.expr) -> str:
    name = function.name_of(node)
    return name.rpartition(".")[2] if name in _LOCKS else ""


RULE = Rule(_CODE, check, needs=("threading", "await |async ", "Lock|Condition|Semaphore"))
