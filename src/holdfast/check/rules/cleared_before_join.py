"""HF301: a close method clears an attribute that a task of the same object still uses.

Found where a close method sets an attribute to None (or deletes it) before a task of the object has
been joined, ends that task afterwards, and the task uses the attribute without having looked at it
since its last `await`. If the method can suspend between the clearing and the cancel, the body sees
it; if not, only the task's `except` and `finally` do, and then one of those must use it. Line order
alone is no evidence. Silent where the method ends nothing, and where the task itself runs it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from holdfast.check.finding import Finding
from holdfast.check.model.effects import Effect, effects, runs
from holdfast.check.model.function import Function
from holdfast.check.model.module import Class, Module
from holdfast.check.model.owned import Owned, Use, bodies_in, own_tasks, unguarded_uses
from holdfast.check.model.roles import close_methods_here
from holdfast.check.model.teardown import Ending, ending
from holdfast.check.rules.rule import Rule, found, related

__all__ = ["RULE"]


def check(module: Module) -> Iterator[Finding]:
    seen: set[tuple[ast.AST, str]] = set()
    for klass in module.classes.values():
        for owned in own_tasks(klass):
            for method in close_methods_here(klass):
                if _runs_itself(klass, owned, method):
                    continue
                for finding, at in _judge(klass, owned, method):
                    if (at, finding.message) not in seen:
                        seen.add((at, finding.message))
                        yield finding


def _runs_itself(klass: Class, owned: Owned, method: Function) -> bool:
    return any(
        function is method
        for made in owned.creations
        for body in bodies_in(klass, made)
        for function, _ in runs(body, klass)
    )


def _judge(klass: Class, owned: Owned, method: Function) -> Iterator[tuple[Finding, ast.AST]]:
    end = ending(klass, method, owned.root)
    if not end.cancels and not end.joins:
        return
    for clear in effects(method, klass):
        if clear.kind != "clear" or clear.root == owned.root or not _is_to_none(clear):
            continue
        if not end.runs_at(clear.node):
            continue
        use = _seen_by(klass, owned, end, clear)
        if use is not None:
            yield _finding(method, owned, clear, use), clear.deed.node


def _is_to_none(clear: Effect) -> bool:
    match clear.deed.node:
        case ast.Call():
            return False
        case ast.Assign(_, value):
            return not isinstance(value, (ast.Dict, ast.List, ast.Call))
    return True


def _seen_by(klass: Class, owned: Owned, end: Ending, clear: Effect) -> Use | None:
    """The first use in the task that meets the cleared attribute."""
    in_body, in_cleanup = _windows(end, clear)
    for made in owned.creations:
        for use in unguarded_uses(klass, made, clear.root):
            if in_body or (in_cleanup and use.in_cleanup):
                return use
    return None


def _windows(end: Ending, clear: Effect) -> tuple[bool, bool]:
    """Whether the body of the task runs on after the clearing, and whether its clean-up does."""
    flow, step = end.function.flow, clear.step
    assert step is not None
    joins = {each.step for each in end.joins}
    cancels = {each.step for each in end.cancels}
    body = any(
        each.step is not None and flow.suspends_between(step, each.step, lambda n: n in joins)
        for each in end.cancels
    ) or any(
        # Joined without a cancel: it runs on until it ends by itself.
        each.step is not None
        and each.step not in cancels
        and not any(flow.reaches(cancel.step, each.step) for cancel in end.cancels if cancel.step)
        and flow.reaches(step, each.step, lambda n: n in cancels)
        for each in end.joins
    )
    cleanup = any(
        each.step is not None
        and (
            flow.reaches(step, each.step)
            or (flow.reaches(each.step, step) and not flow.suspends_between(each.step, step))
        )
        for each in end.cancels
    )
    return body, cleanup


def _finding(method: Function, owned: Owned, clear: Effect, use: Use) -> Finding:
    made = owned.creations[0]
    part = "clean-up" if use.in_cleanup else "body"
    return found(
        "HF301",
        clear.deed.function.module,
        clear.deed.node,
        f"`{method.qualname}` clears `{clear.root}` before the task in `{owned.root}` is cancelled and "
        f"joined, and the task's {part} still uses it (line {getattr(use.node, 'lineno', 0)}); cancel "
        "and join the task first",
        related(use.function.module, use.node, f"the {part} of the task uses it here"),
        related(made.function.module, made.call, "the task is born here"),
    )


RULE = Rule("HF301", check)
