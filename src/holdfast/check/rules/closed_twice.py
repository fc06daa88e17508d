"""HF331: two closers that overlap both pass the check, because the flag is set after an `await`.

Found where an async close method looks at a flag of its object, can suspend, and only then sets the
flag, with nothing set in between that would keep a second caller out. Silent under a lock. Pedantic:
all the evidence stands in one method, and much of what is closed does not mind a second time.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from holdfast.check.finding import Finding
from holdfast.check.model.deeds import Deed, deeds
from holdfast.check.model.flow import Node
from holdfast.check.model.function import Function
from holdfast.check.model.guards import is_presence_test, locks_over
from holdfast.check.model.module import Module
from holdfast.check.model.roles import close_methods_here
from holdfast.check.rules.rule import Rule, found, related

__all__ = ["RULE"]


def check(module: Module) -> Iterator[Finding]:
    seen: set[ast.AST] = set()
    for klass in module.classes.values():
        for method in close_methods_here(klass):
            if not method.is_async:
                continue
            for test, flag in _late_flags(method):
                if flag.node not in seen and not locks_over(klass, method, flag.node):
                    seen.add(flag.node)
                    yield _finding(module, method, test, flag)


def _late_flags(method: Function) -> Iterator[tuple[Deed, Deed]]:
    """The flags that a method sets after an `await`, each with the look at it before."""
    done = deeds(method)
    changes = {each.step for each in done if each.kind in ("put", "clear")}
    for flag in done:
        if flag.kind != "put" or flag.step is None or not _is_flag(flag):
            continue
        others: set[Node | None] = changes - {flag.step}
        for test in done:
            if test.root == flag.root and _is_guard(test) and test.step is not None:
                if method.flow.suspends_between(test.step, flag.step, others.__contains__):
                    yield test, flag
                    break


def _is_flag(deed: Deed) -> bool:
    match deed.node:
        case ast.Assign([_], ast.Constant(True | False)):
            return True
    return False


def _is_guard(deed: Deed) -> bool:
    step = deed.step
    return (
        step is not None
        and isinstance(step.stmt, ast.If)
        and is_presence_test(deed.function, step.stmt.test, deed.root)
    )


def _finding(module: Module, method: Function, test: Deed, flag: Deed) -> Finding:
    return found(
        "HF331",
        module,
        flag.node,
        f"`{method.qualname}` looks at `{flag.root}` on line {getattr(test.node, 'lineno', 0)} and sets "
        "it only after an `await`: two closers that overlap both run the clean-up; set it before the "
        "first `await`, and let the second closer wait for the first",
        related(module, test.node, "the look that both pass"),
    )


RULE = Rule("HF331", check, pedantic=True)
