"""A function of the code that is checked: what it is, what it calls, where its values come from.

`roots` says which attributes of `self`, parameters and module names an expression may stem from;
the elements of a container count as the container. Order does not matter there: what matters
when, `flow` knows.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

from holdfast.check.model.flow import Flow, walk_here

if TYPE_CHECKING:
    from holdfast.check.model.module import Class, Module


__all__ = ["AnyDef", "Function"]

AnyDef = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Root = str
"""`self.x`, `x` for a parameter or a name from outside, `x()` for what a call of x gives."""

# What gives back the elements of what it is given, or a part of it.
_SAME = {
    "list",
    "set",
    "tuple",
    "sorted",
    "reversed",
    "frozenset",
    "iter",
    "next",
    "enumerate",
    "zip",
    "filter",
    "dict",
    "copy",
    "deepcopy",
    "cast",
    "max",
    "min",
    "map",
    "chain",
    "from_iterable",
}
_PARTS = {
    "values",
    "items",
    "keys",
    "pop",
    "get",
    "popitem",
    "popleft",
    "copy",
    "setdefault",
    "union",
    "difference",
    "intersection",
}
# What waits for the tasks that it is given, and gives them or their results back.
_WAITING = {"wait", "as_completed", "gather", "shield", "wait_for"}


class Function:
    """A function, a method or a lambda."""

    def __init__(
        self,
        module: Module,
        node: AnyDef,
        qualname: str,
        owner: Class | None,
        outer: Function | None,
    ) -> None:
        self.module = module
        self.node = node
        self.qualname = qualname
        self.owner = owner
        """The class whose method it is."""
        self.outer = outer
        """The function that it is defined in."""
        self.inner: list[Function] = []
        """The functions that are defined in it."""
        self.nodes: list[ast.AST] = []
        """All of its tree, without the functions and classes defined in it, in source order."""
        self.memo: dict[Any, Any] = {}

    def __repr__(self) -> str:
        return f"<Function {self.qualname}>"

    @property
    def name(self) -> str:
        return "<lambda>" if isinstance(self.node, ast.Lambda) else self.node.name

    @property
    def is_async(self) -> bool:
        return isinstance(self.node, ast.AsyncFunctionDef)

    @property
    def body(self) -> list[ast.stmt]:
        return [] if isinstance(self.node, ast.Lambda) else self.node.body

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        given = self.node.args
        plain = [*given.posonlyargs, *given.args, *given.kwonlyargs]
        more = [each for each in (given.vararg, given.kwarg) if each is not None]
        return tuple(each.arg for each in (*plain, *more))

    @cached_property
    def self_name(self) -> str:
        """What a method calls its object; empty for a function, a static or a class method."""
        if self.owner is None or not self.parameters or isinstance(self.node, ast.Lambda):
            return ""
        names = {self.module.names.resolve(each) for each in self.node.decorator_list}
        return "" if names & {"staticmethod", "classmethod"} else self.parameters[0]

    @cached_property
    def self_here(self) -> str:
        """The same, also for a function that is defined inside a method."""
        function: Function | None = self
        while function is not None:
            if function.self_name:
                return function.self_name
            if function.owner is not None:
                return ""
            function = function.outer
        return ""

    @cached_property
    def klass(self) -> Class | None:
        """The class that `self` is of, in here."""
        function: Function | None = self
        while function is not None:
            if function.owner is not None:
                return function.owner
            function = function.outer
        return None

    @cached_property
    def flow(self) -> Flow:
        """The ways through it."""
        return Flow(self.node)

    @cached_property
    def calls(self) -> tuple[ast.Call, ...]:
        return tuple(each for each in self.nodes if type(each) is ast.Call)

    @cached_property
    def is_generator(self) -> bool:
        return any(isinstance(each, (ast.Yield, ast.YieldFrom)) for each in self.nodes)

    def name_of(self, node: ast.expr) -> str:
        """The full name of an expression, with `self` called so whatever it is called here."""
        text = self.module.names.resolve(node)
        first, dot, rest = text.partition(".")
        return f"self{dot}{rest}" if first and first == self.self_here else text

    # --- where values come from ------------------------------------------------------------------

    def roots(self, node: ast.expr | None) -> frozenset[Root]:
        """What an expression may stem from."""
        return frozenset(self._roots(node, frozenset()))

    def _roots(self, node: ast.expr | None, seen: frozenset[str]) -> Iterator[Root]:
        match node:
            case None | ast.Constant():
                return
            case ast.Name(name):
                yield from self._roots_of_name(name, seen)
            case ast.Attribute(ast.Name(owner), attr) if owner and owner == self.self_here:
                yield f"self.{attr}"
            case ast.Attribute(value):
                name = self.name_of(node)
                if name and not name.startswith("self."):
                    yield name
                yield from self._roots(value, seen)
            case ast.Call(function, arguments):
                yield from self._roots_of_call(function, arguments, seen)
            case ast.Await(value) | ast.Starred(value) | ast.Subscript(value):
                yield from self._roots(value, seen)
            case ast.NamedExpr(_, value):
                yield from self._roots(value, seen)
            case ast.IfExp(_, one, other):
                yield from self._roots(one, seen)
                yield from self._roots(other, seen)
            case ast.BoolOp(_, values):
                for each in values:
                    yield from self._roots(each, seen)
            case ast.BinOp():
                for each in _operands(node):
                    yield from self._roots(each, seen)
            case ast.List(elements) | ast.Tuple(elements) | ast.Set(elements):
                for each in elements:
                    yield from self._roots(each, seen)
            case ast.Dict(_, values):
                for each in values:
                    yield from self._roots(each, seen)
            case ast.ListComp(element) | ast.SetComp(element) | ast.GeneratorExp(element):
                yield from self._roots(element, seen)
            case ast.DictComp(_, value):
                yield from self._roots(value, seen)

    def _roots_of_call(
        self, function: ast.expr, arguments: list[ast.expr], seen: frozenset[str]
    ) -> Iterator[Root]:
        if isinstance(function, ast.Attribute) and function.attr in _PARTS:
            yield from self._roots(function.value, seen)
            return
        name = self.name_of(function)
        last = name.rpartition(".")[2]
        if last in _SAME or last in _WAITING:
            for each in arguments:
                yield from self._roots(each, seen)
        if name == "getattr" and (attribute := self._own_attribute(arguments)):
            yield f"self.{attribute}"
        elif name and last not in _SAME:
            yield f"{name}()"

    def _own_attribute(self, arguments: list[ast.expr]) -> str:
        """The attribute that `getattr(self, "x")` reads."""
        match arguments:
            case [ast.Name(owner), ast.Constant(str() as attribute), *_] if (
                owner and owner == self.self_here
            ):
                return attribute
        return ""

    def _roots_of_name(self, name: str, seen: frozenset[str]) -> Iterator[Root]:
        if name in seen:
            return
        values = self.assigned.get(name)
        if name in self.parameters or (not values and name not in self.local_names):
            yield from self._from_outside(name, seen)
        for value in values or ():
            yield from self._roots(value, seen | {name})

    def _from_outside(self, name: str, seen: frozenset[str]) -> Iterator[Root]:
        if name not in self.parameters and self.outer is not None:
            yield from self.outer._roots_of_name(name, seen)
        else:
            yield name

    @cached_property
    def local_names(self) -> frozenset[str]:
        return frozenset(
            each.id
            for each in self.nodes
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
        )

    @cached_property
    def assigned(self) -> dict[str, list[ast.expr]]:
        """Each local name, and the expressions that it is given, whole or by its elements."""
        found: dict[str, list[ast.expr]] = defaultdict(list)
        for node in self.nodes:
            for target, value in _bindings(node):
                _bind(target, value, found)
        return found


def _bindings(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The targets that a node binds, each with what it is given."""
    match node:
        case ast.Assign(targets, value):
            yield from ((target, value) for target in targets)
        case ast.AnnAssign(target, _, value) if value is not None:
            yield target, value
        case ast.AugAssign(target, _, value) | ast.NamedExpr(target, value):
            yield target, value
        case ast.For(target, source) | ast.AsyncFor(target, source):
            yield target, source
        case ast.comprehension(target, source):
            yield target, source
        case ast.withitem(context, target) if target is not None:
            yield target, context
        case ast.Match(subject, cases):
            for case in cases:
                for each in ast.walk(case.pattern):
                    if isinstance(each, ast.MatchAs) and each.name is not None:
                        yield ast.Name(each.name, ast.Store()), subject


def _bind(target: ast.expr, value: ast.expr, found: dict[str, list[ast.expr]]) -> None:
    match target:
        case ast.Name(name):
            found[name].append(value)
        case ast.Tuple(parts) | ast.List(parts):
            values = value.elts if isinstance(value, (ast.Tuple, ast.List)) else None
            for at, part in enumerate(parts):
                # `a, b = b, a` gives each its own; anything else may give any of its elements.
                own = values is not None and len(values) == len(parts)
                _bind(part, values[at] if own and values is not None else value, found)
        case ast.Starred(inner):
            _bind(inner, value, found)


def _operands(node: ast.expr) -> Iterator[ast.expr]:
    """The operands of a chain of operators, which is nested as deeply as it is long."""
    todo = [node]
    while todo:
        each = todo.pop()
        if isinstance(each, ast.BinOp):
            todo += (each.right, each.left)
        else:
            yield each


def names_in(node: ast.AST) -> Iterator[str]:
    """The plain names that are read below a node."""
    for each in walk_here(node):
        if isinstance(each, ast.Name):
            yield each.id
