"""HF602: tasks are cancelled and waited for, and nobody looks whether one had failed before.

Evidence: a function cancels what an attribute holds and joins it with `asyncio.wait`, and nothing
in the class asks these tasks for their result or exception or whether they are done, nor has it a
done callback.
Pedantic for a single task: whoever closes may well not care any more how that went. Of many that
were started over time, some may have failed long before, and this is the last trace of them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from holdfast.check.finding import Finding
from holdfast.check.model.deeds import Deed, deeds
from holdfast.check.model.function import Function
from holdfast.check.model.module import Class, Module
from holdfast.check.model.owned import owned_tasks
from holdfast.check.rules.rule import Rule, found, related

__all__ = ["RULE"]

_CODE = "HF602"
_LOOKING = {"exception", "result", "add_done_callback", "done"}


def check(module: Module) -> Iterator[Finding]:
    if "wait(" not in module.source.text or ".cancel(" not in module.source.text:
        return
    for klass in module.classes.values():
        if klass.is_complete and not any(map(_looks, _functions(klass))):
            for function in klass.functions:
                yield from _judge(module, function)


def _functions(klass: Class) -> Iterator[Function]:
    for part in klass.lineage:
        yield from part.functions


def _looks(function: Function) -> bool:
    return any(isinstance(each, ast.Attribute) and each.attr in _LOOKING for each in function.nodes)


def _judge(module: Module, function: Function) -> Iterator[Finding]:
    cancelled = [each for each in deeds(function) if each.kind == "cancel"]
    for joined in deeds(function):
        is_attribute = joined.root.startswith("self.") and not joined.root.endswith("()")
        if joined.kind != "join" or not is_attribute:
            continue
        cancel = next((each for each in cancelled if each.root == joined.root), None)
        if (
            cancel is not None
            and _is_plain_wait(function, joined)
            and not _awaited(function, joined)
        ):
            yield found(
                _CODE,
                module,
                cancel.node,
                f"`cancel()` on a task of `{joined.root}` that has already failed hides its error, and "
                f"`{function.qualname}` does not look at it after the join",
                related(module, joined.node, "joined here, and not looked at"),
                pedantic=not _is_many(function, joined.root),
            )


def _is_many(function: Function, root: str) -> bool:
    """Whether the attribute holds a container of tasks that are made here."""
    klass = function.klass
    return klass is not None and any(
        kept.name == root and (kept.how == "element" or _is_container(kept.node))
        for owned in owned_tasks(klass)
        for made in owned.creations
        for kept in made.kept
    )


def _is_container(node: ast.AST | None) -> bool:
    value = getattr(node, "value", None)
    return isinstance(value, (ast.ListComp, ast.SetComp, ast.List, ast.Set, ast.Dict, ast.DictComp))


def _is_plain_wait(function: Function, joined: Deed) -> bool:
    match joined.node:
        case ast.Await(ast.Call(called)):
            dropped = isinstance(function.module.parents.get(joined.node), ast.Expr)
            return dropped and function.name_of(called) == "asyncio.wait"
    return False


def _awaited(function: Function, joined: Deed) -> bool:
    """Whether the same is joined in another way too, which would raise."""
    return any(
        each.kind == "join" and each.root == joined.root and each.node is not joined.node
        for each in deeds(function)
    )


RULE = Rule(_CODE, check)
