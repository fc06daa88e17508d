"""Dicts of tasks: who stores a task under a key, who takes it out, and what runs at its end."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from holdfast.check.model.deeds import Deed, deeds
from holdfast.check.model.effects import Effect, effects, is_direct, members, resolve_in, runs
from holdfast.check.model.flow import Node
from holdfast.check.model.function import Function
from holdfast.check.model.guards import heads_around, tests_around
from holdfast.check.model.memo import remembered
from holdfast.check.model.module import Class, Module
from holdfast.check.model.tasks import Creation, creation_in

__all__ = [
    "Removal",
    "Slots",
    "Store",
    "bodies_of",
    "cancelled_unjoined",
    "compares_identity",
    "end_callbacks",
    "is_decided_by",
    "is_unique_key",
    "keyed_looks",
    "removals",
    "slots_of",
]

# Names of calls that never give the same key twice.
_FRESH = {"uuid1", "uuid4", "uuid7", "id", "next", "object", "token_hex", "token_urlsafe", "time",
          "time_ns", "monotonic", "get_ident", "current_task", "random", "randint"}  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Store:
    """A task put into a dict under a key."""

    container: str
    key: ast.expr
    node: ast.AST
    made: Creation

    @property
    def function(self) -> Function:
        return self.made.function

    @property
    def step(self) -> Node | None:
        return self.function.flow.of(self.node)


@dataclass(frozen=True, slots=True, eq=False)
class Slots:
    """The dicts of tasks of a class, or of a module: there `klass` is None."""

    klass: Class | None
    functions: tuple[Function, ...]
    stores: tuple[Store, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Removal:
    """An entry taken out by its key, at the end of the task: in its body, or in a callback."""

    node: ast.AST
    function: Function
    where: str
    """`body` or `callback`."""


def _scopes(module: Module) -> Iterator[tuple[Class | None, tuple[Function, ...]]]:
    """Each class with the functions of its objects, and the module with all of its functions."""
    for klass in module.classes.values():
        yield klass, tuple(members(klass))
    yield None, (module.body, *module.functions)


@remembered
def slots_of(module: Module) -> tuple[Slots, ...]:
    """Each class, and the module itself, with every task that is put into one of its dicts."""
    if not any(map(_stored_in, (module.body, *module.functions))):
        return ()  # what another file does is said of that one
    return tuple(
        Slots(klass, functions, tuple(_stores(klass, functions)))
        for klass, functions in _scopes(module)
    )


def _stores(klass: Class | None, functions: tuple[Function, ...]) -> Iterator[Store]:
    for function in functions:
        for store in _stored_in(function):
            if _is_ours(function, klass, store.container):
                yield store


@remembered
def _stored_in(function: Function) -> tuple[Store, ...]:
    return tuple(
        Store(kept.name, kept.key, kept.node, made)
        for call in function.calls
        if (made := creation_in(function, call, tracked=True)) is not None
        for kept in made.kept
        if kept.how == "element" and kept.key is not None and kept.node is not None
    )


def _is_ours(function: Function, klass: Class | None, name: str) -> bool:
    if klass is not None:
        return name.startswith("self.") and name.count(".") == 1
    return (
        bool(name)
        and "." not in name
        and name not in function.local_names
        and (name not in function.parameters and function.outer is None)
    )


def cancelled_unjoined(klass: Class | None, store: Store) -> Effect | None:
    """The cancel of an old task that the store can follow without a join between."""
    function, step = store.function, store.step
    mine = [each for each in effects(function, klass) if each.root == store.container and each.step]
    joins = [each for each in mine if each.kind == "join"]
    for each in mine:
        if each.kind == "cancel" and each.step is not None and is_direct(each.deed):
            over = heads_around(function, (join.node for join in joins), [each.node, store.node])
            if step is None or each.step in {join.step for join in joins}:
                continue
            if function.flow.reaches(each.step, step, over.__contains__):
                return each
    return None


def bodies_of(klass: Class | None, made: Creation) -> list[Function]:
    """The functions that a task runs; a framework may take the coroutine as a later argument."""
    for argument in made.call.args:
        if isinstance(argument, ast.Call):
            found = list(resolve_in(klass, made.function, argument.func))
            if found:
                return found
    return []


def end_callbacks(klass: Class | None, store: Store) -> Iterator[Function]:
    """What is called when the task is done: lambdas, methods, partials."""
    function = store.function
    for call in function.calls:
        match call.func:
            case ast.Attribute(receiver, "add_done_callback") if call.args:
                if _is_the_task(function, receiver, store):
                    yield from _callable(klass, function, call.args[0])


def _is_the_task(function: Function, receiver: ast.expr, store: Store) -> bool:
    if receiver is store.made.call or store.container in function.roots(receiver):
        return True
    return isinstance(receiver, ast.Name) and any(
        store.made.call is value or store.made.call in ast.walk(value)
        for value in function.assigned.get(receiver.id, ())
    )


def _callable(klass: Class | None, function: Function, node: ast.expr) -> Iterator[Function]:
    match node:
        case ast.Lambda():
            yield function.module.function_of(node)
        case ast.Call(func, [first, *_]) if function.name_of(func).endswith("partial"):
            yield from resolve_in(klass, function, first)
        case ast.Attribute() | ast.Name():
            yield from resolve_in(klass, function, node)


def removals(klass: Class | None, store: Store) -> Iterator[Removal]:
    """Where the end of the task takes an entry out by its key."""
    for body in bodies_of(klass, store.made):
        for function, _ in runs(body, klass):
            for deed in _taken_by_key(function, store.container):
                yield Removal(deed.node, function, "body")
    for callback in end_callbacks(klass, store):
        for function, _ in runs(callback, klass):
            for deed in _taken_by_key(function, store.container):
                yield Removal(deed.node, function, "callback")


def _taken_by_key(function: Function, container: str) -> Iterator[Deed]:
    for deed in deeds(function):
        if deed.kind == "take" and deed.root == container and _by_key(function, deed.node):
            yield deed


def _by_key(function: Function, node: ast.AST) -> bool:
    match node:
        case ast.Delete():
            return True
        case ast.Call(ast.Attribute(_, "pop"), [_, *_]):
            return True
    return False


def keyed_looks(function: Function, container: str) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Where an entry of the dict is looked for or taken out, each with its key."""
    for node in function.nodes:
        match node:
            case ast.Compare(key, [ast.In() | ast.NotIn()], [value]):
                pass
            case ast.Subscript(value, key, ast.Load()):
                pass
            case ast.Call(ast.Attribute(value, "get" | "pop"), [key, *_]):
                pass
            case _:
                continue
        if function.name_of(value) == container:
            assert isinstance(node, ast.expr)
            yield node, key


def compares_identity(function: Function) -> bool:
    """Whether a function compares two things that it holds: `d.get(key) is task`, a generation."""
    return any(
        isinstance(op, (ast.Is, ast.IsNot, ast.Eq, ast.NotEq))
        and not isinstance(left, ast.Constant)
        and not isinstance(right, ast.Constant)
        for node in function.nodes
        if isinstance(node, ast.Compare)
        for left, op, right in zip(
            [node.left, *node.comparators], node.ops, node.comparators, strict=False
        )
    )


def is_unique_key(store: Store) -> bool:
    """Whether the key is made anew for this task, or is the task's own."""
    function = store.function
    if any(isinstance(each, ast.Await) for each in ast.walk(store.key)):
        return True
    return any(_is_fresh(function, each) for each in ast.walk(store.key))


def _is_fresh(function: Function, node: ast.AST) -> bool:
    match node:
        case ast.Call(func):
            return function.name_of(func).rpartition(".")[2] in _FRESH
        case ast.Name(name):
            return not _may_come_back(function, name)
        case ast.Attribute():
            return _is_counted(function, node)
    return False


def _may_come_back(function: Function, name: str) -> bool:
    values = function.assigned.get(name, ())
    for value in values:
        for each in ast.walk(value):
            if isinstance(each, ast.Call):
                called = function.name_of(each.func).rpartition(".")[2]
                if called in _FRESH or "next" in called or "new" in called or "uuid" in called:
                    return False
            if isinstance(each, ast.Attribute) and _is_counted(function, each):
                return False
    return True


def _is_counted(function: Function, attribute: ast.Attribute) -> bool:
    """Whether an attribute is counted up here."""
    name = function.name_of(attribute)
    return any(
        isinstance(each, ast.AugAssign) and function.name_of(each.target) == name
        for each in function.nodes
    )


def is_decided_by(function: Function, store: Store, klass: Class | None) -> bool:
    """Whether a look at the dict decides if the store is reached at all: it stands in the branch of
    a test of it, or after one that leaves."""
    around = {test for test, _ in tests_around(function, store.node)}
    for node in function.nodes:
        if isinstance(node, (ast.If, ast.While)):
            decides = node in around or _leaves(node.body)
            if decides and _looks_at(function, node.test, store.container, klass):
                return True
    return False


def _leaves(body: list[ast.stmt]) -> bool:
    return isinstance(body[-1], (ast.Return, ast.Raise, ast.Continue, ast.Break))


def _looks_at(function: Function, test: ast.expr, container: str, klass: Class | None) -> bool:
    if any(
        container in function.roots(each)
        for each in ast.walk(test)
        if isinstance(each, (ast.Name, ast.Attribute))
    ):
        return True
    inside = set(ast.walk(test))
    return any(
        effect.node in inside and effect.root == container for effect in effects(function, klass)
    )
