"""Fields of objects that hold a future: `request.future`, where `Request` is a record of the module.

One function creates the record and awaits its future; another one takes the record out of a queue or a
list and sets the future.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from handfast._check.model.syntax.ancestors import last_name
from handfast._check.model.syntax.function import Function
from handfast._check.model.syntax.module import Module
from handfast._check.model.tasks.handed_futures import SETTING, is_future


def field_settings(
    module: Module,
) -> Iterator[tuple[str, ast.Await | ast.Return, Function, ast.Call]]:
    """Each call that sets the future in a field of another object, with the field and where a function
    of the module awaits or returns such a future."""
    settings = list(_settings(module))
    if not settings:
        return
    fields = _fields(module) & {field for field, _, _ in settings}
    waits = {field: _wait(module, field) for field in fields}
    for field, function, call in settings:
        wait = waits.get(field)
        if wait is not None:
            yield field, wait, function, call


def _settings(module: Module) -> Iterator[tuple[str, Function, ast.Call]]:
    for function, call in module.calls():
        match call.func:
            case ast.Attribute(ast.Attribute(ast.Name(owner), field), method):
                if method in SETTING and owner != function.self_here:
                    yield field, function, call


def _fields(module: Module) -> set[str]:
    """The fields of the classes of a module that are declared as futures of asyncio, or that get one by
    their name: `Request(key, future=future)`."""
    found = {
        node.target.id
        for klass in module.classes.values()
        for node in klass.node.body
        if isinstance(node, ast.AnnAssign)
        and isinstance(node.target, ast.Name)
        and _is_declared(module, node.annotation)
    }
    for function, call in module.calls():
        if last_name(call.func)[:1].isupper():
            for each in call.keywords:
                if each.arg is not None and isinstance(each.value, ast.Name | ast.Call):
                    if is_future(function, each.value) or is_declared_future(function, each.value):
                        found.add(each.arg)
    return found


def is_declared_future(function: Function, node: ast.expr) -> bool:
    """Whether a name is a parameter, here or of a function around, that is declared as a future."""
    where: Function | None = function
    while isinstance(node, ast.Name) and where is not None and node.id not in where.parameters:
        where = where.outer
    given = where.node.args if where is not None else None
    return (
        isinstance(node, ast.Name)
        and given is not None
        and any(
            each.arg == node.id
            and each.annotation is not None
            and _is_declared(function.module, each.annotation)
            for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)
        )
    )


def _is_declared(module: Module, annotation: ast.expr) -> bool:
    """Whether an annotation names a future of asyncio, also in `Optional[...]` or as a string."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        try:
            annotation = ast.parse(annotation.value, mode="eval").body
        except SyntaxError:
            return False
    return any(
        isinstance(each, ast.Name | ast.Attribute)
        and module.names.resolve(each) in ("asyncio.Future", "asyncio.futures.Future")
        for each in ast.walk(annotation)
    )


def _wait(module: Module, field: str) -> ast.Await | ast.Return | None:
    """Where a function awaits or returns the field of an object, or a future that it puts into one."""
    for function in module.functions:
        passed = {
            each.value.id
            for call in function.calls
            for each in call.keywords
            if each.arg == field and isinstance(each.value, ast.Name)
        }
        for node in function.nodes:
            match node:
                case ast.Await(ast.Call(func, [value, *_])) if last_name(func) == "wait_for":
                    pass
                case ast.Await(value) | ast.Return(ast.expr() as value):
                    pass
                case _:
                    continue
            match value:
                case ast.Attribute(attr=name) if name == field:
                    return node
                case ast.Name(name) if name in passed or _is_created(function, name):
                    return node
    return None


def _is_created(function: Function, name: str) -> bool:
    values = function.assigned.get(name, ())
    return any(isinstance(each, ast.Call) and is_future(function, each) for each in values)
