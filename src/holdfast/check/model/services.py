"""Tasks that run until somebody ends them, and whether anybody does.

A service is a task whose body has a loop without a way out of its own. It is left alone where an
end is possible: cancelled, joined, signalled, handed to somebody else, or named in another file.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from holdfast.check.model.deeds import deeds
from holdfast.check.model.effects import members
from holdfast.check.model.flow import catches_cancellation, walk_here
from holdfast.check.model.function import Function
from holdfast.check.model.memo import remembered
from holdfast.check.model.module import Class, Module
from holdfast.check.model.owned import bodies_in, makes_tasks, owned_tasks
from holdfast.check.model.project import ended_names
from holdfast.check.model.roles import close_methods, reached_from
from holdfast.check.model.tasks import Creation, resolve_function

__all__ = ["Service", "awaited_from", "endless_loop", "is_end_known", "is_signalled", "never_ended"]

# What a task or a container of tasks can be asked without anybody getting hold of a task.
_ASKING = {
    "done", "cancelled", "cancelling", "exception", "add_done_callback", "remove_done_callback",
    "get_name", "set_name", "add", "append", "appendleft", "discard", "remove", "insert",
}  # fmt: skip
_LOOKING = {"len", "bool", "isinstance", "print", "repr", "str", "id", "hasattr", "any", "all"}
_LOGGING = {"debug", "info", "warning", "error", "exception", "log", "critical"}


@dataclass(frozen=True, slots=True, eq=False)
class Service:
    """A task in an attribute, and the loop that it never leaves by itself."""

    root: str
    made: Creation
    loop: ast.While
    loop_module: Module


@remembered
def never_ended(klass: Class) -> tuple[Service, ...]:
    """The services that a class starts in its own methods, and that nobody can end."""
    if not makes_tasks(klass) or not klass.is_complete:
        return ()
    return tuple(
        service
        for owned in owned_tasks(klass)
        for made in owned.creations
        if made.function.klass is klass and (service := _service(klass, owned.root, made))
        if not is_end_known(klass, owned.root) and not is_signalled(klass, made)
    )


def _service(klass: Class, root: str, made: Creation) -> Service | None:
    for body in bodies_in(klass, made):
        for function in awaited_from(body):
            loop = endless_loop(function)
            if loop is not None:
                return Service(root, made, loop, function.module)
    return None


@remembered
def awaited_from(function: Function) -> tuple[Function, ...]:
    """A function, and those that run inside it because it awaits them, the nearest first."""
    found: dict[Function, None] = {}
    todo = [function]
    while todo:
        each = todo.pop(0)
        if each in found:
            continue
        found[each] = None
        for node in each.nodes:
            if isinstance(node, ast.Await) and isinstance(node.value, ast.Call):
                todo += resolve_function(each, node.value.func)
    return tuple(found)


@remembered
def endless_loop(function: Function) -> ast.While | None:
    """The `while True` of a coroutine function that nothing in it leaves, but for a cancellation."""
    if not function.is_async or function.is_generator:
        return None
    for node in function.nodes:
        if isinstance(node, ast.While) and _is_true(node.test):
            if _waits(node) and not any(_ways_out(node.body, inner=False)):
                return node
    return None


def _is_true(test: ast.expr) -> bool:
    return isinstance(test, ast.Constant) and bool(test.value)


def _waits(loop: ast.While) -> bool:
    return any(
        isinstance(each, (ast.Await, ast.AsyncFor, ast.AsyncWith)) for each in walk_here(loop)
    )


def _ways_out(body: list[ast.stmt], inner: bool) -> Iterator[ast.stmt]:
    """The statements that leave the loop around `body`; those for a cancellation do not count."""
    for stmt in body:
        match stmt:
            case ast.Return() | ast.Raise():
                yield stmt
            case ast.Break() if not inner:
                yield stmt
            case ast.For() | ast.AsyncFor() | ast.While():
                yield from _ways_out(stmt.body, True)
                yield from _ways_out(stmt.orelse, inner)
            case ast.Try() | ast.TryStar():
                for part in (stmt.body, stmt.orelse, stmt.finalbody):
                    yield from _ways_out(part, inner)
                for handler in stmt.handlers:
                    if not _is_for_cancellation(handler):
                        yield from _ways_out(handler.body, inner)
            case ast.If():
                yield from _ways_out(stmt.body, inner)
                yield from _ways_out(stmt.orelse, inner)
            case ast.With() | ast.AsyncWith():
                yield from _ways_out(stmt.body, inner)
            case ast.Match():
                for case in stmt.cases:
                    yield from _ways_out(case.body, inner)


def _is_for_cancellation(handler: ast.ExceptHandler) -> bool:
    return isinstance(handler.type, (ast.Name, ast.Attribute)) and catches_cancellation(
        handler.type
    )


# --- who ends it ---------------------------------------------------------------------------------


def is_end_known(klass: Class, root: str) -> bool:
    """Whether a task in this attribute may be ended by anybody: here, by somebody who gets hold of
    it, or in another file."""
    module = klass.module
    plain = root.removeprefix("self.")
    if plain in _named_in(module) or any(_lets_go(module, node) for node in _reads(module, plain)):
        return True
    if module.project is not None and plain in module.project.ended_elsewhere:
        return True
    return any(
        deed.root == root and deed.kind in ("cancel", "join")
        for function in members(klass)
        for deed in deeds(function)
    )


def is_signalled(klass: Class, made: Creation) -> bool:
    """Whether a close method gives a sign to, or closes, something that the task looks at."""
    seen = {
        deed.root
        for body in made.bodies
        for function in reached_from(body)
        for deed in deeds(function)
        if deed.kind in ("read", "use")
    }
    return any(
        deed.root in seen
        for method in close_methods(klass)
        for function in reached_from(method)
        for deed in deeds(function)
        if deed.kind in ("signal", "close", "cancel") or _puts_sign(deed.node)
    )


def _puts_sign(node: ast.AST) -> bool:
    """`queue.put_nowait(None)`, or a flag that is set."""
    match node:
        case ast.Call(ast.Attribute(attr="put_nowait" | "put")):
            return True
        case ast.Assign(value=ast.Constant(bool())):
            return True
    return False


@remembered
def _named_in(module: Module) -> frozenset[str]:
    """The names that the file ends by text, on whatever object, or has as strings (`getattr`)."""
    strings = {
        node.value
        for node in ast.walk(module.source.tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    return frozenset(strings | ended_names(module.source.text.encode()))


@remembered
def _attributes(module: Module) -> dict[str, list[ast.Attribute]]:
    found: dict[str, list[ast.Attribute]] = {}
    for node in ast.walk(module.source.tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            found.setdefault(node.attr, []).append(node)
    return found


def _reads(module: Module, attribute: str) -> list[ast.Attribute]:
    return _attributes(module).get(attribute, [])


def _lets_go(module: Module, node: ast.expr) -> bool:
    """Whether somebody gets hold of a task where the attribute that keeps it is read."""
    parent = module.parents.get(node)
    match parent:
        case ast.Attribute(attr=attr):
            return attr not in _ASKING
        case ast.Subscript(ctx=ast.Store() | ast.Del()):
            return False
        case ast.Compare() | ast.UnaryOp() | ast.If() | ast.While() | ast.Assert() | ast.Expr():
            return False
        case ast.IfExp(test):
            return test is not node
        case ast.BoolOp():
            return _lets_go(module, parent)
        case ast.Call(ast.Name(name)) if name in _LOOKING:
            return False
        case ast.Call(ast.Attribute(attr=attr)) if attr in _LOGGING:
            return False
    return True
