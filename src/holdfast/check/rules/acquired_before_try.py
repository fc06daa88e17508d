"""HF531: something is acquired, something else is awaited, and only then the `try` begins.

Evidence from three places of one block: `x = await ...` (or `await lock.acquire()`), an `await`
after it that nothing guards, and a `try` whose `finally` (or handler of everything) gives `x` back:
that shows that the code means to give it back on every way out.

Silent: what lies between guards it itself or hands it to somebody, or a `try` around all of it
speaks of `x`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from holdfast.check.finding import Finding
from holdfast.check.model.flow import catches_cancellation, walk_here
from holdfast.check.model.function import Function
from holdfast.check.model.module import Module
from holdfast.check.model.waits import awaits_in
from holdfast.check.rules.rule import Rule, found, related

__all__ = ["RULE"]

_GIVES_BACK = {
    "release", "close", "aclose", "kill", "terminate", "disconnect", "stop", "shutdown", "cleanup",
    "put", "put_nowait", "unlock", "quit",
}  # fmt: skip
_HANDS_OVER = {"append", "add", "setdefault", "push_async_callback", "callback", "enter_context"}


def check(module: Module) -> Iterator[Finding]:
    for function in module.functions:
        if function.is_async:
            for node in function.nodes:
                if isinstance(node, ast.Try):
                    yield from _before(function, node)


def _before(function: Function, guard: ast.Try) -> Iterator[Finding]:
    """What is acquired before a `try`, in the block that it stands in."""
    block = _block_of(function, guard)
    last = block.index(guard)
    for at, stmt in enumerate(block[:last]):
        for name in _acquired(function, stmt):
            end = _end_of(function, guard, name)
            if end is not None:
                yield from _judge(function, name, stmt, block[at + 1 : last], guard, end)


def _block_of(function: Function, stmt: ast.stmt) -> list[ast.stmt]:
    parent = function.module.parents.get(stmt)
    for name in ("body", "orelse", "finalbody"):
        block = getattr(parent, name, None)
        if isinstance(block, list) and stmt in block:
            return block
    return [stmt]


def _end_of(function: Function, guard: ast.Try, name: str) -> ast.stmt | None:
    """Where a `try` gives something back, whatever ends it."""
    taking = [h.body for h in guard.handlers if catches_cancellation(h.type)]
    for body in (guard.finalbody, *taking):
        if _gives_back(function, body, name):
            return body[0]
    return None


def _judge(
    function: Function,
    name: str,
    stmt: ast.stmt,
    between: list[ast.stmt],
    guard: ast.stmt,
    end: ast.stmt,
) -> Iterator[Finding]:
    if any(_looks_after(function, each, name) for each in between):
        return
    wait = next(iter(awaits_in(between)), None)
    if wait is None or _is_spoken_of_around(function, stmt, name):
        return
    module = function.module
    yield found(
        "HF531",
        module,
        wait,
        f"`{name}` is acquired on line {stmt.lineno}, and the `try` that gives it back begins only on "
        f"line {guard.lineno}: a cancellation or an error at this `await` leaves it in nobody's hands",
        related(module, stmt, "acquired here"),
        related(module, end, "given back only from here"),
    )


def _acquired(function: Function, stmt: ast.stmt) -> list[str]:
    """The names of what a statement acquires: what it is assigned to, or the lock itself."""
    match stmt:
        case ast.Assign([target], ast.Await(ast.Call())):
            parts = target.elts if isinstance(target, ast.Tuple) else [target]
            return [each.id for each in parts if isinstance(each, ast.Name)]
        case ast.AnnAssign(ast.Name(name), _, ast.Await(ast.Call())):
            return [name]
        case ast.Expr(ast.Await(ast.Call(ast.Attribute(lock, "acquire")))):
            return list(filter(None, [function.name_of(lock)]))
    return []


def _gives_back(function: Function, body: list[ast.stmt], name: str) -> bool:
    for part in body:
        for each in walk_here(part):
            match each:
                case ast.Call(ast.Attribute(receiver, method), arguments) if method in _GIVES_BACK:
                    # `pool.release(connection)` gives back the connection, not the pool.
                    back = arguments if arguments else [receiver]
                    if name in [function.name_of(each) for each in back]:
                        return True
    return False


def _looks_after(function: Function, stmt: ast.stmt, name: str) -> bool:
    """Whether a statement guards the thing, gives it back, hands it over, or binds the name anew."""
    for each in walk_here(stmt):
        match each:
            case ast.Try() | ast.Return() | ast.FunctionDef() | ast.AsyncFunctionDef():
                return True
            case ast.Name(other, ast.Store()) if other == name:
                return True
            case ast.Call(ast.Attribute(_, method), arguments) if method in _HANDS_OVER:
                if name in [function.name_of(given) for given in arguments]:
                    return True
            case ast.Assign([ast.Attribute() | ast.Subscript()], value):
                if name in [
                    function.name_of(e) for e in walk_here(value) if isinstance(e, ast.expr)
                ]:
                    return True
            case ast.withitem(context) if name in [
                function.name_of(e) for e in walk_here(context) if isinstance(e, ast.expr)
            ]:
                return True
    return _gives_back(function, [stmt], name)


def _is_spoken_of_around(function: Function, stmt: ast.stmt, name: str) -> bool:
    """Whether a `try` around the whole speaks of it where it ends."""
    parents = function.module.parents
    up = parents.get(stmt)
    while up is not None and up is not function.node:
        if isinstance(up, ast.Try):
            ends = [*up.finalbody, *(part for handler in up.handlers for part in handler.body)]
            words = (
                function.name_of(e) for p in ends for e in walk_here(p) if isinstance(e, ast.expr)
            )
            if name in words:
                return True
        up = parents.get(up)
    return False


RULE = Rule("HF531", check)
