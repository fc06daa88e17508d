"""The local names of a function that hold a task, and where it gets out of their hands.

A container counts as its elements, and what is taken from it as the container: more names than
there are may be seen to hold the task, never fewer.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from holdfast.check.model.flow import walk_here
from holdfast.check.model.function import Function
from holdfast.check.model.tasks import Creation, Kept

__all__ = ["all_inner", "handed_on", "holders_of", "is_held_here"]

# Calls that give back what they are given, or a part of it.
_CARRYING = {
    "list", "set", "tuple", "sorted", "reversed", "frozenset", "iter", "next", "enumerate", "zip",
    "dict", "wait", "as_completed", "values", "items", "pop", "get", "popitem", "popleft", "copy",
    "union", "difference", "intersection", "chain", "filter", "map", "cast",
}  # fmt: skip
# What waits for a task and does not keep it.
_WAITING = {"wait", "as_completed", "gather", "wait_for", "shield", "run_until_complete", "timeout"}
_ADDING = {"add", "append", "appendleft", "insert", "extend", "update", "setdefault"}
_LOOKING = {"len", "bool", "isinstance", "print", "repr", "str", "id", "any", "all", "enumerate"}
_ASKING = {
    "cancel", "done", "cancelled", "cancelling", "result", "exception", "add_done_callback",
    "set_name", "get_name", "remove_done_callback", "uncancel", "get_coro",
}  # fmt: skip
_LOOKS = (
    ast.Compare, ast.For, ast.AsyncFor, ast.comprehension, ast.If, ast.While, ast.BoolOp,
    ast.UnaryOp, ast.Assert, ast.Subscript, ast.FormattedValue,
)  # fmt: skip
_LOGGING = {"debug", "info", "warning", "error", "exception", "log", "critical"}


def holders_of(made: Creation) -> frozenset[str]:
    """The local names that may hold a task or a container of it."""
    names = {kept.name for kept in made.kept if kept.how in ("local", "element")}
    bindings = made.function.assigned
    while True:
        more = {
            name
            for name, values in bindings.items()
            if name not in names and any(_carried(value) & names for value in values)
        }
        more |= _added_to(made.function, names) - names
        if not more:
            return frozenset(names)
        names |= more


def is_held_here(made: Creation) -> bool:
    """Whether nobody but the local names of its function holds a task."""
    function = made.function
    for kept in made.kept:
        if kept.how == "element" and kept.name not in function.local_names:
            return False
        if kept.how == "passed" and not _only_looks(kept):
            return False
        if kept.how not in ("local", "element", "passed", "awaited"):
            return False
    names = holders_of(made)
    if not names or names & set(function.parameters):
        return False
    shared = {
        name
        for node in function.nodes
        if isinstance(node, (ast.Global, ast.Nonlocal))
        for name in node.names
    }
    return not names & shared and not any(_mentions(each, names) for each in all_inner(function))


def _only_looks(kept: Kept) -> bool:
    if isinstance(kept.node, ast.Call):
        return kept.name.rpartition(".")[2] in _WAITING | _LOOKING | _LOGGING | _CARRYING
    return isinstance(kept.node, _LOOKS)


def all_inner(function: Function) -> Iterator[Function]:
    """The functions that are defined in a function, at any depth."""
    for each in function.inner:
        yield each
        yield from all_inner(each)


def handed_on(function: Function, names: frozenset[str]) -> Iterator[ast.AST]:
    """The places where what the names hold is waited for, or given to somebody else."""
    for node in function.nodes:
        if isinstance(node, ast.Name) and node.id in names and isinstance(node.ctx, ast.Load):
            if _goes_on(function, node):
                yield node


def _goes_on(function: Function, node: ast.AST) -> bool:
    """Whether somebody waits for, or gets, the value of a node."""
    parents = function.module.parents
    up = parents.get(node)
    match up:
        case ast.Attribute(attr="done" | "cancelled") if _is_asked_for_ever(function, up):
            return True
        case ast.Attribute(attr=attr) if attr in _ASKING:
            return False
        case ast.Attribute(attr=attr) if attr in _ADDING:
            return False
        case ast.Attribute():
            called = parents.get(up)
            return isinstance(called, ast.Call) and _goes_on(function, called)
        case ast.Await() | ast.Return() | ast.Yield() | ast.YieldFrom():
            return True
        case ast.AsyncFor(_, source):
            return source is node
        case ast.comprehension(_, source, _, is_async):
            return source is node and bool(is_async)
        case ast.withitem():
            return True
        case ast.Assign(targets) if any(not isinstance(each, ast.Name) for each in targets):
            return not all(isinstance(each, (ast.Name, ast.Tuple)) for each in targets)
        case ast.Call(func) if up.func is not node:
            last = function.name_of(func).rpartition(".")[2]
            if last in _LOOKING or last in _LOGGING:
                return False
            if last in _ADDING:
                return not isinstance(getattr(func, "value", None), ast.Name)
            return last not in _CARRYING or _goes_on(function, up)
        case ast.expr() | ast.keyword():
            return not isinstance(up, ast.Compare) and _goes_on(function, up)
    return False


def _is_asked_for_ever(function: Function, node: ast.AST) -> bool:
    """`while not task.done(): await sleep(0)` waits for it as well."""
    up: ast.AST | None = node
    while isinstance(up, ast.expr):
        below, up = up, function.module.parents.get(up)
        if isinstance(up, ast.While):
            return up.test is below
    return False


def _added_to(function: Function, names: set[str]) -> set[str]:
    """The local containers that one of the names is put into."""
    found: set[str] = set()
    for call in function.calls:
        match call.func:
            case ast.Attribute(ast.Name(container), attr) if attr in _ADDING:
                if any(_carried(each) & names for each in call.args):
                    found.add(container)
    return found


def _carried(value: ast.expr) -> set[str]:
    """The names whose task, or tasks, an expression gives."""
    match value:
        case ast.Name(name):
            return {name}
        case ast.Await(ast.Call() as inner):
            return _carried(inner)
        case ast.Starred(inner) | ast.Subscript(inner) | ast.NamedExpr(_, inner):
            return _carried(inner)
        case ast.List() | ast.Tuple() | ast.Set() | ast.BinOp() | ast.IfExp() | ast.BoolOp():
            return {
                name
                for each in ast.iter_child_nodes(value)
                if isinstance(each, ast.expr)
                for name in _carried(each)
            }
        case ast.Dict(keys, values):
            return {
                name for each in (*keys, *values) if each is not None for name in _carried(each)
            }
        case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
            return {each.id for each in walk_here(value) if isinstance(each, ast.Name)}
        case ast.Call(func, arguments):
            match func:
                case ast.Attribute(owner, attr) if attr in _CARRYING:
                    return _carried(owner).union(*map(_carried, arguments))
                case ast.Name(name) if name in _CARRYING:
                    return set().union(*map(_carried, arguments))
    return set()


def _mentions(function: Function, names: frozenset[str]) -> bool:
    return any(isinstance(node, ast.Name) and node.id in names for node in function.nodes)
