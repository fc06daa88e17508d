"""HF522: a shared task is awaited directly, so the cancellation of one waiter cancels it for all.

Evidence from two places of one function: the task is made only if there is none yet (`if self._t is
None: self._t = create_task(...)`), and outside of that it is awaited as it is; or the one that is
there is awaited and returned (`if key in self._ts: return await self._ts[key]`), and only otherwise
one is made. So a second caller waits for the task of the first.

Silent: `shield` or `wait` around it, a lock held around it, in a close method, where the waiter looks
after the task when it is cancelled itself, where it is asked first whether the task is done.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from holdfast.check.finding import Finding
from holdfast.check.model.flow import catches_cancellation, walk_here
from holdfast.check.model.function import Function
from holdfast.check.model.module import Module
from holdfast.check.model.roles import is_close_name
from holdfast.check.model.waits import attribute_behind, stored_tasks
from holdfast.check.rules.rule import Rule, found, related

__all__ = ["RULE"]


def check(module: Module) -> Iterator[Finding]:
    for function in module.functions:
        if function.is_async and not is_close_name(function.name):
            yield from _in(function)


def _in(function: Function) -> Iterator[Finding]:
    stored = list(stored_tasks(function))
    if not stored:
        return
    yield from _joined_if_there(function, stored)
    guarded = dict(_made_if_missing(function, stored))
    for node in function.nodes:
        if not isinstance(node, ast.Await):
            continue
        attr = attribute_behind(function, node.value)
        made = guarded.get(attr)
        if made is None or not _is_shared(function, node, made):
            continue
        if _is_waited_for(function, node, attr):
            continue
        yield _finding(function, node, attr, made)


def _finding(function: Function, node: ast.Await, attr: str, made: ast.stmt) -> Finding:
    module = function.module
    return found(
        "HF522",
        module,
        node,
        f"the task in `self.{attr}`, made on line {made.lineno} only if there is none, is awaited "
        "directly: the cancellation of one waiter cancels it for all the others",
        related(module, made, "a second caller takes the task that is there"),
    )


def _made_if_missing(
    function: Function, stored: list[tuple[str, ast.stmt]]
) -> Iterator[tuple[str, ast.If]]:
    """The attributes that are given a task under a test of themselves."""
    for node in function.nodes:
        if isinstance(node, ast.If) and _asks_none(node.test):
            tested = _tested(function, node)
            for attr in tested:
                made = [statement for other, statement in stored if other == attr]
                # One that is also made without asking is no shared one.
                if made and all(_is_in(function, each, node.body) for each in made):
                    yield attr, node


def _joined_if_there(function: Function, stored: list[tuple[str, ast.stmt]]) -> Iterator[Finding]:
    """The task that is there is awaited and returned; only after that one is made."""
    for node in function.nodes:
        if not isinstance(node, ast.If) or _asks_none(node.test):
            continue
        tested = _tested(function, node)
        for part in node.body:
            match part:
                case ast.Return(ast.Await(value) as wait) if not _is_kept_apart(function, wait):
                    attr = attribute_behind(function, value)
                    later = [s for a, s in stored if a == attr and s.lineno > part.lineno]
                    if attr in tested and later:
                        yield _finding(function, wait, attr, later[0])


def _tested(function: Function, node: ast.If) -> set[str]:
    """The attributes that a test asks about."""
    return {
        attribute_behind(function, each)
        for each in walk_here(node.test)
        if isinstance(each, (ast.Attribute, ast.Name, ast.Subscript, ast.Call))
    } - {""}


def _asks_none(test: ast.expr) -> bool:
    """Whether the test is true where there is nothing yet: `is None`, `not x`, `k not in x`."""
    match test:
        case ast.UnaryOp(ast.Not()):
            return True
        case ast.Compare(_, [ast.Is() | ast.NotIn() | ast.Eq()]):
            return True
        case ast.BoolOp(_, values):
            return any(map(_asks_none, values))
    return False


def _is_in(function: Function, node: ast.AST, body: list[ast.stmt]) -> bool:
    up: ast.AST | None = node
    while up is not None and up is not function.node:
        if up in body:
            return True
        up = function.module.parents.get(up)
    return False


def _is_shared(function: Function, node: ast.Await, made: ast.If) -> bool:
    if _is_in(function, node, made.body) or isinstance(made.body[-1], (ast.Return, ast.Raise)):
        return False  # the one who makes it does not wait, or waits apart
    if _is_asked_whether_done(function, node, made):
        return False
    return not _is_kept_apart(function, node) and node.lineno > made.lineno


def _is_waited_for(function: Function, node: ast.Await, attr: str) -> bool:
    """Whether a `wait` has had the task before: it is awaited to see how it ended."""
    return any(
        function.name_of(call.func) == "asyncio.wait"
        and call.lineno < node.lineno
        and any(
            isinstance(each, ast.Attribute) and attribute_behind(function, each) == attr
            for given in call.args
            for each in walk_here(given)
        )
        for call in function.calls
    )


def _is_asked_whether_done(function: Function, node: ast.Await, made: ast.If) -> bool:
    """Whether a test of `done()` stands before the await: what is done cannot be cancelled."""
    inside = set(walk_here(made.test))
    return any(
        isinstance(call.func, ast.Attribute)
        and call.func.attr == "done"
        and call not in inside
        and call.lineno <= node.lineno
        for call in function.calls
    )


def _is_kept_apart(function: Function, node: ast.AST) -> bool:
    """Under a lock there is one waiter at a time; a handler of its own looks after the task."""
    parents = function.module.parents
    up = parents.get(node)
    while up is not None and up is not function.node:
        if isinstance(up, (ast.AsyncWith, ast.With)):
            names = [ast.dump(item.context_expr).lower() for item in up.items]
            if any("lock" in name or "sem" in name or "mutex" in name for name in names):
                return True
        if isinstance(up, ast.Try) and any(catches_cancellation(h.type) for h in up.handlers):
            return True
        up = parents.get(up)
    return False


RULE = Rule("HF522", check)
