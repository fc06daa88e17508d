"""HF321: the task that drains a child's output is cancelled before the child is told to end.

Found where a task of the object reads `self.x.stderr` or `self.x.stdout`, and a close method cancels
that task and asks `self.x` to terminate only afterwards. Silent after a `kill()`, which leaves the
child no last words, and where the child was asked before the cancel.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from holdfast.check.finding import Finding
from holdfast.check.model.effects import Effect, effects, is_direct
from holdfast.check.model.function import Function
from holdfast.check.model.module import Class, Module
from holdfast.check.model.owned import Owned, Use, own_tasks, uses
from holdfast.check.model.roles import close_methods_here
from holdfast.check.model.teardown import ending
from holdfast.check.rules.rule import Rule, found, related

__all__ = ["RULE"]

_OUTPUT = {"stderr", "stdout"}


def check(module: Module) -> Iterator[Finding]:
    seen: set[ast.AST] = set()
    for klass in module.classes.values():
        for owned in own_tasks(klass):
            for drained in _drained(klass, owned):
                for method in close_methods_here(klass):
                    for cancel, told in _wrong_order(klass, method, owned, drained.root):
                        if cancel.node not in seen:
                            seen.add(cancel.node)
                            yield _finding(module, method, owned, drained, cancel, told)


def _drained(klass: Class, owned: Owned) -> Iterator[Use]:
    """Where a task reads the output of a child."""
    for made in owned.creations:
        for use in uses(klass, made):
            above = use.function.module.parents.get(use.node)
            if isinstance(above, ast.Attribute) and above.attr in _OUTPUT:
                yield use


def _wrong_order(
    klass: Class, method: Function, owned: Owned, child: str
) -> Iterator[tuple[Effect, Effect]]:
    """The cancels of the drain, each with the signal that only comes after it."""
    signals = [
        each
        for each in effects(method, klass)
        if each.kind == "close" and each.root == child and is_direct(each.deed)
    ]
    for cancel in ending(klass, method, owned.root).cancels:
        if any(_comes_before(method, each, cancel) for each in signals):
            continue
        for each in signals:
            if _asks(each) and _comes_before(method, cancel, each):
                yield cancel, each
                break


def _asks(signal: Effect) -> bool:
    match signal.deed.node:
        case ast.Call(ast.Attribute(_, "terminate")):
            return True
    return False


def _comes_before(method: Function, first: Effect, second: Effect) -> bool:
    if first.step is None or second.step is None or first.step is second.step:
        return False
    return method.flow.reaches(first.step, second.step)


def _finding(
    module: Module, method: Function, owned: Owned, drained: Use, cancel: Effect, told: Effect
) -> Finding:
    return found(
        "HF321",
        module,
        cancel.node,
        f"`{method.qualname}` cancels the task in `{owned.root}`, which drains `{drained.root}` (line "
        f"{getattr(drained.node, 'lineno', 0)}), before the child is told to end (line "
        f"{getattr(told.node, 'lineno', 0)}): its last words are lost, and a full pipe blocks it; "
        "signal first, drain to the end within a bound, then cancel and join",
        related(drained.function.module, drained.node, "the task drains the child here"),
        related(module, told.node, "the child is told to end here"),
    )


RULE = Rule("HF321", check)
