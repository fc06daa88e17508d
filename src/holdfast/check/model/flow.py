"""The ways through a function: a small graph of its statements, with its suspension points.

A node is one simple statement, or the head of a compound one. There are two kinds of edges: what
comes next, and where an exception goes. A cancellation can only come where a node suspends. A
`finally` has one copy, entered from all sides and left to all sides: a way more than there is may
be seen, never a way less.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from holdfast.check.model.tree import children

__all__ = ["Flow", "Node", "catches_cancellation", "suspends", "walk_here"]

AnyFunction = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_CANCELLED = {"CancelledError", "BaseException"}
_Jump = Literal["return", "break", "continue"]
_INNER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


@dataclass(slots=True, eq=False)
class Node:
    """One step of a function."""

    stmt: ast.AST
    suspends: bool = False
    after: list[Node] = field(default_factory=list)
    """What may come next."""
    raising: list[Node] = field(default_factory=list)
    """Where an exception of this step goes."""
    cancelling: list[Node] = field(default_factory=list)
    """Where a cancellation at this step goes; only steps that suspend have any."""

    def out(self) -> Iterator[Node]:
        yield from self.after
        yield from self.raising
        yield from self.cancelling


class Flow:
    """The graph of one function. `entry` comes before the first statement; `end` after a return or
    the last statement; `raised` after an exception that leaves the function."""

    def __init__(self, function: AnyFunction) -> None:
        self.entry = Node(function)
        self.end = Node(function)
        self.raised = Node(function)
        self.nodes: list[Node] = []
        self._of: dict[ast.AST, Node] = {}
        if not isinstance(function, ast.Lambda):
            _Builder(self).build(function.body)

    def of(self, node: ast.AST) -> Node | None:
        """The step in which a part of the tree is evaluated."""
        return self._of.get(node)

    def add(self, stmt: ast.AST, parts: list[ast.AST], suspends: bool) -> Node:
        node = Node(stmt, suspends)
        self.nodes.append(node)
        self._of.setdefault(stmt, node)
        for part in parts:
            for each in walk_here(part):
                self._of.setdefault(each, node)
        return node

    # --- questions -------------------------------------------------------------------------------

    def reaches(
        self, start: Node, goal: Node, avoiding: Callable[[Node], bool] = lambda _: False
    ) -> bool:
        """Whether `goal` can come after `start`, without a step that is to be avoided between."""
        return any(node is goal for node, _ in self._beyond(start, avoiding))

    def suspends_between(
        self, start: Node, goal: Node, avoiding: Callable[[Node], bool] = lambda _: False
    ) -> bool:
        """Whether the function can suspend after `start` and before `goal`, without a step that is
        to be avoided between."""
        return any(node is goal and suspended for node, suspended in self._beyond(start, avoiding))

    def always_then(
        self, start: Node, wanted: Callable[[Node], bool], *, also_on_errors: bool = False
    ) -> bool:
        """Whether each way from `start` out of the function comes by a step that is wanted."""
        ends = {self.end, self.raised} if also_on_errors else {self.end}
        return not any(node in ends for node, _ in self._beyond(start, wanted))

    def _beyond(
        self, start: Node, avoiding: Callable[[Node], bool] = lambda _: False
    ) -> Iterator[tuple[Node, bool]]:
        """All steps that can follow, each with whether a suspension lies between."""
        seen: set[tuple[Node, bool]] = set()
        todo = [(node, False) for node in start.out()]
        while todo:
            state = todo.pop()
            if state in seen:
                continue
            seen.add(state)
            yield state
            node, suspended = state
            if avoiding(node):
                continue
            todo += [(each, suspended or node.suspends) for each in node.out()]


@dataclass(slots=True, eq=False)
class _Final:
    """A `finally` whose `try` is being built, and how that is left by a jump."""

    node: Node
    loops: int
    jumps: list[_Jump] = field(default_factory=list)


class _Builder:
    """Builds the graph, statement by statement. `_ends` are the steps after which the next one
    comes; the stacks say where an exception, a `break` or a `return` goes from here."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._ends: list[Node] = [flow.entry]
        self._raise_to: list[Node] = [flow.raised]
        self._cancel_to: list[Node] = [flow.raised]
        self._loops: list[tuple[Node, list[Node]]] = []
        self._finals: list[_Final] = []

    def build(self, body: list[ast.stmt]) -> None:
        self._block(body)
        self._join(self._flow.end)

    def _block(self, body: list[ast.stmt]) -> None:
        for stmt in body:
            self._statement(stmt)

    def _join(self, node: Node) -> None:
        for end in self._ends:
            end.after.append(node)
        self._ends = [node]

    def _step(self, stmt: ast.AST, parts: list[ast.AST], suspends_too: bool = False) -> Node:
        node = self._flow.add(stmt, parts, suspends_too or any(map(suspends, parts)))
        node.raising += self._raise_to
        if node.suspends:
            node.cancelling += self._cancel_to
        self._join(node)
        return node

    def _statement(self, stmt: ast.stmt) -> None:
        match stmt:
            case ast.If():
                self._if(stmt)
            case ast.While(test, body, orelse):
                self._loop(self._step(stmt, [test]), body, orelse, _is_true(test))
            case ast.For(target, source, body, orelse):
                self._step(source, [source])  # once, not on each round
                self._loop(self._step(stmt, [target]), body, orelse, False)
            case ast.AsyncFor(target, source, body, orelse):
                self._step(source, [source])
                self._loop(self._step(stmt, [target], True), body, orelse, False)
            case ast.With(items, body):
                self._with(stmt, items, body, False)
            case ast.AsyncWith(items, body):
                self._with(stmt, items, body, True)
            case ast.Try() | ast.TryStar():
                self._try(stmt)
            case ast.Match(subject, cases):
                guards = [case.guard for case in cases if case.guard is not None]
                head = self._step(stmt, [subject, *guards, *(case.pattern for case in cases)])
                self._branches(head, [*(case.body for case in cases), []])
            case ast.Return():
                self._step(stmt, [stmt])
                self._jump("return")
            case ast.Raise():
                self._step(stmt, [stmt])
                self._ends = []
            case ast.Break():
                self._step(stmt, [])
                self._jump("break")
            case ast.Continue():
                self._step(stmt, [])
                self._jump("continue")
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                self._step(stmt, list(stmt.decorator_list))
            case _:
                self._step(stmt, [stmt])

    def _leave(self, to: Node) -> None:
        for end in self._ends:
            end.after.append(to)
        self._ends = []

    def _jump(self, jump: _Jump) -> None:
        """Leaves for where a jump goes, by the nearest `finally` that lies on the way."""
        finals = self._finals
        if jump != "return":
            finals = [each for each in finals if each.loops == len(self._loops)]
        if finals:
            finals[-1].jumps.append(jump)
            self._leave(finals[-1].node)
        elif jump == "return":
            self._leave(self._flow.end)
        elif self._loops and jump == "break":
            self._loops[-1][1].extend(self._ends)
        elif self._loops:
            self._leave(self._loops[-1][0])
        self._ends = []

    def _if(self, stmt: ast.If) -> None:
        """An `if` and its `elif`s, one after the other: a long chain is no deep one."""
        ends: list[Node] = []
        while True:
            head = self._step(stmt, [stmt.test])
            self._block(stmt.body)
            ends += self._ends
            self._ends = [head]
            match stmt.orelse:
                case [ast.If() as another]:
                    stmt = another
                case orelse:
                    self._block(orelse)
                    self._ends = [*ends, *self._ends]
                    return

    def _branches(self, head: Node, bodies: list[list[ast.stmt]]) -> None:
        ends: list[Node] = []
        for body in bodies:
            self._ends = [head]
            self._block(body)
            ends += self._ends
        self._ends = ends

    def _loop(
        self, head: Node, body: list[ast.stmt], orelse: list[ast.stmt], for_ever: bool
    ) -> None:
        breaks: list[Node] = []
        self._loops.append((head, breaks))
        self._block(body)
        self._leave(head)
        self._loops.pop()
        self._ends = [] if for_ever else [head]
        self._block(orelse)
        self._ends += breaks

    def _with(
        self, stmt: ast.AST, items: list[ast.withitem], body: list[ast.stmt], waits: bool
    ) -> None:
        self._step(stmt, list(items), waits)
        before = self._raise_to, self._cancel_to
        # Leaving an `async with` suspends as well; `suppress` goes on there after an exception.
        leaving = Node(stmt, waits)
        swallowed = [kind for item in items for kind in _suppressed(item.context_expr)]
        if swallowed:
            self._raise_to = [leaving, *before[0]]
            if any(map(catches_cancellation, swallowed)):
                self._cancel_to = [leaving]
        self._block(body)
        self._raise_to, self._cancel_to = before
        if waits or swallowed:
            self._flow.nodes.append(leaving)
            leaving.raising += self._raise_to
            if waits:
                leaving.cancelling += self._cancel_to
            self._join(leaving)

    def _try(self, stmt: ast.Try | ast.TryStar) -> None:
        final = _Final(Node(stmt), len(self._loops)) if stmt.finalbody else None
        if final is not None:
            self._flow.nodes.append(final.node)
            self._finals.append(final)
        outer = [final.node] if final is not None else None
        heads = [self._handler_head(handler) for handler in stmt.handlers]
        cancelled = [
            head
            for head, handler in zip(heads, stmt.handlers, strict=True)
            if catches_cancellation(handler.type)
        ]
        before = self._raise_to, self._cancel_to
        # What no handler takes passes them by.
        past = [] if any(_takes_all(handler) for handler in stmt.handlers) else outer or before[0]
        self._raise_to = [*heads, *past]
        self._cancel_to = cancelled[:1] or outer or before[1]
        self._block(stmt.body)
        self._raise_to, self._cancel_to = outer or before[0], outer or before[1]
        self._block(stmt.orelse)
        ends = self._ends
        for head, handler in zip(heads, stmt.handlers, strict=True):
            self._ends = [head]
            self._block(handler.body)
            ends = ends + self._ends
        self._ends = ends
        self._raise_to, self._cancel_to = before
        if final is not None:
            self._finals.pop()
            self._finally(final, stmt.finalbody)

    def _finally(self, final: _Final, body: list[ast.stmt]) -> None:
        self._join(final.node)
        self._block(body)
        ends = self._ends
        # Entered by an exception or a jump, it goes on with that.
        for end in ends:
            end.raising += [each for each in self._raise_to if each not in end.raising]
        for jump in sorted(set(final.jumps)):
            self._ends = list(ends)
            self._jump(jump)
        self._ends = ends

    def _handler_head(self, handler: ast.ExceptHandler) -> Node:
        parts: list[ast.AST] = [handler.type] if handler.type is not None else []
        return self._flow.add(handler, parts, False)


def suspends(node: ast.AST) -> bool:
    """Whether evaluating this may suspend the function that it stands in."""
    return any(
        isinstance(each, (ast.Await, ast.AsyncFor, ast.AsyncWith, ast.Yield, ast.YieldFrom))
        or (isinstance(each, ast.comprehension) and each.is_async)
        for each in walk_here(node)
    )


def walk_here(node: ast.AST) -> Iterator[ast.AST]:
    """A node and all below it, without the bodies of functions and classes defined in it."""
    todo = [node]
    while todo:
        each = todo.pop()
        yield each
        if isinstance(each, _INNER) and each is not node:
            continue
        todo += children(each)


def catches_cancellation(kind: ast.expr | None) -> bool:
    """Whether `except kind` takes a CancelledError."""
    if kind is None:
        return True
    kinds = kind.elts if isinstance(kind, ast.Tuple) else [kind]
    names = (
        each.attr if isinstance(each, ast.Attribute) else getattr(each, "id", "") for each in kinds
    )
    return any(name in _CANCELLED for name in names)


def _takes_all(handler: ast.ExceptHandler) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(
        kind is None or getattr(kind, "id", getattr(kind, "attr", "")) == "BaseException"
        for kind in kinds
    )


def _suppressed(context: ast.expr) -> list[ast.expr]:
    """The exceptions that a `with suppress(...)` swallows."""
    match context:
        case ast.Call(ast.Name("suppress") | ast.Attribute(attr="suppress"), kinds):
            return kinds
    return []


def _is_true(test: ast.expr) -> bool:
    return isinstance(test, ast.Constant) and bool(test.value)
