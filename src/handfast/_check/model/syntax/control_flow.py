"""The control flow graph of a function, with its suspension points.

A step is one simple statement, or the head of a compound one. Edges lead to what comes next, to
where an exception goes, and to where a cancellation goes; a task is only cancelled at a step that
suspends. A `finally` has one copy, entered from everywhere and left to everywhere. So the graph may
have a path that no run takes, and never lacks one that a run takes: rules that report "on some path"
can err, rules that report "on no path" cannot.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from handfast._check.model.syntax.ancestors import AnyTry, is_true
from handfast._check.model.syntax.children import walk_here
from handfast._check.model.syntax.handlers import is_cancellation

AnyFunction = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Caught = Callable[[ast.expr | None], Sequence[str]]
"""The full names of what `except kind` catches."""
_TAKING_ALL = frozenset({"", "BaseException", "builtins.BaseException"})
_Jump = Literal["return", "break", "continue"]


@dataclass(slots=True, eq=False)
class Step:
    """One step of a function."""

    stmt: ast.AST
    suspends: bool = False
    after: list[Step] = field(default_factory=list)
    """The steps that may come next."""
    raising: list[Step] = field(default_factory=list)
    """Where an exception of this step goes."""
    cancelling: list[Step] = field(default_factory=list)
    """Where a cancellation at this step goes; only steps that suspend have any."""

    def out(self) -> Iterator[Step]:
        yield from self.after
        yield from self.raising
        yield from self.cancelling


def _suspends(step: Step) -> bool:
    return step.suspends


class Flow:
    """The graph of one function. `entry` is before the first statement, `end` after a return or the
    last statement, `raised` after an exception that leaves the function."""

    def __init__(self, function: AnyFunction, caught: Caught) -> None:
        self.entry = Step(function)
        self.end = Step(function)
        self.raised = Step(function)
        self.nodes: list[Step] = []
        self._of: dict[ast.AST, Step] = {}
        if not isinstance(function, ast.Lambda):
            _Builder(self, caught).build(function.body)

    def of(self, node: ast.AST) -> Step | None:
        """The step in which a node of the tree is evaluated."""
        return self._of.get(node)

    def add(self, stmt: ast.AST, parts: list[ast.AST], suspends: bool) -> Step:
        node = Step(stmt, suspends)
        self.nodes.append(node)
        self._of.setdefault(stmt, node)
        # `walk_here` does not enter lambdas: their bodies run later, so their nodes have no step.
        for part in parts:
            for each in walk_here(part):
                self._of.setdefault(each, node)
        return node

    # --- paths -----------------------------------------------------------------------------------
    # A node outside the graph (in a lambda, say) has no step. No path leads to or from it.

    def reaches(
        self, start: Step | None, goal: Step | None, avoiding: Container[Step | None] = ()
    ) -> bool:
        """Whether a path leads from `start` to `goal` with no step to be avoided between."""
        if start is None:
            return False
        seen: set[Step] = set()
        todo = [*start.out()]
        while todo:
            step = todo.pop()
            if step is goal:
                return True
            if step not in seen:
                seen.add(step)
                if step not in avoiding:
                    todo += step.after
                    todo += step.raising
                    todo += step.cancelling
        return False

    def suspends_between(
        self,
        start: Step | None,
        goal: Step | None,
        avoiding: Container[Step | None] = (),
        suspends: Callable[[Step], bool] = _suspends,
    ) -> bool:
        """Whether such a path suspends after `start` and before `goal`."""
        beyond = self._beyond(start, avoiding, suspends)
        return any(step is goal and suspended for step, suspended in beyond)

    def _beyond(
        self, start: Step | None, avoiding: Container[Step | None], suspends: Callable[[Step], bool]
    ) -> Iterator[tuple[Step, bool]]:
        """All steps that can follow, each with whether a path to it suspends."""
        # A step is visited up to twice: a path that suspends is another answer than one that does
        # not, and the search must not stop at whichever comes first.
        seen: set[tuple[Step, bool]] = set()
        todo = [(step, False) for step in start.out()] if start is not None else []
        while todo:
            state = todo.pop()
            if state in seen:
                continue
            seen.add(state)
            yield state
            step, suspended = state
            if step not in avoiding:
                suspended = suspended or suspends(step)
                todo += [(each, suspended) for each in step.out()]


@dataclass(slots=True, eq=False)
class _Final:
    """A `finally` whose `try` is being built, and the jumps that leave the `try`."""

    node: Step
    loops: int
    jumps: list[_Jump] = field(default_factory=list)


class _Builder:
    """Builds the graph, statement by statement. `_ends` are the steps that the next one follows; the
    stacks hold where an exception, a `break` or a `return` goes from here."""

    def __init__(self, flow: Flow, caught: Caught) -> None:
        self._flow = flow
        self._caught = caught
        self._ends: list[Step] = [flow.entry]
        self._raise_to: list[Step] = [flow.raised]
        self._cancel_to: list[Step] = [flow.raised]
        self._loops: list[tuple[Step, list[Step]]] = []
        self._finals: list[_Final] = []

    def build(self, body: list[ast.stmt]) -> None:
        self._block(body)
        self._join(self._flow.end)

    def _block(self, body: list[ast.stmt]) -> None:
        for stmt in body:
            self._statement(stmt)

    def _join(self, node: Step) -> None:
        for end in self._ends:
            end.after.append(node)
        self._ends = [node]

    def _step(self, stmt: ast.AST, parts: list[ast.AST], suspends_too: bool = False) -> Step:
        node = self._flow.add(stmt, parts, suspends_too or any(map(suspends, parts)))
        node.raising += self._raise_to
        # Apart from `raising`: `except Exception` does not see a cancellation.
        if node.suspends:
            node.cancelling += self._cancel_to
        self._join(node)
        return node

    def _statement(self, stmt: ast.stmt) -> None:
        match stmt:
            case ast.If():
                self._if(stmt)
            case ast.While(test, body, orelse):
                self._loop(self._step(stmt, [test]), body, orelse, is_true(test))
            case ast.For(target, source, body, orelse):
                self._step(source, [source])  # evaluated once, not in each iteration
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
                # All guards are evaluated in the head: which of them run is not known.
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

    def _leave(self, to: Step) -> None:
        for end in self._ends:
            end.after.append(to)
        self._ends = []

    def _jump(self, jump: _Jump) -> None:
        """Add the edges of a jump, through the nearest `finally` that it leaves."""
        finals = self._finals
        # A `break` runs only the `finally` blocks that are inside its loop.
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
        """An `if` and its `elif`s. A loop, because a chain of 1000 `elif` is 1000 levels deep."""
        ends: list[Step] = []
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

    def _branches(self, head: Step, bodies: list[list[ast.stmt]]) -> None:
        ends: list[Step] = []
        for body in bodies:
            self._ends = [head]
            self._block(body)
            ends += self._ends
        self._ends = ends

    def _loop(
        self, head: Step, body: list[ast.stmt], orelse: list[ast.stmt], for_ever: bool
    ) -> None:
        breaks: list[Step] = []
        self._loops.append((head, breaks))
        self._block(body)
        self._leave(head)
        self._loops.pop()
        # Without this, code after `while True` would be reachable, and every endless task would end.
        self._ends = [] if for_ever else [head]
        self._block(orelse)
        self._ends += breaks

    def _with(
        self, stmt: ast.AST, items: list[ast.withitem], body: list[ast.stmt], waits: bool
    ) -> None:
        self._step(stmt, list(items), waits)
        before = self._raise_to, self._cancel_to
        # `__aexit__` suspends as well; with `suppress`, execution continues there after an error.
        leaving = Step(stmt, waits)
        # Any other context manager may swallow an error, too. Few do, and a path from each statement
        # of each `with` to its end would be wrong in most functions.
        swallowed = [kind for item in items for kind in _suppressed(item.context_expr)]
        if swallowed:
            self._raise_to = [leaving, *before[0]]
            if any(is_cancellation(name) for kind in swallowed for name in self._caught(kind)):
                self._cancel_to = [leaving]
        self._block(body)
        self._raise_to, self._cancel_to = before
        if waits or swallowed:
            self._flow.nodes.append(leaving)
            leaving.raising += self._raise_to
            if waits:
                leaving.cancelling += self._cancel_to
            self._join(leaving)

    def _try(self, stmt: AnyTry) -> None:
        final = _Final(Step(stmt), len(self._loops)) if stmt.finalbody else None
        if final is not None:
            self._flow.nodes.append(final.node)
            self._finals.append(final)
        outer = [final.node] if final is not None else None
        heads = [self._handler_head(handler) for handler in stmt.handlers]
        kinds = [self._caught(handler.type) for handler in stmt.handlers]
        cancelled = [
            head
            for head, names in zip(heads, kinds, strict=True)
            if any(map(is_cancellation, names))
        ]
        before = self._raise_to, self._cancel_to
        # Without a handler for everything, an exception may also pass all handlers.
        past = [] if any(_TAKING_ALL.intersection(names) for names in kinds) else outer or before[0]
        self._raise_to = [*heads, *past]
        # A cancellation goes to the first handler that catches it, and to no other.
        self._cancel_to = cancelled[:1] or outer or before[1]
        self._block(stmt.body)
        self._raise_to, self._cancel_to = outer or before[0], outer or before[1]
        self._block(stmt.orelse)
        # A handler is left to the same place as the body, and its own errors pass its siblings.
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
        # Entered by an exception or a jump, a `finally` continues with that at its end.
        for end in ends:
            end.raising += [each for each in self._raise_to if each not in end.raising]
        for jump in sorted(set(final.jumps)):
            self._ends = list(ends)
            self._jump(jump)
        self._ends = ends

    def _handler_head(self, handler: ast.ExceptHandler) -> Step:
        parts: list[ast.AST] = [handler.type] if handler.type is not None else []
        return self._flow.add(handler, parts, False)


def suspends(node: ast.AST) -> bool:
    """Whether evaluating a node may suspend the function around it."""
    return any(
        isinstance(each, (ast.Await, ast.AsyncFor, ast.AsyncWith, ast.Yield, ast.YieldFrom))
        or (isinstance(each, ast.comprehension) and each.is_async)
        for each in walk_here(node)
    )


def _suppressed(context: ast.expr) -> list[ast.expr]:
    """The exceptions that `with suppress(...)` swallows."""
    match context:
        case ast.Call(ast.Name("suppress") | ast.Attribute(attr="suppress"), kinds):
            return kinds
    return []
