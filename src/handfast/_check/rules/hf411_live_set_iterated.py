"""HF411: a set or dict is iterated with an `await` inside, while other code changes its size.

Reported, with evidence from two places: a `for` over the container itself (no `list()` around it), in
whose body the function can suspend and then continue the loop; and another function of the class or
module that removes from the same container: a done callback, a task, or a public method; or a coroutine
that adds an entry by a key from outside (pedantic if a close method iterates). For a weak set only
additions count; a list does not raise when an element is removed, it skips another (pedantic if that
is a listener that unregisters). The container may be the attribute of another object of the project
(`self.pool.workers`), or one that a function of the file passes to both. Pedantic also where the loop
starts or ends all listeners and one is removed, and for a close method that iterates what only the
blocks of a context manager remove from.
Not reported: where both hold a lock, where only a close method or one that sets the object up changes
the container, and where the other function runs in a task that this one has cancelled and joined.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Set
from dataclasses import dataclass

from handfast._check.finding import Edit, Finding, Fix, place_of
from handfast._check.model.operations.containers import (
    Change,
    changes_of,
    is_hashed,
    is_list,
    is_weak_set,
    removals_from_argument,
    shared_by,
)
from handfast._check.model.operations.guards import tests_around
from handfast._check.model.operations.locks import locks_over
from handfast._check.model.operations.operations import operations
from handfast._check.model.operations.teardown import is_whole_close
from handfast._check.model.syntax.ancestors import calls_in, last_name
from handfast._check.model.syntax.function import Function
from handfast._check.model.syntax.module import Module
from handfast._check.model.tasks.method_roles import is_close_name, is_start_name
from handfast._check.model.tasks.owned import run_in
from handfast._check.model.vocabulary import TAKING
from handfast._check.rules.rule import Rule, related, related_in, report

_CODE = "HF411"
_VIEWS = {"values", "items", "keys"}
_UNREGISTERING = re.compile(
    r"_*(async_)?(remove|unregister|deregister|detach|unsubscribe|unbind|off|isub__)"
)
_REMOVING_LISTENER = re.compile(
    r"_*(async_)?(remove|unregister|deregister|detach|off)_\w*(listener|callback|handler|observer)s?"
)
_OF_ONE = re.compile(r"_*(async_)?(disconnect|on_)")
_TAKES = TAKING | {"del", "-="}
# The empty one is the assignment of an entry.
_ADDS = {"add", "setdefault", ""}
# What does not start is removed before anything iterates.
_STARTING = re.compile(r"_*(async_)?(init|setup|set_up)_\w+")
# What is added before anything iterates, by the names of the functions.
_SETTING_UP = re.compile(
    r"__\w+__|_*(async_)?(load|init|build|include|define|mount|from|setup|set_up)(_.*)?"
    r"|_*\w*(setup|set_up|listener|callback|handler|observer|route)s?"
)


@dataclass(frozen=True, slots=True)
class _Iterated:
    """A container that is iterated: its name there, and its name where it is changed."""

    shown: str
    home: Function
    name: str


def check(module: Module) -> Iterator[Finding]:
    for function in module.functions:
        if not function.is_async:
            continue
        for loop in function.nodes:
            if isinstance(loop, ast.For):
                yield from _evaluate(module, function, loop)
                yield from _evaluate_parameter(module, function, loop)


def _evaluate(module: Module, function: Function, loop: ast.For) -> Iterator[Finding]:
    iterated = _container(function, loop.iter)
    # In this order: whether the loop suspends needs the control flow of the function.
    what = _what_happens(iterated) if iterated is not None else ""
    if iterated is None or not what:
        return
    waits = _suspends_and_continues(function, loop)
    changes = list(_changed_by_others(function, loop, iterated)) if waits is not None else []
    if waits is None or not changes:
        return
    changes.sort(key=lambda each: each.kind != "take")
    changed = next((each for each in changes if not _is_unregistering(iterated, each)), changes[0])
    verb, where = ("removes", "removed") if changed.kind == "take" else ("adds", "added")
    link = "from" if changed.kind == "take" else "to"
    yield report(
        _CODE,
        module,
        loop.iter,
        f"`{iterated.shown}` is iterated with an `await` inside, while `{changed.function.qualname}` "
        f"{verb} {link} it: the loop {what}; iterate over a copy",
        related(module, waits, "other tasks run here"),
        related_in(module, changed.function.module, changed.node, f"{where} here"),
        fix=_listed(module, loop.iter),
        # Who closes an object has mostly stopped adding to it.
        pedantic=(changed.kind == "put" and is_close_name(function.name))
        or _is_unregistering(iterated, changed)
        or _is_of_listeners(function, changed)
        or all(_is_by_users(function, loop, each) for each in changes),
    )


def _is_by_users(function: Function, loop: ast.For, change: Change) -> bool:
    """Whether a close method iterates, and only a user of the object removes, in a block of his own:
    who closes an object has mostly left that."""
    other = change.function
    called = {last_name(call.func) for call in calls_in(loop.body)}
    return (
        is_close_name(function.name)
        and other.name not in called
        and any(
            last_name(each) in ("asynccontextmanager", "contextmanager")
            for each in getattr(other.node, "decorator_list", ())
        )
    )


def _is_unregistering(iterated: _Iterated, change: Change) -> bool:
    """Whether a listener unregisters from a list: that is rare, and at worst one is skipped."""
    if change.kind != "take":
        return False
    functions = (change.function, change.function.outer)
    unregisters = any(each is not None and _UNREGISTERING.match(each.name) for each in functions)
    return unregisters and not is_hashed(iterated.home, iterated.name)


def _is_of_listeners(function: Function, change: Change) -> bool:
    """Whether all listeners are started or ended here, and one that is removed is no longer needed."""
    return (
        is_close_name(function.name) or is_start_name(function.name)
    ) and _REMOVING_LISTENER.fullmatch(change.function.name) is not None


def _evaluate_parameter(module: Module, function: Function, loop: ast.For) -> Iterator[Finding]:
    """A loop over a parameter, whose argument another function gets as well."""
    name = _iterated(function, loop.iter)
    if name not in function.parameters or len(function.assigned.get(name, ())):
        return
    waits = _suspends_and_continues(function, loop)
    taken = next(removals_from_argument(function, name), None) if waits is not None else None
    if waits is not None and taken is not None:
        yield report(
            _CODE,
            module,
            loop.iter,
            f"`{name}` is iterated with an `await` inside, while `{taken.function.qualname}`, which gets "
            "the same container, removes from it: the loop raises `RuntimeError` when its size changes; "
            "iterate over a copy",
            related(module, waits, "other tasks run here"),
            related(module, taken.node, "removed here"),
            fix=_listed(module, loop.iter),
        )


def _what_happens(iterated: _Iterated) -> str:
    """What a change does to a loop over the container; empty if its type is not known."""
    if is_hashed(iterated.home, iterated.name):
        return "raises `RuntimeError` when its size changes"
    return "skips the next element" if is_list(iterated.home, iterated.name) else ""


def _iterated(function: Function, source: ast.expr) -> str:
    """The name of the container that a loop iterates without a copy."""
    match source:
        case ast.Call(ast.Attribute(holder, view), []) if view in _VIEWS:
            source = holder
    return function.name_of(source) if isinstance(source, (ast.Attribute, ast.Name)) else ""


def _container(function: Function, source: ast.expr) -> _Iterated | None:
    name = _iterated(function, source)
    if name.startswith("self."):
        if name.count(".") == 1:
            return _Iterated(name, function, name)
        shared = shared_by(function, name)
        return _Iterated(name, *shared) if shared is not None else None
    is_global = name in function.module.body.assigned and name not in function.local_names
    return (
        _Iterated(name, function, name) if is_global and name not in function.parameters else None
    )


def _suspends_and_continues(function: Function, loop: ast.For) -> ast.AST | None:
    """Where the body suspends and the loop then continues."""
    flow = function.flow
    head = flow.of(loop)
    inside = {id(each) for stmt in loop.body for each in ast.walk(stmt)}
    outside = {step for step in flow.nodes if id(step.stmt) not in inside}
    for step in flow.nodes:
        if step.suspends and step not in outside and flow.reaches(step, head, outside):
            return step.stmt
    return None


def _changed_by_others(function: Function, loop: ast.For, iterated: _Iterated) -> Iterator[Change]:
    locked = locks_over(function.klass, function, loop, by_any_name=True)
    counts = _changes_that_count(iterated)
    for change in changes_of(iterated.home, iterated.name):
        other = change.function
        if other is function or other.name == "__init__" or change.method not in counts:
            continue
        if change.kind == "clear" or _STARTING.fullmatch(other.name):
            continue
        if _closes_whole(other) and not is_close_name(function.name):
            continue
        theirs = locks_over(other.klass, other, change.node, by_any_name=True)
        if other in _ended_before(function) or locked & theirs:
            continue
        if theirs and function.name.startswith("_") and not locked:
            continue  # called from another file, it may be under the same lock
        if (
            change.method == "remove"
            and is_start_name(other.name)
            and is_list(iterated.home, iterated.name)
        ):
            continue  # an element that did not start is removed before anything iterates
        if (change.kind == "put" and not _adds_new(iterated, change)) or _is_hidden(other):
            continue  # only called from another file, and when is not known
        yield change


def _closes_whole(function: Function) -> bool:
    """Whether a function ends the object; `disconnect(client)` and `on_close(client)` end an element."""
    ends_one = _OF_ONE.match(function.name) and not is_whole_close(function)
    return is_close_name(function.name) and not ends_one


def _adds_new(iterated: _Iterated, change: Change) -> bool:
    """Whether a function adds an entry that may be new, at any time: its key comes from outside."""
    other, node = change.function, change.node
    if is_weak_set(iterated.home, iterated.name):
        return True
    # What a plain function adds may all come before anything iterates.
    if not other.is_async or _SETTING_UP.fullmatch(other.name):
        return False
    if is_start_name(other.name) and is_whole_close(other):
        return False
    if any(
        isinstance(each, ast.For | ast.AsyncFor) and _iterated(other, each.iter) == change.name
        for each in other.nodes
    ):
        return False
    key = _added_key(node, other)
    if not isinstance(key, ast.Name | ast.Attribute | ast.Call):
        return False
    # `if key in entries` changes an entry; `if key not in entries` fills a table of what is found at the
    # start, which rarely grows later.
    return not any(_asks_for_key(other, test, change.name) for test, _ in tests_around(other, node))


def _added_key(node: ast.AST, function: Function) -> ast.expr | None:
    """The key of an entry that is assigned, or the element that is added."""
    match node:
        case ast.Assign([ast.Subscript(_, key), *_]):
            return key
        case ast.Attribute():
            parent = function.module.parents.get(node)
            return parent.args[0] if isinstance(parent, ast.Call) and parent.args else None
    return None


def _asks_for_key(function: Function, test: ast.If | ast.While, name: str) -> bool:
    """Whether a test asks if the container has an entry."""
    return any(
        isinstance(each, ast.Compare)
        and isinstance(each.ops[0], ast.In | ast.NotIn)
        and function.name_of(each.comparators[0]) == name
        for each in ast.walk(test.test)
    )


def _changes_that_count(iterated: _Iterated) -> Set[str]:
    """The methods whose changes affect the loop. `clear()` is no evidence: that is mostly called when
    everything has ended."""
    if not is_hashed(iterated.home, iterated.name):
        return {"remove"}
    # A weak set defers removals until the iteration has ended; additions are not deferred.
    return _TAKES | _ADDS


def _is_hidden(function: Function) -> bool:
    """Whether a private method is named nowhere in its file, so that no caller is known."""
    name = function.name
    if not name.startswith("_") or name.startswith("__"):
        return False
    return not any(
        name == (node.attr if isinstance(node, ast.Attribute) else node.id)
        for node in ast.walk(function.module.source.tree)
        if isinstance(node, (ast.Attribute, ast.Name))
    )


def _ended_before(function: Function) -> set[Function]:
    """The functions that run in tasks which this function cancels and joins."""
    done = operations(function)
    ended = {each.root for each in done if each.kind == "cancel"}
    ended &= {each.root for each in done if each.kind == "join"}
    return run_in(function.klass, ended) if function.klass is not None and ended else set()


def _listed(module: Module, source: ast.expr) -> Fix:
    text = ast.get_source_segment(module.source.text, source) or ast.unparse(source)
    edit = Edit(place_of(module.path, source), f"list({text})")
    return Fix("iterate over a copy", (edit,), safe=True)


RULE = Rule(
    _CODE,
    check,
    needs=(
        "for ",
        "await|async with|async for",
        "remove|discard|pop|del |-=|difference_update|.add|setdefault|] = ",
        "<loops>",
    ),
)
