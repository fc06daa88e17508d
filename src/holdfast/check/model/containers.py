"""What classes and modules keep in sets, dicts and lists: of which kind a container is, who puts
in and who takes out.

Only what is done to the container itself counts: `self._live.discard(x)`, never
`self._rooms[name].discard(x)`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from holdfast.check.model.function import Function
from holdfast.check.model.memo import remembered
from holdfast.check.model.module import Class, Module
from holdfast.check.model.tasks import resolve_function

__all__ = [
    "Change", "changes", "changes_of", "done_callbacks", "functions_with", "holds_weakly", "is_hashed",
    "is_hashed_value", "is_list", "is_weak_set", "shared_by",
]  # fmt: skip

How = Literal["put", "take", "empty"]

_TAKING = {"pop", "popitem", "remove", "discard", "difference_update"}
_PUTTING = {"add", "append", "appendleft", "insert", "setdefault", "update", "extend"}
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
    how: How
    node: ast.AST
    function: Function
    method: str = ""
    """The method that changes it, if it is one."""


@remembered
def changes(function: Function) -> tuple[Change, ...]:
    """The changes that a function makes, or hands to others as a bound method."""
    return tuple(
        Change(name, how, node, function, method)
        for node in function.nodes
        for name, how, method in _changed(function, node)
        if name
    )


def _changed(function: Function, node: ast.AST) -> Iterator[tuple[str, How, str]]:
    match node:
        case ast.Attribute(holder, method, ast.Load()):
            name = function.name_of(holder)
            if method in _TAKING:
                yield name, "take", method
            elif method in _PUTTING:
                yield name, "put", method
            elif method == "clear":
                yield name, "empty", method
        case ast.Assign(targets, value):
            for target in targets:
                if isinstance(target, ast.Subscript):
                    yield function.name_of(target.value), "put", ""
                elif isinstance(target, ast.Attribute) and _is_empty(value):
                    yield function.name_of(target), "empty", ""
        case ast.Delete(targets):
            for target in targets:
                if isinstance(target, ast.Subscript):
                    yield function.name_of(target.value), "take", "del"
        case ast.AugAssign(target, ast.Sub()):
            yield function.name_of(target), "take", "-="


def _is_empty(value: ast.expr) -> bool:
    match value:
        case ast.Dict(keys):
            return not keys
        case ast.List(elements) | ast.Set(elements):
            return not elements
        case ast.Call(ast.Name("set" | "dict" | "list" | "deque"), []):
            return True
    return False


def functions_with(function: Function, name: str) -> tuple[Function, ...]:
    """The functions that know the container by the same name."""
    if not name.startswith("self."):
        return tuple(function.module.functions)
    klass = function.klass
    if klass is None:
        return ()
    return tuple(each for part in klass.lineage for each in part.functions)


def changes_of(function: Function, name: str) -> Iterator[Change]:
    """All changes of the container that a function calls `name`."""
    for each in functions_with(function, name):
        yield from (change for change in changes(each) if change.name == name)


def is_hashed(function: Function, name: str) -> bool:
    """Whether a container is a set or a dict: those raise when they change under an iteration."""
    klass = function.klass
    if name.startswith("self."):
        return klass is not None and name in _hashed_attributes(klass)
    return name in _hashed_globals(function.module)


def is_list(function: Function, name: str) -> bool:
    """Whether a container is a list wherever it is given a value: one that skips, if it shrinks."""
    found = list(_values_of(function, name))
    return bool(found) and all(isinstance(each, (ast.List, ast.ListComp)) for each in found)


def is_weak_set(function: Function, name: str) -> bool:
    """Whether a container lets go of its elements by itself."""
    return _made_by(function, name) == {"weakref.WeakSet"}


def holds_weakly(function: Function, name: str) -> bool:
    """Whether what is put into a container is not kept alive by it."""
    return bool(_made_by(function, name)) and _made_by(function, name) <= _WEAK


def _made_by(function: Function, name: str) -> set[str]:
    """The full names of what makes a container; empty for a value that is no call."""
    names = function.module.names
    return {
        names.resolve(each.func) if isinstance(each, ast.Call) else ""
        for each in _values_of(function, name)
    }


def _values_of(function: Function, name: str) -> Iterator[ast.expr]:
    if not name.startswith("self."):
        is_own = name in function.local_names or name in function.parameters
        yield from () if is_own else function.module.body.assigned.get(name, ())
        return
    for each in functions_with(function, name):
        for target, value in _assignments(each):
            if value is not None and each.name_of(target) == name:
                yield value


def shared_by(function: Function, name: str) -> tuple[Function, str] | None:
    """The container behind `self.a.b`, where `a` is an object of the project that hands out its `b`:
    a function that knows it, and its name there."""
    match name.split("."):
        case ["self", holder, attribute]:
            klass = _class_of(function, f"self.{holder}")
            home = next(iter(klass.functions), None) if klass is not None else None
            if klass is not None and home is not None:
                return home, _handed_out(klass, attribute) or f"self.{attribute}"
    return None


def _class_of(function: Function, name: str) -> Class | None:
    """The class of an attribute, if the project has it and every value is an object of it."""
    found = [
        function.module.find_class(function.module.names.resolve(value.func))
        if isinstance(value, ast.Call)
        else None
        for value in _values_of(function, name)
        if not (isinstance(value, ast.Constant) and value.value is None)
    ]
    return found[0] if len(set(found)) == 1 else None


def _handed_out(klass: Class, name: str) -> str:
    """The attribute that a property returns as it is."""
    method = klass.all_methods.get(name)
    match getattr(method.node, "body", []) if method is not None else []:
        case [*_, ast.Return(ast.Attribute() as value)] if method is not None:
            return method.name_of(value)
    return ""


@remembered
def _hashed_attributes(klass: Class) -> frozenset[str]:
    """The attributes of a class and its bases that hold a set or a dict."""
    return frozenset(name for part in klass.lineage for name in _made_hashed(part))


def _made_hashed(klass: Class) -> Iterator[str]:
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


def _assignments(function: Function) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    for node in function.nodes:
        match node:
            case ast.Assign(targets, value):
                yield from ((target, value) for target in targets)
            case ast.AnnAssign(target, _, value):
                yield target, value


def is_hashed_value(module: Module, value: ast.expr | None) -> bool:
    """Whether an expression makes a set or a dict."""
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
    """The functions that are called when a task is done, each with the call that arranges it."""
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
