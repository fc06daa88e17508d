"""HF312: a teardown reads a shared attribute again after an `await`; a restart may have refilled it.

Found where an async close method uses `self.x`, can suspend, and then clears `self.x` or asks it to
end, while another method stores a new value in `self.x` without first looking whether one is there.
Silent where both hold the same lock, where the close method compares before it clears, and where
every store is decided by a look at the attribute: then nothing is refilled while it is still set.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from holdfast.check.finding import Finding
from holdfast.check.model.deeds import Deed, deeds
from holdfast.check.model.effects import members, runs
from holdfast.check.model.function import Function
from holdfast.check.model.guards import locks_over
from holdfast.check.model.module import Class, Module
from holdfast.check.model.roles import close_methods_here, is_close_name
from holdfast.check.model.slots import compares_identity
from holdfast.check.rules.rule import Rule, found, related

__all__ = ["RULE"]


def check(module: Module) -> Iterator[Finding]:
    seen: set[ast.AST] = set()
    for klass in module.classes.values():
        for method in close_methods_here(klass):
            if not method.is_async or compares_identity(method):
                continue
            for before, after in _stretches(method):
                refill = _refill(klass, method, after)
                if refill is not None and after.node not in seen:
                    seen.add(after.node)
                    yield _finding(module, method, before, after, refill)


def _stretches(method: Function) -> Iterator[tuple[Deed, Deed]]:
    """A use of an attribute and what is done to it after a suspension, the clearing first."""
    done = [deed for deed in deeds(method) if deed.root.startswith("self.")]
    for after in done:
        if after.kind != "clear" or isinstance(after.node, ast.Call) or after.step is None:
            continue
        fresh = {each.step for each in done if each.kind == "put" and each.root == after.root}
        for before in done:
            if before.root != after.root or before.kind != "close" or before.step is None:
                continue
            waits = before.step.suspends and method.flow.reaches(before.step, after.step)
            if waits or method.flow.suspends_between(before.step, after.step, fresh.__contains__):
                yield before, after
                break


def _refill(klass: Class, method: Function, after: Deed) -> Deed | None:
    """A store of a new value that no look at the attribute decides about."""
    held = locks_over(klass, method, after.node)
    for function in members(klass):
        if function is method or function.name in ("__init__", "__new__", "__post_init__"):
            continue
        if is_close_name(function.name) or _is_setter(function):
            continue
        if method.name.startswith("_") and any(each is method for each, _ in runs(function, klass)):
            continue  # it tears down first, by a method of its own
        for deed in deeds(function):
            if deed.kind != "put" or deed.root != after.root or not _is_made(deed):
                continue
            if held & locks_over(klass, function, deed.node) or _is_decided(function):
                continue
            return deed
    return None


def _is_setter(function: Function) -> bool:
    """Whether it is a plain method that keeps what it is given."""
    return not function.is_async and not any(function.calls)


def _is_made(deed: Deed) -> bool:
    """Whether the value is made there: by a call, awaited or not."""
    match deed.node:
        case ast.Assign(_, value) | ast.AnnAssign(_, _, value):
            return any(isinstance(each, ast.Call) for each in ast.walk(value)) if value else False
    return False


def _is_decided(function: Function) -> bool:
    """Whether a look at the object decides about anything: a flag or the attribute itself."""
    name = function.self_here
    return any(
        isinstance(node, (ast.If, ast.While, ast.Assert))
        and any(isinstance(each, ast.Name) and each.id == name for each in ast.walk(node.test))
        for node in function.nodes
    )


def _finding(module: Module, method: Function, before: Deed, after: Deed, refill: Deed) -> Finding:
    return found(
        "HF312",
        module,
        after.node,
        f"`{method.qualname}` ends `{after.root}` on line {getattr(before.node, 'lineno', 0)}, waits, and "
        f"then clears it: `{refill.function.qualname}` may have refilled it meanwhile (line "
        f"{getattr(refill.node, 'lineno', 0)}); take it out into a local name before the `await`",
        related(module, before.node, "the old one is ended here"),
        related(refill.function.module, refill.node, "a new one is stored here"),
    )


RULE = Rule("HF312", check, pedantic=True)
