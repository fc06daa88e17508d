"""Containers of classes and modules: their type, and what adds to them and removes from them.

Unlike operations, changes are not followed through local names or calls, and only those of the
container itself count: `self._tasks.discard(x)`, not `self._by_name[name].discard(x)`. HF411 and HF604
need to know *how* a set is changed (`remove` raises, `discard` does not), and a bound method given as
a callback (`add_done_callback(self._tasks.discard)`) is a change, too, which no operation is.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from handfast._check.model.syntax.ancestors import assignments
from handfast._check.model.syntax.call_graph import resolve_function
from handfast._check.model.syntax.function import Function
from handfast._check.model.syntax.memo import remembered
from handfast._check.model.syntax.module import Class, Module
from handfast._check.model.vocabulary import PUTTING, TAKING

ChangeKind = Literal["put", "take", "clear"]

_HASHED = {
    "set", "dict", "collections.defaultdict", "collections.OrderedDict", "weakref.WeakSet",
    "weakref.WeakValueDictionary", "weakref.WeakKeyDictionary", "collections.Counter",
}  # fmt: skip

_WEAK = {"weakref.WeakSet", "weakref.WeakValueDictionary"}


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """One change of a container."""

    name: str
    """`self._live`, or the name of a module's variable."""
    kind: ChangeKind
    node: ast.AST
    function: Function
    method: str = ""
    """The method that changes it; empty for an assignment."""


@remembered
def changes(function: Function) -> tuple[Change, ...]:
    """The changes in a function, including bound methods that it passes on."""
    return tuple(
        Change(name, kind, node, function, method)
        for node in function.nodes
        for name, kind, method in _changed(function, node)
        if name
    )


def _changed(function: Function, node: ast.AST) -> Iterator[tuple[str, ChangeKind, str]]:
    match node:
        # The attribute and not the call: `add_done_callback(self._tasks.discard)` has no call of it.
        case ast.Attribute(holder, method, ast.Load()):
            name = function.name_of(holder)
            if method in TAKING:
                yield name, "take", method
            elif method in PUTTING:
                yield name, "put", method
            elif method == "clear":
                yield name, "clear", method
        case ast.Assign(targets, value):
            for target in targets:
                if isinstance(target, ast.Subscript):
                    yield function.name_of(target.value), "put", ""
                elif isinstance(target, ast.Attribute) and is_empty(value):
                    yield function.name_of(target), "clear", ""
        case ast.Delete(targets):
            for target in targets:
                if isinstance(target, ast.Subscript):
                    yield function.name_of(target.value), "take", "del"
        case ast.AugAssign(target, ast.Sub()):
            yield function.name_of(target), "take", "-="


def is_empty(value: ast.expr) -> bool:
    """Whether an expression creates an empty container."""
    match value:
        case ast.Dict([]) | ast.List([]):
            return True
        case ast.Call(ast.Name("set" | "dict" | "list" | "deque"), []):
            return True
    return False


def functions_with(function: Function, name: str) -> tuple[Function, ...]:
    """The functions in which the name is the same container."""
    if not name.startswith("self."):
        return tuple(function.module.functions)
    klass = function.klass
    if klass is None:
        return ()
    return tuple(each for part in klass.lineage for each in part.functions)


def changes_of(function: Function, name: str) -> Iterator[Change]:
    """All changes of the container that is called `name` in a function."""
    for each in functions_with(function, name):
        yield from (change for change in changes(each) if change.name == name)


def is_hashed(function: Function, name: str) -> bool:
    """Whether a container is a set or a dict: those raise if their size changes in an iteration."""
    klass = function.klass
    if name.startswith("self."):
        return klass is not None and name in _hashed_attributes(klass)
    return name in _hashed_globals(function.module)


def is_list(function: Function, name: str) -> bool:
    """Whether every assignment makes a container a list: an iteration skips if that shrinks."""
    found = list(_values_of(function, name))
    return bool(found) and all(isinstance(each, (ast.List, ast.ListComp)) for each in found)


def is_weak_set(function: Function, name: str) -> bool:
    """Whether a container is a `WeakSet`."""
    return _created_by(function, name) == {"weakref.WeakSet"}


def holds_weakly(function: Function, name: str) -> bool:
    """Whether a container does not keep its elements alive."""
    return bool(_created_by(function, name)) and _created_by(function, name) <= _WEAK


def _created_by(function: Function, name: str) -> set[str]:
    """The full names of the calls that create a container; empty for a value that is no call."""
    names = function.module.names
    return {
        names.resolve(each.func) if isinstance(each, ast.Call) else ""
        for each in _values_of(function, name)
    }


def _values_of(function: Function, name: str) -> Iterator[ast.expr]:
    # A local container is not shared with other functions, unless it is passed to them.
    if not name.startswith("self."):
        is_own = name in function.local_names or name in function.parameters
        yield from () if is_own else function.module.body.assigned.get(name, ())
        return
    for each in functions_with(function, name):
        yield from _assigned_by_name(each).get(name, ())


@remembered
def _assigned_by_name(function: Function) -> dict[str, list[ast.expr]]:
    found: dict[str, list[ast.expr]] = {}
    for target, value in _assignments(function):
        found.setdefault(function.name_of(target), []).append(value)
    return found


def shared_by(function: Function, name: str) -> tuple[Function, str] | None:
    """The container behind `self.a.b`, where `a` is an object of a class of the project: a function of
    that class, and the name of the container there."""
    match name.split("."):
        case ["self", holder, attribute]:
            klass = _class_of(function, f"self.{holder}")
            home = next(iter(klass.functions), None) if klass is not None else None
            if klass is not None and home is not None:
                return home, _returned_attribute(klass, attribute) or f"self.{attribute}"
    return None


def _class_of(function: Function, name: str) -> Class | None:
    """The class of an attribute, if the project has it and every assigned value is an object of it."""
    found = [
        function.module.find_class(function.module.names.resolve(value.func))
        if isinstance(value, ast.Call)
        else None
        for value in _values_of(function, name)
        if not (isinstance(value, ast.Constant) and value.value is None)  # None until it is created
    ]
    return found[0] if len(set(found)) == 1 else None


def _returned_attribute(klass: Class, name: str) -> str:
    """The attribute that a property returns, without a copy."""
    method = klass.all_methods.get(name)
    match getattr(method.node, "body", []) if method is not None else []:
        case [*_, ast.Return(ast.Attribute() as value)] if method is not None:
            return method.name_of(value)
    return ""


@remembered
def _hashed_attributes(klass: Class) -> frozenset[str]:
    """The attributes of a class and its bases that hold a set or a dict."""
    return frozenset(name for part in klass.lineage for name in _assigned_hashed(part))


def _assigned_hashed(klass: Class) -> Iterator[str]:
    for stmt in klass.node.body:
        match stmt:
            case ast.AnnAssign(ast.Name(name), _, value) | ast.Assign([ast.Name(name)], value):
                if is_hashed_value(klass.module, value):
                    yield f"self.{name}"
    for function in klass.functions:
        for target, value in _assignments(function):
            if is_hashed_value(klass.module, value):
                yield function.name_of(target)


@remembered
def _hashed_globals(module: Module) -> frozenset[str]:
    return frozenset(
        name
        for name, values in module.body.assigned.items()
        if any(is_hashed_value(module, value) for value in values)
    )


def _assignments(function: Function) -> Iterator[tuple[ast.expr, ast.expr]]:
    for node in function.nodes:
        if not isinstance(node, ast.NamedExpr):
            yield from assignments(node)


def is_hashed_value(module: Module, value: ast.expr | None) -> bool:
    """Whether an expression creates a set or a dict."""
    match value:
        case ast.Dict() | ast.Set() | ast.DictComp() | ast.SetComp():
            return True
        case ast.Call(ast.Name("field") | ast.Attribute(_, "field"), _, keywords):
            return any(
                each.arg == "default_factory" and module.names.resolve(each.value) in _HASHED
                for each in keywords
            )
        case ast.Call(ast.Subscript(name)) | ast.Call(name):
            return module.names.resolve(name) in _HASHED
    return False


@remembered
def done_callbacks(module: Module) -> dict[Function, ast.Call]:
    """The done callbacks of a module, each with its call of `add_done_callback`."""
    found: dict[Function, ast.Call] = {}
    for function, call in module.calls():
        match call:
            case ast.Call(ast.Attribute(_, "add_done_callback"), [given, *_]):
                if isinstance(given, ast.Lambda):
                    found.setdefault(module.function_of(given), call)
                else:
                    for target in resolve_function(function, given):
                        found.setdefault(target, call)
    return found


# --- passed to several functions: the changes of one affect the others ---------------------------


def removals_from_argument(function: Function, parameter: str) -> Iterator[Change]:
    """Where another function of the module that is passed the same set or dict removes from it."""
    for caller in function.module.functions:
        for name in _arguments_for(caller, function, parameter):
            # Only if it is certainly a set or a dict: a list does not raise.
            values = caller.assigned.get(name, [])
            if values and all(is_hashed_value(caller.module, each) for each in values):
                yield from _removed_by_others(caller, function, name)


def _arguments_for(caller: Function, function: Function, parameter: str) -> Iterator[str]:
    """The local names that a caller passes for a parameter."""
    for call in caller.calls:
        if function in resolve_function(caller, call.func):
            for each, given in function.arguments(call):
                if each == parameter and isinstance(given, ast.Name):
                    yield given.id


def _removed_by_others(caller: Function, function: Function, name: str) -> Iterator[Change]:
    for call in caller.calls:
        for other in resolve_function(caller, call.func):
            theirs = {
                parameter
                for parameter, given in other.arguments(call)
                if isinstance(given, ast.Name) and given.id == name
            }
            if theirs and other is not function:
                for change in changes(other):
                    if change.name in theirs and change.kind == "take":
                        yield change
