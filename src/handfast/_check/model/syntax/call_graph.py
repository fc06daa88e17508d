"""The call graph: which functions an expression names, and which functions run as part of another.

Resolution is by name and only within what is certain: `self.m` in the class of `self`, a name in the
scopes around it, an imported function of the project. An expression that could be anything resolves
to nothing, and a rule then has no evidence.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator

from handfast._check.model.syntax.ancestors import ancestors, is_in_finally
from handfast._check.model.syntax.function import Function
from handfast._check.model.syntax.handlers import catches_cancellation
from handfast._check.model.syntax.memo import remembered
from handfast._check.model.syntax.module import Class
from handfast._check.model.vocabulary import WAITING

# `await wait_for(self.stop(), 1)` runs `stop` as part of the caller, like `await self.stop()`.
_WRAPPERS = WAITING | {"timeout"}


# --- names to functions --------------------------------------------------------------------------


def resolve_function(function: Function, node: ast.expr) -> Iterator[Function]:
    """The functions of this module that an expression names."""
    match node:
        case ast.Attribute() if attr := function.own_attribute(node):
            method = function.klass.method(attr) if function.klass is not None else None
            if method is not None:
                yield method
        case ast.Name(name):
            # As Python does it, except that a local variable of the same name is ignored.
            inner = next((each for each in _visible(function) if each.name == name), None)
            found = inner or function.module.find_function(name)
            if found is not None:
                yield found
        case ast.Call(func, arguments) if function.name_of(func).endswith("partial") and arguments:
            yield from resolve_function(function, arguments[0])


def resolve_anywhere(function: Function, node: ast.expr) -> Iterator[Function]:
    """The same, and the imported functions of the project."""
    found = list(resolve_function(function, node))
    project = function.module.project
    # Other files are read only if this one has no such function, because parsing takes time.
    if not found and project is not None and isinstance(node, (ast.Name, ast.Attribute)):
        elsewhere = project.find_function(function.name_of(node))
        found = [elsewhere] if elsewhere is not None else []
    yield from found


def _visible(function: Function) -> Iterator[Function]:
    """The functions that are defined in this one or around it."""
    outer: Function | None = function
    while outer is not None:
        yield from outer.inner
        outer = outer.outer


def resolve_in(klass: Class | None, function: Function, node: ast.expr) -> Iterator[Function]:
    """The functions that an expression names, where `self` is an object of `klass`.

    A method inherited from a base then finds the overriding methods of `klass`, as at run time.
    """
    if klass is not None and isinstance(node, ast.Attribute):
        method = _method(klass, function, node)
        if method is not None:
            yield method
            return
        match node.value:
            # All bases that define it, although at run time only the next one is called, which then
            # calls its own `super()`.
            case ast.Call(ast.Name("super")):
                yield from _inherited(klass, function, node.attr)
                return
    yield from resolve_function(function, node)


def _method(klass: Class, function: Function, node: ast.Attribute) -> Function | None:
    return klass.method(node.attr) if function.own_attribute(node) else None


def _inherited(klass: Class, function: Function, name: str) -> Iterator[Function]:
    lineage = klass.lineage
    if function.klass in lineage:
        later = lineage[lineage.index(function.klass) + 1 :]
        yield from (each.methods[name] for each in later if name in each.methods)


# --- callers and callees -------------------------------------------------------------------------


@remembered
def members(klass: Class) -> tuple[Function, ...]:
    """The functions in whose bodies `self` may be an object of this class: no overridden ones."""
    return tuple(
        function
        for each in klass.lineage
        for function in each.functions
        if klass.method(_method_around(function).name) is _method_around(function)
    )


def _method_around(function: Function) -> Function:
    while function.owner is None and function.outer is not None:
        function = function.outer
    return function


@remembered
def callees(function: Function, klass: Class | None) -> tuple[tuple[ast.AST, Function], ...]:
    """The functions that run as a part of this one, each with the call (or the property)."""
    return tuple(_callees(function, klass))


def _callees(function: Function, klass: Class | None) -> Iterator[tuple[ast.AST, Function]]:
    for node in function.nodes:
        if isinstance(node, ast.Call):
            for callee in resolve_in(klass, function, node.func):
                # A coroutine that is not awaited here runs later, in a task of its own or not at all.
                if callee is not function and (not callee.is_async or _is_awaited(function, node)):
                    yield node, callee
        elif isinstance(node, ast.Attribute) and klass is not None:
            method = _method(klass, function, node)
            if method is not None and _is_property(method) and method is not function:
                yield node, method


def _is_property(method: Function) -> bool:
    if isinstance(method.node, ast.Lambda):
        return False
    names = (method.module.names.resolve(each) for each in method.node.decorator_list)
    return any(name.rpartition(".")[2] in ("property", "cached_property") for name in names)


def _is_awaited(function: Function, call: ast.Call) -> bool:
    """Whether the coroutine of a call is awaited where it is created, directly or in `wait_for`."""
    # `await gather(*[self._end(t) for t in ts])` is not seen through: a comprehension is no container.
    for up in ancestors(function, call):
        if isinstance(up, ast.Call):
            if function.last_name_of(up.func) not in _WRAPPERS:
                return False
        elif not isinstance(up, (ast.Starred, ast.List, ast.Tuple, ast.IfExp)):
            return isinstance(up, ast.Await)
    return False


def callers(klass: Class | None, function: Function) -> Iterator[tuple[Function, ast.AST]]:
    """The functions of a class (or of the module) that run this one, each with the call."""
    for each in members(klass) if klass is not None else function.module.functions:
        for node, callee in callees(each, klass):
            if callee is function:
                yield each, node


# --- everything that runs ------------------------------------------------------------------------


def runs(function: Function, klass: Class | None) -> Iterator[tuple[Function, bool]]:
    """A function and all that run as a part of it, each with whether only cleanup code leads there:
    a `finally`, or a handler that catches a cancellation."""
    seen: dict[Function, bool] = {}
    todo = [(function, False)]
    while todo:
        each, in_cleanup = todo.pop()
        # A function that was reached by cleanup code is visited again if other code reaches it too.
        if each in seen and seen[each] <= in_cleanup:
            continue
        seen[each] = in_cleanup
        for node, callee in callees(each, klass):
            todo.append((callee, in_cleanup or is_cleanup(each, node)))
    yield from seen.items()


def is_cleanup(function: Function, node: ast.AST) -> bool:
    """Whether a node is in a `finally`, or in a handler that catches a cancellation."""
    return is_in_finally(function, node) or any(
        isinstance(up, ast.ExceptHandler) and catches_cancellation(function, up.type)
        for up in ancestors(function, node)
    )


def reached_from(function: Function) -> list[Function]:
    """A function and all that it calls, awaited or not, as far as resolution goes."""
    return closure(function, _called_by)


def _called_by(function: Function) -> Iterator[Function]:
    for call in function.calls:
        yield from resolve_function(function, call.func)


@remembered
def awaited_from(function: Function) -> list[Function]:
    """A function and those that run inside it because it awaits them, the nearest first."""
    return closure(function, _awaited_by)


def _awaited_by(function: Function) -> Iterator[Function]:
    for node in function.nodes:
        if isinstance(node, ast.Await) and isinstance(node.value, ast.Call):
            yield from resolve_function(function, node.value.func)


def closure(
    start: Function, successors: Callable[[Function], Iterable[Function]]
) -> list[Function]:
    """A function and all that `successors` leads to from it, breadth first."""
    found = dict.fromkeys([start])
    todo = [start]
    for each in todo:  # it grows during the loop
        new = dict.fromkeys(after for after in successors(each) if after not in found)
        found |= new
        todo += new
    return todo
