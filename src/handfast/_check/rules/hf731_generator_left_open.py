"""HF731: iteration over an async generator stops before its end, and it is not closed.

Reported, with evidence from two places: an `async for` that ends by `break` or `return` (or an `anext`
of a call, after which nothing can continue the generator), and a generator of the project that is
suspended at a `yield` with cleanup that awaits: inside an `async with`, or a `try` with an `await` in
its `finally`. Pedantic: a generator whose cleanup does not await, and a call that may or may not
return a generator.
Not reported: `aclosing`, an `aclose()` of that name, a generator without cleanup, or one that is used
again later.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Literal

from handfast._check.finding import Finding
from handfast._check.model.syntax.ancestors import steps_up
from handfast._check.model.syntax.call_graph import resolve_anywhere
from handfast._check.model.syntax.cancel_scopes import is_context_manager
from handfast._check.model.syntax.control_flow import suspends
from handfast._check.model.syntax.function import Function
from handfast._check.model.syntax.module import Module
from handfast._check.rules.rule import Rule, line_of, related, report

Cleanup = Literal["waits", "plain", ""]
"""The cleanup of a generator that is suspended at a `yield`: it awaits, or it does not."""


def check(module: Module) -> Iterator[Finding]:
    for function in module.functions:
        if not function.is_async:
            continue
        for node in function.nodes:
            if isinstance(node, ast.AsyncFor):
                yield from _evaluate(function, node)
            elif isinstance(node, ast.Call):
                yield from _only_the_first(function, node)


def _evaluate(function: Function, loop: ast.AsyncFor) -> Iterator[Finding]:
    exit_ = _early_exit(loop)
    call = _created_by(function, loop.iter)
    if exit_ is None or call is None or _is_closed_or_continued(function, loop):
        return
    known = [each for each in resolve_anywhere(function, call.func) if each.is_async]
    generator = next((each for each in known if each.is_generator), None)
    if generator is not None:
        rest = _open_cleanup(generator)
        if rest is not None:
            yield _finding(function, loop, exit_, generator, rest)
    elif not known and _may_be_generator(function, call):
        yield _unknown(function, loop, exit_, call)


def _only_the_first(function: Function, call: ast.Call) -> Iterator[Finding]:
    """`await anext(rows())`: there is no reference by which to close the generator."""
    match call:
        case ast.Call(ast.Name("anext"), [ast.Call(func), *_]):
            called = func
        case ast.Call(ast.Attribute(ast.Call(func), "__anext__")):
            called = func
        case _:
            return
    for generator in resolve_anywhere(function, called):
        rest = _open_cleanup(generator) if generator.is_async and generator.is_generator else None
        if rest is not None:
            yield report(
                "HF731",
                function.module,
                call,
                f"Only the first item of `{generator.name}` is used, and nothing can close it: its "
                f"cleanup on line {line_of(rest[1])} runs later, in another task, or never; use "
                "`contextlib.aclosing`",
                related(generator.module, rest[1], "it is suspended inside this"),
                pedantic=rest[0] != "waits",
            )


def _finding(
    function: Function,
    loop: ast.AsyncFor,
    exit_: ast.stmt,
    generator: Function,
    rest: tuple[Cleanup, ast.AST],
) -> Finding:
    module = function.module
    cleanup, place = rest
    return report(
        "HF731",
        module,
        loop.iter,
        f"Iteration over `{generator.name}` ends with the `{_word(exit_)}` on line {exit_.lineno}, and "
        f"it is not closed: its cleanup on line {line_of(place)} runs later, in another task, or never; "
        "use `contextlib.aclosing`",
        related(module, exit_, "the iteration ends here"),
        related(generator.module, place, "it is suspended inside this"),
        pedantic=cleanup != "waits",
    )


def _unknown(function: Function, loop: ast.AsyncFor, exit_: ast.stmt, call: ast.Call) -> Finding:
    return report(
        "HF731",
        function.module,
        loop.iter,
        f"Iteration over `{function.name_of(call.func)}(...)` ends with the `{_word(exit_)}` on line "
        f"{exit_.lineno}, and if it is an async generator, it is not closed: use `contextlib.aclosing`",
        related(function.module, exit_, "the iteration ends here"),
        pedantic=True,
    )


def _word(stmt: ast.stmt) -> str:
    return "break" if isinstance(stmt, ast.Break) else "return"


def _early_exit(loop: ast.AsyncFor) -> ast.stmt | None:
    """The first statement that leaves the loop before its end."""
    todo: list[tuple[ast.AST, bool]] = [(part, True) for part in reversed(loop.body)]
    while todo:
        node, own = todo.pop()
        if isinstance(node, ast.Return) or (isinstance(node, ast.Break) and own):
            return node
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            continue
        inner = own and not isinstance(node, (ast.For, ast.AsyncFor, ast.While))
        todo += [(each, inner) for each in reversed(list(ast.iter_child_nodes(node)))]
    return None


def _created_by(function: Function, node: ast.expr) -> ast.Call | None:
    """The call that created the iterated object, directly or in a local name."""
    if isinstance(node, ast.Name) and node.id not in function.parameters:
        values = function.assigned.get(node.id, [])
        node = values[0] if len(values) == 1 else node
        if any(
            isinstance(each, ast.withitem) and each.context_expr is node for each in function.nodes
        ):
            return None
    return node if isinstance(node, ast.Call) else None


def _is_closed_or_continued(function: Function, loop: ast.AsyncFor) -> bool:
    """Whether the name is closed, or used again elsewhere in the function."""
    if not isinstance(loop.iter, ast.Name):
        return False
    name = loop.iter.id
    again = 0
    for node in function.nodes:
        match node:
            case ast.Attribute(ast.Name(other), "aclose" | "__anext__" | "asend" | "athrow"):
                if other == name:
                    return True
            case ast.Call(func, [ast.Name(other), *_]) if other == name:
                if function.last_name_of(func) in ("anext", "aclosing", "aiter"):
                    return True
            case ast.AsyncFor(_, ast.Name(other)) if other == name:
                again += 1
            case ast.Return(ast.Name(other)) if other == name:
                return True
    return again > 1


def _may_be_generator(function: Function, call: ast.Call) -> bool:
    """Whether the called function is a parameter."""
    around: Function | None = function
    while around is not None:
        if isinstance(call.func, ast.Name) and call.func.id in around.parameters:
            return True
        around = around.outer
    return False


# --- the cleanup of a suspended generator --------------------------------------------------------


def _open_cleanup(generator: Function, depth: int = 3) -> tuple[Cleanup, ast.AST] | None:
    """The cleanup around one of its yields; one that awaits, if there is any."""
    if is_context_manager(generator):
        return None
    first: tuple[Cleanup, ast.AST] | None = None
    for node in generator.nodes:
        if isinstance(node, (ast.Yield, ast.YieldFrom)):
            for each in _open_around(generator, node, depth):
                if each[0] == "waits":
                    return each
                first = first or each
    return first


def _open_around(
    generator: Function, node: ast.AST, depth: int
) -> Iterator[tuple[Cleanup, ast.AST]]:
    for below, up in steps_up(generator, node):
        match up:
            case ast.AsyncWith(items) if below in up.body:
                yield "waits", items[0].context_expr
            case (
                ast.Try(finalbody=[first, *_] as last) | ast.TryStar(finalbody=[first, *_] as last)
            ) if below not in last:
                yield ("waits" if any(map(suspends, last)) else "plain"), first
            case ast.With(items) if below in up.body:
                yield "plain", items[0].context_expr
            case ast.AsyncFor(_, ast.Call(func)) if depth and below in up.body:
                for inner in resolve_anywhere(generator, func):
                    rest = _open_cleanup(inner, depth - 1) if inner.is_generator else None
                    if rest is not None:
                        yield rest


RULE = Rule("HF731", check, needs=("async ", "anext|async for", "break|return|anext"))
