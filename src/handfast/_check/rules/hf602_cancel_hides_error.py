"""HF602: tasks are cancelled and awaited, and nothing checks whether one had failed before.

Reported: a function cancels the tasks of an attribute and joins them with `asyncio.wait`, and nothing
in the class reads their results or exceptions, tests whether they are done, or adds a done callback.
Pedantic for a single task: code that closes may not care how that ended. Of many tasks that were
created over time, some may have failed long before, and this is the last trace of them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from handfast._check.finding import Finding
from handfast._check.model.operations.operations import Operation, operations
from handfast._check.model.syntax.function import Function
from handfast._check.model.syntax.memo import remembered
from handfast._check.model.syntax.module import Module
from handfast._check.model.tasks.owned import owned_tasks
from handfast._check.rules.rule import Rule, related, report

_CODE = "HF602"
_OUTCOME = {"exception", "result", "add_done_callback", "done"}


def check(module: Module) -> Iterator[Finding]:
    for klass in module.classes.values():
        functions = (each for part in klass.lineage for each in part.functions)
        if klass.is_complete and not any(map(_reads_outcome, functions)):
            for function in klass.functions:
                yield from _evaluate(module, function)


@remembered
def _reads_outcome(function: Function) -> bool:
    return any(isinstance(each, ast.Attribute) and each.attr in _OUTCOME for each in function.nodes)


def _evaluate(module: Module, function: Function) -> Iterator[Finding]:
    cancelled = [each for each in operations(function) if each.kind == "cancel"]
    for joined in operations(function):
        is_attribute = joined.root.startswith("self.") and not joined.root.endswith("()")
        if joined.kind != "join" or not is_attribute:
            continue
        cancel = next((each for each in cancelled if each.root == joined.root), None)
        if cancel is None or _awaited(function, joined):
            continue
        if _is_plain_wait(function, joined):
            yield report(
                _CODE,
                module,
                cancel.node,
                f"A task of `{joined.root}` that failed before this `cancel()` keeps its exception, and "
                f"`{function.qualname}` does not retrieve it: call `exception()` on the tasks that were "
                "not cancelled",
                related(module, joined.node, "awaited here, and the outcome is not read"),
                pedantic=not _is_many(function, joined.root),
            )


def _is_many(function: Function, root: str) -> bool:
    """Whether the attribute holds a container of tasks."""
    klass = function.klass
    return klass is not None and any(
        each.name == root and (each.how == "element" or _is_container(each.node))
        for owned in owned_tasks(klass)
        for creation in owned.creations
        for each in creation.retentions
    )


def _is_container(node: ast.AST | None) -> bool:
    value = getattr(node, "value", None)
    return isinstance(value, (ast.ListComp, ast.SetComp, ast.List, ast.Set, ast.Dict, ast.DictComp))


def _is_plain_wait(function: Function, joined: Operation) -> bool:
    match joined.node:
        case ast.Await(ast.Call(called)):
            dropped = isinstance(function.module.parents.get(joined.node), ast.Expr)
            return dropped and function.name_of(called) == "asyncio.wait"
    return False


def _awaited(function: Function, joined: Operation) -> bool:
    """Whether the same tasks are also awaited in another way, which raises their errors."""
    return any(
        each.kind == "join" and each.root == joined.root and each.node is not joined.node
        for each in operations(function)
    )


RULE = Rule(_CODE, check, needs=(".cancel(",))
