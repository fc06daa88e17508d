"""A function of the checked code: its parts, its calls, and where its values come from.

`roots` returns the attributes of `self`, parameters and module names that an expression may come from;
the elements of a container count as the container. It ignores the order of statements and joins all
assignments of a name: rules that depend on order use `flow`.
"""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from handfast._check.model.syntax.ancestors import above, assignments
from handfast._check.model.syntax.children import walk_here
from handfast._check.model.syntax.control_flow import Flow
from handfast._check.model.syntax.handlers import caught
from handfast._check.model.vocabulary import ELEMENTS, ITERATING, WAITING

if TYPE_CHECKING:
    from handfast._check.model.syntax.module import Class, Module


AnyDef = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Root = str
"""`self.x`, `x` for a parameter or a name from outside, `x()` for the result of a call."""

# Functions that return their argument, its elements or one of them. `max` and `min` are here because
# `oldest = min(self._tasks, key=age)` is a task of `self._tasks`.
_SAME = ITERATING | {
    "enumerate", "zip", "filter", "dict", "copy", "deepcopy", "cast", "max", "min", "map", "chain",
    "from_iterable",
}  # fmt: skip
# Methods that return elements of their receiver, or the receiver itself with others.
_PARTS = ELEMENTS | {"keys", "union", "difference", "intersection"}


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
        """The nodes of its tree, without functions and classes defined in it, in source order."""
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

    def arguments(self, call: ast.Call) -> Iterator[tuple[str, ast.expr]]:
        """The arguments of a call of this function, each with its parameter."""
        given = self.node.args
        plain = [each.arg for each in (*given.posonlyargs, *given.args)]
        # A bound call does not pass `self`; `Class.method(obj)` does, and is rare enough to ignore.
        is_bound = self.self_name or (self.owner is not None and plain[:1] == ["cls"])
        names = plain[1:] if is_bound else plain
        for at, argument in enumerate(call.args):
            if at < len(names):
                yield names[at], argument
            elif given.vararg is not None:
                yield given.vararg.arg, argument
        yield from ((each.arg, each.value) for each in call.keywords if each.arg is not None)

    @cached_property
    def self_name(self) -> str:
        """The name of `self` in a method; empty for a function, a static or a class method."""
        if self.owner is None or not self.parameters or isinstance(self.node, ast.Lambda):
            return ""
        names = {self.module.names.resolve(each) for each in self.node.decorator_list}
        return "" if names & {"staticmethod", "classmethod"} else self.parameters[0]

    @cached_property
    def self_here(self) -> str:
        """The same, also for a function that is defined in a method: it sees that `self`."""
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
        """The class of `self` in this function."""
        function: Function | None = self
        while function is not None:
            if function.owner is not None:
                return function.owner
            function = function.outer
        return None

    @cached_property
    def flow(self) -> Flow:
        """Its control flow graph."""
        return Flow(self.node, partial(caught, self))

    @cached_property
    def calls(self) -> tuple[ast.Call, ...]:
        return tuple(each for each in self.nodes if type(each) is ast.Call)

    @cached_property
    def all_inner(self) -> tuple[Function, ...]:
        """The functions that are defined in it, at any depth."""
        return tuple(each for inner in self.inner for each in (inner, *inner.all_inner))

    def reads(self, name: str) -> Iterator[tuple[Function, ast.Name]]:
        """Where a local name is read, here and in the functions inside, each with the function."""
        yield from ((self, node) for node in self._names_read.get(name, ()))
        for inner in self.inner:
            if not inner._has_its_own(name):
                yield from inner.reads(name)
            else:
                given = inner.node.args
                for default in (*given.defaults, *given.kw_defaults):
                    # `def done(task=task)` reads the outer one.
                    if isinstance(default, ast.Name) and default.id == name:
                        yield self, default

    def _has_its_own(self, name: str) -> bool:
        """Whether a name is a parameter or another local name here: `def done(task): ...`."""
        if name in self.parameters:
            return True
        return name in self.local_names and not any(
            isinstance(node, ast.Nonlocal) and name in node.names for node in self.nodes
        )

    @cached_property
    def _names_read(self) -> dict[str, list[ast.Name]]:
        found: dict[str, list[ast.Name]] = defaultdict(list)
        for node in self.nodes:
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                found[node.id].append(node)
        return found

    @cached_property
    def is_generator(self) -> bool:
        return any(isinstance(each, (ast.Yield, ast.YieldFrom)) for each in self.nodes)

    def name_of(self, node: ast.expr) -> str:
        """The full name of an expression. `self` is always called `self`, whatever its name here."""
        text = self.module.names.resolve(node)
        first, dot, rest = text.partition(".")
        return f"self{dot}{rest}" if first and first == self.self_here else text

    def own_attribute(self, node: ast.AST | None) -> str:
        """The `x` of `self.x`, where `self` is the object of the method; empty for anything else."""
        match node:
            case ast.Attribute(ast.Name(owner), attr) if owner and owner == self.self_here:
                return attr
        return ""

    def last_name_of(self, node: ast.expr) -> str:
        """The `c` of the full name `a.b.c`; empty if the expression is no name."""
        return self.name_of(node).rpartition(".")[2]

    # --- where values come from ------------------------------------------------------------------

    def roots(self, node: ast.expr | None) -> frozenset[Root]:
        """What an expression may come from."""
        return frozenset(self._roots(node, frozenset()))

    def _roots(self, node: ast.expr | None, seen: frozenset[str]) -> Iterator[Root]:
        match node:
            case None | ast.Constant():
                return
            case ast.Name(name):
                source = self._loop_over(node) if name in self._loop_names else None
                if source is not None and name not in seen:
                    yield from self._roots(source, seen | {name})
                else:
                    yield from self._roots_of_name(name, seen)
            case ast.Attribute() if attr := self.own_attribute(node):
                yield f"self.{attr}"
            case ast.Attribute(value):
                # `self.client.task` has the root `self.client`: what is done to a part of an object
                # is done to the object. `is_direct` tells the two apart where that matters.
                name = self.name_of(node)
                if name and not name.startswith("self."):
                    yield name
                yield from self._roots(value, seen)
            case ast.Call(function, arguments):
                yield from self._roots_of_call(function, arguments, seen)
            case _:
                for each in value_parts(node):
                    yield from self._roots(each, seen)

    def _roots_of_call(
        self, function: ast.expr, arguments: list[ast.expr], seen: frozenset[str]
    ) -> Iterator[Root]:
        if isinstance(function, ast.Attribute) and function.attr in _PARTS:
            yield from self._roots(function.value, seen)
            return
        name = self.name_of(function)
        last = name.rpartition(".")[2]
        # `done, pending = await wait(self._tasks)`: both are tasks of `self._tasks`.
        if last in _SAME or last in WAITING:
            for each in arguments:
                yield from self._roots(each, seen)
        if name == "getattr" and (attribute := self._attribute_read(arguments)):
            yield f"self.{attribute}"
        elif name and last not in _SAME:
            yield f"{name}()"

    def _attribute_read(self, arguments: list[ast.expr]) -> str:
        """The attribute that `getattr(self, "x")` reads."""
        match arguments:
            case [ast.Name(owner), ast.Constant(str() as attribute), *_] if (
                owner and owner == self.self_here
            ):
                return attribute
        return ""

    def _roots_of_name(self, name: str, seen: frozenset[str]) -> Iterator[Root]:
        if name in seen:
            return  # `x = x or y`
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
    def _loop_names(self) -> frozenset[str]:
        """The names that are the targets of several loops, and are assigned nowhere else."""
        loops: Counter[str] = Counter()
        for node in self.nodes:
            if isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
                loops.update(
                    each.id for each in ast.walk(node.target) if isinstance(each, ast.Name)
                )
        several = {name: count for name, count in loops.items() if count > 1}
        return frozenset(
            name for name, count in several.items() if len(self.assigned[name]) == count
        )

    def _loop_over(self, node: ast.Name) -> ast.expr | None:
        """What the innermost loop around a name iterates over, of those whose target it is."""
        for up in above(self.module.parents, node):
            if up is self.node:
                return None
            match up:
                case ast.For(target, source) | ast.AsyncFor(target, source):
                    loops = [(target, source)]
                case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                    loops = [(each.target, each.iter) for each in up.generators]
                case _:
                    continue
            for target, source in loops:
                if any(isinstance(n, ast.Name) and n.id == node.id for n in ast.walk(target)):
                    return source
        return None

    @cached_property
    def local_names(self) -> frozenset[str]:
        return frozenset(
            each.id
            for each in self.nodes
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
        )

    @cached_property
    def assigned(self) -> dict[str, list[ast.expr]]:
        """Each local name, with the expressions that it or its elements are assigned."""
        found: dict[str, list[ast.expr]] = defaultdict(list)
        for node in self.nodes:
            for target, value in _bindings(node):
                _bind(target, value, found)
        return found


def _bindings(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The targets that a node binds, each with its value, or with the iterable of its values."""
    match node:
        case ast.Assign() | ast.AnnAssign() | ast.NamedExpr():
            yield from assignments(node)
        case ast.AugAssign(target, _, value):
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
                # `a, b = b, a` binds each to its own; any other value may give any of its elements.
                own = values is not None and len(values) == len(parts)
                _bind(part, values[at] if own and values is not None else value, found)
        case ast.Starred(inner):
            _bind(inner, value, found)


def value_parts(node: ast.expr | None) -> Iterator[ast.expr]:
    """The expressions of which one, or an element of one, may be the value of an expression.

    Names, attributes and calls have none: the callers treat those in different ways.
    """
    match node:
        case ast.Await(value) | ast.Starred(value) | ast.Subscript(value):
            yield value
        case ast.NamedExpr(_, value) | ast.DictComp(_, value):
            yield value
        case ast.ListComp(element) | ast.SetComp(element) | ast.GeneratorExp(element):
            yield element
        case ast.IfExp(_, one, other):
            yield from (one, other)
        case ast.BoolOp(_, values) | ast.Dict(_, values):
            yield from values
        case ast.List(values) | ast.Tuple(values) | ast.Set(values):
            yield from values
        case ast.BinOp():
            # A loop, because a chain of operators is nested as deeply as it is long.
            todo: list[ast.expr] = [node]
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
