"""HF531: something is acquired, something else is awaited, and only then the `try` begins.

Reported, with evidence from three places of one block: `x = await ...` (or `await lock.acquire()`, or a
plain call with such a name: `x = self.acquire_connection()`), an `await` after it that nothing guards,
and a `try` whose `finally` (or handler of everything) releases `x`, which shows that the code means to
release it on every path. Also without a `try`: a lock, or something that a call acquires by its name,
is released further down the same block, after an `await`. A flag of the object counts as a lock if the
function returns or raises while it is set.
Not reported: where the code between guards it or passes it on, a `try` around all of it mentions `x`, or
an `async with` around it has the object that it was acquired from: that closes what it has given out.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from handfast._check.finding import Finding
from handfast._check.model.syntax.ancestors import (
    TRY,
    AnyTry,
    ancestors,
    calls_in,
    contains,
    nodes_in,
)
from handfast._check.model.syntax.children import walk_here
from handfast._check.model.syntax.function import Function
from handfast._check.model.syntax.handlers import cancel_handlers
from handfast._check.model.syntax.memo import remembered
from handfast._check.model.syntax.module import Module
from handfast._check.model.tasks.awaited import awaits_in
from handfast._check.model.tasks.method_roles import is_close_name
from handfast._check.model.vocabulary import CLOSING
from handfast._check.rules.rule import Rule, related, report

_RELEASING = CLOSING | {"cleanup", "put", "put_nowait", "unlock", "quit"}
_ACQUIRING = re.compile(r"_*(acquire|checkout|check_out|borrow|lease)(_\w+)?")
# `self._idle.append(connection)` releases the connection.
_ADDING = {"append", "appendleft", "add"}
_FREE = re.compile(r"(?i)free|idle|pool|avail|unused|spare")
_PASSING_ON = {"append", "add", "setdefault", "push_async_callback", "callback", "enter_context"}


def check(module: Module) -> Iterator[Finding]:
    for function in module.functions:
        if function.is_async:
            for node in function.nodes:
                if isinstance(node, TRY):
                    yield from _before(function, node)
                elif isinstance(node, (ast.Assign, ast.Expr)):
                    yield from _without(function, node)
                    yield from _flag_held(function, node)


def _before(function: Function, guard: AnyTry) -> Iterator[Finding]:
    """What is acquired before a `try`, in the same block."""
    parent, field, block = _block_of(function, guard)
    last = block.index(guard)
    for at, name in _acquisitions(function, parent, field):
        if at >= last:
            break
        stmt, between = block[at], block[at + 1 : last]
        end = _end_of(function, guard, name)
        if end is None or any(_guards(function, each, name) for each in between):
            continue
        wait = next(iter(awaits_in(between)), None)
        if wait is not None and not _is_mentioned_around(function, stmt, name):
            late = f"the `try` that releases it begins only on line {guard.lineno}"
            yield _finding(function, name, stmt, wait, end, late)


@remembered
def _acquisitions(function: Function, parent: ast.AST, field: str) -> list[tuple[int, str]]:
    """The positions in a block that acquire something, each with its name."""
    return [
        (at, name)
        for at, stmt in enumerate(getattr(parent, field))
        for name in _acquired(function, stmt)
    ]


def _without(function: Function, stmt: ast.Assign | ast.Expr) -> Iterator[Finding]:
    """What is acquired, and released in the same block by a plain statement, which an error or a
    cancellation between skips."""
    names = _acquired(function, stmt) if _acquires_by_name(stmt) else []
    if not names:
        return
    _, _, block = _block_of(function, stmt)
    after = block[block.index(stmt) + 1 :]
    for name in names:
        back = next((each for each in after if _releases(function, [each], name)), None)
        if not isinstance(back, ast.Expr):
            continue
        between = after[: after.index(back)]
        wait = next(iter(awaits_in(between)), None)
        if wait is None or _is_mentioned_around(function, stmt, name):
            continue
        if not any(_passes_on(function, each, name) for each in between):
            yield _finding(function, name, stmt, wait, back, f"released only on line {back.lineno}")


def _flag_held(function: Function, stmt: ast.Assign | ast.Expr) -> Iterator[Finding]:
    """`if self.busy: return`, `self.busy = True`, an `await`, `self.busy = False`."""
    attr = _set_flag(function, stmt, True)
    if not attr or function.is_generator or is_close_name(function.name):
        return
    _, _, block = _block_of(function, stmt)
    after = block[block.index(stmt) + 1 :]
    back = next((each for each in after if _set_flag(function, each, False) == attr), None)
    if back is None or not _is_refused(function, stmt, attr):
        return
    between = after[: after.index(back)]
    wait = next(iter(awaits_in(between)), None)
    name = f"self.{attr}"
    if (
        wait is None
        or _mentions(function, between, name)
        or _is_mentioned_around(function, stmt, name)
    ):
        return
    yield report(
        "HF531",
        function.module,
        wait,
        f"A cancellation or an error at this `await` leaves `{name}` set, because only line "
        f"{back.lineno} resets it, and all later calls are refused: reset it in a `finally`",
        related(function.module, stmt, "set here"),
        related(function.module, back, "reset only here"),
    )


def _set_flag(function: Function, stmt: ast.stmt, value: bool) -> str:
    """The attribute of the object that a statement sets to this value."""
    match stmt:
        case ast.Assign([target], ast.Constant(bool() as given)) if given is value:
            return function.own_attribute(target)
    return ""


def _is_refused(function: Function, stmt: ast.stmt, attr: str) -> bool:
    """Whether the function returns or raises before a statement if the flag is set."""
    return any(
        isinstance(node, ast.If)
        and node.lineno < stmt.lineno
        and function.own_attribute(node.test) == attr
        and isinstance(node.body[-1], ast.Return | ast.Raise)
        for node in function.nodes
    )


def _acquires_by_name(stmt: ast.Assign | ast.Expr) -> bool:
    """Whether a statement acquires by name."""
    call = stmt.value.value if isinstance(stmt.value, ast.Await) else stmt.value
    match call:
        case ast.Call(ast.Attribute(attr=method)):
            return _ACQUIRING.fullmatch(method) is not None
    return False


def _block_of(function: Function, stmt: ast.stmt) -> tuple[ast.AST, str, list[ast.stmt]]:
    """The block that a statement is in, and whose part it is."""
    parent = function.module.parents[stmt]
    for name in ("body", "orelse", "finalbody"):
        block = getattr(parent, name, None)
        if isinstance(block, list) and stmt in block:
            return parent, name, block
    raise ValueError(stmt)


def _end_of(function: Function, guard: AnyTry, name: str) -> ast.stmt | None:
    """Where a `try` releases something on every path."""
    taking = [each.body for each in cancel_handlers(function, guard)]
    for body in (guard.finalbody, *taking):
        if _releases(function, body, name):
            return body[0]
    return None


def _finding(
    function: Function, name: str, stmt: ast.stmt, wait: ast.AST, end: ast.stmt, late: str
) -> Finding:
    module = function.module
    return report(
        "HF531",
        module,
        wait,
        f"`{name}` is acquired on line {stmt.lineno}, and {late}: a cancellation or an error at this "
        "`await` leaves it acquired; begin the `try` right after the acquisition",
        related(module, stmt, "acquired here"),
        related(module, end, "released only from here"),
    )


def _acquired(function: Function, stmt: ast.stmt) -> list[str]:
    """The names of what a statement acquires: the targets of the assignment, or the lock itself."""
    match stmt:
        case ast.Assign([target], ast.Await(ast.Call())):
            parts = target.elts if isinstance(target, ast.Tuple) else [target]
            return [each.id for each in parts if isinstance(each, ast.Name)]
        case ast.AnnAssign(ast.Name(name), _, ast.Await(ast.Call())):
            return [name]
        case ast.Assign([ast.Name(name)], ast.Call(ast.Attribute(attr=method))):
            return [name] if _ACQUIRING.fullmatch(method) else []
        case ast.Expr(ast.Await(ast.Call(ast.Attribute(lock, "acquire")))):
            return list(filter(None, [function.name_of(lock)]))
    return []


def _releases(function: Function, body: list[ast.stmt], name: str) -> bool:
    for call in calls_in(body):
        match call:
            case ast.Call(ast.Attribute(free, method), [only]) if method in _ADDING:
                if function.name_of(only) == name and _FREE.search(function.name_of(free)):
                    return True
            case ast.Call(ast.Attribute(receiver, method), arguments) if method in _RELEASING:
                # `pool.release(connection)` releases the connection, not the pool.
                released = arguments if arguments else [receiver]
                if name in [function.name_of(each) for each in released]:
                    return True
    return False


def _guards(function: Function, stmt: ast.stmt, name: str) -> bool:
    """Whether a statement guards it, releases it, passes it on, or rebinds the name."""
    if contains([stmt], *TRY, ast.Return):
        return True
    return _passes_on(function, stmt, name) or _releases(function, [stmt], name)


def _passes_on(function: Function, stmt: ast.stmt, name: str) -> bool:
    """Whether a statement passes it on, or rebinds the name."""
    for each in walk_here(stmt):
        match each:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                return True
            case ast.Name(other, ast.Store()) if other == name:
                return True
            case ast.Call(ast.Attribute(_, method), arguments) if (
                # `pool.acquire(key)`: what is released by this name is acquired only here.
                method in _PASSING_ON or _ACQUIRING.fullmatch(method)
            ):
                if name in [function.name_of(given) for given in arguments]:
                    return True
            # `self.data = await read(x)` stores the data, not `x`.
            case ast.Assign([ast.Attribute() | ast.Subscript()], value) if not isinstance(
                value, ast.Await
            ):
                if _mentions(function, [value], name):
                    return True
            case ast.withitem(context) if _mentions(function, [context], name):
                return True
    return False


def _is_mentioned_around(function: Function, stmt: ast.stmt, name: str) -> bool:
    """Whether a `try` around all of it mentions it in a handler or in its `finally`."""
    for up in ancestors(function, stmt):
        if isinstance(up, TRY):
            ends = [*up.finalbody, *(part for handler in up.handlers for part in handler.body)]
            if _mentions(function, ends, name):
                return True
    return _is_of_context(function, stmt)


def _is_of_context(function: Function, stmt: ast.stmt) -> bool:
    """`async with playwright() as p: browser = await p.firefox.launch()`."""
    match stmt:
        case ast.Assign(value=ast.Await(ast.Call(ast.Attribute(source)))):
            first = function.name_of(source).partition(".")[0]
        case _:
            return False
    return any(
        isinstance(item.optional_vars, ast.Name) and item.optional_vars.id == first
        for up in ancestors(function, stmt)
        if isinstance(up, ast.AsyncWith)
        for item in up.items
    )


def _mentions(function: Function, body: Iterable[ast.AST], name: str) -> bool:
    expressions = (each for each in nodes_in(body) if isinstance(each, ast.expr))
    return any(function.name_of(each) == name for each in expressions)


RULE = Rule(
    "HF531",
    check,
    needs=(
        "async ",
        "finally|except:|except :|BaseException|CancelledError|acquire|checkout|check_out|borrow|lease"
        "|<flags>",
    ),
)
