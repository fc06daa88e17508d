"""HF331: two overlapping closes both pass the check, because the flag is set after an `await`.

Reported: an async close method checks a flag of its object, can suspend, and only then sets the flag,
and sets nothing in between that would keep a second caller out. Pedantic: all evidence is in one
method, and closing twice is often harmless.
Not reported: under a lock.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from handfast._check.finding import Finding
from handfast._check.model.operations.guards import is_guard
from handfast._check.model.operations.locks import locks_over
from handfast._check.model.operations.operations import Operation, operations
from handfast._check.model.syntax.function import Function
from handfast._check.model.syntax.module import Module
from handfast._check.model.tasks.method_roles import close_methods_in_file
from handfast._check.rules.rule import Rule, line_of, once_per_place, related, report


@once_per_place
def check(module: Module) -> Iterator[Finding]:
    for klass in module.classes.values():
        for method in close_methods_in_file(klass):
            for test, flag in _late_flags(method) if method.is_async else ():
                if not locks_over(klass, method, flag.node):
                    yield _finding(module, method, test, flag)


def _late_flags(method: Function) -> Iterator[tuple[Operation, Operation]]:
    """The flags that a method sets after an `await`, each with the check before."""
    done = operations(method)
    changes = {each.step for each in done if each.kind in ("put", "clear")}
    for flag in done:
        if flag.kind != "put" or flag.step is None or not _is_flag(flag):
            continue
        for test in done:
            if test.root == flag.root and is_guard(test, ast.If):
                if method.flow.suspends_between(test.step, flag.step, changes - {flag.step}):
                    yield test, flag
                    break


def _is_flag(operation: Operation) -> bool:
    match operation.node:
        case ast.Assign([_], ast.Constant(True | False)):
            return True
    return False


def _finding(module: Module, method: Function, test: Operation, flag: Operation) -> Finding:
    return report(
        "HF331",
        module,
        flag.node,
        f"`{method.qualname}` checks `{flag.root}` on line {line_of(test.node)} and sets it only after an "
        "`await`, so two overlapping calls both run the cleanup: set it before the first `await`, and "
        "let the second call wait for the first",
        related(module, test.node, "both calls pass this check"),
    )


RULE = Rule(
    "HF331", check, pedantic=True, needs=("True|False", "if ", "await|async with|async for")
)
