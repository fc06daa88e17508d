"""Context managers that belong to the task which entered them: task groups, cancel scopes, timeouts.

A context manager of the module counts if it yields inside one. Some published clients are known to
keep a task group open while they are entered.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from handfast._check.model.syntax.call_graph import resolve_anywhere
from handfast._check.model.syntax.children import walk_here
from handfast._check.model.syntax.function import Function

# By full name: a class of the project that is called `TaskGroup` is not one of these.
_SCOPES = {
    "asyncio.TaskGroup", "asyncio.timeout", "asyncio.timeout_at", "asyncio.taskgroups.TaskGroup",
    "asyncio.timeouts.timeout", "anyio.create_task_group", "anyio.CancelScope",
    "anyio.move_on_after", "anyio.fail_after", "anyio.abc.TaskGroup", "trio.open_nursery",
    "trio.CancelScope", "trio.move_on_after", "trio.move_on_at", "trio.fail_after",
    "trio.fail_at", "async_timeout.timeout", "async_timeout.timeout_at", "taskgroup.TaskGroup",
    "quattro.TaskGroup", "quattro.move_on_after", "quattro.fail_after", "aiotools.TaskGroup",
    "handfast.Scope",
    # Published clients that keep a task group open for as long as they are entered.
    "mcp.ClientSession", "mcp.client.session.ClientSession", "mcp.stdio_client",
    "mcp.client.stdio.stdio_client", "mcp.client.sse.sse_client",
    "mcp.client.streamable_http.streamablehttp_client",
    "mcp.client.streamable_http.streamable_http_client",
    "mcp.client.websocket.websocket_client",
}  # fmt: skip
_MANAGER_DECORATORS = ("asynccontextmanager", "contextmanager", "fixture")


def is_context_manager(function: Function) -> bool:
    """Whether a generator is decorated as a context manager: its one yield is the body of a `with`."""
    decorators = getattr(function.node, "decorator_list", ())
    for each in decorators:
        plain = each.func if isinstance(each, ast.Call) else each
        if function.module.names.resolve(plain).rpartition(".")[2] in _MANAGER_DECORATORS:
            return True
    return False


# Context managers may be built on each other, and on themselves in a broken file.
_DEPTH = 3


def scope_of(function: Function, node: ast.expr, depth: int = _DEPTH) -> str:
    """The name of the scope that a context expression enters; empty if it is none."""
    match node:
        case ast.Call(func):
            name = function.name_of(func)
            if name in _SCOPES:
                return name
            # `async with connect():`, where `connect` is a context manager that yields in a scope.
            if depth and any(_keeps_open(each, depth) for each in resolve_anywhere(function, func)):
                return name
        case ast.Name(name) if depth:
            values = function.assigned.get(name, [])
            found = [scope_of(function, each, depth - 1) for each in values]
            # A name that may also be something else is no evidence.
            return found[0] if found and all(found) else ""
    return ""


def _keeps_open(manager: Function, depth: int) -> bool:
    """Whether a context manager of this module yields inside a scope."""
    return is_context_manager(manager) and any(True for _ in yields_inside(manager, depth - 1))


def yields_inside(
    function: Function, depth: int = _DEPTH
) -> Iterator[tuple[ast.AST, ast.withitem, str]]:
    """Every yield inside a scope: the yield, the scope, its name."""
    for node in function.nodes:
        if not isinstance(node, (ast.With, ast.AsyncWith)):
            continue
        inside = list(_yields_in(node.body))
        for item in node.items if inside else ():
            name = scope_of(function, item.context_expr, depth)
            if name:
                for each in inside:
                    yield each, item, name


def _yields_in(body: list[ast.stmt]) -> Iterator[ast.AST]:
    for part in body:
        if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        for each in walk_here(part):
            if isinstance(each, (ast.Yield, ast.YieldFrom)):
                yield each
