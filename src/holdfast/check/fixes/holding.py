"""The set that holds tasks until they are done: one that is there already, or a new one.

A new one is an attribute where the class has an `__init__` that can surely make it before anybody
needs it, and else a name of the module, which is right everywhere.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from holdfast.check.finding import Edit, Place
from holdfast.check.fixes.inserting import (
    after,
    asyncio_in,
    before,
    is_hidden,
    newline,
    stands_alone,
    top_statement,
)
from holdfast.check.fixes.naming import free_among, mentioned
from holdfast.check.model.function import Function
from holdfast.check.model.memo import remembered
from holdfast.check.model.module import Class, Module

__all__ = ["Holder", "holder_for"]

_NAMES = ("_background_tasks", "_held_tasks", "_tasks_under_way")
# With one of these, an attribute more is not only an attribute more.
_CHOOSY = {
    "__slots__", "__setattr__", "__getattr__", "__getattribute__", "__new__", "__getstate__",
    "__setstate__", "__reduce__", "__reduce_ex__", "__copy__", "__deepcopy__",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Holder:
    """A set, as it is called where a task is made, and the edits that make it."""

    name: str
    edits: tuple[Edit, ...] = ()


def holder_for(function: Function) -> Holder | None:
    """What a task that a function makes can be held by."""
    return _attribute(function) or _of_module(function)


# --- an attribute --------------------------------------------------------------------------------


def _attribute(function: Function) -> Holder | None:
    klass, me = function.klass, _self_in(function)
    init = _init_of(klass) if klass is not None and me else None
    if klass is None or init is None:
        return None
    there = next(_holding_attributes(klass, init), None)
    if there is not None:
        return Holder(f"{me}.{there}")
    if not _can_be_extended(klass):
        return None
    name = free_among(_NAMES, _mentioned(klass.module))
    edit = _made_in(init, name) if name else None
    return None if edit is None else Holder(f"{me}.{name}", (edit,))


def _self_in(function: Function) -> str:
    """What the object is called here, unless an inner function calls something else so."""
    me, inner = function.self_here, function
    while inner.owner is None and inner.outer is not None:
        if me in inner.parameters or me in inner.local_names:
            return ""
        inner = inner.outer
    return "" if me in inner.local_names else me


def _init_of(klass: Class) -> Function | None:
    init = klass.methods.get("__init__")
    if init is None or init.node not in klass.node.body or not init.self_name:
        return None
    return init if isinstance(init.node, ast.FunctionDef) else None


def _can_be_extended(klass: Class) -> bool:
    """Whether every object of the class goes through its `__init__`, and takes an attribute more."""
    if klass.node.decorator_list or klass.node.keywords or not klass.is_complete:
        return False
    if any(_defined(each.node) & _CHOOSY for each in klass.lineage):
        return False
    heirs = (each for each in klass.module.classes.values() if klass in each.lineage[1:])
    return all("__init__" not in each.methods or _asks_above(each) for each in heirs)


def _defined(node: ast.ClassDef) -> set[str]:
    names = {each.name for each in node.body if isinstance(each, ast.FunctionDef)}
    for each in node.body:
        targets = each.targets if isinstance(each, ast.Assign) else [getattr(each, "target", None)]
        names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return names


def _asks_above(klass: Class) -> bool:
    return any(
        isinstance(call.func, ast.Attribute) and call.func.attr == "__init__"
        for call in klass.methods["__init__"].calls
    )


def _made_in(init: Function, name: str) -> Edit | None:
    node, module = init.node, init.module
    assert isinstance(node, ast.FunctionDef)
    body = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
    beside = body[0] if body else node.body[0]
    if node.decorator_list or not stands_alone(module, beside):
        return None
    line = f"{init.self_name}.{name}{_type(module, node.lineno)} = set()"
    return before(module, beside, line) if body else after(module, beside, line)


def _type(module: Module, line: int) -> str:
    """What a type checker wants to know, in a file that tells it such things."""
    asyncio = asyncio_in(module, above=line) if _is_typed(module) else ""
    return f": set[{asyncio}.Task[object]]" if asyncio else ""


@remembered
def _is_typed(module: Module) -> bool:
    return any(
        getattr(function.node, "returns", None) is not None
        or any(each.annotation is not None for each in function.node.args.args)
        for function in module.functions
    )


def _holding_attributes(klass: Class, init: Function) -> Iterator[str]:
    """The attributes that hold tasks until they are done, by all that the class does with them."""
    given = [
        (attribute, value)
        for function in klass.functions
        for stmt in function.nodes
        for attribute, value in _assigned(function, stmt)
    ]
    made = {attribute for stmt in init.body for attribute, _ in _assigned(init, stmt)}
    for function in klass.functions:
        for call in function.calls:
            name = _discarded_from(function, call).removeprefix("self.")
            values = [value for attribute, value in given if attribute == name]
            if name in made and all(map(_is_new_set, values)):
                yield name


def _assigned(function: Function, stmt: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    match stmt:
        case ast.Assign(targets, value):
            yield from ((_own(function, each), value) for each in targets)
        case ast.AnnAssign(target, _, value) if value is not None:
            yield _own(function, target), value
        case ast.AugAssign(target, _, value):
            yield _own(function, target), value


def _own(function: Function, target: ast.expr) -> str:
    match target:
        case ast.Attribute(ast.Name(me), attribute) if me == function.self_here:
            return attribute
    return ""


def _discarded_from(function: Function, call: ast.Call) -> str:
    """The set that a task leaves when it is done: `task.add_done_callback(self._tasks.discard)`."""
    match call:
        case ast.Call(ast.Attribute(_, "add_done_callback"), [ast.Attribute(held, "discard")]):
            return function.name_of(held)
    return ""


def _is_new_set(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and ast.unparse(value) == "set()"


# --- a name of the module ------------------------------------------------------------------------


def _of_module(function: Function) -> Holder | None:
    module = function.module
    for name in _holding_names(module):
        if not is_hidden(function, name):
            return Holder(name)
    top = _place_for_new(module, function.node)
    name = free_among(_NAMES, _mentioned(module))
    if not name or top.col_offset or not stands_alone(module, top):
        return None
    return Holder(name, (_above_definitions(module, top, name),))


def _place_for_new(module: Module, node: ast.AST) -> ast.stmt:
    """One place for all tasks of the module, so that two fixes never make two sets."""
    own = top_statement(module, node)
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return next(each for each in module.source.tree.body if each is own or isinstance(each, kinds))


def _above_definitions(module: Module, stmt: ast.stmt, name: str) -> Edit:
    edit = before(module, stmt, "")
    line = edit.place.line
    while line > 2 and module.source.line(line - 1).startswith("#"):
        line -= 1  # what is said about the definition stays with it
    place = Place(module.path, line, 1, line, 1)
    made = f"{name}{_type(module, line)} = set()"
    return Edit(place, made + newline(module) * 3)


def _holding_names(module: Module) -> Iterator[str]:
    made = {
        target.id
        for stmt in module.source.tree.body
        for target, value in _top_assigned(stmt)
        if isinstance(target, ast.Name) and _is_new_set(value)
    }
    for function, call in module.calls():
        name = _discarded_from(function, call)
        if name in made and len(module.body.assigned.get(name, ())) == 1:
            yield name


def _top_assigned(stmt: ast.stmt) -> Iterator[tuple[ast.expr, ast.expr]]:
    match stmt:
        case ast.Assign([target], value):
            yield target, value
        case ast.AnnAssign(target, _, value) if value is not None:
            yield target, value


@remembered
def _mentioned(module: Module) -> Counter[str]:
    return mentioned(module.source.tree)
