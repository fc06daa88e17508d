"""HF202: only the body of a task removes its entry, so a cancel before the first step leaves it.

Found where the body removes the entry by its key, nobody else does (no done callback, no other
function that takes out or clears), and a function cancels a single entry and leaves it in. Where
only all of them are cancelled together, usually at a close, it is pedantic. Silent where a base
class is not known.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from holdfast.check.finding import Finding
from holdfast.check.model.deeds import Deed, deeds
from holdfast.check.model.effects import is_direct, runs
from holdfast.check.model.function import Function
from holdfast.check.model.module import Class, Module
from holdfast.check.model.slots import (
    Store,
    bodies_of,
    end_callbacks,
    is_decided_by,
    removals,
    slots_of,
)
from holdfast.check.rules.rule import Rule, found, related

__all__ = ["RULE"]


def check(module: Module) -> Iterator[Finding]:
    seen: set[ast.AST] = set()
    for slots in slots_of(module):
        klass = slots.klass
        if klass is not None and not klass.is_complete:
            continue
        for store in slots.stores:
            if store.node in seen or store.function.module is not module:
                continue
            finding = _judge(module, klass, store, slots.functions)
            if finding is not None:
                seen.add(store.node)
                yield finding


def _judge(
    module: Module, klass: Class | None, store: Store, functions: tuple[Function, ...]
) -> Finding | None:
    own = [each for each in removals(klass, store) if each.where == "body"]
    if not own or any(True for _ in end_callbacks(klass, store)):
        return None
    body = {each for body in bodies_of(klass, store.made) for each, _ in runs(body, klass)}
    others = [each for each in functions if each not in body]
    mine = [deed for each in others for deed in deeds(each) if deed.root == store.container]
    if any(deed.kind in ("take", "clear") and deed.function.name != "__init__" for deed in mine):
        return None
    cancels = [
        deed
        for deed in mine
        if deed.kind == "cancel" and is_direct(deed) and not _is_stored_over(klass, store, deed)
    ]
    if not cancels:
        return None
    single = [deed for deed in cancels if not _is_of_all(deed)]
    cancel = (single or cancels)[0]
    return found(
        "HF202",
        module,
        store.node,
        f"only the body of the task removes its entry of `{store.container}` (line "
        f"{getattr(own[0].node, 'lineno', 0)}): cancelled before its first step (line "
        f"{getattr(cancel.node, 'lineno', 0)}), the task never runs it and the entry stays; remove it "
        "in a done callback",
        related(own[0].function.module, own[0].node, "the only removal, in the task's own body"),
        related(cancel.function.module, cancel.node, "cancelled here, and left in"),
        pedantic=not single,
    )


def _is_stored_over(klass: Class | None, store: Store, cancel: Deed) -> bool:
    """Whether the same function goes on to put a new task in the place of the cancelled one."""
    function = store.function
    return cancel.function is function and not is_decided_by(function, store, klass)


def _is_of_all(deed: Deed) -> bool:
    """Whether a cancel stands in a loop over the dict."""
    parents = deed.function.module.parents
    up = parents.get(deed.node)
    while up is not None and up is not deed.function.node:
        if isinstance(up, (ast.For, ast.ListComp, ast.GeneratorExp, ast.SetComp)):
            return True
        up = parents.get(up)
    return False


RULE = Rule("HF202", check)
