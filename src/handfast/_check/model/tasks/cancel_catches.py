"""Places that catch a CancelledError of their own task, and what they do with it.

A task that catches its cancellation and continues breaks `task.cancel()`, `wait_for`, `timeout()` and
task groups. But most code that catches a CancelledError is right: it joins a task that it has cancelled
itself, or it raises, stores or passes on the error. Most of this file recognises such code.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from handfast._check.model.syntax.ancestors import (
    TRY,
    AnyTry,
    ancestors,
    calls_in,
    contains,
    enclosing_loop,
    is_true,
    last_name,
    nodes_in,
    steps_up,
)
from handfast._check.model.syntax.call_graph import resolve_function
from handfast._check.model.syntax.control_flow import Step
from handfast._check.model.syntax.function import Function
from handfast._check.model.syntax.handlers import (
    cancel_handlers,
    caught,
    is_cancellation,
    names_cancellation,
)
from handfast._check.model.syntax.memo import remembered
from handfast._check.model.syntax.module import Module
from handfast._check.model.tasks.awaited import awaits_in, is_joining

BROAD = {"", "BaseException"}
"""What is caught by a bare `except` and by `except BaseException`."""
# Caught beside it, these show that the end of the program is handled.
_PROGRAM_END = {"KeyboardInterrupt", "SystemExit", "GeneratorExit"}
# Functions that raise, end the process, or show that the code counts its cancellations.
_LEAVING = {"exit", "_exit", "abort", "reraise", "uncancel", "cancelling", "fail", "skip"}
_PASSING_ON = {
    "set_exception", "append", "put", "put_nowait", "add", "send", "send_nowait", "cancel", "throw",
    "extend", "set_result",
}  # fmt: skip
# Of these, a container passes on nothing but what it is given: `log.append("lost")` drops the error.
_COLLECTING = {"append", "add", "extend"}
# A function that kills a process, or throws into a generator, expects the error from it, too.
_CANCELLING = {"cancel", "throw", "kill", "terminate"}
_ENTRY_POINTS = {"main", "amain", "async_main", "_main", "main_async"}
_RUNS = {"asyncio.run", "anyio.run", "trio.run", "uvloop.run"}

Repeats = Literal["always", "maybe", ""]


@dataclass(frozen=True, slots=True, eq=False)
class CancelCatch:
    """A place that catches a cancellation: a handler, or a `with suppress(...)`."""

    function: Function
    head: ast.AST
    """The expression that names the errors; the whole handler if it is bare."""
    around: AnyTry | ast.With
    kinds: frozenset[str]
    """The last names of the errors; empty for a bare handler."""
    handler: ast.ExceptHandler | None

    def own_waits(self) -> list[ast.AST]:
        """The awaits inside at which only the task's own cancellation can arrive."""
        if not self.kinds & (BROAD | {"CancelledError"}) or self.kinds & _PROGRAM_END:
            return []
        if self.cancels_before() or self.is_raised_around():
            return []
        return [
            each
            for each in awaits_in(self.around.body)
            if not self.is_caught_inside(each)
            and not is_joining(self.function, each)
            and not _is_cancelling(self.function, each)
        ]

    def swallows(self) -> bool:
        """Whether the error ends here: it is not raised again, stored or passed on."""
        handler = self.handler
        if handler is None:
            return True
        if (
            _has_raise(handler)
            or _leaves(self.function, handler)
            or _is_named_in(self.function, handler)
        ):
            return False
        if self._is_raised_later() or self._is_returned():
            return False
        return not _passes_on(self.function, handler)

    def translates(self) -> str:
        """The error that the handler raises in place of the CancelledError; empty if it may raise that,
        or if it also handles other errors."""
        handler = self.handler
        if handler is None or self.kinds != {"CancelledError"}:
            return ""
        if not isinstance(handler.body[-1], ast.Raise):
            return ""
        raised = [each.exc for each in nodes_in(handler.body) if isinstance(each, ast.Raise)]
        names = [_error_name(self.function, each) for each in raised]
        return names[0] if names and all(names) else ""

    def repeats(self, waits: list[ast.AST]) -> Repeats:
        """Whether the same await runs again: `maybe` if something may end the loop."""
        flow = self.function.flow
        loop = enclosing_loop(self.function, self.around)
        goals = {step for step in map(flow.of, waits) if step is not None}
        if loop is None or goals.isdisjoint(self.steps_after()):
            return ""
        # A `for` has an end, but each iteration that swallows is one cancellation lost.
        if isinstance(loop, ast.While) and not is_true(loop.test):
            return "maybe"
        return "maybe" if self.may_end else "always"

    @property
    def may_end(self) -> bool:
        """Whether the handler may leave the loop or the function."""
        return self.handler is not None and contains(self.handler.body, ast.Return, ast.Break)

    def cancels_before(self, waited: ast.expr | None = None) -> bool:
        """Whether the function cancels or kills something first: then it expects the error.

        With `waited`, only if that may be what is cancelled.
        """
        last = self.around.body[-1].end_lineno or self.around.lineno
        roots = self.function.roots(waited) if waited is not None else frozenset()
        return any(
            line <= last and (not roots or not self._are_two(roots, self.function.roots(cancelled)))
            for line, cancelled in _cancelled_in(self.function)
        )

    def _are_two(self, these: frozenset[str], those: frozenset[str]) -> bool:
        """Whether two expressions are certainly different attributes of the object."""
        own = [root.startswith("self.") for root in (*these, *those)]
        return bool(these and those) and all(own) and these.isdisjoint(those)

    def is_raised_around(self) -> bool:
        """Whether it is in a handler that raises its own error, or in a shielded scope."""
        for up in ancestors(self.function, self.around):
            match up:
                case ast.ExceptHandler() if _has_raise(up):
                    return True
                case ast.With(items) if any(map(_is_shield, items)):
                    return True
        return isinstance(self.around, ast.With) and any(map(_is_shield, self.around.items))

    def is_caught_inside(self, node: ast.AST) -> bool:
        """Whether an inner `try` catches the cancellation first and does not raise it."""
        for part, up in steps_up(self.function, node):
            if up is self.around:  # a `try`, or the `with` of a `suppress`
                return False
            if isinstance(up, TRY) and part in up.body:
                taking = cancel_handlers(self.function, up)
                if taking and not _has_raise(taking[0]):
                    return True
        return False

    def _is_raised_later(self) -> bool:
        """Whether the handler stores something, and a `raise` follows it."""
        handler = self.handler
        assert handler is not None
        # `error = e` in the handler, `raise error` after the cleanup.
        stores = contains(handler.body, ast.Assign, ast.AnnAssign, ast.NamedExpr, ast.AugAssign)
        after = handler.end_lineno or handler.lineno
        return stores and any(
            isinstance(each, ast.Raise) and each.lineno > after for each in self.function.nodes
        )

    def _is_returned(self) -> bool:
        """Whether the handler sets a name to True that the function returns: the caller then raises."""
        assert self.handler is not None
        flags = {
            target.id
            for each in nodes_in(self.handler.body)
            if isinstance(each, ast.Assign) and is_true(each.value)
            for target in each.targets
            if isinstance(target, ast.Name)
        }
        return bool(flags) and any(
            isinstance(each, ast.Return)
            and isinstance(each.value, ast.Name)
            and each.value.id in flags
            for each in self.function.nodes
        )

    def steps_after(self) -> set[Step]:
        """The steps that follow the catch on a path without exceptions."""
        # Not `Flow.reaches`: an exception on the way is another error, and ends the task as it should.
        seen: set[Step] = set()
        todo = [each for start in self._starts() for each in start.after]
        while todo:
            step = todo.pop()
            if step not in seen:
                seen.add(step)
                todo += step.after
        return seen

    def _starts(self) -> list[Step]:
        """The steps at which execution continues after the catch."""
        flow = self.function.flow
        if self.handler is not None:
            head = flow.of(self.handler)
            return [head] if head is not None else []
        # The graph has no step for leaving a plain `with`: what its last statement leads to is next.
        inside = {id(each) for each in nodes_in(self.around.body)}
        steps = [each for each in flow.nodes if id(each.stmt) in inside]
        last = [each for each in steps if isinstance(each.stmt, ast.stmt)][-1:]
        return [each for each in last if not isinstance(each.stmt, (ast.Return, ast.Break))]


@remembered
def _cancelled_in(function: Function) -> tuple[tuple[int, ast.expr], ...]:
    """What a function cancels or kills, each with the line."""
    return tuple(
        (call.lineno, call.func.value)
        for call in function.calls
        if isinstance(call.func, ast.Attribute) and call.func.attr in _CANCELLING
    )


def cancel_catches(function: Function) -> Iterator[CancelCatch]:
    """The places in a function that catch a cancellation."""
    for node in function.nodes:
        if isinstance(node, TRY):
            for handler in cancel_handlers(function, node)[:1]:
                kinds = _kinds(function, handler.type)
                yield CancelCatch(function, handler.type or handler, node, kinds, handler)
        elif isinstance(node, ast.With):
            for item in node.items:
                kinds = _suppressed(function, item.context_expr)
                if kinds:
                    yield CancelCatch(function, item.context_expr, node, kinds, None)


@remembered
def entry_points(module: Module) -> set[Function]:
    """The functions with which a program begins: nothing above them could have cancelled them."""
    found = {each for each in module.functions if each.name in _ENTRY_POINTS}
    for function, call in module.calls():
        name = function.name_of(call.func)
        if (name in _RUNS or name.endswith(".run_until_complete")) and call.args:
            given = call.args[0]
            func = given.func if isinstance(given, ast.Call) else given
            found.update(resolve_function(function, func))
    return found


def endless_catches(function: Function) -> Iterator[ast.AST]:
    """The places in a function that catch its own cancellation and certainly loop again."""
    for catch in cancel_catches(function):
        waits = catch.own_waits()
        if waits and catch.swallows() and catch.repeats(waits) == "always":
            yield catch.head


def _kinds(function: Function, kind: ast.expr | None) -> frozenset[str]:
    names = caught(function, kind)
    # `concurrent.futures.CancelledError` is that of a future of an executor.
    return frozenset(
        name.rpartition(".")[2] for name in names if not name.startswith("concurrent.")
    )


def _suppressed(function: Function, node: ast.expr) -> frozenset[str]:
    match node:
        case ast.Call(func, arguments) if function.name_of(func) in (
            "contextlib.suppress",
            "suppress",
        ):
            kinds = frozenset().union(*(_kinds(function, each) for each in arguments), frozenset())
            return kinds if any(map(is_cancellation, kinds)) else frozenset()
    return frozenset()


def _is_shield(item: ast.withitem) -> bool:
    call = item.context_expr
    return isinstance(call, ast.Call) and any(each.arg == "shield" for each in call.keywords)


def _is_cancelling(function: Function, node: ast.AST) -> bool:
    """Whether the awaited function cancels what it waits for: `await cancel_and_wait(task)`."""
    return isinstance(node, ast.Await) and any(
        "cancel" in function.name_of(call.func).lower() for call in calls_in([node])
    )


def _error_name(function: Function, raised: ast.expr | None) -> str:
    """The error that is raised, if it is certainly another one than the CancelledError: a class, or what
    a function makes. A name or an attribute may hold the CancelledError."""
    is_call = isinstance(raised, ast.Call)
    made = raised.func if isinstance(raised, ast.Call) else raised
    name = last_name(made)
    if name[:1].isupper():
        return name if made is not None and not names_cancellation(function, made) else ""
    return name if is_call and ("exception" in name or "error" in name) else ""


def _has_raise(handler: ast.ExceptHandler) -> bool:
    return contains(handler.body, ast.Raise)


def _is_named_in(function: Function, handler: ast.ExceptHandler) -> bool:
    """Whether the body names `CancelledError`: then it distinguishes what it has caught."""
    return any(names_cancellation(function, each) for each in nodes_in(handler.body))


def _leaves(function: Function, handler: ast.ExceptHandler) -> bool:
    return any(
        function.last_name_of(call.func) in _LEAVING
        or any(
            isinstance(node, ast.Raise)
            for callee in resolve_function(function, call.func)
            for node in callee.nodes
        )
        for call in calls_in(handler.body)
    )


def _passes_on(function: Function, handler: ast.ExceptHandler) -> bool:
    """Whether other code gets the error, and may raise it later."""
    for call in calls_in(handler.body):
        name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        if function.name_of(call.func) == "sys.exc_info":
            return True
        if name in _PASSING_ON - _COLLECTING:
            return True
    return bool(handler.name) and any(
        isinstance(each, ast.Name) and each.id == handler.name and _is_kept(function, handler, each)
        for each in nodes_in(handler.body)
    )


def _is_kept(function: Function, handler: ast.ExceptHandler, use: ast.Name) -> bool:
    """Whether a use of the error's name stores it, instead of only formatting it."""
    for below, up in steps_up(function, use):
        match up:
            case ast.ExceptHandler() if up is handler:
                return False
            case ast.Call(func) if below is not func:
                # An argument is not kept; whether the function raises was tested before.
                return function.last_name_of(func) in _PASSING_ON
            case ast.JoinedStr() | ast.FormattedValue() | ast.Compare() | ast.Attribute():
                return False
            case ast.Assign() | ast.AnnAssign() | ast.Return() | ast.Yield() | ast.NamedExpr():
                return True
    return False
