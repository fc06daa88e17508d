"""HF522: a shared task is awaited directly, so the cancellation of one waiter cancels it for all.

Reported, with evidence from two places of one function: the task is created only if there is none yet
(`if self._t is None: self._t = create_task(...)`), and after that it is awaited directly; or an
existing one is awaited and returned (`if key in self._ts: return await self._ts[key]`), and only
otherwise one is created. So a second caller awaits the task of the first. Also a handler that catches a
CancelledError and keeps it in an attribute, which another method raises: its callers were not cancelled.
Also a future that `__init__` creates and another method sets, where a `wait` method or a property awaits it.
Not reported: `shield` or `wait` around it, a lock held around it, close methods, a waiter that handles
its own cancellation, and a waiter that first tests whether the task is done.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from handfast._check.finding import Finding
from handfast._check.model.syntax.ancestors import (
    TRY,
    ancestors,
    assignments,
    last_name,
    nodes_in,
)
from handfast._check.model.syntax.children import walk_here
from handfast._check.model.syntax.function import Function
from handfast._check.model.syntax.handlers import cancel_handlers, names_cancellation
from handfast._check.model.syntax.module import Class, Module
from handfast._check.model.tasks.awaited import awaits_in, source_attribute, stored_tasks
from handfast._check.model.tasks.cancel_catches import cancel_catches
from handfast._check.model.tasks.handed_futures import is_future
from handfast._check.model.tasks.method_roles import is_close_name
from handfast._check.rules.rule import Rule, related, report


def check(module: Module) -> Iterator[Finding]:
    for function in module.functions:
        if function.is_async and not is_close_name(function.name):
            yield from _in(function)
    for klass in module.classes.values():
        yield from _kept_for_others(klass)
        yield from _shared_futures(klass)


def _kept_for_others(klass: Class) -> Iterator[Finding]:
    """A CancelledError in an attribute: `except BaseException as error: self._error = error`."""
    raised = _raised_attributes(klass)
    for function in klass.functions if raised else ():
        for catch in cancel_catches(function) if function.is_async else ():
            handler = catch.handler
            if handler is None or not handler.name or not any(awaits_in(catch.around.body)):
                continue
            if any(names_cancellation(function, each) for each in nodes_in(handler.body)):
                continue  # it tells them apart
            for stmt in handler.body:
                match stmt:
                    case ast.Assign([target], ast.Name(name)) if name == handler.name:
                        attr = function.own_attribute(target)
                        other = raised.get(attr) if attr else None
                        if other is not None and other[0] is not function:
                            yield _kept(function, stmt, catch.head, attr, *other)


def _shared_futures(klass: Class) -> Iterator[Finding]:
    """A future that an object has for its whole life, and that a method for any caller awaits directly."""
    init = klass.methods.get("__init__")
    for attr, created in _futures_of_init(init) if init is not None else ():
        stores = [
            function
            for function in klass.functions
            for node in function.nodes
            for target, _ in assignments(node)
            if function.own_attribute(target) == attr
        ]
        if stores != [init] or not any(_sets(each, attr) for each in klass.functions):
            continue
        for function in klass.functions:
            if not function.is_async or not _is_waiting(function):
                continue
            for node in function.nodes:
                if (
                    isinstance(node, ast.Await)
                    and function.own_attribute(node.value) == attr
                    and not _is_protected(function, node)
                ):
                    yield report(
                        "HF522",
                        klass.module,
                        node,
                        f"The future in `self.{attr}` is shared by all callers of `{function.name}`, and is "
                        "awaited directly, so cancelling one of them (a timeout, too) cancels it for all, "
                        "and it never gets its result: use `await asyncio.shield(...)`",
                        related(klass.module, created, "created once, here"),
                    )
                    return


def _is_waiting(function: Function) -> bool:
    """Whether a method is there to be called by several at once: it waits, by its name, or is a property."""
    decorators = getattr(function.node, "decorator_list", [])
    return function.name.startswith("wait") or any(last_name(d) == "property" for d in decorators)


def _futures_of_init(init: Function) -> Iterator[tuple[str, ast.AST]]:
    for node in init.nodes:
        for target, value in assignments(node):
            if (attr := init.own_attribute(target)) and is_future(init, value):
                yield attr, node


def _sets(function: Function, attr: str) -> bool:
    """Whether a function sets the future after a test of `done()`. Without a test, HF533 reports it."""
    tests = ("done", "cancelled")
    return any(
        isinstance(node, ast.Attribute) and node.attr in tests for node in function.nodes
    ) and any(
        isinstance(call.func, ast.Attribute)
        and call.func.attr == "set_result"
        and function.own_attribute(call.func.value) == attr
        for call in function.calls
    )


def _raised_attributes(klass: Class) -> dict[str, tuple[Function, ast.Raise]]:
    return {
        attr: (function, node)
        for function in klass.functions
        for node in function.nodes
        if isinstance(node, ast.Raise) and (attr := function.own_attribute(node.exc))
    }


def _kept(
    function: Function, stmt: ast.stmt, head: ast.AST, attr: str, other: Function, node: ast.Raise
) -> Finding:
    module = function.module
    return report(
        "HF522",
        module,
        stmt,
        f"A CancelledError is kept in `self.{attr}` here, and `{other.qualname}` raises it (line "
        f"{node.lineno}): its callers, which nothing has cancelled, end as cancelled; keep an error of your "
        "own",
        related(module, head, "a cancellation is caught here"),
        related(module, node, "raised here, for another caller"),
    )


def _in(function: Function) -> Iterator[Finding]:
    stored = list(stored_tasks(function))
    if not stored:
        return
    yield from _joined_if_present(function, stored)
    guarded = dict(_created_if_missing(function, stored))
    for node in function.nodes:
        if not isinstance(node, ast.Await):
            continue
        attr = source_attribute(function, node.value)
        created = guarded.get(attr)
        if created is None or not _is_shared(function, node, created):
            continue
        if _is_waited_for(function, node, attr) or _is_cancelled_first(function, node, attr):
            continue
        yield _finding(function, node, attr, created)


def _is_cancelled_first(function: Function, node: ast.Await, attr: str) -> bool:
    """Whether the function has cancelled the task itself: then this is its end, for all."""
    return any(
        isinstance(call.func, ast.Attribute)
        and call.func.attr == "cancel"
        and source_attribute(function, call.func.value) == attr
        and function.flow.reaches(function.flow.of(call), function.flow.of(node))
        for call in function.calls
    )


def _finding(function: Function, node: ast.Await, attr: str, created: ast.stmt) -> Finding:
    module = function.module
    return report(
        "HF522",
        module,
        node,
        f"The task in `self.{attr}`, created on line {created.lineno} only if there is none, is awaited "
        "directly, so cancelling one waiter cancels it for all: use `await asyncio.shield(...)`",
        related(module, created, "a second caller gets the existing task"),
    )


def _created_if_missing(
    function: Function, stored: list[tuple[str, ast.stmt]]
) -> Iterator[tuple[str, ast.If]]:
    """The attributes that are assigned a task under a test of themselves."""
    for node in function.nodes:
        if isinstance(node, ast.If) and _tests_missing(node.test):
            tested = _tested(function, node)
            for attr in tested:
                created = [statement for other, statement in stored if other == attr]
                # A task that is also created without a test is not shared.
                if created and all(_is_in(function, each, node.body) for each in created):
                    yield attr, node


def _joined_if_present(function: Function, stored: list[tuple[str, ast.stmt]]) -> Iterator[Finding]:
    """An existing task is awaited and returned; only after that one is created."""
    for node in function.nodes:
        if not isinstance(node, ast.If) or _tests_missing(node.test):
            continue
        tested = _tested(function, node)
        for part in node.body:
            match part:
                case ast.Return(ast.Await(value) as wait) if not _is_protected(function, wait):
                    attr = source_attribute(function, value)
                    later = [s for a, s in stored if a == attr and s.lineno > part.lineno]
                    if attr in tested and later:
                        yield _finding(function, wait, attr, later[0])


def _tested(function: Function, node: ast.If) -> set[str]:
    """The attributes in a test."""
    return {
        source_attribute(function, each)
        for each in walk_here(node.test)
        if isinstance(each, (ast.Attribute, ast.Name, ast.Subscript, ast.Call))
    } - {""}


def _tests_missing(test: ast.expr) -> bool:
    """Whether the test is true if there is no task yet: `is None`, `not x`, `k not in x`."""
    match test:
        case ast.UnaryOp(ast.Not()):
            return True
        case ast.Compare(_, [ast.Is() | ast.NotIn() | ast.Eq()]):
            return True
        case ast.BoolOp(_, values):
            return any(map(_tests_missing, values))
    return False


def _is_in(function: Function, node: ast.AST, body: list[ast.stmt]) -> bool:
    return any(up in body for up in (node, *ancestors(function, node)))


def _is_shared(function: Function, node: ast.Await, created: ast.If) -> bool:
    if _is_in(function, node, created.body) or isinstance(
        created.body[-1], (ast.Return, ast.Raise)
    ):
        return False  # the creator does not await it, or not here
    if _is_tested_for_done(function, node, created):
        return False
    return not _is_protected(function, node) and node.lineno > created.lineno


def _is_waited_for(function: Function, node: ast.Await, attr: str) -> bool:
    """Whether a `wait` came before: then the task is done, and awaited for its result."""
    return any(
        function.name_of(call.func) == "asyncio.wait"
        and call.lineno < node.lineno
        and any(
            isinstance(each, ast.Attribute) and source_attribute(function, each) == attr
            for given in call.args
            for each in walk_here(given)
        )
        for call in function.calls
    )


def _is_tested_for_done(function: Function, node: ast.Await, created: ast.If) -> bool:
    """Whether a test of `done()` comes before the await: a task that is done cannot be cancelled."""
    inside = set(walk_here(created.test))
    return any(
        isinstance(call.func, ast.Attribute)
        and call.func.attr == "done"
        and call not in inside
        and call.lineno <= node.lineno
        for call in function.calls
    )


def _is_protected(function: Function, node: ast.AST) -> bool:
    """Whether there is one waiter at a time, under a lock, or the waiter handles its cancellation."""
    for up in ancestors(function, node):
        if isinstance(up, (ast.AsyncWith, ast.With)):
            names = [ast.dump(item.context_expr).lower() for item in up.items]
            if any("lock" in name or "sem" in name or "mutex" in name for name in names):
                return True
        if isinstance(up, TRY) and cancel_handlers(function, up):
            return True
    return False


RULE = Rule(
    "HF522",
    check,
    needs=("create_task|_background_task|ensure_future|raise self.|create_future|Future", "await"),
)
