"""HF103, HF303: a task that is cancelled is waited for, right after the cancel.

By `asyncio.wait`, which neither passes a cancel of the one who waits on to the task, nor raises or
hides what the task ends with. What is cleared in the next line stays cleared at once: whoever comes
while we wait finds it so.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from holdfast.check.finding import Edit, Fix
from holdfast.check.fixes.inserting import after, asyncio_in, is_hidden, stands_alone
from holdfast.check.fixes.naming import free_among, mentioned
from holdfast.check.model.flow import catches_cancellation
from holdfast.check.model.function import Function
from holdfast.check.model.roles import reached_from

__all__ = ["joined_after"]

_NAMES = ("cancelled", "cancelled_tasks", "ending")
_COPIES = {"list", "set", "tuple", "sorted", "reversed", "frozenset"}
# What can be gone through once only.
_ONCE = {"map", "filter", "iter", "zip", "reversed", "enumerate", "chain", "as_completed"}
_LOGGING = {"debug", "info", "warning", "error", "exception", "log", "critical", "print"}
_BLOCKS = ("body", "orelse", "finalbody")


@dataclass(frozen=True, slots=True)
class _Cancelled:
    """What is cancelled, in words of the program."""

    stmt: ast.stmt
    """The statement that cancels it, all of it."""
    held: str
    """What holds it: `self._task`, or the collection."""
    tasks: str
    """The tasks, as `asyncio.wait` takes them."""
    as_set: str
    may_be_none: bool
    """Whether there may be no task at all."""


def joined_after(
    function: Function, cancel: ast.AST, bodies: Collection[Function] = ()
) -> Fix | None:
    """Wait for what a call cancels; `bodies` are what the task runs. None where the function cannot
    wait, or where it is not plain what is to be waited for."""
    asyncio = asyncio_in(function.module, above=getattr(cancel, "lineno", 0))
    if not function.is_async or function.is_generator or not asyncio:
        return None
    found = None if is_hidden(function, asyncio) else _cancelled(function, cancel)
    if found is None or _is_swallowed(function, found.stmt):
        return None
    # Who waits for itself waits for ever.
    itself = any(function in reached_from(body) for body in bodies)
    spared = f" - {{{asyncio}.current_task()}}" if itself else ""
    edits = _edits(function, asyncio, found, spared)
    return Fix("wait for its end after the cancel", tuple(edits)) if edits else None


def _edits(function: Function, asyncio: str, found: _Cancelled, spared: str) -> list[Edit]:
    module = function.module
    last = _last_cancel(function, found.stmt)
    then = _next(function, last)
    clearing = then if then is not None and _clears(then, found.held) else None
    if not all(stands_alone(module, each) for each in (last, clearing) if each is not None):
        return []
    if clearing is None and not spared:
        wait = _wait(asyncio, found.tasks, found.held if found.may_be_none else "")
        return [after(module, last, *_indented(function, wait))]
    name = free_among(_NAMES, mentioned(function.node))
    if not name:
        return []
    taken = f"{name} = {found.as_set}{spared}"
    wait = _wait(asyncio, name, name if found.may_be_none or spared else "")
    if clearing is None:
        return [after(module, last, *_indented(function, (taken, *wait)))]
    return [after(module, last, taken), after(module, clearing, *_indented(function, wait))]


def _last_cancel(function: Function, stmt: ast.stmt) -> ast.stmt:
    """The last of several cancels in a row: a cancel of ours must not keep the next from its task."""
    while True:
        match then := _next(function, stmt):
            case ast.Expr(ast.Call(ast.Attribute(attr="cancel"))):
                stmt = then
            case _:
                return stmt


def _is_swallowed(function: Function, stmt: ast.stmt) -> bool:
    """Whether a cancel that comes while we wait at a statement would be caught around it."""
    parents = function.module.parents
    node: ast.AST = stmt
    while node is not function.node:
        inner, node = node, parents[node]
        match node:
            case ast.Try(body, handlers) | ast.TryStar(body, handlers) if inner in body:
                if any(catches_cancellation(each.type) for each in handlers):
                    return True
            case ast.With(items) if any(_suppresses(function, each) for each in items):
                return True
    return False


def _suppresses(function: Function, item: ast.withitem) -> bool:
    match item.context_expr:
        case ast.Call(func, kinds) if function.name_of(func).endswith("suppress"):
            return any(map(catches_cancellation, kinds))
    return False


def _wait(asyncio: str, tasks: str, if_any: str) -> tuple[str, ...]:
    # To wait for none of them is an error.
    wait = f"await {asyncio}.wait({tasks})"
    return (f"if {if_any}:", f"\t{wait}") if if_any else (wait,)


def _indented(function: Function, lines: tuple[str, ...]) -> tuple[str, ...]:
    first = function.node.body[0] if isinstance(function.node.body, list) else function.node
    is_tabbed = function.module.source.line(first.lineno).startswith("\t")
    return tuple(each.replace("\t", "\t" if is_tabbed else "    ") for each in lines)


def _next(function: Function, stmt: ast.stmt) -> ast.stmt | None:
    """The statement behind another one in the same block."""
    around = function.module.parents[stmt]
    for block in (getattr(around, part, ()) for part in _BLOCKS):
        if isinstance(block, list) and stmt in block[:-1]:
            found: ast.stmt = block[block.index(stmt) + 1]
            return found
    return None


def _clears(stmt: ast.AST, held: str) -> bool:
    """Whether a statement forgets the task, or all tasks."""
    match stmt:
        case ast.Assign(targets) | ast.Delete(targets):
            return any(held in map(ast.unparse, _parts(each)) for each in targets)
        case ast.Expr(ast.Call(ast.Attribute(cleared, "clear"))):
            return ast.unparse(cleared) == held
        case ast.AugAssign(target) | ast.AnnAssign(target):
            return ast.unparse(target) == held
    return False


def _parts(target: ast.expr) -> list[ast.expr]:
    return target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]


# --- what is cancelled ---------------------------------------------------------------------------


def _cancelled(function: Function, cancel: ast.AST) -> _Cancelled | None:
    stmt = function.module.parents.get(cancel)
    match cancel:
        case ast.Call(ast.Attribute(target, "cancel")) if isinstance(stmt, ast.Expr):
            loop = _loop_around(function, stmt, target)
            if loop is not None:
                return _all_of(function, loop, stmt)
            return _one(stmt, target) if _is_plain(target) else None
    return None


def _one(stmt: ast.stmt, target: ast.expr) -> _Cancelled:
    task = ast.unparse(target)
    return _Cancelled(stmt, task, f"{{{task}}}", f"{{{task}}}", False)


def _is_plain(node: ast.expr) -> bool:
    """Whether an expression can be asked twice, and gives the same."""
    match node:
        case ast.Name() | ast.Constant():
            return True
        case ast.Attribute(value):
            return _is_plain(value)
        case ast.Subscript(value, key):
            return _is_plain(value) and _is_plain(key)
    return False


def _loop_around(
    function: Function, stmt: ast.stmt, target: ast.expr
) -> ast.For | ast.AsyncFor | None:
    """The loop whose variable is what is cancelled."""
    names = set(_names(target))
    parents = function.module.parents
    up = parents[stmt]
    while up is not function.node:
        if isinstance(up, (ast.For, ast.AsyncFor)) and names & set(_names(up.target)):
            return up
        up = parents[up]
    return None


def _names(node: ast.AST) -> Iterator[str]:
    return (each.id for each in ast.walk(node) if isinstance(each, ast.Name))


def _all_of(
    function: Function, loop: ast.For | ast.AsyncFor, cancel: ast.stmt
) -> _Cancelled | None:
    if not _only_cancels(loop, cancel):
        return None
    source = _uncopied(loop.iter)
    match source:
        case ast.Tuple(elements) | ast.List(elements) | ast.Set(elements):
            if not elements or not all(map(_is_plain, elements)):
                return None
            several = f"{{{', '.join(map(ast.unparse, elements))}}}"
            return _Cancelled(loop, "", several, several, False)
        case ast.Call(ast.Attribute(held, "values" | "items"), [], []):
            return _collection(function, loop, held, ".values()")
    return _collection(function, loop, source, "")


def _only_cancels(loop: ast.For | ast.AsyncFor, cancel: ast.stmt) -> bool:
    """Whether a loop asks each of its tasks to end, and no more."""
    if isinstance(loop, ast.AsyncFor) or loop.orelse:
        return False
    match loop.target, _uncopied(loop.iter):
        case (ast.Name(name), _) | (
            ast.Tuple([_, ast.Name(name)]),
            ast.Call(ast.Attribute(attr="items")),
        ):
            fits = ast.unparse(cancel).startswith(f"{name}.cancel(")
            return fits and all(_is_harmless(each, cancel, name) for each in loop.body)
    return False


def _is_harmless(stmt: ast.stmt, cancel: ast.stmt, name: str) -> bool:
    if stmt is cancel:
        return True
    match stmt:
        case ast.If(test, [only], []):
            # One that is done is waited for in no time; one that is spared would be for ever.
            return only is cancel and ast.unparse(test) == f"not {name}.done()"
        case ast.Expr(ast.Call(ast.Attribute(attr=called) | ast.Name(called))):
            return called in _LOGGING
    return False


def _uncopied(source: ast.expr) -> ast.expr:
    match source:
        case ast.Call(ast.Name(copy), [inner], []) if copy in _COPIES:
            return inner
    return source


def _collection(
    function: Function, loop: ast.For | ast.AsyncFor, held: ast.expr, part: str
) -> _Cancelled | None:
    if not _is_plain(held) or (isinstance(held, ast.Name) and _is_spent(function, held.id)):
        return None
    name = ast.unparse(held)
    then = _next(function, loop)
    later = (each for each in function.nodes if getattr(each, "lineno", 0) > loop.lineno)
    if any(each is not then and _clears(each, name) for each in later):
        return None  # who comes while we wait would be forgotten there, and still run
    return _Cancelled(loop, name, f"{name}{part}", f"set({name}{part})", True)


def _is_spent(function: Function, name: str) -> bool:
    """Whether a name may stand for something that the loop has used up."""
    for value in function.assigned.get(name, ()):
        match value:
            case ast.GeneratorExp():
                return True
            case ast.Call(ast.Name(called) | ast.Attribute(attr=called)) if called in _ONCE:
                return True
    return False
