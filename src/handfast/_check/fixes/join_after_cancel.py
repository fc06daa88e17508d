"""HF103, HF303: wait for a task right after it is cancelled.

With `asyncio.wait`: it neither passes a cancellation of the waiting task on, nor raises or hides the
exception of the task. If the next line clears the reference to the task, the wait comes after it:
code that runs during the wait must see the reference cleared, as before.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from handfast._check.finding import Edit, Fix
from handfast._check.fixes.insertion import (
    after,
    asyncio_in,
    free_among,
    is_alone_on_lines,
    is_hidden,
    mentioned,
)
from handfast._check.model.syntax.ancestors import ancestors, enclosing_tries
from handfast._check.model.syntax.call_graph import reached_from
from handfast._check.model.syntax.function import Function
from handfast._check.model.syntax.handlers import cancel_handlers, catches_cancellation
from handfast._check.model.vocabulary import COPYING, LOGGING

_NAMES = ("cancelled", "cancelled_tasks", "ending")
# These return iterators, which can be used only once.
_ONCE = {"map", "filter", "iter", "zip", "reversed", "enumerate", "chain", "as_completed"}
_BLOCKS = ("body", "orelse", "finalbody")


@dataclass(frozen=True, slots=True)
class _Cancelled:
    """What is cancelled, as expressions of the program."""

    stmt: ast.stmt
    """The whole statement that cancels it."""
    reference: str
    """The reference to it: `self._task`, or the collection."""
    tasks: str
    """The argument of `asyncio.wait`."""
    as_set: str
    may_be_none: bool
    """Whether there may be no task at all."""


def joined_after(
    function: Function, cancel: ast.AST, bodies: Collection[Function] = ()
) -> Fix | None:
    """Wait for what a call cancels; `bodies` are the functions that the task runs. None if the
    function cannot wait, or if it is not clear what to wait for."""
    asyncio = asyncio_in(function.module, above=getattr(cancel, "lineno", 0))
    if not function.is_async or function.is_generator or not asyncio:
        return None
    found = None if is_hidden(function, asyncio) else _cancelled(function, cancel)
    if found is None or _is_swallowed(function, found.stmt):
        return None
    # A task that waits for itself waits forever.
    itself = any(function in reached_from(body) for body in bodies)
    without = f" - {{{asyncio}.current_task()}}" if itself else ""
    edits = _edits(function, asyncio, found, without)
    return Fix("wait for its end after the cancel", tuple(edits)) if edits else None


def _edits(function: Function, asyncio: str, found: _Cancelled, without: str) -> list[Edit]:
    module = function.module
    last = _last_cancel(function, found.stmt)
    then = _next(function, last)
    clearing = then if then is not None and _clears(then, found.reference) else None
    if not all(is_alone_on_lines(module, each) for each in (last, clearing) if each is not None):
        return []
    if clearing is None and not without:
        wait = _wait(asyncio, found.tasks, found.reference if found.may_be_none else "")
        return [after(module, last, *_indented(function, wait))]
    name = free_among(_NAMES, mentioned(function.node))
    if not name:
        return []
    taken = f"{name} = {found.as_set}{without}"
    wait = _wait(asyncio, name, name if found.may_be_none or without else "")
    if clearing is None:
        return [after(module, last, *_indented(function, (taken, *wait)))]
    return [after(module, last, taken), after(module, clearing, *_indented(function, wait))]


def _last_cancel(function: Function, stmt: ast.stmt) -> ast.stmt:
    """Return the last of several cancels in a row: the wait must not delay the other cancels."""
    while True:
        match then := _next(function, stmt):
            case ast.Expr(ast.Call(ast.Attribute(attr="cancel"))):
                stmt = then
            case _:
                return stmt


def _is_swallowed(function: Function, stmt: ast.stmt) -> bool:
    """Whether code around a statement would catch a cancellation during the wait."""
    for around in enclosing_tries(function, stmt):
        if cancel_handlers(function, around):
            return True
    return any(
        isinstance(up, ast.With) and any(_suppresses(function, each) for each in up.items)
        for up in ancestors(function, stmt)
    )


def _suppresses(function: Function, item: ast.withitem) -> bool:
    match item.context_expr:
        case ast.Call(func, kinds) if function.name_of(func).endswith("suppress"):
            return any(catches_cancellation(function, kind) for kind in kinds)
    return False


def _wait(asyncio: str, tasks: str, if_any: str) -> tuple[str, ...]:
    # `asyncio.wait` raises ValueError for an empty set.
    wait = f"await {asyncio}.wait({tasks})"
    return (f"if {if_any}:", f"\t{wait}") if if_any else (wait,)


def _indented(function: Function, lines: tuple[str, ...]) -> tuple[str, ...]:
    first = function.node.body[0] if isinstance(function.node.body, list) else function.node
    is_tabbed = function.module.source.line(first.lineno).startswith("\t")
    return tuple(each.replace("\t", "\t" if is_tabbed else "    ") for each in lines)


def _next(function: Function, stmt: ast.stmt) -> ast.stmt | None:
    """Return the next statement in the same block."""
    around = function.module.parents[stmt]
    for block in (getattr(around, part, ()) for part in _BLOCKS):
        if isinstance(block, list) and stmt in block[:-1]:
            found: ast.stmt = block[block.index(stmt) + 1]
            return found
    return None


def _clears(stmt: ast.AST, reference: str) -> bool:
    """Whether a statement clears the reference to the task or the collection."""
    match stmt:
        case ast.Assign(targets) | ast.Delete(targets):
            return any(reference in map(ast.unparse, _parts(each)) for each in targets)
        case ast.Expr(ast.Call(ast.Attribute(cleared, "clear"))):
            return ast.unparse(cleared) == reference
        case ast.AugAssign(target) | ast.AnnAssign(target):
            return ast.unparse(target) == reference
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
    """Whether an expression has the same value if it is evaluated twice."""
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
    """Return the loop whose variable is cancelled."""
    names = set(_names(target))
    for up in ancestors(function, stmt):
        if isinstance(up, (ast.For, ast.AsyncFor)) and names & set(_names(up.target)):
            return up
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
        case ast.Call(ast.Attribute(reference, "values" | "items"), [], []):
            return _collection(function, loop, reference, ".values()")
    return _collection(function, loop, source, "")


def _only_cancels(loop: ast.For | ast.AsyncFor, cancel: ast.stmt) -> bool:
    """Whether a loop only cancels each of its tasks."""
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
            # To wait for a done task takes no time. With another test, the wait would include
            # tasks that are not cancelled.
            return only is cancel and ast.unparse(test) == f"not {name}.done()"
        case ast.Expr(ast.Call(ast.Attribute(attr=called) | ast.Name(called))):
            return called in LOGGING | {"print"}
    return False


def _uncopied(source: ast.expr) -> ast.expr:
    match source:
        case ast.Call(ast.Name(copy), [inner], []) if copy in COPYING:
            return inner
    return source


def _collection(
    function: Function, loop: ast.For | ast.AsyncFor, reference: ast.expr, part: str
) -> _Cancelled | None:
    if not _is_plain(reference) or (
        isinstance(reference, ast.Name) and _is_exhausted(function, reference.id)
    ):
        return None
    name = ast.unparse(reference)
    then = _next(function, loop)
    later = (each for each in function.nodes if getattr(each, "lineno", 0) > loop.lineno)
    if any(each is not then and _clears(each, name) for each in later):
        return None  # a task that is added during the wait would be cleared and still run
    return _Cancelled(loop, name, f"{name}{part}", f"set({name}{part})", True)


def _is_exhausted(function: Function, name: str) -> bool:
    """Whether a name may be an iterator that the loop has exhausted."""
    for value in function.assigned.get(name, ()):
        match value:
            case ast.GeneratorExp():
                return True
            case ast.Call(ast.Name(called) | ast.Attribute(attr=called)) if called in _ONCE:
                return True
    return False
