"""Operations: what a function does to the tasks and other objects that it holds.

An operation names the root of what it is applied to (`self._task`, a parameter, a name from outside);
the elements of a container count as the container. A helper's operations on its parameters count as
operations of the caller on the arguments: `await self._end(self._task)` cancels and joins if `_end`
does.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from handfast._check.model.operations.containers import is_empty
from handfast._check.model.syntax.ancestors import assignments
from handfast._check.model.syntax.call_graph import resolve_anywhere
from handfast._check.model.syntax.control_flow import Step
from handfast._check.model.syntax.function import Function
from handfast._check.model.syntax.memo import remembered
from handfast._check.model.vocabulary import CLOSING, PUTTING, TAKING

Kind = Literal["cancel", "join", "put", "take", "clear", "read", "use", "close", "signal"]
"""`take`: one element out of a container. `clear`: the attribute is set to None, deleted, or the
container emptied. `use`: an attribute or a method of it is read, so None would fail there.
`signal`: `event.set()` or `queue.put()`, the usual signals for a task to end."""

_RUNNERS = {"run_until_complete", "run"}
_WAITING_METHODS = {"join", "wait", "wait_for", "wait_closed"}
# A function that passes its argument on to another, and that to a third: no further.
_DEPTH = 3


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """One operation of a function on something that it holds."""

    kind: Kind
    root: str
    node: ast.AST
    function: Function

    @property
    def step(self) -> Step | None:
        """The step of its function in which it happens."""
        return self.function.flow.of(self.node)

    @property
    def sets_none(self) -> bool:
        """Whether a `clear` leaves None, or nothing, and not an empty container.

        A user of the attribute fails on None; an emptied dict is still a dict.
        """
        match self.node:
            case ast.Call():
                return False
            case ast.Assign(_, value):
                return not isinstance(value, (ast.Dict, ast.List, ast.Call))
        return True


@remembered
def operations(function: Function) -> tuple[Operation, ...]:
    """The operations of a function, in source order."""
    return tuple(_operations(function, _DEPTH))


@remembered
def _on_parameters(function: Function, depth: int) -> dict[str, list[Kind]]:
    """The parameters that a function cancels or joins, itself or by passing them on."""
    found: dict[str, set[Kind]] = {}
    for each in _operations(function, depth):
        if each.kind in ("cancel", "join") and each.root in function.parameters:
            found.setdefault(each.root, set()).add(each.kind)
    return {root: sorted(kinds) for root, kinds in found.items()}


def _operations(function: Function, depth: int) -> Iterator[Operation]:
    for node in function.nodes:
        if type(node) not in _RELEVANT:
            continue
        for kind, root in _by_node(function, node):
            yield Operation(kind, root, node, function)
        if isinstance(node, ast.Call):
            for kind, root in _by_callee(function, node, depth):
                yield Operation(kind, root, node, function)


def _by_callee(function: Function, call: ast.Call, depth: int) -> Iterator[tuple[Kind, str]]:
    """The operations on the arguments of a call by the function that it calls."""
    if not call.args and not call.keywords:
        return
    known = [each for each in resolve_anywhere(function, call.func) if each is not function]
    for callee in known if depth else ():
        on_parameters = _on_parameters(callee, depth - 1)
        for parameter, argument in callee.arguments(call):
            for root in sorted(function.roots(argument)) if parameter in on_parameters else ():
                # Whether a coroutine is awaited here does not matter: it may be awaited elsewhere.
                for kind in on_parameters[parameter]:
                    yield kind, root
    # `cancel_and_wait(self._task)` from another package: the name is evidence enough.
    if not known and "cancel" in function.last_name_of(call.func).lower():
        for each in (*call.args, *(keyword.value for keyword in call.keywords)):
            yield from _each("cancel", sorted(function.roots(each)))


def _each(kind: Kind, roots: Iterable[str]) -> Iterator[tuple[Kind, str]]:
    return ((kind, root) for root in roots)


# The nodes that `_by_node` handles: one in three.
_RELEVANT = {
    ast.Call, ast.Await, ast.AsyncFor, ast.comprehension, ast.Assign, ast.AnnAssign, ast.Delete,
    ast.Attribute, ast.withitem,
}  # fmt: skip


def _by_node(function: Function, node: ast.AST) -> Iterator[tuple[Kind, str]]:
    match node:
        case ast.Call(ast.Attribute(receiver, method)):
            yield from _by_method(function, node, receiver, method)
        case ast.Await(value):
            yield from _each("join", joined(function, value))
        case ast.AsyncFor(_, source) | ast.comprehension(_, source, _, 1):
            yield from _each("join", joined(function, source))
        case ast.Assign() | ast.AnnAssign():
            for target, value in assignments(node):
                yield from _by_assignment(function, target, value)
        case ast.withitem(entered, target) if target is not None:
            yield from _by_assignment(function, target, entered)
        case ast.Delete(targets):
            for target in targets:
                yield from _by_deletion(function, target)
        case ast.Attribute(ctx=ast.Load()) if attr := function.own_attribute(node):
            parent = function.module.parents.get(node)
            # `self._task is None` reads, `self._task.done()` uses: only the second fails on None.
            used = isinstance(parent, (ast.Attribute, ast.Subscript)) and parent.value is node
            yield ("use" if used else "read"), f"self.{attr}"


_METHODS: dict[str, Kind] = {
    "cancel": "cancel", "clear": "clear", "set": "signal", "put": "signal", "put_nowait": "put",
    **dict.fromkeys(CLOSING, "close"), **dict.fromkeys(PUTTING, "put"),
    **dict.fromkeys(TAKING, "take"),
}  # fmt: skip


def _by_method(
    function: Function, call: ast.Call, receiver: ast.expr, method: str
) -> Iterator[tuple[Kind, str]]:
    # `loop.run_until_complete(self._task)` joins it, in a close method that is no coroutine.
    if method in _RUNNERS:
        for argument in call.args:
            yield from _each("join", joined(function, argument))
    elif kind := _METHODS.get(method):
        yield from _each(kind, function.roots(receiver))


def joined(function: Function, node: ast.expr) -> frozenset[str]:
    """What is joined by awaiting this: a task, or all arguments of a call."""
    match node:
        case ast.Call(func, arguments, keywords):
            given = [*arguments, *(keyword.value for keyword in keywords)]
            roots = frozenset().union(*(joined(function, each) for each in given), frozenset())
            # `await self._queue.join()`, `await self._process.wait()`: that is waited for as well.
            if isinstance(func, ast.Attribute) and func.attr in _WAITING_METHODS:
                return roots | function.roots(func.value)
            return roots
        case ast.Starred(value) | ast.Await(value):
            return joined(function, value)
        case ast.List(elements) | ast.Tuple(elements) | ast.Set(elements):
            return frozenset().union(*(joined(function, each) for each in elements), frozenset())
        # `gather(*(end(t) for t in self._tasks))`: the arguments of `end`, and what `end(t)` is.
        case ast.ListComp(element) | ast.SetComp(element) | ast.GeneratorExp(element):
            return joined(function, element) | function.roots(element)
    return function.roots(node)


def _by_assignment(
    function: Function, target: ast.expr, value: ast.expr
) -> Iterator[tuple[Kind, str]]:
    match target:
        case ast.Attribute() if attr := function.own_attribute(target):
            yield ("clear" if _is_cleared(value) else "put"), f"self.{attr}"
        case ast.Subscript(container):
            yield from _each("put", function.roots(container))
        case ast.Tuple(parts) | ast.List(parts):
            # `task, self._task = self._task, None` clears, and its first half does not.
            values = (
                value.elts if isinstance(value, (ast.Tuple, ast.List)) else [value] * len(parts)
            )
            for part, own in zip(parts, values, strict=False):
                yield from _by_assignment(function, part, own)


def _is_cleared(value: ast.expr) -> bool:
    match value:
        case ast.Constant(None) | ast.Tuple([]):
            return True
    return is_empty(value)


def _by_deletion(function: Function, target: ast.expr) -> Iterator[tuple[Kind, str]]:
    match target:
        case ast.Attribute() if attr := function.own_attribute(target):
            yield "clear", f"self.{attr}"
        case ast.Subscript(container):
            yield from _each("take", function.roots(container))
