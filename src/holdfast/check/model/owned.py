"""The tasks that an object holds, and what of the object they use while they run."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from holdfast.check.model.deeds import deeds
from holdfast.check.model.effects import is_cleanup, members, resolve_in, runs
from holdfast.check.model.flow import Node
from holdfast.check.model.function import Function
from holdfast.check.model.guards import is_looked_at, looks
from holdfast.check.model.memo import remembered
from holdfast.check.model.module import Class
from holdfast.check.model.roles import is_close_name
from holdfast.check.model.tasks import Creation, creation_in

__all__ = [
    "Owned",
    "Use",
    "bodies_in",
    "makes_tasks",
    "own_tasks",
    "owned_tasks",
    "unguarded_uses",
    "uses",
]


@dataclass(slots=True, eq=False)
class Owned:
    """An attribute that holds a task, or a container of tasks."""

    root: str
    creations: list[Creation] = field(default_factory=list)


@dataclass(frozen=True, slots=True, eq=False)
class Use:
    """A place in a task where an attribute is asked for something, so that None would fail there."""

    root: str
    node: ast.AST
    function: Function
    in_cleanup: bool


@remembered
def owned_tasks(klass: Class) -> tuple[Owned, ...]:
    """The attributes of a class that hold tasks which nobody else tracks."""
    found: dict[str, Owned] = {}
    for function in members(klass):
        for root, made in _kept_by_self(function):
            found.setdefault(root, Owned(root)).creations.append(made)
    return tuple(found.values())


@remembered
def _kept_by_self(function: Function) -> tuple[tuple[str, Creation], ...]:
    return tuple(
        (kept.name, made)
        for call in function.calls
        if (made := creation_in(function, call)) is not None
        for kept in made.kept
        if kept.how in ("attribute", "element")
        and kept.name.startswith("self.")
        and kept.name.count(".") == 1
    )


@remembered
def own_tasks(klass: Class) -> tuple[Owned, ...]:
    """Those that the class itself has to do with: it makes them, or has a close method of its own.
    What a base does all by itself is said of the base."""
    if any(is_close_name(name) for name in klass.methods):
        return owned_tasks(klass)
    if not makes_tasks(klass):
        return ()
    return tuple(
        owned
        for owned in owned_tasks(klass)
        if any(made.function.klass is klass for made in owned.creations)
    )


@remembered
def makes_tasks(klass: Class) -> bool:
    """Whether it makes a task and keeps it; asked first, because no other file has to be read."""
    return any(map(_kept_by_self, klass.functions))


def bodies_in(klass: Class | None, made: Creation) -> list[Function]:
    """The functions that a task runs, where `self` is an object of this class."""
    match made.coro:
        case ast.Call(func):
            return list(resolve_in(klass, made.function, func))
    return []


def uses(klass: Class, made: Creation) -> Iterator[Use]:
    """What of its object a task uses, itself and in what it runs."""
    for body in bodies_in(klass, made):
        for function, in_cleanup in runs(body, klass):
            for deed in deeds(function):
                if deed.kind == "use" and deed.root.startswith("self."):
                    late = in_cleanup or is_cleanup(function, deed.node)
                    yield Use(deed.root, deed.node, function, late)


def unguarded_uses(klass: Class, made: Creation, root: str) -> Iterator[Use]:
    """The uses of an attribute that a suspension may separate from the last look at it."""
    bodies = bodies_in(klass, made)
    for use in uses(klass, made):
        if use.root == root and not _is_guarded(klass, use, use.function in bodies):
            yield use


def _is_guarded(klass: Class, use: Use, from_start: bool) -> bool:
    flow = use.function.flow
    step = flow.of(use.node)
    if step is None or is_looked_at(use.function, use.node, use.root):
        return True
    seen = looks(use.function, use.root, klass)

    def looked(node: Node) -> bool:
        return node in seen

    # What waits and then stores, or looks, has it right behind.
    before = [node for node in flow.nodes if node.suspends and node not in seen]
    if from_start:
        before.append(flow.entry)
    return step in seen or not any(flow.reaches(node, step, looked) for node in before)
