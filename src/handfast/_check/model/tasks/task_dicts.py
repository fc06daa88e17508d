"""Dicts of tasks: where a task is stored under a key, where it is removed, what runs at its end."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from handfast._check.model.operations.effects import Effect, effects, is_direct
from handfast._check.model.operations.guards import enclosing_steps, tests_around
from handfast._check.model.operations.operations import Operation, operations
from handfast._check.model.syntax.ancestors import contains
from handfast._check.model.syntax.call_graph import members, resolve_in, runs
from handfast._check.model.syntax.control_flow import Step
from handfast._check.model.syntax.function import Function
from handfast._check.model.syntax.memo import remembered
from handfast._check.model.syntax.module import Class, Module
from handfast._check.model.syntax.names import dotted
from handfast._check.model.tasks.creation import Retention, TaskCreation, creation_in
from handfast._check.model.tasks.records import record_of

# Functions that never return the same key twice.
_FRESH = {"uuid1", "uuid4", "uuid7", "id", "next", "object", "token_hex", "token_urlsafe", "time",
          "time_ns", "monotonic", "get_ident", "current_task", "random", "randint"}  # fmt: skip
# What tells received messages from each other.
_NUMBERED = re.compile(r"(?:\w*_)?(?:id|uuid|token|tag|sequence)")


@dataclass(frozen=True, slots=True, eq=False)
class TaskDictStore:
    """A task stored in a dict under a key."""

    container: str
    key: ast.expr
    node: ast.AST
    creation: TaskCreation
    field: str = ""
    """The field of the record that is stored, if the task is in one."""

    @property
    def function(self) -> Function:
        return self.creation.function

    @property
    def step(self) -> Step | None:
        return self.function.flow.of(self.node)


@dataclass(frozen=True, slots=True, eq=False)
class TaskDictRemoval:
    """The removal of an entry by its key, at the end of the task: in its body, or in a callback."""

    node: ast.AST
    function: Function
    where: str
    """`body` or `callback`."""


@remembered
def stores_in(module: Module) -> tuple[tuple[Class | None, TaskDictStore], ...]:
    """Every store of a task into a dict of a class or of the module (None), with the class.

    A store in a base class is listed for each class of the file that inherits it.
    """
    if not any(map(_stored_in, (module.body, *module.functions))):
        return ()  # stores of bases in other files are reported there
    return tuple(
        (klass, store)
        for klass in (*module.classes.values(), None)
        for function in functions_around(module, klass)
        for store in _stored_in(function)
        if _belongs_to(klass, function, store.container)
    )


def functions_around(module: Module, klass: Class | None) -> tuple[Function, ...]:
    """The functions that can use a dict of a class; without a class, one of the module."""
    return members(klass) if klass is not None else (module.body, *module.functions)


@remembered
def _stored_in(function: Function) -> tuple[TaskDictStore, ...]:
    return tuple(
        TaskDictStore(each.name, each.key, each.node, creation, field)
        for call in function.calls
        # A tracked task counts as well: a framework ends it, and the entry is still wrong.
        if (creation := creation_in(function, call, tracked=True)) is not None
        for field, each in _holders(creation)
        if each.how == "element" and each.key is not None and each.node is not None
    )


def _holders(creation: TaskCreation) -> Iterator[tuple[str, Retention]]:
    """What holds the task, or the record whose field it is."""
    yield from (("", each) for each in creation.retentions)
    recorded = record_of(creation)
    if recorded is not None:
        yield recorded


def _belongs_to(klass: Class | None, function: Function, name: str) -> bool:
    if klass is not None:
        return name.startswith("self.") and name.count(".") == 1
    is_local = name in function.local_names or name in function.parameters
    return bool(name) and "." not in name and not is_local and function.outer is None


def cancelled_unjoined(klass: Class | None, store: TaskDictStore) -> Effect | None:
    """The cancel of an old task from which a path without a join leads to the store."""
    function, step = store.function, store.step
    own = [each for each in effects(function, klass) if each.root == store.container and each.step]
    joins = [each for each in own if each.kind == "join"]
    joined = {each.step for each in joins}
    for each in own:
        if each.kind == "cancel" and _is_of_task(each.operation, store) and each.step not in joined:
            # `if old: old.cancel(); await old`: a branch that is not taken has nothing to join.
            ended = enclosing_steps(
                function, (join.node for join in joins), [each.node, store.node]
            )
            if function.flow.reaches(each.step, step, ended):
                return each
    return None


def _is_of_task(cancel: Operation, store: TaskDictStore) -> bool:
    """Whether a cancel is that of an old task: of any in the dict, or in the record with this key."""
    if not store.field:
        return is_direct(cancel)
    match cancel.node:
        case ast.Call(ast.Attribute(ast.Attribute(record, field), _)) if field == store.field:
            given = (
                store.function.assigned.get(record.id, ()) if isinstance(record, ast.Name) else ()
            )
            found = {each for part in (record, *given) for each in ast.walk(part)}
            key = ast.unparse(store.key)
            return any(
                lookup in found and ast.unparse(looked_up) == key
                for lookup, looked_up in key_lookups(store.function, store.container)
            )
    return False


def bodies_of(klass: Class | None, creation: TaskCreation) -> list[Function]:
    """The functions that a task runs; in a framework the coroutine may be a later argument."""
    # `hass.async_create_background_task(hass, self._run(), name)`: the first that is a known call.
    for argument in creation.call.args:
        if isinstance(argument, ast.Call):
            found = list(resolve_in(klass, creation.function, argument.func))
            if found:
                return found
    return []


def end_callbacks(klass: Class | None, store: TaskDictStore) -> Iterator[Function]:
    """The done callbacks of the task: lambdas, methods, partials."""
    function = store.function
    for call in function.calls:
        match call.func:
            case ast.Attribute(receiver, "add_done_callback") if call.args:
                if _is_the_task(function, receiver, store):
                    yield from _callable(klass, function, call.args[0])


def _is_the_task(function: Function, receiver: ast.expr, store: TaskDictStore) -> bool:
    # On the call itself, on the entry of the dict, or on a name that was assigned the task.
    if receiver is store.creation.call or store.container in function.roots(receiver):
        return True
    return isinstance(receiver, ast.Name) and any(
        store.creation.call is value or store.creation.call in ast.walk(value)
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


def removals(klass: Class | None, store: TaskDictStore) -> Iterator[TaskDictRemoval]:
    """Where the end of the task removes an entry by its key."""
    starts = [(body, "body") for body in bodies_of(klass, store.creation)]
    starts += [(callback, "callback") for callback in end_callbacks(klass, store)]
    for start, where in starts:
        for function, _ in runs(start, klass):
            for each in operations(function):
                if each.kind == "take" and each.root == store.container:
                    if _by_key(function, each.node):
                        yield TaskDictRemoval(each.node, function, where)


def _by_key(function: Function, node: ast.AST) -> bool:
    match node:
        case ast.Delete():
            return True
        # `popitem()` and `pop()` of a list remove whichever comes: those have no key.
        case ast.Call(ast.Attribute(_, "pop"), [_, *_]):
            return True
    return False


def key_lookups(function: Function, container: str) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Where an entry of the dict is looked up or removed, each with its key."""
    return iter(_key_lookups(function).get(container, ()))


@remembered
def _key_lookups(function: Function) -> dict[str, list[tuple[ast.expr, ast.expr]]]:
    found: dict[str, list[tuple[ast.expr, ast.expr]]] = {}
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
        found.setdefault(function.name_of(value), []).append((node, key))
    return found


def compares_identity(function: Function) -> bool:
    """Whether a function compares two variables: `d.get(key) is task`, or a generation count."""
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


def is_unique_key(store: TaskDictStore) -> bool:
    """Whether the key is new for each task: then the task has no successor."""
    return any(
        # An awaited key comes from outside (a message, a row), and is taken to be new each time.
        isinstance(each, ast.Await) or _is_fresh(store.function, each)
        for each in ast.walk(store.key)
    )


def _is_fresh(function: Function, node: ast.AST) -> bool:
    match node:
        case ast.Call(func):
            return function.last_name_of(func) in _FRESH
        case ast.Name(name):
            return not _may_repeat(function, name)
        # `self._tasks[self._count] = ...`, where `self._count += 1` is in the same function.
        case ast.Attribute(_, name):
            return _is_counted(function, node) or (
                _NUMBERED.fullmatch(name) is not None and _is_received(function, _root(node))
            )
    return False


def _is_received(function: Function, name: str, seen: frozenset[str] = frozenset()) -> bool:
    """Whether a variable holds what an `await` has returned in this function, or a part of that."""
    return name not in seen and any(
        contains([value], ast.Await) or _is_received(function, _root(value), seen | {name})
        for value in function.assigned.get(name, ())
    )


def _root(node: ast.expr) -> str:
    return dotted(node).partition(".")[0]


def _may_repeat(function: Function, name: str) -> bool:
    values = function.assigned.get(name, ())
    for value in values:
        for each in ast.walk(value):
            if isinstance(each, ast.Call):
                called = function.last_name_of(each.func)
                # `self._next_id()`, `new_key()`: by the name, since the body is often elsewhere.
                if called in _FRESH or "next" in called or "new" in called or "uuid" in called:
                    return False
            if isinstance(each, ast.Attribute) and _is_counted(function, each):
                return False
    return True


def _is_counted(function: Function, attribute: ast.Attribute) -> bool:
    """Whether the function increments an attribute: `self._next_id += 1`."""
    name = function.name_of(attribute)
    return any(
        isinstance(each, ast.AugAssign) and function.name_of(each.target) == name
        for each in function.nodes
    )


def is_decided_by(function: Function, store: TaskDictStore, klass: Class | None) -> bool:
    """Whether a test of the dict decides if the store is reached: the store is in a branch of the
    test, or after a test whose branch leaves."""
    # `if key in self._tasks: return` before the store, or `if key not in self._tasks:` around it:
    # then the store replaces no running task.
    around = {test for test, _ in tests_around(function, store.node)}
    for node in function.nodes:
        if isinstance(node, (ast.If, ast.While)):
            decides = node in around or _leaves(node.body)
            if decides and _tests_dict(function, node.test, store.container, klass):
                return True
    return False


def _leaves(body: list[ast.stmt]) -> bool:
    return isinstance(body[-1], (ast.Return, ast.Raise, ast.Continue, ast.Break))


def _tests_dict(function: Function, test: ast.expr, container: str, klass: Class | None) -> bool:
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
