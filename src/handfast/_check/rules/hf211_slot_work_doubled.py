"""HF211: something is opened only if it is not open yet, and two callers open it both.

Reported: a coroutine method tests whether an attribute is set, and if not, stores in it what it awaits
from a call that opens something (`connect`, `create_pool`, ...), without a lock, while the class also
closes the attribute: the value that is overwritten is never closed. Pedantic: other values.
Also an update that another caller's update is lost in: `n = self.count`, an `await`, `self.count = n + 1`;
a test whether enough is left (`if self.seats >= n`), an `await`, and then `self.seats -= n`; and a test
of a limit (`if len(self.pool) < n`), an `await`, and then `self.pool.append(...)` or `self.count += 1`.
Not reported: under a lock; where the attribute or a flag is tested or set again between; in start and
close methods; where all calls are in loops that await each.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from handfast._check.finding import Finding
from handfast._check.model.operations.guards import (
    is_presence_test,
    is_serial,
    tests_around,
)
from handfast._check.model.operations.locks import is_new_lock, locks_over
from handfast._check.model.operations.operations import operations
from handfast._check.model.syntax.ancestors import ancestors, last_name
from handfast._check.model.syntax.call_graph import members
from handfast._check.model.syntax.control_flow import suspends
from handfast._check.model.syntax.function import Function
from handfast._check.model.syntax.module import Class, Module
from handfast._check.model.tasks.method_roles import is_close_name, is_start_name
from handfast._check.rules.rule import Rule, line_of, once_per_place, related, report

_OPENING = re.compile(
    r"_*(a|async_|do_)?(connect|open|dial|login|launch|create_(pool|connection|session|client|engine))"
    r"(_\w+)?"
)


_CHANGING = {ast.Assign, ast.AugAssign, ast.Call}
_Comparing = tuple[type[ast.cmpop], ...]
_MORE: _Comparing = (ast.Gt, ast.GtE)
_LESS: _Comparing = (ast.Lt, ast.LtE)


@once_per_place
def check(module: Module) -> Iterator[Finding]:
    for klass in module.classes.values():
        for function in klass.functions:
            if function.is_async and not is_close_name(function.name):
                yield from _in(klass, function)
                yield from _updates(klass, function)


def _in(klass: Class, function: Function) -> Iterator[Finding]:
    for node in function.nodes:
        if not isinstance(node, ast.If):
            continue
        for stmt in node.body:
            match stmt:
                case ast.Assign([target], ast.Await(ast.Call(func))):
                    if root := _missing(function, node.test, target):
                        yield from _finding(klass, function, node, stmt, root, last_name(func))


def _missing(function: Function, test: ast.expr, target: ast.expr) -> str:
    """The attribute that is stored, if the test is true when it, or its key, is not there yet."""
    match test, target:
        case ast.UnaryOp(ast.Not()) | ast.Compare(_, [ast.Is() | ast.Eq()]), ast.Attribute():
            root = f"self.{function.own_attribute(target)}"
            return root if is_presence_test(function, test, root) else ""
        case ast.Compare(_, [ast.NotIn()], [container]), ast.Subscript(value):
            name = function.name_of(value)
            return name if name.startswith("self.") and name == function.name_of(container) else ""
    return ""


def _finding(
    klass: Class, function: Function, test: ast.If, stmt: ast.stmt, root: str, opener: str
) -> Iterator[Finding]:
    if _sets_first(test, stmt) or locks_over(klass, function, stmt) or is_serial(klass, function):
        return
    locks = list(_new_locks(function, stmt))
    opens = _OPENING.fullmatch(opener) is not None and not is_start_name(function.name)
    closed = opens and any(
        each.kind == "close" and each.root == root
        for other in members(klass)
        for each in operations(other)
    )
    yield report(
        "HF211",
        klass.module,
        stmt,
        f"`{root}` is tested on line {line_of(test)} and stored after an `await`, so two callers of "
        f"`{function.name}` both run `{opener}`, and one result is lost: use a lock",
        related(klass.module, test.test, "a second caller passes this test as well"),
        *(related(klass.module, each, "each caller has a new lock here") for each in locks),
        pedantic=not closed and not locks,
    )


def _new_locks(function: Function, stmt: ast.stmt) -> Iterator[ast.expr]:
    """The locks around a statement that are created there: the author knew that two callers race."""
    for up in ancestors(function, stmt):
        if isinstance(up, ast.AsyncWith):
            yield from (
                each.context_expr for each in up.items if is_new_lock(function, each.context_expr)
            )


# --- updates --------------------------------------------------------------------------------------


def _updates(klass: Class, function: Function) -> Iterator[Finding]:
    """Where an attribute is read or tested, and changed by that after an `await`."""
    for node in function.nodes:
        if type(node) not in _CHANGING:
            continue
        match node:
            case ast.Assign([ast.Attribute() as target], ast.BinOp() as value):
                read = _read_before(function, target, value)
            case ast.AugAssign(ast.Attribute() as target, ast.Sub()):
                read = _tested_before(function, target, node, _MORE, _LESS)
            case ast.AugAssign(ast.Attribute() as target, ast.Add()):
                read = _tested_before(function, target, node, _LESS, _MORE)
            case ast.Call(ast.Attribute(ast.Attribute() as target, "append" | "add"), [_]):
                read = _tested_before(function, target, node, _LESS, _MORE, of_length=True)
            case _:
                continue
        if read is None or not _suspends_between(function, read, node):
            continue
        root = function.name_of(target)
        if _is_read_again(function, root, read, node) or locks_over(klass, function, node):
            continue
        if locks_over(klass, function, read) or is_serial(klass, function):
            continue
        yield report(
            "HF211",
            klass.module,
            node,
            f"`{root}` is read on line {line_of(read)} and changed here after an `await`: of two callers "
            f"of `{function.name}` both see the old value, and one change is lost or one too many: use a "
            "lock, or read and change it without an `await` between",
            related(klass.module, read, "read here"),
        )


def _suspends_between(function: Function, read: ast.expr, node: ast.AST) -> bool:
    """Whether others run after a test and before the change, as in `self.all.append(await connect())`."""
    flow = function.flow
    start, goal = flow.of(read), flow.of(node)
    if flow.suspends_between(start, goal, {start}):
        return True
    return flow.reaches(start, goal, {start}) and suspends(node)


def _read_before(function: Function, target: ast.Attribute, value: ast.BinOp) -> ast.expr | None:
    """The `self.x` in `n = self.x`, for `self.x = n + 1`. A position that moves by what was read, as that
    of a file, has one reader."""
    match value:
        case ast.BinOp(ast.Name(name), _, ast.Constant()):
            match function.assigned.get(name):
                case [ast.Attribute() as source] if function.own_attribute(source):
                    return source if function.name_of(source) == function.name_of(target) else None
    return None


def _tested_before(
    function: Function,
    target: ast.Attribute,
    node: ast.AST,
    around: _Comparing,
    before: _Comparing,
    *,
    of_length: bool = False,
) -> ast.expr | None:
    """The test of an `if` around, or of a guard before, that compares the attribute with a limit."""
    root = function.name_of(target)
    if not function.own_attribute(target):
        return None
    for test, in_body in tests_around(function, node):
        if in_body and isinstance(test, ast.If):
            if (left := _compared(function, test.test, around, root, of_length)) is not None:
                return left
    for each in function.body:
        match each:
            # `if self.x < n: raise` stands before, in the body of the function.
            case ast.If(guard, [*_, ast.Raise() | ast.Return()], []) if each.lineno < line_of(node):
                if (left := _compared(function, guard, before, root, of_length)) is not None:
                    return left
    return None


def _compared(
    function: Function, test: ast.expr, ops: _Comparing, root: str, of_length: bool
) -> ast.expr | None:
    """The attribute, or its length, if a test compares it in one of these ways."""
    match test:
        case ast.Compare(ast.Call(ast.Name("len"), [left]), [op], [_]) if of_length:
            pass
        case ast.Compare(left, [op], [_]) if not of_length:
            pass
        case _:
            return None
    return left if isinstance(op, ops) and function.name_of(left) == root else None


def _is_read_again(function: Function, root: str, read: ast.expr, node: ast.AST) -> bool:
    """Whether the function reads or changes the attribute in other places, too: perhaps a second test."""
    lines = range(line_of(read) + 1, line_of(node))
    return any(
        isinstance(each, ast.Attribute) and each.lineno in lines and function.name_of(each) == root
        for each in function.nodes
    )


def _sets_first(test: ast.If, stmt: ast.stmt) -> bool:
    """Whether the block stores something before: perhaps a flag that keeps a second caller out."""
    before = test.body[: test.body.index(stmt)]
    return any(isinstance(each, ast.Assign | ast.If | ast.AnnAssign) for each in before)


RULE = Rule("HF211", check, needs=("<filling>|<updating>|<limits>",))
