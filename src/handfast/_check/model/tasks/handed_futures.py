"""Futures that a function creates, awaits or returns, and lets other code set.

The other code is a function inside it, the methods of an object that gets the future, or a callback
that gets it as an argument. A cancel of the waiter cancels the future, and the other code does not
notice.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from handfast._check.model.syntax.ancestors import (
    TRY,
    ancestors,
    assignments,
    last_name,
)
from handfast._check.model.syntax.call_graph import resolve_function
from handfast._check.model.syntax.function import Function, names_in
from handfast._check.model.syntax.module import Class, Module

SETTING = frozenset({"set_result", "set_exception"})
# `Future` may be named by a module of the project, but that of `concurrent.futures` is another one.
_FUTURE = re.compile(r"(?!concurrent\.)(?:.*\.)?(?:create_future|Future)\(\)")
_CREATING = {"create_future", "Future"}
# The loop calls these itself: an error there is logged, and a timer mostly ends with the wait.
_BY_THE_LOOP = {"call_soon", "call_later", "call_at", "add_signal_handler"}


class HandedFuture(NamedTuple):
    """A future in a local name, and a call by which other code sets its result."""

    creator: Function
    name: str
    wait: ast.Await | ast.Return
    setter: Function
    call: ast.Call


def is_future(function: Function, node: ast.expr) -> bool:
    """Whether an expression may be a new future of asyncio."""
    match node:
        case ast.Call(ast.Subscript(kind)):  # `asyncio.Future[str]()`
            return _FUTURE.fullmatch(f"{function.name_of(kind)}()") is not None
        case ast.Name() | ast.Call():
            pass
        case _:
            return False
    return any(_FUTURE.fullmatch(root) for root in function.roots(node))


def local_wait(function: Function, name: str) -> ast.Await | None:
    """Where a function awaits a local name, unshielded."""
    for node in function.nodes:
        if isinstance(node, ast.Await):
            match node.value:
                case ast.Name(waited) if waited == name:
                    return node
                case ast.Call(func, [ast.Name(waited), *_]):
                    if waited == name and last_name(func).strip("_") == "wait_for":
                        return node
    return None


def handed_futures(module: Module) -> Iterator[HandedFuture]:
    """The futures of a module that other code sets."""
    for function in module.functions:
        for name in _created(function):
            wait = local_wait(function, name) or _returned(function, name)
            if wait is not None:
                for setter, call in _settings(function, name):
                    yield HandedFuture(function, name, wait, setter, call)


def is_withdrawn(handed: HandedFuture) -> bool:
    """Whether something runs between the cancel of the wait and its caller, which may take the future
    away from the other code."""
    if handed.setter.name == "connection_lost":
        return False  # the loop calls it after the `close()` of the transport
    known = {handed.name, *(inner.name for inner in handed.creator.inner)}
    return any(
        isinstance(up, TRY)
        or (
            isinstance(up, ast.With | ast.AsyncWith)
            and any(not known.isdisjoint(names_in(each.context_expr)) for each in up.items)
        )
        for up in ancestors(handed.creator, handed.wait)
    )


def _created(function: Function) -> Iterator[str]:
    """The local names to which a function assigns nothing but new futures."""
    for name, values in function.assigned.items():
        if all(
            isinstance(each, ast.Call)
            and last_name(each.func) in _CREATING
            and is_future(function, each)
            for each in values
        ):
            yield name


def _returned(function: Function, name: str) -> ast.Return | None:
    for node in function.nodes:
        match node:
            case ast.Return(ast.Name(returned)) if returned == name:
                return node
    return None


def _settings(function: Function, name: str) -> Iterator[tuple[Function, ast.Call]]:
    for inner in function.all_inner:
        if _is_callback(function, inner) and _sees(inner, function, name):
            yield from ((inner, call) for call in _sets(inner, name))
    for where in (function, *function.all_inner):
        for call in where.calls:
            at = next((i for i, each in enumerate(call.args) if _is_name(each, name)), None)
            given = any(_is_name(each.value, name) for each in call.keywords)
            if at is not None or given:
                yield from _settings_of_object(where, call, name)
            if at is not None and last_name(call.func) not in _BY_THE_LOOP:
                yield from _settings_of_callback(where, call, at)


def _sees(inner: Function, outer: Function, name: str) -> bool:
    """Whether a name means the same in a function as in the one around it."""
    function: Function | None = inner
    while function is not None and function is not outer:
        if name in function.parameters or name in function.local_names:
            return False
        function = function.outer
    return True


def _is_callback(function: Function, inner: Function) -> bool:
    """Whether a function is given away, and not only called right there or by the loop."""
    given_to = [
        call
        for where in (function, *function.all_inner)
        for call in where.calls
        for each in (*call.args, *(keyword.value for keyword in call.keywords))
        if each is inner.node or _is_name(each, inner.name)
    ]
    stored = any(
        value is inner.node or _is_name(value, inner.name)
        for node in function.nodes
        for _, value in assignments(node)
    )
    return stored or any(last_name(call.func) not in _BY_THE_LOOP for call in given_to)


def _settings_of_object(
    function: Function, call: ast.Call, name: str
) -> Iterator[tuple[Function, ast.Call]]:
    """Where the methods of an object set the future that its constructor gets."""
    klass = function.module.classes.get(function.name_of(call.func))
    init = klass.methods.get("__init__") if klass is not None else None
    if klass is None or init is None:
        return
    parameters = {each for each, value in init.arguments(call) if _is_name(value, name)}
    for attribute in _kept(klass, init, parameters):
        for method in klass.functions:
            if method is not init:
                yield from ((method, each) for each in _sets(method, f"self.{attribute}"))


def _kept(klass: Class, init: Function, parameters: set[str]) -> Iterator[str]:
    for node in init.nodes:
        for target, value in assignments(node):
            if isinstance(value, ast.Name) and value.id in parameters:
                yield init.own_attribute(target)


def _settings_of_callback(
    function: Function, call: ast.Call, at: int
) -> Iterator[tuple[Function, ast.Call]]:
    """Where `received` sets the future of `add_reader(fd, self.received, future)`."""
    for before in range(at):
        for callback in resolve_function(function, call.args[before]):
            names = [each for each in callback.parameters if each != callback.self_name]
            if at - before - 1 < len(names):
                name = names[at - before - 1]
                yield from ((callback, each) for each in _sets(callback, name))


def _sets(function: Function, name: str) -> Iterator[ast.Call]:
    for call in function.calls:
        match call:
            # Without a value it is used as an event, which is mostly set once, at the start or the end.
            case ast.Call(ast.Attribute(_, "set_result"), [ast.Constant(None)]):
                pass
            case ast.Call(ast.Attribute(future, method)) if method in SETTING:
                if function.name_of(future) == name:
                    yield call
            # From a thread. One that the function awaits itself is found as such.
            case ast.Call(
                ast.Attribute(_, "call_soon_threadsafe"), [ast.Attribute(future, method), *_]
            ) if method in SETTING:
                if function.name_of(future) == name and name in function.parameters:
                    yield call


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name
