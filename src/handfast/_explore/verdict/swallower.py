"""The line that swallows a cancel: an `except`, a `suppress` or a jump in a `finally`.

A cancel is raised at the innermost `await`, and goes outwards through the functions that await each
other. The first of them that catches it around its `await` is the one. This reads the source: when
the task has returned, nothing shows any more which handler it was.
"""

from __future__ import annotations

import ast
import functools
import linecache
from collections.abc import Iterable, Iterator
from types import FrameType
from typing import NamedTuple, TypeAlias

from handfast._code_owner import code_owner

_CATCHING = {"CancelledError", "BaseException"}
_Try: TypeAlias = ast.Try | ast.TryStar


class AwaitLine(NamedTuple):
    """The line at which a function waits."""

    filename: str
    line: int
    function: str


def await_lines(frames: Iterable[FrameType]) -> tuple[AwaitLine, ...]:
    """The lines of suspended frames, in the same order."""
    return tuple(
        AwaitLine(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_qualname)
        for frame in frames
    )


def swallower(lines: Iterable[AwaitLine]) -> str:
    """The line that catches a cancel at the last of these lines; empty if none does."""
    for at in reversed(tuple(lines)):
        if code_owner(at.filename) not in ("program", "library"):
            continue
        for line in _catching(at):
            return f"{at.filename}:{line} in {at.function}"
    return ""


def _catching(at: AwaitLine) -> Iterator[int]:
    """The lines around this one that catch a cancel, from the inside."""
    for node in reversed(_around(_tree(at.filename), at.line)):
        if isinstance(node, _Try):
            if _is_in(node.body, at.line):
                yield from (each.lineno for each in node.handlers if _swallows(each))
            if not _is_in(node.finalbody, at.line):
                yield from _jumps(node.finalbody)
        elif isinstance(node, (ast.With, ast.AsyncWith)) and _is_in(node.body, at.line):
            calls = (each.context_expr for each in node.items)
            yield from (call.lineno for call in calls if _suppresses(call))


@functools.lru_cache(maxsize=16)
def _tree(filename: str) -> ast.AST:
    try:
        return ast.parse("".join(linecache.getlines(filename)))
    except (SyntaxError, ValueError, RecursionError):
        return ast.Module([], [])


def _around(tree: ast.AST, line: int) -> list[ast.AST]:
    """The statements that contain a line, the outermost first, and no other function's."""
    found: list[ast.AST] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or 0):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                found.clear()
            found.append(node)
    return found


def _is_in(body: list[ast.stmt], line: int) -> bool:
    return bool(body) and body[0].lineno <= line <= (body[-1].end_lineno or 0)


def _swallows(handler: ast.ExceptHandler) -> bool:
    is_raised = any(isinstance(node, ast.Raise) for node in _own_nodes(handler.body))
    return _names_cancel(handler.type) and not is_raised


def _names_cancel(caught: ast.expr | None) -> bool:
    if isinstance(caught, ast.Tuple):
        return any(map(_names_cancel, caught.elts))
    return caught is None or _last_name(caught) in _CATCHING


def _suppresses(call: ast.expr) -> bool:
    is_suppress = isinstance(call, ast.Call) and _last_name(call.func) == "suppress"
    return is_suppress and any(map(_names_cancel, getattr(call, "args", ())))


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _jumps(body: list[ast.stmt]) -> Iterator[int]:
    jumps = (ast.Return, ast.Break, ast.Continue)
    return (node.lineno for node in _own_nodes(body) if isinstance(node, jumps))


def _own_nodes(body: Iterable[ast.AST]) -> Iterator[ast.stmt]:
    """The statements of a body, without those of functions in it."""
    for node in body:
        if isinstance(node, ast.stmt):
            yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            yield from _own_nodes(ast.iter_child_nodes(node))
