"""HF302: a session, pool, executor or loop is closed before the tasks that use it have ended.

Found where a close method closes such an attribute, waits, and only then cancels or joins a task of
the object that uses the attribute. Connections, sockets and streams are left out: closing one is the
usual way to tell its reader to end. Silent where the task was cancelled or joined before.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from holdfast.check.finding import Finding
from holdfast.check.model.effects import Effect, effects, is_direct, runs
from holdfast.check.model.function import Function
from holdfast.check.model.module import Class, Module
from holdfast.check.model.owned import Owned, Use, bodies_in, own_tasks, uses
from holdfast.check.model.roles import close_methods_here
from holdfast.check.model.tasks import Creation
from holdfast.check.model.teardown import Ending, ending
from holdfast.check.rules.rule import Rule, found, related

__all__ = ["RULE"]

_USED = re.compile(r"self\.\w*?(session|pool|loop|executor|engine|db|database|http|http_client)")

_CLOSED = re.compile(r"(is_)?(closed|closing|shutdown|running|connected)")


def check(module: Module) -> Iterator[Finding]:
    seen: set[ast.AST] = set()
    for klass in module.classes.values():
        for owned in own_tasks(klass):
            for method in close_methods_here(klass):
                end = ending(klass, method, owned.root)
                if not (end.cancels or end.joins):
                    continue
                for close in effects(method, klass):
                    use = _used_after(klass, owned, end, close)
                    if use is not None and close.deed.node not in seen:
                        seen.add(close.deed.node)
                        yield _finding(method, owned, close, use)


def _used_after(
    klass: Class, owned: Owned, end: Ending, close: Effect
) -> tuple[Function, ast.AST] | None:
    if close.kind != "close" or close.root == owned.root or not _USED.fullmatch(close.root):
        return None
    if not is_direct(close.deed):
        return None
    if not end.is_untouched_at(close.node) or not _waits_before_end(end, close):
        return None
    for made in owned.creations:
        if any(f is end.function for b in bodies_in(klass, made) for f, _ in runs(b, klass)):
            continue
        for place in _users(klass, made, close.root):
            return place
    return None


def _waits_before_end(end: Ending, close: Effect) -> bool:
    """Whether the task is ended after the close, and can run between."""
    flow, step = end.function.flow, close.step
    return step is not None and any(
        each.step is not None
        and flow.reaches(step, each.step)
        and (step.suspends or flow.suspends_between(step, each.step))
        for each in (*end.cancels, *end.joins)
        if each.step is not step
    )


def _users(klass: Class, made: Creation, root: str) -> Iterator[tuple[Function, ast.AST]]:
    """The places at which a task uses an attribute: `create_task(self.session.get())` is one."""
    for use in uses(klass, made):
        if use.root == root and not _asks_whether_closed(use):
            yield use.function, use.node
    match made.coro:
        case ast.Call(ast.Attribute(receiver)) if made.function.name_of(receiver) == root:
            yield made.function, made.coro


def _asks_whether_closed(use: Use) -> bool:
    """A task that only asks `self.session.closed` ends by the close: that is its signal."""
    asked = use.function.module.parents.get(use.node)
    return isinstance(asked, ast.Attribute) and _CLOSED.fullmatch(asked.attr) is not None


def _finding(
    method: Function, owned: Owned, close: Effect, use: tuple[Function, ast.AST]
) -> Finding:
    made = owned.creations[0]
    return found(
        "HF302",
        close.deed.function.module,
        close.deed.node,
        f"`{method.qualname}` closes `{close.root}` before the task in `{owned.root}` that uses it "
        f"(line {getattr(use[1], 'lineno', 0)}) has ended; cancel and join the task first",
        related(use[0].module, use[1], "the task uses it here"),
        related(made.function.module, made.call, "the task is born here"),
    )


RULE = Rule("HF302", check)
