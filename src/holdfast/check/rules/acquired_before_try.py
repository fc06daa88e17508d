"""HF531: something is acquired, something else is awaited, and only then the `try` begins.

Evidence from three places of one block: `x = await ...` (or `await lock.acquire()`, or a plain call
whose name says so: `x = self.acquire_connection()`), an `await` after it that nothing guards, and a
`try` whose `finally` (or handler of everything) gives `x` back: that shows that the code means to
give it back on every way out.
Or no `try` at all: a lock, or what a call by its name acquires, is given back further down the same
block, after an `await`.

Silent: what lies between guards it itself or hands it to somebody, or a `try` around all of it
speaks of `x`.
"""

from __future__ import annotations

import ast
import re
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
_ACQUIRING = re.compile(r"_*(acquire|checkout|check_out|borrow|lease)(_\w+)?")
# To put it back among the free ones is to give it back.
_PUTS_BACK = {"append", "appendleft", "add"}
_FREE = re.compile(r"(?i)free|idle|pool|avail|unused|spare")
_HANDS_OVER = {"append", "add", "setdefault", "push_async_callback", "callback", "enter_context"}


def check(module: Module) -> Iterator[Finding]:
    for function in module.functions:
        if function.is_async:
            for node in function.nodes:
                if isinstance(node, ast.Try):
                    yield from _before(function, node)
                elif isinstance(node, (ast.Assign, ast.Expr)):
                    yield from _without(function, node)


def _before(function: Function, guard: ast.Try) -> Iterator[Finding]:
    """What is acquired before a `try`, in the block that it stands in."""
    block = _block_of(function, guard)
    last = block.index(guard)
    for at, stmt in enumerate(block[:last]):
        for name in _acquired(function, stmt):
            end = _end_of(function, guard, name)
            if end is not None:
                yield from _judge(function, name, stmt, block[at + 1 : last], guard, end)


def _without(function: Function, stmt: ast.Assign | ast.Expr) -> Iterator[Finding]:
    """What is acquired, and given back in the same block by a plain statement: an error or a
    cancellation on the way there passes it by."""
    names = _acquired(function, stmt) if _says_so(stmt) else []
    if not names:
        return
    block = _block_of(function, stmt)
    after = block[block.index(stmt) + 1 :]
    for name in names:
        back = next((each for each in after if _gives_back(function, [each], name)), None)
        if not isinstance(back, ast.Expr):
            continue
        between = after[: after.index(back)]
        wait = next(iter(awaits_in(between)), None)
        if wait is None or _is_spoken_of_around(function, stmt, name):
            continue
        if not any(_hands_over(function, each, name) for each in between):
            yield _finding(
                function, name, stmt, wait, back, f"given back only on line {back.lineno}"
            )


def _says_so(stmt: ast.Assign | ast.Expr) -> bool:
    """Whether a statement acquires by name."""
    call = stmt.value.value if isinstance(stmt.value, ast.Await) else stmt.value
    match call:
        case ast.Call(ast.Attribute(attr=method)):
            return _ACQUIRING.fullmatch(method) is not None
    return False


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
    late = f"the `try` that gives it back begins only on line {guard.lineno}"
    yield _finding(function, name, stmt, wait, end, late)


def _finding(
    function: Function, name: str, stmt: ast.stmt, wait: ast.AST, end: ast.stmt, late: str
) -> Finding:
    module = function.module
    return found(
        "HF531",
        module,
        wait,
        f"`{name}` is acquired on line {stmt.lineno}, and {late}: a cancellation or an error at this "
        "`await` leaves it in nobody's hands",
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
        case ast.Assign([ast.Name(name)], ast.Call(ast.Attribute(attr=method))):
            return [name] if _ACQUIRING.fullmatch(method) else []
        case ast.Expr(ast.Await(ast.Call(ast.Attribute(lock, "acquire")))):
            return list(filter(None, [function.name_of(lock)]))
    return []


def _gives_back(function: Function, body: list[ast.stmt], name: str) -> bool:
    for part in body:
        for each in walk_here(part):
            match each:
                case ast.Call(ast.Attribute(free, method), [only]) if method in _PUTS_BACK:
                    if function.name_of(only) == name and _FREE.search(function.name_of(free)):
                        return True
                case ast.Call(ast.Attribute(receiver, method), arguments) if method in _GIVES_BACK:
                    # `pool.release(connection)` gives back the connection, not the pool.
                    back = arguments if arguments else [receiver]
                    if name in [function.name_of(each) for each in back]:
                        return True
    return False


def _looks_after(function: Function, stmt: ast.stmt, name: str) -> bool:
    """Whether a statement guards the thing, gives it back, hands it over, or binds the name anew."""
    if any(isinstance(each, (ast.Try, ast.Return)) for each in walk_here(stmt)):
        return True
    return _hands_over(function, stmt, name) or _gives_back(function, [stmt], name)


def _hands_over(function: Function, stmt: ast.stmt, name: str) -> bool:
    """Whether a statement gives the thing to somebody else, or binds the name anew."""
    for each in walk_here(stmt):
        match each:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                return True
            case ast.Name(other, ast.Store()) if other == name:
                return True
            case ast.Call(ast.Attribute(_, method), arguments) if (
                # `pool.acquire(key)`: what is given back under this name is acquired only here.
                method in _HANDS_OVER or _ACQUIRING.fullmatch(method)
            ):
                if name in [function.name_of(given) for given in arguments]:
                    return True
            # What is kept of `await read(x)` is what was read.
            case ast.Assign([ast.Attribute() | ast.Subscript()], value) if not isinstance(
                value, ast.Await
            ):
                if name in [
                    function.name_of(e) for e in walk_here(value) if isinstance(e, ast.expr)
                ]:
                    return True
            case ast.withitem(context) if name in [
                function.name_of(e) for e in walk_here(context) if isinstance(e, ast.expr)
            ]:
                return True
    return False


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
