"""Which expressions are futures, events, queues or locks of asyncio, and where those are created.

An object counts as asyncio's only if every assignment creates one: a parameter, or an object of a
class that is not known, may be anything. `threading.Event` and `queue.Queue` have the same methods, so
a guess by the method name would report correct code.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from handfast._check.model.syntax.ancestors import assignments
from handfast._check.model.syntax.function import Function
from handfast._check.model.syntax.memo import remembered
from handfast._check.model.syntax.module import Class, Module
from handfast._check.model.vocabulary import PUTTING_ONE

_CREATED_BY = {
    f"{package}.{name}()": name
    for package in ("asyncio", "asyncio.locks", "asyncio.queues", "asyncio.futures")
    for name in (
        "Event", "Queue", "PriorityQueue", "LifoQueue", "Future", "Lock", "Condition",
        "Semaphore", "BoundedSemaphore", "Barrier",
    )
}  # fmt: skip
_EMPTY = {"dict", "list", "set", "tuple", "collections.deque", "deque", "collections.OrderedDict",
          "collections.defaultdict", "defaultdict", "OrderedDict", "weakref.WeakValueDictionary"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Primitive:
    """An object of asyncio."""

    kind: str
    """The name of its class: `Event`, `Queue`, `Future`."""
    created: ast.AST
    """The statement that creates it."""
    module: Module
    """The module of that statement."""


def primitive(function: Function, node: ast.expr) -> Primitive | None:
    """Which primitive of asyncio an expression is, if that is certain."""
    return _agreed(_of_root(function, root, node) for root in function.roots(node))


def _agreed(found: Iterator[Primitive | None]) -> Primitive | None:
    """The primitive, if all values are of the same kind."""
    all_found = list(found)
    kinds = {each.kind if each is not None else None for each in all_found}
    return all_found[0] if len(kinds) == 1 else None


def _of_root(function: Function, root: str, node: ast.AST) -> Primitive | None:
    here = _created_or_annotated(function, root, node)
    if here is not None:
        return here
    if root.startswith("self."):
        klass = function.klass
        return _of_attribute(klass, root) if klass is not None else None
    # A parameter without an annotation, an attribute of another object, the result of a call.
    if root in function.parameters or "." in root or root.endswith("()"):
        return None
    return _of_global(function.module, root)


def _created_or_annotated(function: Function, root: str, node: ast.AST) -> Primitive | None:
    """The primitive that a call creates, or that a parameter is annotated as."""
    kind = "Future" if root.endswith(".create_future()") else _CREATED_BY.get(root)
    if kind is not None:
        return Primitive(kind, function.module.statement_of(node), function.module)
    outer: Function | None = function
    while outer is not None and root not in outer.parameters:
        outer = outer.outer
    if outer is None:
        return None
    given = outer.node.args
    for each in (*given.posonlyargs, *given.args, *given.kwonlyargs):
        if each.arg == root and each.annotation is not None:
            kind = _CREATED_BY.get(f"{_annotated(outer, each.annotation)}()")
            return Primitive(kind, each, function.module) if kind else None
    return None


def _annotated(function: Function, node: ast.expr) -> str:
    """`asyncio.Queue` for `asyncio.Queue[int]` and `asyncio.Queue | None`."""
    match node:
        case ast.Subscript(ast.Name("Optional") | ast.Attribute(_, "Optional"), inner):
            return _annotated(function, inner)
        case ast.Subscript(inner) | ast.BinOp(inner, ast.BitOr(), ast.Constant(None)):
            return _annotated(function, inner)
    return function.module.names.resolve(node)


def _of_attribute(klass: Class, root: str) -> Primitive | None:
    return _agreed(each for part in klass.lineage for each in _attributes(part).get(root, ()))


@remembered
def _attributes(klass: Class) -> dict[str, list[Primitive | None]]:
    """The primitives that the attributes of a class are assigned; None for anything else."""
    found: dict[str, list[Primitive | None]] = defaultdict(list)
    for function in klass.functions:
        for node in function.nodes:
            for name, value in _stored(function, node):
                if not _is_empty(function, value):
                    found[name] += _of_value(function, value)
    for name, value in _in_class_body(klass):
        found[f"self.{name}"] += _of_value(klass.module.body, value)
    return found


def _of_value(function: Function, value: ast.expr) -> Iterator[Primitive | None]:
    roots = function.roots(value)
    yield from (_created_or_annotated(function, root, value) for root in roots)
    if not roots:
        yield None


def _stored(function: Function, node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """The attributes of `self` that a node stores a value in, each with the value."""
    pairs = list(assignments(node)) if not isinstance(node, ast.NamedExpr) else []
    match node:
        case ast.Call(ast.Attribute(target, method), [*_, value]) if method in PUTTING_ONE:
            pairs = [(target, value)]
    for target, value in pairs:
        holder = target.value if isinstance(target, ast.Subscript) else target
        name = function.name_of(holder)
        if name.startswith("self.") and name.count(".") == 1:
            yield name, value


def _is_empty(function: Function, value: ast.expr) -> bool:
    match value:
        # `self._event = None` before the loop runs: the attribute is still asyncio's afterwards.
        case ast.Constant(None):
            return True
        case ast.Dict(keys):
            return not keys
        case ast.List(elements) | ast.Set(elements) | ast.Tuple(elements):
            return not elements
        case ast.Call(name):
            return function.name_of(name) in _EMPTY
    return False


def _in_class_body(klass: Class) -> Iterator[tuple[str, ast.expr]]:
    for stmt in klass.node.body:
        match stmt:
            case ast.Assign([ast.Name(name)], value) | ast.AnnAssign(ast.Name(name), _, value):
                if value is not None and not _is_empty(klass.module.body, value):
                    yield name, value


def _of_global(module: Module, name: str) -> Primitive | None:
    given = module.body.assigned.get(name, ())
    return _agreed(
        each
        for value in given
        if not _is_empty(module.body, value)
        for each in _of_value(module.body, value)
    )
