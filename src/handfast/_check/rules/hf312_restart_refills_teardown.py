"""HF312: a close method clears an attribute after an `await`; a restart may have set it again.

Reported: an async close method closes `self.x`, can suspend, and then clears `self.x`, while another
method stores a new value in `self.x` without a check of the object.
Not reported: where both hold the same lock, where the close method compares before it clears, and
where a check decides about every store: then the attribute is not set again while it is still set.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from handfast._check.finding import Finding
from handfast._check.model.operations.locks import locks_over
from handfast._check.model.operations.operations import Operation, operations
from handfast._check.model.syntax.call_graph import members, runs
from handfast._check.model.syntax.function import Function
from handfast._check.model.syntax.module import Class, Module
from handfast._check.model.tasks.method_roles import close_methods_in_file, is_close_name
from handfast._check.model.tasks.task_dicts import compares_identity
from handfast._check.rules.rule import Rule, line_of, once_per_place, related, report


@once_per_place
def check(module: Module) -> Iterator[Finding]:
    for klass in module.classes.values():
        for method in close_methods_in_file(klass):
            if method.is_async and not compares_identity(method):
                for before, after in _closed_then_cleared(method):
                    refill = _refill(klass, method, after)
                    if refill is not None:
                        yield _finding(module, method, before, after, refill)


def _closed_then_cleared(method: Function) -> Iterator[tuple[Operation, Operation]]:
    """Each close of an attribute, with the clear of it after a suspension."""
    done = [operation for operation in operations(method) if operation.root.startswith("self.")]
    for after in done:
        if after.kind != "clear" or isinstance(after.node, ast.Call) or after.step is None:
            continue
        fresh = {each.step for each in done if each.kind == "put" and each.root == after.root}
        for before in done:
            if before.root != after.root or before.kind != "close" or before.step is None:
                continue
            waits = before.step.suspends and method.flow.reaches(before.step, after.step)
            if waits or method.flow.suspends_between(before.step, after.step, fresh):
                yield before, after
                break


def _refill(klass: Class, method: Function, after: Operation) -> Operation | None:
    """A store of a new value about which no check decides."""
    held = locks_over(klass, method, after.node)
    for function in members(klass):
        if function is method or function.name in ("__init__", "__new__", "__post_init__"):
            continue
        if is_close_name(function.name) or _is_setter(function):
            continue
        if method.name.startswith("_") and any(each is method for each, _ in runs(function, klass)):
            continue  # it runs the close method before it stores
        for operation in operations(function):
            if operation.kind != "put" or operation.root != after.root or not _is_made(operation):
                continue
            if held & locks_over(klass, function, operation.node) or _is_decided(function):
                continue
            return operation
    return None


def _is_setter(function: Function) -> bool:
    """Whether it is a plain method that stores its argument."""
    return not function.is_async and not any(function.calls)


def _is_made(operation: Operation) -> bool:
    """Whether the value is created there: by a call, awaited or not."""
    match operation.node:
        case ast.Assign(_, value) | ast.AnnAssign(_, _, value):
            return any(isinstance(each, ast.Call) for each in ast.walk(value)) if value else False
    return False


def _is_decided(function: Function) -> bool:
    """Whether the function tests anything of its object: a flag or the attribute itself."""
    name = function.self_here
    return any(
        isinstance(node, (ast.If, ast.While, ast.Assert))
        and any(isinstance(each, ast.Name) and each.id == name for each in ast.walk(node.test))
        for node in function.nodes
    )


def _finding(
    module: Module, method: Function, before: Operation, after: Operation, refill: Operation
) -> Finding:
    return report(
        "HF312",
        module,
        after.node,
        f"`{method.qualname}` closes `{after.root}` on line {line_of(before.node)}, awaits, and then "
        f"clears it, but `{refill.function.qualname}` may have set it again meanwhile (line "
        f"{line_of(refill.node)}): move it to a local name before the `await`",
        related(module, before.node, "the old one is closed here"),
        related(refill.function.module, refill.node, "a new one is stored here"),
    )


RULE = Rule("HF312", check, pedantic=True, needs=("None|del ", "await|async with|async for"))
