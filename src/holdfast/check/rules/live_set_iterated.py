"""HF411: a live set or dict is iterated with an `await` inside, while others take from it.

Evidence from two places: a `for` over the container itself (no `list()` around it), in whose body
the function can suspend and go on with the loop; and another function of the class or module that
takes from the same container: a done callback, a task, or a method that anyone may call.
Silent where both hold a lock, where the only other change is made by a close method, and where the
other runs in a task that this function has cancelled and joined.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from holdfast.check.finding import Edit, Finding, Fix, place_of
from holdfast.check.model.containers import Change, changes_of, is_hashed
from holdfast.check.model.deeds import deeds
from holdfast.check.model.flow import Node
from holdfast.check.model.function import Function
from holdfast.check.model.locks import locks_held
from holdfast.check.model.module import Module
from holdfast.check.model.roles import is_close_name, run_in
from holdfast.check.rules.rule import Rule, found, related

__all__ = ["RULE"]

_CODE = "HF411"
_VIEWS = {"values", "items", "keys"}


def check(module: Module) -> Iterator[Finding]:
    for function in module.functions:
        if not function.is_async:
            continue
        for loop in function.nodes:
            if isinstance(loop, ast.For):
                yield from _judge(module, function, loop)


def _judge(module: Module, function: Function, loop: ast.For) -> Iterator[Finding]:
    name = _container(function, loop.iter)
    waits = _suspends_and_goes_on(function, loop) if name else None
    if waits is None or not is_hashed(function, name):
        return
    taken = next(_taken_by_others(function, loop, name), None)
    if taken is None:
        return
    yield found(
        _CODE,
        module,
        loop.iter,
        f"`{name}` is iterated with an `await` inside, while `{taken.function.qualname}` takes from "
        "it: the loop raises `RuntimeError` when it changes size",
        related(module, waits, "others run here"),
        *(
            [related(module, taken.node, "taken out here")]
            if taken.function.module is module
            else []
        ),
        fix=_listed(module, loop.iter),
    )


def _container(function: Function, source: ast.expr) -> str:
    match source:
        case ast.Call(ast.Attribute(holder, view), []) if view in _VIEWS:
            source = holder
    name = function.name_of(source) if isinstance(source, (ast.Attribute, ast.Name)) else ""
    if name.startswith("self."):
        return name if name.count(".") == 1 else ""
    is_global = name in function.module.body.assigned and name not in function.local_names
    return name if is_global and name not in function.parameters else ""


def _suspends_and_goes_on(function: Function, loop: ast.For) -> ast.AST | None:
    """Where the body suspends and the loop then takes the next element."""
    flow = function.flow
    head = flow.of(loop)
    inside = {id(each) for stmt in loop.body for each in ast.walk(stmt)}

    def outside(node: Node) -> bool:
        return id(node.stmt) not in inside

    for node in flow.nodes:
        if node.suspends and not outside(node) and head is not None:
            if flow.reaches(node, head, outside):
                return node.stmt
    return None


def _taken_by_others(function: Function, loop: ast.For, name: str) -> Iterator[Change]:
    locked = locks_held(function, loop)
    for change in changes_of(function, name):
        other = change.function
        # Emptied as a whole is not evidence enough: that is mostly done when all is over.
        if other is function or other.name == "__init__" or change.how != "take":
            continue
        if is_close_name(other.name) and not is_close_name(function.name):
            continue
        theirs = locks_held(other, change.node)
        if other in _ended_before(function) or locked & theirs:
            continue
        if theirs and function.name.startswith("_") and not locked:
            continue  # called from another file, it may well be under the same lock
        yield change


def _ended_before(function: Function) -> set[Function]:
    """What ran in tasks that this function cancels and joins: it takes nothing any more."""
    done = {kind: {each.root for each in deeds(function) if each.kind == kind}
            for kind in ("cancel", "join")}  # fmt: skip
    over = done["cancel"] & done["join"]
    return run_in(function.klass, over) if function.klass is not None and over else set()


def _listed(module: Module, source: ast.expr) -> Fix:
    text = ast.get_source_segment(module.source.text, source) or ast.unparse(source)
    edit = Edit(place_of(module.path, source), f"list({text})")
    return Fix("iterate over a copy", (edit,), safe=True)


RULE = Rule(_CODE, check)
