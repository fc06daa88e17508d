"""What functions do to the things that they hold: cancel, join, put in, take out, read, close.

A deed names the root of what it is done to (`self._task`, a parameter, a local name from outside);
the elements of a container count as the container. What a function does to its parameters, it does
to what it is given: `await self._end(self._task)` cancels and joins if `_end` does.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from holdfast.check.model.flow import Node
from holdfast.check.model.function import Function
from holdfast.check.model.memo import remembered
from holdfast.check.model.tasks import resolve_function

__all__ = ["Deed", "Kind", "deeds", "done_to_parameters", "joined"]

Kind = Literal["cancel", "join", "put", "take", "clear", "read", "use", "close", "signal"]
"""`take`: one element out of a container. `clear`: the attribute is set to None, deleted, or the
container emptied. `use`: an attribute or a method of it is asked for, so None would fail there."""

_TAKING = {"pop", "popitem", "remove", "discard", "popleft"}
_CLOSING = {"close", "aclose", "kill", "terminate", "shutdown", "stop", "disconnect", "release"}
_PUTTING = {"add", "append", "appendleft", "insert", "update", "extend", "setdefault", "put_nowait"}
_RUNNERS = {"run_until_complete", "run"}
# A function that hands what it is given on to another, and that to a third: no further.
_HANDED_ON = 3


@dataclass(frozen=True, slots=True, eq=False)
class Deed:
    """One thing that a function does to something that it holds."""

    kind: Kind
    root: str
    node: ast.AST
    function: Function

    @property
    def step(self) -> Node | None:
        """Where it stands in the flow of its function."""
        return self.function.flow.of(self.node)


@remembered
def deeds(function: Function) -> tuple[Deed, ...]:
    """All that a function does, in source order."""
    return tuple(_deeds(function, _HANDED_ON))


def done_to_parameters(function: Function) -> dict[str, frozenset[Kind]]:
    """The parameters that a function cancels or joins, by itself or by what it hands them to."""
    return _to_parameters(function, _HANDED_ON)


def _to_parameters(function: Function, depth: int) -> dict[str, frozenset[Kind]]:
    key = (_to_parameters, depth)
    if key not in function.memo:
        function.memo[key] = _find_to_parameters(function, depth)
    found: dict[str, frozenset[Kind]] = function.memo[key]
    return found


def _find_to_parameters(function: Function, depth: int) -> dict[str, frozenset[Kind]]:
    found: dict[str, set[Kind]] = {}
    for deed in _deeds(function, depth):
        if deed.kind in ("cancel", "join") and deed.root in function.parameters:
            found.setdefault(deed.root, set()).add(deed.kind)
    return {root: frozenset(kinds) for root, kinds in found.items()}


def _deeds(function: Function, depth: int) -> Iterator[Deed]:
    for node in function.nodes:
        if type(node) not in _DOING:
            continue
        for kind, root in _done_by(function, node):
            yield Deed(kind, root, node, function)
        if isinstance(node, ast.Call):
            for kind, root in _done_by_callee(function, node, depth):
                yield Deed(kind, root, node, function)


def _done_by_callee(function: Function, call: ast.Call, depth: int) -> Iterator[tuple[Kind, str]]:
    """What is done to what a call is given, by the function that it calls."""
    if not call.args and not call.keywords:
        return
    known = [each for each in _callees(function, call) if each is not function]
    for callee in known if depth else ():
        done = _to_parameters(callee, depth - 1)
        for parameter, argument in _arguments(callee, call):
            for root in sorted(function.roots(argument)) if parameter in done else ():
                # A coroutine function that nobody awaits here may be awaited elsewhere.
                for kind in sorted(done[parameter]):
                    yield kind, root
    if not known and "cancel" in function.name_of(call.func).rpartition(".")[2].lower():
        given = [*call.args, *(keyword.value for keyword in call.keywords)]
        for each in given:
            yield from _each("cancel", sorted(function.roots(each)))


def _callees(function: Function, call: ast.Call) -> list[Function]:
    found = list(resolve_function(function, call.func))
    if not found and function.module.project is not None:
        elsewhere = function.module.project.find_function(function.name_of(call.func))
        found = [elsewhere] if elsewhere is not None else []
    return found


def _arguments(callee: Function, call: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    """The arguments of a call, each with the parameter that takes it."""
    given = callee.node.args
    plain = [each.arg for each in (*given.posonlyargs, *given.args)]
    is_bound = callee.self_name or (callee.owner is not None and plain[:1] == ["cls"])
    names = plain[1:] if is_bound else plain
    for at, argument in enumerate(call.args):
        if at < len(names):
            yield names[at], argument
        elif given.vararg is not None:
            yield given.vararg.arg, argument
    yield from ((each.arg, each.value) for each in call.keywords if each.arg is not None)


def _each(kind: Kind, roots: Iterable[str]) -> Iterator[tuple[Kind, str]]:
    """The same deed, done to each of them."""
    for root in roots:
        yield kind, root


# What `_done_by` looks for: one node in three.
_DOING = {
    ast.Call, ast.Await, ast.AsyncFor, ast.comprehension, ast.Assign, ast.AnnAssign, ast.Delete,
    ast.Attribute, ast.withitem,
}  # fmt: skip


def _done_by(function: Function, node: ast.AST) -> Iterator[tuple[Kind, str]]:
    match node:
        case ast.Call(ast.Attribute(receiver, method)):
            yield from _called(function, node, receiver, method)
        case ast.Await(value):
            yield from _each("join", joined(function, value))
        case ast.AsyncFor(_, source) | ast.comprehension(_, source, _, 1):
            yield from _each("join", joined(function, source))
        case ast.Assign(targets, value):
            for target in targets:
                yield from _assigned(function, target, value)
        case ast.AnnAssign(target, _, value) if value is not None:
            yield from _assigned(function, target, value)
        case ast.withitem(entered, target) if target is not None:
            yield from _assigned(function, target, entered)
        case ast.Delete(targets):
            for target in targets:
                yield from _deleted(function, target)
        case ast.Attribute(ast.Name(owner), attr, ast.Load()) if (
            owner and owner == function.self_here
        ):
            parent = function.module.parents.get(node)
            used = isinstance(parent, (ast.Attribute, ast.Subscript)) and parent.value is node
            yield ("use" if used else "read"), f"self.{attr}"


def _called(
    function: Function, call: ast.Call, receiver: ast.expr, method: str
) -> Iterator[tuple[Kind, str]]:
    if method in _RUNNERS:
        for argument in call.args:
            yield from _each("join", joined(function, argument))
        return
    kind: Kind | None = None
    if method == "cancel":
        kind = "cancel"
    elif method == "clear":
        kind = "clear"
    elif method in _TAKING:
        kind = "take"
    elif method in _PUTTING:
        kind = "put"
    elif method in _CLOSING:
        kind = "close"
    elif method in ("set", "put"):
        kind = "signal"
    if kind is not None:
        yield from _each(kind, function.roots(receiver))


def joined(function: Function, node: ast.expr) -> frozenset[str]:
    """What is joined by awaiting this: a task, or all that a call is given."""
    match node:
        case ast.Call(func, arguments, keywords):
            given = [*arguments, *(keyword.value for keyword in keywords)]
            roots = frozenset().union(*(joined(function, each) for each in given), frozenset())
            # `await self._queue.join()`, `await self._process.wait()`: that is waited for as well.
            if isinstance(func, ast.Attribute) and func.attr in (
                "join",
                "wait",
                "wait_for",
                "wait_closed",
            ):
                return roots | function.roots(func.value)
            return roots
        case ast.Starred(value) | ast.Await(value):
            return joined(function, value)
        case ast.List(elements) | ast.Tuple(elements) | ast.Set(elements):
            return frozenset().union(*(joined(function, each) for each in elements), frozenset())
        case ast.ListComp(element) | ast.SetComp(element) | ast.GeneratorExp(element):
            return joined(function, element) | function.roots(element)
    return function.roots(node)


def _assigned(function: Function, target: ast.expr, value: ast.expr) -> Iterator[tuple[Kind, str]]:
    match target:
        case ast.Attribute(ast.Name(owner), attr) if owner and owner == function.self_here:
            empty = _is_empty(value)
            yield ("clear" if empty else "put"), f"self.{attr}"
        case ast.Subscript(container):
            yield from _each("put", function.roots(container))
        case ast.Tuple(parts) | ast.List(parts):
            values = (
                value.elts if isinstance(value, (ast.Tuple, ast.List)) else [value] * len(parts)
            )
            for part, own in zip(parts, values, strict=False):
                yield from _assigned(function, part, own)


def _is_empty(value: ast.expr) -> bool:
    match value:
        case ast.Constant(None):
            return True
        case ast.Dict(keys) if not keys:
            return True
        case ast.List(elements) | ast.Tuple(elements) if not elements:
            return True
        case ast.Call(ast.Name("set" | "dict" | "list" | "deque"), []):
            return True
    return False


def _deleted(function: Function, target: ast.expr) -> Iterator[tuple[Kind, str]]:
    match target:
        case ast.Attribute(ast.Name(owner), attr) if owner and owner == function.self_here:
            yield "clear", f"self.{attr}"
        case ast.Subscript(container):
            yield from _each("take", function.roots(container))
