"""HF731: an async generator is left before its end and not closed.

Evidence from two places: an `async for` that is left by `break` or `return` (or an `anext` of a call,
which nobody can go on with), and a generator of the
same module or class that rests at a `yield` with something to put away that needs an `await`: inside
an `async with`, or a `try` with an `await` in its `finally`. Pedantic: a generator whose clean-up
does not wait, and a call of which nobody can say what it gives.

Silent: `aclosing`, an `aclose()` of that name, a generator that has nothing to put away or that is
gone on with later.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Literal

from holdfast.check.finding import Finding
from holdfast.check.model.flow import suspends
from holdfast.check.model.function import Function
from holdfast.check.model.module import Module
from holdfast.check.model.scopes import is_context_manager
from holdfast.check.model.tasks import resolve_anywhere
from holdfast.check.rules.rule import Rule, found, related

__all__ = ["RULE"]

Weight = Literal["waits", "plain", ""]
"""What a generator has to put away while it rests: something that waits, something that does not."""


def check(module: Module) -> Iterator[Finding]:
    for function in module.functions:
        if not function.is_async:
            continue
        for node in function.nodes:
            if isinstance(node, ast.AsyncFor):
                yield from _judge(function, node)
            elif isinstance(node, ast.Call):
                yield from _only_the_first(function, node)


def _judge(function: Function, loop: ast.AsyncFor) -> Iterator[Finding]:
    way_out = _way_out(loop)
    call = _made_by(function, loop.iter)
    if way_out is None or call is None or _is_looked_after(function, loop):
        return
    known = [each for each in resolve_anywhere(function, call.func) if each.is_async]
    generator = next((each for each in known if each.is_generator), None)
    if generator is not None:
        rest = _rests_with(generator)
        if rest is not None:
            yield _finding(function, loop, way_out, generator, rest)
    elif not known and _may_be_generator(function, call):
        yield _unknown(function, loop, way_out, call)


def _only_the_first(function: Function, call: ast.Call) -> Iterator[Finding]:
    """`await anext(rows())`: nobody has the generator that could close it."""
    match call:
        case ast.Call(ast.Name("anext"), [ast.Call(func), *_]):
            made = func
        case ast.Call(ast.Attribute(ast.Call(func), "__anext__")):
            made = func
        case _:
            return
    for generator in resolve_anywhere(function, made):
        rest = _rests_with(generator) if generator.is_async and generator.is_generator else None
        if rest is not None:
            yield found(
                "HF731",
                function.module,
                call,
                f"only the first of `{generator.name}` is taken, and nobody can close it: what it "
                f"holds on line {getattr(rest[1], 'lineno', 0)} is put away some time later, in "
                "another task, or never",
                related(generator.module, rest[1], "it rests inside this"),
                pedantic=rest[0] != "waits",
            )


def _finding(
    function: Function,
    loop: ast.AsyncFor,
    way_out: ast.stmt,
    generator: Function,
    rest: tuple[Weight, ast.AST],
) -> Finding:
    module = function.module
    weight, place = rest
    return found(
        "HF731",
        module,
        loop.iter,
        f"`{generator.name}` is left by the `{_word(way_out)}` on line {way_out.lineno} and not "
        f"closed: what it holds on line {getattr(place, 'lineno', 0)} is put away some time later, "
        "in another task, or never",
        related(module, way_out, "the generator is left here"),
        related(generator.module, place, "it rests inside this"),
        pedantic=weight != "waits",
    )


def _unknown(function: Function, loop: ast.AsyncFor, way_out: ast.stmt, call: ast.Call) -> Finding:
    return found(
        "HF731",
        function.module,
        loop.iter,
        f"`{function.name_of(call.func)}(...)` is left by the `{_word(way_out)}` on line "
        f"{way_out.lineno}; if it is an async generator, nobody closes it",
        related(function.module, way_out, "it is left here"),
        pedantic=True,
    )


def _word(stmt: ast.stmt) -> str:
    return "break" if isinstance(stmt, ast.Break) else "return"


def _way_out(loop: ast.AsyncFor) -> ast.stmt | None:
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


def _made_by(function: Function, node: ast.expr) -> ast.Call | None:
    """The call that made what is gone through, directly or under a local name."""
    if isinstance(node, ast.Name) and node.id not in function.parameters:
        values = function.assigned.get(node.id, [])
        node = values[0] if len(values) == 1 else node
        if any(
            isinstance(each, ast.withitem) and each.context_expr is node for each in function.nodes
        ):
            return None
    return node if isinstance(node, ast.Call) else None


def _is_looked_after(function: Function, loop: ast.AsyncFor) -> bool:
    """Whether the name is closed, or gone on with elsewhere in the function."""
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
                if function.name_of(func).rpartition(".")[2] in ("anext", "aclosing", "aiter"):
                    return True
            case ast.AsyncFor(_, ast.Name(other)) if other == name:
                again += 1
            case ast.Return(ast.Name(other)) if other == name:
                return True
    return again > 1


def _may_be_generator(function: Function, call: ast.Call) -> bool:
    """Whether a function is called that was given as a parameter."""
    around: Function | None = function
    while around is not None:
        if isinstance(call.func, ast.Name) and call.func.id in around.parameters:
            return True
        around = around.outer
    return False


# --- what a generator rests with -----------------------------------------------------------------


def _rests_with(generator: Function, depth: int = 3) -> tuple[Weight, ast.AST] | None:
    """The weightiest thing that is open around one of its yields."""
    if is_context_manager(generator):
        return None
    found: tuple[Weight, ast.AST] | None = None
    for node in generator.nodes:
        if isinstance(node, (ast.Yield, ast.YieldFrom)):
            for each in _open_around(generator, node, depth):
                if each[0] == "waits":
                    return each
                found = found or each
    return found


def _open_around(
    generator: Function, node: ast.AST, depth: int
) -> Iterator[tuple[Weight, ast.AST]]:
    parents = generator.module.parents
    below, up = node, parents.get(node)
    while up is not None and up is not generator.node:
        match up:
            case ast.AsyncWith(items) if below in up.body:
                yield "waits", items[0].context_expr
            case ast.Try(finalbody=[first, *_]) if below not in up.finalbody:
                yield ("waits" if any(map(suspends, up.finalbody)) else "plain"), first
            case ast.With(items) if below in up.body:
                yield "plain", items[0].context_expr
            case ast.AsyncFor(_, ast.Call(func)) if depth and below in up.body:
                for inner in resolve_anywhere(generator, func):
                    rest = _rests_with(inner, depth - 1) if inner.is_generator else None
                    if rest is not None:
                        yield rest
        below, up = up, parents.get(up)


RULE = Rule("HF731", check)
