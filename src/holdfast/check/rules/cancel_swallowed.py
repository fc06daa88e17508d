"""HF501: a task catches its own cancellation and goes on.

Found by default: a handler that takes a `CancelledError` inside a loop and lets it go round again;
a bare `except` or `except BaseException` that drops it in a function that others await, or in a
loop with a flag; a handler that names it beside errors and logs all of them as a failure. Pedantic:
where the one who catches it says so by name and ends, where the loop has a flag, where it is at the
end of what may be a task's body, and in close methods.

Silent where it is right: a task that was cancelled is joined, the error is raised again, stored or
handed on, nothing in the `try` waits, it is the entry of the program, `uncancel()` is called.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from holdfast.check.finding import Finding
from holdfast.check.model.flow import Node, catches_cancellation, walk_here
from holdfast.check.model.function import Function
from holdfast.check.model.memo import remembered
from holdfast.check.model.module import Module
from holdfast.check.model.roles import is_close_name
from holdfast.check.model.tasks import resolve_function
from holdfast.check.model.waits import awaits_in, is_joining
from holdfast.check.rules.rule import Rule, found, related

__all__ = ["RULE", "swallowing_in"]

_WORDS = re.compile(r"CancelledError|BaseException|except\s*:")
_BROAD = {"", "BaseException"}
# Named beside it, these say that the end of the program is meant.
_ENDING = {"KeyboardInterrupt", "SystemExit", "GeneratorExit"}
_LEAVES = {"exit", "_exit", "abort", "reraise", "uncancel", "cancelling", "fail", "skip"}
_HANDS_ON = {
    "set_exception", "append", "put", "put_nowait", "add", "send", "send_nowait", "cancel", "throw",
    "extend", "set_result",
}  # fmt: skip
_SAYS = {
    "debug", "info", "warning", "warn", "error", "exception", "critical", "log", "print", "str",
    "repr", "type", "isinstance", "format", "format_exc", "print_exc", "print_exception",
}  # fmt: skip
_FAILURE = {"warning", "warn", "error", "exception", "critical"}
_ENTRIES = {"main", "amain", "async_main", "_main", "main_async"}
_RUNS = {"asyncio.run", "anyio.run", "trio.run", "uvloop.run"}


@dataclass(frozen=True, slots=True, eq=False)
class _Catch:
    """A place that takes the cancellation: a handler, or a `with suppress(...)`."""

    function: Function
    head: ast.AST
    """What says which errors are taken; a bare handler as a whole."""
    around: ast.Try | ast.With
    kinds: frozenset[str]
    handler: ast.ExceptHandler | None

    @property
    def words(self) -> str:
        names = ", ".join(sorted(self.kinds - {""}))
        if self.handler is None:
            return f"`suppress({names})`"
        return "a bare `except`" if "" in self.kinds else f"`except {names}`"

    @property
    def is_broad(self) -> bool:
        return bool(self.kinds & _BROAD) or {"Exception", "CancelledError"} <= self.kinds


def check(module: Module) -> Iterator[Finding]:
    if _WORDS.search(module.source.text) is None:
        return
    for function in module.functions:
        if not function.is_async:
            continue
        for catch in _catches(function):
            waits = _own_waits(catch)
            if waits and _swallows(catch) and not _is_exempt(function):
                yield _finding(catch, waits)


def _is_exempt(function: Function) -> bool:
    return function in _entries(function.module) or _accounts(function)


def swallowing_in(function: Function) -> Iterator[ast.AST]:
    """The places in a function that take its own cancellation and surely go round again."""
    for catch in _catches(function):
        waits = _own_waits(catch)
        if waits and _swallows(catch) and _comes_again(catch, waits) == "always":
            yield catch.head


def _finding(catch: _Catch, waits: list[ast.AST]) -> Finding:
    function = catch.function
    module = function.module
    again = _comes_again(catch, waits)
    callers = _awaited_by(function)
    sure = again == "always" or (not again and _is_dropped_for_others(catch, callers))
    sure = sure or _is_blind(catch, again) or _is_told_as_failure(catch)
    if is_close_name(function.name) or _is_last_effort(catch, waits):
        sure = False
    goes = "and goes round again" if again else "and goes on as if nothing had been asked"
    places = [related(module, waits[0], "the cancellation arrives at this await")]
    if sure and not again and callers:
        places.append(related(module, callers[0], "the caller goes on as well"))
    return found(
        "HF501",
        module,
        catch.head,
        f"{catch.words} takes the task's own cancellation, which arrives at the `await` on line "
        f"{getattr(waits[0], 'lineno', 0)}, {goes}: whoever cancelled it waits in vain",
        *places,
        pedantic=not sure,
    )


# --- who catches ---------------------------------------------------------------------------------


def _catches(function: Function) -> Iterator[_Catch]:
    for node in function.nodes:
        if isinstance(node, ast.Try):
            handler = next((h for h in node.handlers if catches_cancellation(h.type)), None)
            if handler is not None:
                kinds = _kinds(function, handler.type)
                yield _Catch(function, handler.type or handler, node, kinds, handler)
        elif isinstance(node, ast.With):
            for item in node.items:
                kinds = _suppressed(function, item.context_expr)
                if kinds:
                    yield _Catch(function, item.context_expr, node, kinds, None)


def _kinds(function: Function, kind: ast.expr | None) -> frozenset[str]:
    """The plain names of what is caught; a name from elsewhere is not asyncio's."""
    if kind is None:
        return frozenset({""})
    kinds = kind.elts if isinstance(kind, ast.Tuple) else [kind]
    names = [function.module.names.resolve(each) for each in kinds]
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
            return kinds if kinds & {"CancelledError", "BaseException"} else frozenset()
    return frozenset()


def _own_waits(catch: _Catch) -> list[ast.AST]:
    """The awaits from which it can only be one's own cancellation that comes."""
    if not catch.kinds & (_BROAD | {"CancelledError"}) or catch.kinds & _ENDING:
        return []
    function = catch.function
    if _cancels_before(function, catch.around) or _is_raised_around(catch):
        return []
    waits = [each for each in awaits_in(catch.around.body) if not _is_kept_from(catch, each)]
    return [
        each
        for each in waits
        if not is_joining(function, each) and not _is_cancelling(function, each)
    ]


def _cancels_before(function: Function, around: ast.Try | ast.With) -> bool:
    last = around.body[-1].end_lineno or around.lineno
    return any(
        isinstance(call.func, ast.Attribute)
        and call.func.attr in ("cancel", "throw", "kill", "terminate")
        and call.lineno <= last
        for call in function.calls
    )


def _is_raised_around(catch: _Catch) -> bool:
    """Whether it stands in a handler that raises what it has, or under a shield."""
    parents = catch.function.module.parents
    up = parents.get(catch.around)
    while up is not None and up is not catch.function.node:
        match up:
            case ast.ExceptHandler() if _has_raise(up):
                return True
            case ast.With(items) if any(map(_is_shield, items)):
                return True
        up = parents.get(up)
    return isinstance(catch.around, ast.With) and any(map(_is_shield, catch.around.items))


def _is_shield(item: ast.withitem) -> bool:
    call = item.context_expr
    return isinstance(call, ast.Call) and any(each.arg == "shield" for each in call.keywords)


def _is_cancelling(function: Function, node: ast.AST) -> bool:
    """`await cancel_and_wait(task)`: what it waits for, it has cancelled."""
    for each in walk_here(node) if isinstance(node, ast.Await) else ():
        if isinstance(each, ast.Call) and "cancel" in function.name_of(each.func).lower():
            return True
    return False


def _is_kept_from(catch: _Catch, node: ast.AST) -> bool:
    """Whether a `try` inside takes the cancellation first and lets nothing out."""
    parents = catch.function.module.parents
    below, up = node, parents.get(node)
    while up is not None and up is not catch.around:
        if isinstance(up, ast.Try) and below in up.body:
            taking = next((h for h in up.handlers if catches_cancellation(h.type)), None)
            if taking is not None and not _has_raise(taking):
                return True
        below, up = up, parents.get(up)
    return False


def _accounts(function: Function) -> bool:
    """Whether it counts its cancellations itself."""
    return any(
        isinstance(call.func, ast.Attribute) and call.func.attr in ("uncancel", "cancelling")
        for call in function.calls
    )


# --- what becomes of it --------------------------------------------------------------------------


def _swallows(catch: _Catch) -> bool:
    handler = catch.handler
    if handler is None:
        return True
    if _has_raise(handler) or _leaves(catch.function, handler) or _tells_apart(handler):
        return False
    return not _hands_on(catch.function, handler) and not _raised_later(catch)


def _has_raise(handler: ast.ExceptHandler) -> bool:
    return any(isinstance(each, ast.Raise) for part in handler.body for each in walk_here(part))


def _tells_apart(handler: ast.ExceptHandler) -> bool:
    """Whether its body speaks of `CancelledError`: then it knows what it has, and what it does."""
    return any(
        getattr(each, "attr", getattr(each, "id", "")) == "CancelledError"
        for part in handler.body
        for each in walk_here(part)
        if isinstance(each, (ast.Attribute, ast.Name))
    )


def _calls_in(handler: ast.ExceptHandler) -> Iterator[ast.Call]:
    for part in handler.body:
        yield from (each for each in walk_here(part) if isinstance(each, ast.Call))


def _leaves(function: Function, handler: ast.ExceptHandler) -> bool:
    for call in _calls_in(handler):
        if function.name_of(call.func).rpartition(".")[2] in _LEAVES:
            return True
        if any(_raises(each) for each in resolve_function(function, call.func)):
            return True
    return False


def _raises(function: Function) -> bool:
    return any(isinstance(each, ast.Raise) for each in function.nodes)


def _hands_on(function: Function, handler: ast.ExceptHandler) -> bool:
    """Whether the error goes to somebody who may raise it later."""
    for call in _calls_in(handler):
        name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        if name in _HANDS_ON or function.name_of(call.func) == "sys.exc_info":
            return True
    if not handler.name:
        return False
    uses = (
        each
        for part in handler.body
        for each in walk_here(part)
        if isinstance(each, ast.Name) and each.id == handler.name
    )
    return any(_is_kept(function, handler, use) for use in uses)


def _is_kept(function: Function, handler: ast.ExceptHandler, use: ast.Name) -> bool:
    """Whether a use of the error's name is more than speaking about it."""
    parents = function.module.parents
    below: ast.AST = use
    up = parents.get(use)
    while up is not None and up is not handler:
        match up:
            case ast.Call(func) if below is not func:
                # What is told to a function is not kept; whether that raises was asked before.
                return function.name_of(func).rpartition(".")[2] in _HANDS_ON
            case ast.JoinedStr() | ast.FormattedValue() | ast.Compare() | ast.Attribute():
                return False
            case ast.Assign() | ast.AnnAssign() | ast.Return() | ast.Yield() | ast.NamedExpr():
                return True
        below, up = up, parents.get(up)
    return False


def _raised_later(catch: _Catch) -> bool:
    """Whether the handler notes something, and a `raise` comes after it."""
    handler = catch.handler
    assert handler is not None
    notes = any(
        isinstance(each, (ast.Assign, ast.AnnAssign, ast.NamedExpr, ast.AugAssign))
        for part in handler.body
        for each in walk_here(part)
    )
    after = handler.end_lineno or handler.lineno
    return notes and any(
        isinstance(each, ast.Raise) and each.lineno > after for each in catch.function.nodes
    )


# --- how it goes on ------------------------------------------------------------------------------


def _comes_again(catch: _Catch, waits: list[ast.AST]) -> str:
    """Whether the same await can come again: `always`, `maybe` if something may end the loop."""
    function = catch.function
    starts = _starts(catch)
    goals = {node for node in map(function.flow.of, waits) if node is not None}
    if not starts or not goals or not _reaches(starts, goals):
        return ""
    loop = _loop_around(catch)
    if loop is None or (isinstance(loop, ast.While) and not _is_constant(loop.test)):
        return "maybe"
    return "maybe" if catch.handler is not None and _may_end(catch.handler) else "always"


def _starts(catch: _Catch) -> list[Node]:
    flow = catch.function.flow
    if catch.handler is not None:
        head = flow.of(catch.handler)
        return [head] if head is not None else []
    # A `with` has no step for leaving it: what its last statements lead to comes next.
    inside = {id(each) for part in catch.around.body for each in walk_here(part)}
    steps = [node for node in flow.nodes if id(node.stmt) in inside]
    last = [node for node in steps if isinstance(node.stmt, ast.stmt)]
    return last[-1:] if last and not isinstance(last[-1].stmt, (ast.Return, ast.Break)) else []


def _reaches(starts: list[Node], goals: set[Node]) -> bool:
    seen: set[Node] = set()
    todo = [each for start in starts for each in start.after]
    while todo:
        node = todo.pop()
        if node in seen:
            continue
        seen.add(node)
        if node in goals:
            return True
        todo += node.after
    return False


def _loop_around(catch: _Catch) -> ast.For | ast.AsyncFor | ast.While | None:
    parents = catch.function.module.parents
    up = parents.get(catch.around)
    while up is not None and up is not catch.function.node:
        if isinstance(up, (ast.For, ast.AsyncFor, ast.While)):
            return up
        up = parents.get(up)
    return None


def _is_constant(test: ast.expr) -> bool:
    return isinstance(test, ast.Constant) and bool(test.value)


def _may_end(handler: ast.ExceptHandler) -> bool:
    return any(
        isinstance(each, (ast.Return, ast.Break))
        for part in handler.body
        for each in walk_here(part)
    )


def _is_dropped_for_others(catch: _Catch, callers: list[ast.Call]) -> bool:
    """Whether it is dropped in a function that somebody awaits and that is no task of its own."""
    if not callers or _is_given_away(catch.function):
        return False
    if catch.is_broad:
        return True
    # Who says it by name may have reasons; who calls that in an endless loop is never told.
    return any(_is_in_endless_loop(catch.function.module, each) for each in callers)


def _is_blind(catch: _Catch, again: str) -> bool:
    """Whether a handler of everything just goes round: only the flag of the loop can end it, and
    whoever cancels does not know of that."""
    handler = catch.handler
    if again != "maybe" or handler is None or not catch.kinds & _BROAD or _may_end(handler):
        return False
    return isinstance(_loop_around(catch), ast.While) and all(
        isinstance(each, (ast.Pass, ast.Continue, ast.Expr)) for each in handler.body
    )


def _is_told_as_failure(catch: _Catch) -> bool:
    """Whether it is named beside errors, and all of them are told as one failure."""
    if catch.handler is None or "CancelledError" not in catch.kinds or len(catch.kinds) < 2:
        return False
    return any(
        isinstance(call.func, ast.Attribute) and call.func.attr in _FAILURE
        for call in _calls_in(catch.handler)
    )


def _is_in_endless_loop(module: Module, call: ast.AST) -> bool:
    up = module.parents.get(call)
    while up is not None and not isinstance(
        up, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    ):
        if isinstance(up, ast.While) and _is_constant(up.test):
            return True
        up = module.parents.get(up)
    return False


def _is_given_away(function: Function) -> bool:
    """Whether it is also handed to something that runs it: the end of a task's body is its own."""
    parents = function.module.parents
    for where in (function.module.body, *function.module.functions):
        for node in where.nodes:
            match node:
                case ast.Name(name, ast.Load()) if name == function.name:
                    pass
                case ast.Attribute(_, name, ast.Load()) if name == function.name:
                    pass
                case _:
                    continue
            parent = parents.get(node)
            if not isinstance(parent, ast.Call) or parent.func is not node:
                return True
            if not isinstance(parents.get(parent), (ast.Await, ast.Attribute)):
                return True
    return False


def _is_last_effort(catch: _Catch, waits: list[ast.AST]) -> bool:
    """Whether all that is tried is to put something away, or it stands in a `finally`: there the
    error that is under way goes on."""
    calls = [each.value for each in waits if isinstance(each, ast.Await)]
    names = [
        catch.function.name_of(each.func).rpartition(".")[2]
        for each in calls
        if isinstance(each, ast.Call)
    ]
    if len(names) == len(waits) and all(map(is_close_name, names)):
        return True
    parents = catch.function.module.parents
    below: ast.AST = catch.around
    up = parents.get(below)
    while up is not None and up is not catch.function.node:
        if isinstance(up, ast.Try) and below in up.finalbody:
            return True
        below, up = up, parents.get(up)
    return False


def _awaited_by(function: Function) -> list[ast.Call]:
    """The places in the module that await a call of this function."""
    found: list[ast.Call] = []
    for other, call in function.module.calls():
        if isinstance(function.module.parents.get(call), ast.Await) and other is not function:
            if function in resolve_function(other, call.func):
                found.append(call)
    return found


@remembered
def _entries(module: Module) -> set[Function]:
    """The functions with which a program begins: nobody is above them who could have asked."""
    found = {each for each in module.functions if each.name in _ENTRIES}
    for function, call in module.calls():
        name = function.name_of(call.func)
        if (name in _RUNS or name.endswith(".run_until_complete")) and call.args:
            given = call.args[0]
            func = given.func if isinstance(given, ast.Call) else given
            found.update(resolve_function(function, func))
    return found


RULE = Rule("HF501", check)
