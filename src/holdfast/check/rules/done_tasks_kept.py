"""HF131: tasks that are done stay in a list, dict or set that only grows.

Found: a container in an attribute or at the top of a module that starts empty, and that a task is put
into for each call with an argument of its own, or for each turn of an endless loop or of one over
what comes in, while nothing in the file ever takes one out, empties or replaces the container. A
dict is pedantic: its keys may come back. Silent: weak containers; tasks that run for ever, and
those put in by a start method; containers that get into other hands, that another file goes through
by name, or that a method which is no close waits for as a whole.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from holdfast.check.finding import Finding
from holdfast.check.model.flow import walk_here
from holdfast.check.model.function import Function, names_in
from holdfast.check.model.module import Module
from holdfast.check.model.project import ended_names
from holdfast.check.model.roles import is_close_name, is_start_name, tasks_of
from holdfast.check.model.services import awaited_from, endless_loop
from holdfast.check.model.tasks import Creation, Kept
from holdfast.check.rules.rule import Rule, found, related

__all__ = ["RULE", "check"]

_CODE = "HF131"
_EMPTY = {"set", "list", "dict", "deque", "collections.deque", "defaultdict", "OrderedDict"}
# What can be asked of a container that takes nothing out of it and gives it to nobody.
_STAYING = {
    "add", "append", "appendleft", "insert", "extend", "update", "setdefault", "values", "items",
    "keys", "get", "copy", "index", "count",
}  # fmt: skip
_LOOKING = {
    "len", "bool", "list", "set", "tuple", "sorted", "enumerate", "any", "all", "iter", "reversed",
    "gather", "wait", "as_completed", "wait_for",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Container:
    """Where it starts empty, and whether it is a dict."""

    start: ast.AST
    is_dict: bool


def check(module: Module) -> Iterator[Finding]:
    """Containers of tasks that only grow."""
    for made in tasks_of(module):
        for kept in made.kept:
            if kept.how == "element" and _is_one_of_many(made, kept):
                container = _only_grows(module, made, kept)
                if container is not None:
                    yield _finding(module, made, kept, container)


def _finding(module: Module, made: Creation, kept: Kept, container: _Container) -> Finding:
    return found(
        _CODE,
        module,
        kept.node or made.call,
        f"A task is put into `{kept.name}` here for each call of `{made.function.name}`, and nothing takes "
        "it out when it is done: add a done callback that discards it.",
        related(module, made.call, "the task is made here"),
        related(module, container.start, f"`{kept.name}` starts here, and only grows"),
        pedantic=container.is_dict,
    )


def _is_one_of_many(made: Creation, kept: Kept) -> bool:
    """Whether there is evidence of tasks without number that each come to an end."""
    if isinstance(kept.key, ast.Constant) or (not made.bodies and made.coro is None):
        return False
    if any(endless_loop(each) for body in made.bodies for each in awaited_from(body)):
        return False
    return _is_in_endless_loop(made) or _is_for_each_call(made)


def _is_in_endless_loop(made: Creation) -> bool:
    """Whether it is made in each turn of a loop that waits for what comes in, as often as it comes."""
    parents = made.function.module.parents
    up = parents.get(made.call)
    while up is not None and up is not made.function.node:
        match up:
            case ast.AsyncFor(target) if made.coro is not None:
                # Each task is given what has come in, or what was made of it.
                names = {each.id for each in ast.walk(target) if isinstance(each, ast.Name)}
                own = _stemming_from(made.function, names)
                return any(isinstance(e, ast.Name) and e.id in own for e in ast.walk(made.coro))
            case ast.While(ast.Constant(value)) if value:
                return any(isinstance(each, ast.Await) for each in walk_here(up))
            case ast.For() | ast.While():
                return False
        up = parents.get(up)
    return False


def _is_for_each_call(made: Creation) -> bool:
    """Whether the task is given what its function was given, and that is no start method."""
    function = made.function
    own = _stemming_from(function, set(function.parameters) - {function.self_name})
    match made.coro:
        # What is run is itself given: `def start(self, job): ... create_task(job())`.
        case ast.Name(name) | ast.Call(ast.Name(name)) if name in own:
            return True
    if made.coro is None or is_start_name(function.name):
        return False
    inside = [node for body in made.bodies if body.outer is function for node in body.nodes]
    given = (*ast.walk(made.coro), *inside)
    return any(isinstance(each, ast.Name) and each.id in own for each in given)


def _stemming_from(function: Function, names: set[str]) -> set[str]:
    """The names, and the local ones that are made of them: `for row in range(rows)`."""
    while True:
        more = {
            name
            for name, values in function.assigned.items()
            if name not in names and any(names & set(names_in(value)) for value in values)
        }
        if not more:
            return names
        names = names | more


def _only_grows(module: Module, made: Creation, kept: Kept) -> _Container | None:
    first, _, plain = kept.name.rpartition(".")
    if first not in ("self", "") or not plain:
        return None
    if first == "self" and _is_gone_through_elsewhere(module, plain):
        return None
    if first == "" and (plain in made.function.parameters or plain in made.function.local_names):
        return None
    starts = []
    for node in ast.walk(module.source.tree):
        name = _named(node, first)
        if name != plain:
            continue
        assert isinstance(node, (ast.Attribute, ast.Name))
        if isinstance(node.ctx, ast.Load):
            if not _stays(module, node) or _is_batch(module, node):
                return None
        else:
            start = _starts_empty(module, node)
            if start is None:
                return None
            starts.append(start)
    return starts[0] if len(starts) == 1 else None


def _is_gone_through_elsewhere(module: Module, plain: str) -> bool:
    """Whether another file may empty it. A private name that this file goes through as well is
    there the name of another class."""
    if module.project is None or plain not in module.project.ended_elsewhere:
        return False
    return not (plain.startswith("_") and plain in ended_names(module.source.text.encode()))


def _named(node: ast.AST, first: str) -> str:
    """The name of an attribute or of a plain name, whichever is looked for."""
    if isinstance(node, ast.Attribute):
        return node.attr  # on whatever object: `module.tasks.clear()` is an end too
    return node.id if isinstance(node, ast.Name) and first == "" else ""


def _stays(module: Module, node: ast.expr) -> bool:
    """Whether the container is as full as before where it is read, and in nobody else's hands."""
    parent = module.parents.get(node)
    match parent:
        case ast.Attribute(attr=attr):
            return attr in _STAYING
        case ast.Subscript(ctx=ast.Load() | ast.Store()):
            return True
        case ast.Compare() | ast.UnaryOp() | ast.BoolOp() | ast.If() | ast.While() | ast.Expr():
            return True
        case ast.For() | ast.comprehension() | ast.Await():
            return True
        case ast.Starred():
            return True  # what is handed on are the tasks, not the container
        case ast.Call(ast.Name(name) | ast.Attribute(attr=name)):
            return name in _LOOKING
    return False


def _is_batch(module: Module, node: ast.expr) -> bool:
    """Whether all are awaited here, and not to close: the object is for one piece of work."""
    starred = module.parents.get(node)
    call = module.parents.get(starred) if isinstance(starred, ast.Starred) else starred
    match call:
        case ast.Call(ast.Name(name) | ast.Attribute(attr=name)) if name in ("gather", "wait"):
            around = module.function_around(call)
            return isinstance(module.parents.get(call), ast.Await) and not is_close_name(
                around.name
            )
    return False


def _starts_empty(module: Module, node: ast.expr) -> _Container | None:
    """The assignment that makes an empty container."""
    stmt = module.parents.get(node)
    match stmt:
        case ast.Assign(_, value) | ast.AnnAssign(_, _, value):
            pass
        case _:
            return None
    around = module.function_around(stmt)
    if around is not module.body and around.name not in ("__init__", "__new__", "__post_init__"):
        return None
    match value:
        case ast.List([]):
            return _Container(stmt, False)
        case ast.Dict([]):
            return _Container(stmt, True)
        case ast.Call(func, arguments, []) if not arguments or _is_default(func):
            name = module.names.resolve(func).rpartition(".")[2]
            return _Container(stmt, "dict" in name.lower()) if name in _EMPTY else None
    return None


def _is_default(func: ast.expr) -> bool:
    return isinstance(func, (ast.Name, ast.Attribute)) and ast.unparse(func).endswith("defaultdict")


RULE = Rule(_CODE, check)
