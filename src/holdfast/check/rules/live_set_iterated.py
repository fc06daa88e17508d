"""HF411: a live set or dict is iterated with an `await` inside, while others take from it.

Evidence from two places: a `for` over the container itself (no `list()` around it), in whose body
the function can suspend and go on with the loop; and another function of the class or module that
takes from the same container: a done callback, a task, or a method that anyone may call. A weak set
only minds what is added; a list does not raise when one is removed, it skips another (pedantic where
that is a listener that signs off). The container may be one that an object of the project hands out
(`self.pool.workers`), or one that a function of the file makes and hands to both.
Silent where both hold a lock, where the only other change is made by a close method, and where the
other runs in a task that this function has cancelled and joined.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from holdfast.check.finding import Edit, Finding, Fix, place_of
from holdfast.check.model.containers import (
    Change,
    changes_of,
    is_hashed,
    is_list,
    is_weak_set,
    shared_by,
)
from holdfast.check.model.deeds import deeds
from holdfast.check.model.flow import Node
from holdfast.check.model.function import Function
from holdfast.check.model.handed import taken_by_fellows
from holdfast.check.model.locks import locks_held
from holdfast.check.model.module import Module
from holdfast.check.model.roles import is_close_name, is_start_name, run_in
from holdfast.check.rules.rule import Rule, found, related

__all__ = ["RULE"]

_CODE = "HF411"
_VIEWS = {"values", "items", "keys"}
_SIGNING_OFF = re.compile(
    r"_*(async_)?(remove|unregister|deregister|detach|unsubscribe|unbind|off)"
)
_TAKES = {"pop", "popitem", "remove", "discard", "difference_update", "del", "-="}


@dataclass(frozen=True, slots=True)
class _Live:
    """A container that is iterated: as it is called there, and as those call it who change it."""

    shown: str
    home: Function
    name: str


def check(module: Module) -> Iterator[Finding]:
    for function in module.functions:
        if not function.is_async:
            continue
        for loop in function.nodes:
            if isinstance(loop, ast.For):
                yield from _judge(module, function, loop)
                yield from _judge_given(module, function, loop)


def _judge(module: Module, function: Function, loop: ast.For) -> Iterator[Finding]:
    live = _container(function, loop.iter)
    waits = _suspends_and_goes_on(function, loop) if live is not None else None
    if live is None or waits is None:
        return
    what = _what_happens(live)
    changes = list(_changed_by_others(function, loop, live)) if what else []
    if not changes:
        return
    changed = next((each for each in changes if not _is_sign_off(live, each)), changes[0])
    deed, where = ("takes from", "taken out") if changed.how == "take" else ("adds to", "put in")
    yield found(
        _CODE,
        module,
        loop.iter,
        f"`{live.shown}` is iterated with an `await` inside, while `{changed.function.qualname}` "
        f"{deed} it: the loop {what}",
        related(module, waits, "others run here"),
        *(
            [related(module, changed.node, f"{where} here")]
            if changed.function.module is module
            else []
        ),
        fix=_listed(module, loop.iter),
        pedantic=_is_sign_off(live, changed),
    )


def _is_sign_off(live: _Live, change: Change) -> bool:
    """Whether a listener or hook signs off from a list: that is rare, and at worst one is skipped."""
    signs_off = _SIGNING_OFF.match(change.function.name) is not None
    return signs_off and not is_hashed(live.home, live.name)


def _judge_given(module: Module, function: Function, loop: ast.For) -> Iterator[Finding]:
    """A loop over what the function was given, and another was given as well."""
    name = _iterated(function, loop.iter)
    if name not in function.parameters or len(function.assigned.get(name, ())):
        return
    waits = _suspends_and_goes_on(function, loop)
    taken = next(taken_by_fellows(function, name), None) if waits is not None else None
    if waits is not None and taken is not None:
        yield found(
            _CODE,
            module,
            loop.iter,
            f"`{name}` is iterated with an `await` inside, while `{taken.function.qualname}`, which is "
            "given the same, takes from it: the loop raises `RuntimeError` when it changes size",
            related(module, waits, "others run here"),
            related(module, taken.node, "taken out here"),
            fix=_listed(module, loop.iter),
        )


def _what_happens(live: _Live) -> str:
    """What a change does to a loop over the container; empty if it is not known what that is."""
    if is_hashed(live.home, live.name):
        return "raises `RuntimeError` when it changes size"
    return "skips the one behind it" if is_list(live.home, live.name) else ""


def _iterated(function: Function, source: ast.expr) -> str:
    """The name of what a loop goes through as it is."""
    match source:
        case ast.Call(ast.Attribute(holder, view), []) if view in _VIEWS:
            source = holder
    return function.name_of(source) if isinstance(source, (ast.Attribute, ast.Name)) else ""


def _container(function: Function, source: ast.expr) -> _Live | None:
    name = _iterated(function, source)
    if name.startswith("self."):
        if name.count(".") == 1:
            return _Live(name, function, name)
        shared = shared_by(function, name)
        return _Live(name, *shared) if shared is not None else None
    is_global = name in function.module.body.assigned and name not in function.local_names
    return _Live(name, function, name) if is_global and name not in function.parameters else None


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


def _changed_by_others(function: Function, loop: ast.For, live: _Live) -> Iterator[Change]:
    locked = locks_held(function, loop)
    counts = _changes_that_count(live)
    for change in changes_of(live.home, live.name):
        other = change.function
        if other is function or other.name == "__init__" or change.method not in counts:
            continue
        if is_close_name(other.name) and not is_close_name(function.name):
            continue
        theirs = locks_held(other, change.node)
        if other in _ended_before(function) or locked & theirs:
            continue
        if theirs and function.name.startswith("_") and not locked:
            continue  # called from another file, it may well be under the same lock
        if (
            change.method == "remove"
            and is_start_name(other.name)
            and is_list(live.home, live.name)
        ):
            continue  # what did not start is taken out before anybody goes through it
        if _is_hidden(other):
            continue  # called from another file too: when, only those who wrote it know
        yield change


def _changes_that_count(live: _Live) -> set[str]:
    """By which methods others change the loop. To be emptied as a whole is not evidence enough: that
    is mostly done when all is over."""
    if not is_hashed(live.home, live.name):
        return {"remove"}
    # What a weak set loses meanwhile waits for the end of the loop; what is added does not.
    return _TAKES | {"add"} if is_weak_set(live.home, live.name) else _TAKES


def _is_hidden(function: Function) -> bool:
    """Whether a private method is named nowhere in its file: nothing shows who calls it."""
    name = function.name
    if not name.startswith("_") or name.startswith("__"):
        return False
    return not any(
        name == (node.attr if isinstance(node, ast.Attribute) else node.id)
        for node in ast.walk(function.module.source.tree)
        if isinstance(node, (ast.Attribute, ast.Name))
    )


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
