"""The local names of a function that hold a task, and where other code gets the task.

A container counts as its elements, and an element as its container. So too many names may seem to
hold the task, and never too few: HF103 then sees a join that is none and stays silent, instead of
missing one and reporting correct code.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from handfast._check.model.syntax.ancestors import steps_up
from handfast._check.model.syntax.children import walk_here
from handfast._check.model.syntax.function import Function
from handfast._check.model.syntax.memo import remembered
from handfast._check.model.tasks.creation import Retention, TaskCreation
from handfast._check.model.vocabulary import (
    ELEMENTS,
    INSPECTING,
    ITERATING,
    LOGGING,
    PUTTING,
    TASK_QUERIES,
    WAITING,
)

# Calls that return their argument, or a part of it.
_CARRYING = ITERATING | (ELEMENTS - {"setdefault"}) | {
    "enumerate", "zip", "dict", "wait", "as_completed", "union", "difference", "intersection", "chain",
    "filter", "map", "cast",
}  # fmt: skip
# Calls that wait for a task and do not keep it.
_WAITING = WAITING | {"run_until_complete", "timeout"}
_INSPECTING = INSPECTING | {"enumerate"}
_QUERIES = TASK_QUERIES | {
    "cancel", "cancelling", "result", "remove_done_callback", "uncancel", "get_coro",
}  # fmt: skip
_CANCELLING = re.compile(r"(?:^|_)cancel(?!l|_(?:on|scope|when|after|if))")
_READING = (
    ast.Compare, ast.For, ast.AsyncFor, ast.comprehension, ast.If, ast.While, ast.BoolOp,
    ast.UnaryOp, ast.Assert, ast.Subscript, ast.FormattedValue,
)  # fmt: skip


def holders_of(creation: TaskCreation) -> frozenset[str]:
    """The local names that may hold a task or a container with it."""
    names = {
        retention.name for retention in creation.retentions if retention.how in ("local", "element")
    }
    carriers = _carriers(creation.function)
    # Until nothing changes: a container may be filled from a name that is itself found late.
    todo = list(names)
    while todo:
        more = carriers.get(todo.pop(), set()) - names
        names |= more
        todo += more
    return frozenset(names)


@remembered
def _carriers(function: Function) -> dict[str, set[str]]:
    """For each local name those that may get its task: by an assignment, or as a container."""
    found: dict[str, set[str]] = {}
    for name, values in function.assigned.items():
        for value in values:
            for each in _carried(value):
                found.setdefault(each, set()).add(name)
    for call in function.calls:
        match call.func:
            case ast.Attribute(ast.Name(container), attr) if attr in PUTTING:
                for argument in call.args:
                    for each in _carried(argument):
                        found.setdefault(each, set()).add(container)
    return found


def is_only_held_locally(creation: TaskCreation) -> bool:
    """Whether only local names of its function hold a task."""
    function = creation.function
    for each in creation.retentions:
        if each.how == "element" and each.name not in function.local_names:
            return False
        if each.how == "passed" and not _only_reads(each):
            return False
        if each.how not in ("local", "element", "passed", "awaited"):
            return False
    names = holders_of(creation)
    # A container that is a parameter belongs to the caller, which may join its tasks.
    if not names or names & set(function.parameters):
        return False
    return names.isdisjoint(_shared_names(function))


@remembered
def _shared_names(function: Function) -> frozenset[str]:
    """The names that the functions inside mention, and those that are not local."""
    shared = {
        name
        for node in function.nodes
        if isinstance(node, (ast.Global, ast.Nonlocal))
        for name in node.names
    }
    for inner in function.all_inner:
        shared |= {node.id for node in inner.nodes if isinstance(node, ast.Name)}
    return frozenset(shared)


def _only_reads(retention: Retention) -> bool:
    if isinstance(retention.node, ast.Call):
        if is_cancelling(retention.name):
            return True
        return retention.name.rpartition(".")[2] in _WAITING | _INSPECTING | LOGGING | _CARRYING
    return isinstance(retention.node, _READING)


def is_cancelling(name: str) -> bool:
    """Whether a function of this name ends the tasks that it is given: `cancel_all`, and not
    `cancel_on_exit`, which keeps them."""
    return _CANCELLING.search(name.rpartition(".")[2]) is not None


def escapes(function: Function, names: frozenset[str]) -> Iterator[ast.AST]:
    """Where the task that the names hold is awaited, or passed to other code."""
    for name in sorted(names):
        for where, node in function.reads(name):
            if where is function and _escapes(function, node):
                yield node


def _escapes(function: Function, node: ast.AST) -> bool:
    """Whether other code waits for, or gets, the value of a node."""
    parents = function.module.parents
    up = parents.get(node)
    match up:
        case ast.Attribute(attr="done" | "cancelled") if _is_polled(function, up):
            return True
        case ast.Attribute(attr=attr) if attr in _QUERIES:
            return False
        case ast.Attribute(attr=attr) if attr in PUTTING:
            return False
        case ast.Attribute():
            called = parents.get(up)
            return isinstance(called, ast.Call) and _escapes(function, called)
        case ast.Await() | ast.Return() | ast.Yield() | ast.YieldFrom():
            return True
        case ast.AsyncFor(_, source):
            return source is node
        case ast.comprehension(_, source, _, is_async):
            return source is node and bool(is_async)
        # `async with aclosing(x)`, `async with timeout(t)`: what it does with it is not known.
        case ast.withitem():
            return True
        case ast.Assign(targets) if any(not isinstance(each, ast.Name) for each in targets):
            return not all(isinstance(each, (ast.Name, ast.Tuple)) for each in targets)
        case ast.Call(func) if up.func is not node:
            last = function.last_name_of(func)
            if last in _INSPECTING or last in LOGGING:
                return False
            if last in PUTTING:
                return not isinstance(getattr(func, "value", None), ast.Name)
            return last not in _CARRYING or _escapes(function, up)
        case ast.expr() | ast.keyword():
            return not isinstance(up, ast.Compare) and _escapes(function, up)
    return False


def _is_polled(function: Function, node: ast.AST) -> bool:
    """Whether a loop polls the task: `while not task.done(): await sleep(0)` waits for it, too."""
    for below, up in steps_up(function, node):
        if not isinstance(up, ast.expr):
            return isinstance(up, ast.While) and up.test is below
    return False


def _carried(value: ast.expr) -> set[str]:
    """The names whose task, or tasks, may be the value of an expression."""
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
        # All names, also those of the conditions: a name too many only silences the rule.
        case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
            return {each.id for each in walk_here(value) if isinstance(each, ast.Name)}
        case ast.Call(func, arguments):
            match func:
                case ast.Attribute(owner, attr) if attr in _CARRYING:
                    return _carried(owner).union(*map(_carried, arguments))
                case ast.Name(name) if name in _CARRYING:
                    return set().union(*map(_carried, arguments))
    return set()


# --- lists of tasks -------------------------------------------------------------------------------


def is_another(creation: TaskCreation, use: ast.AST) -> bool:
    """Whether `tasks[0]`, which is awaited, is certainly not this task of `[create_task(a()), ...]`."""
    parents = creation.function.module.parents
    if not isinstance(use, ast.Subscript) or not isinstance(parents.get(use), ast.Await):
        return False
    match parents.get(creation.call), use.slice:
        case ((ast.List(elements) | ast.Tuple(elements)), index):
            place = _constant(index)
            if place is None or any(isinstance(each, ast.Starred) for each in elements):
                return False
            return elements.index(creation.call) != place % len(elements)
        case ast.Dict(keys, values), ast.Constant(wanted):
            key = keys[values.index(creation.call)]
            return isinstance(key, ast.Constant) and key.value != wanted
        case ast.ListComp(), index:
            return _constant(index) is not None
    return False


def _constant(node: ast.expr) -> int | None:
    match node:
        case ast.Constant(int() as value):
            return value
        case ast.UnaryOp(ast.USub(), ast.Constant(int() as value)):
            return -value
    return None


def is_in_lost_list(creation: TaskCreation) -> bool:
    """Whether a task is only added to a local list, set or dict which the function does nothing else
    with."""
    function = creation.function
    if function is function.module.body:
        return False
    match [each for each in creation.retentions if each.how != "local"]:
        case [Retention("element", name)] if name in function.local_names:
            pass
        case _:
            return False
    if not all(map(_is_new, function.assigned.get(name, ()))) or name in _shared_names(function):
        return False
    return all(_only_adds(function, node) for _, node in function.reads(name))


def _is_new(value: ast.expr) -> bool:
    match value:
        case ast.List([]) | ast.Dict([]):
            return True
        case ast.Call(ast.Name("list" | "set" | "dict" | "deque"), []):
            return True
    return False


def _only_adds(function: Function, use: ast.Name) -> bool:
    parents = function.module.parents
    up = parents.get(use)
    match up:
        case ast.Subscript(ctx=ast.Store()):
            return True
        case ast.Attribute(attr=attr) if attr in PUTTING:
            call = parents.get(up)
            return isinstance(call, ast.Call) and isinstance(parents.get(call), ast.Expr)
    return False
