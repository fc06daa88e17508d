"""HF321: the task that reads a child's output is cancelled before the child is terminated.

Reported: a task of the object reads `self.x.stderr` or `self.x.stdout`, and a close method cancels that
task and calls `self.x.terminate()` only afterwards.
Not reported: a `kill()`, after which the child writes nothing more, and where the child is signalled
before the cancel.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from handfast._check.finding import Finding
from handfast._check.model.operations.effects import Effect, effects, is_direct
from handfast._check.model.operations.teardown import teardown_of
from handfast._check.model.syntax.function import Function
from handfast._check.model.syntax.module import Class, Module
from handfast._check.model.tasks.method_roles import close_methods_in_file
from handfast._check.model.tasks.owned import Owned, Use, own_tasks, uses
from handfast._check.rules.rule import OWNING, Rule, line_of, once_per_place, related, report

_OUTPUT = {"stderr", "stdout"}


@once_per_place
def check(module: Module) -> Iterator[Finding]:
    for klass in module.classes.values():
        for owned in own_tasks(klass):
            for reader in _readers(klass, owned):
                for method in close_methods_in_file(klass):
                    for cancel, terminate in _wrong_order(klass, method, owned, reader.root):
                        yield _finding(module, method, owned, reader, cancel, terminate)


def _readers(klass: Class, owned: Owned) -> Iterator[Use]:
    """Where a task reads the output of a child process."""
    for creation in owned.creations:
        for use in uses(klass, creation):
            above = use.function.module.parents.get(use.node)
            if isinstance(above, ast.Attribute) and above.attr in _OUTPUT:
                yield use


def _wrong_order(
    klass: Class, method: Function, owned: Owned, child: str
) -> Iterator[tuple[Effect, Effect]]:
    """The cancels of the reading task, each with a `terminate` that follows it."""
    signals = [
        each
        for each in effects(method, klass)
        if each.kind == "close" and each.root == child and is_direct(each.operation)
    ]
    for cancel in teardown_of(klass, method, owned.root).cancels:
        if any(_comes_before(method, each, cancel) for each in signals):
            continue
        for each in signals:
            if _terminates(each) and _comes_before(method, cancel, each):
                yield cancel, each
                break


def _terminates(signal: Effect) -> bool:
    match signal.operation.node:
        case ast.Call(ast.Attribute(_, "terminate")):
            return True
    return False


def _comes_before(method: Function, first: Effect, second: Effect) -> bool:
    return first.step is not second.step and method.flow.reaches(first.step, second.step)


def _finding(
    module: Module, method: Function, owned: Owned, reader: Use, cancel: Effect, terminate: Effect
) -> Finding:
    return report(
        "HF321",
        module,
        cancel.node,
        f"`{method.qualname}` cancels the task in `{owned.root}`, which reads the output of "
        f"`{reader.root}` (line {line_of(reader.node)}), before it terminates the child (line "
        f"{line_of(terminate.node)}): its last output is lost, and a full pipe blocks it; terminate "
        "first, read to the end with a timeout, then cancel and await the task",
        related(reader.function.module, reader.node, "the task reads the child's output here"),
        related(module, terminate.node, "the child is terminated here"),
    )


RULE = Rule("HF321", check, needs=(OWNING, "terminate"))
