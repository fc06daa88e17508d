"""HF131: tasks that are done stay in a list, dict or set that only grows.

Reported: a container in an attribute or at the top of a module that starts empty, and to which a task
is added for each call with an argument of its own, or in each iteration of an endless loop or an
`async for`, while nothing in the file removes one, empties or replaces the container. Pedantic: a dict,
whose keys may repeat; an attribute of an async context manager, which lives as long as its block; and a
task whose work is an argument, `watched(listen(x))`: it may be endless.
Not reported: weak containers; tasks that run until cancelled, and those added by a start method;
containers that other code gets, that another file iterates by name, or that a method other than a
close method awaits as a whole; one that drains the container is none.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from handfast._check.finding import Finding
from handfast._check.model.syntax.ancestors import ancestors, contains
from handfast._check.model.syntax.call_graph import awaited_from
from handfast._check.model.syntax.function import Function, names_in
from handfast._check.model.syntax.memo import remembered
from handfast._check.model.syntax.module import Class, Module
from handfast._check.model.syntax.project import ended_names
from handfast._check.model.tasks.creation import Retention, TaskCreation, task_creations
from handfast._check.model.tasks.endless import endless_loop
from handfast._check.model.tasks.method_roles import is_close_name, is_start_name
from handfast._check.model.vocabulary import COPYING, PUTTING, WAITING
from handfast._check.rules.rule import CREATING, Rule, related, report

_CODE = "HF131"
_EMPTY = {"set", "list", "dict", "deque", "collections.deque", "defaultdict", "OrderedDict"}
# Methods of a container that remove nothing and do not pass it on.
_STAYING = PUTTING | {"values", "items", "keys", "get", "copy", "index", "count"}
_LOOKING = COPYING | WAITING | {"len", "bool", "enumerate", "any", "all", "iter"}


@dataclass(frozen=True, slots=True)
class _Container:
    """Where a container is created empty, and whether it is a dict."""

    start: ast.AST
    is_dict: bool


def check(module: Module) -> Iterator[Finding]:
    """Containers of tasks that only grow."""
    for creation in task_creations(module):
        for retention in creation.retentions:
            if retention.how == "element" and _is_one_of_many(creation, retention):
                container = _only_grows(module, creation, retention)
                if container is not None:
                    yield _finding(module, creation, retention, container)


def _finding(
    module: Module, creation: TaskCreation, retention: Retention, container: _Container
) -> Finding:
    return report(
        _CODE,
        module,
        retention.node or creation.call,
        f"A task is added to `{retention.name}` here for each call of `{creation.function.name}`, and "
        "nothing removes it when it is done: add a done callback that discards it",
        related(module, creation.call, "the task is created here"),
        related(module, container.start, f"`{retention.name}` is created here, and only grows"),
        pedantic=container.is_dict
        or _is_of_unknown_length(creation)
        or _is_of_block(creation.function.klass),
    )


def _is_of_block(klass: Class | None) -> bool:
    """Whether the object lives as long as an `async with`, as a task group does."""
    return klass is not None and "__aexit__" in klass.methods


def _is_one_of_many(creation: TaskCreation, retention: Retention) -> bool:
    """Whether there is evidence of an unlimited number of tasks that each end."""
    if isinstance(retention.key, ast.Constant) or (not creation.bodies and creation.coro is None):
        return False
    if any(endless_loop(each) for body in creation.bodies for each in awaited_from(body)):
        return False
    return _is_in_endless_loop(creation) or _is_for_each_call(creation)


def _is_of_unknown_length(creation: TaskCreation) -> bool:
    """Whether the work is an argument of the coroutine, and may be endless: `watched(listen(x))`."""
    given = creation.coro.args if isinstance(creation.coro, ast.Call) else []
    return any(isinstance(each, ast.Call) for each in given) and not _is_in_endless_loop(creation)


def _is_in_endless_loop(creation: TaskCreation) -> bool:
    """Whether it is created in each iteration of a loop that waits for input."""
    for up in ancestors(creation.function, creation.call):
        match up:
            case ast.AsyncFor(target) if creation.coro is not None:
                # Each task is passed the item, or something derived from it.
                names = {each.id for each in ast.walk(target) if isinstance(each, ast.Name)}
                own = _derived_from(creation.function, names)
                return any(isinstance(e, ast.Name) and e.id in own for e in ast.walk(creation.coro))
            case ast.While(ast.Constant(value)) if value:
                return contains([up], ast.Await)
            case ast.For() | ast.While():
                return False
    return False


def _is_for_each_call(creation: TaskCreation) -> bool:
    """Whether the task is passed an argument of its function, and that is no start method."""
    function = creation.function
    own = _derived_from(function, set(function.parameters) - {function.self_name})
    match creation.coro:
        # The coroutine is itself an argument: `def start(self, job): ... create_task(job())`.
        case ast.Name(name) | ast.Call(ast.Name(name)) if name in own:
            return True
    if creation.coro is None or is_start_name(function.name):
        return False
    inside = [node for body in creation.bodies if body.outer is function for node in body.nodes]
    given = (*ast.walk(creation.coro), *inside)
    return any(isinstance(each, ast.Name) and each.id in own for each in given)


def _derived_from(function: Function, names: set[str]) -> set[str]:
    """The names, and the local ones that are computed from them: `for row in range(rows)`."""
    while True:
        more = {
            name
            for name, values in function.assigned.items()
            if name not in names and any(names & set(names_in(value)) for value in values)
        }
        if not more:
            return names
        names = names | more


def _only_grows(module: Module, creation: TaskCreation, retention: Retention) -> _Container | None:
    first, _, plain = retention.name.rpartition(".")
    if first not in ("self", "") or not plain:
        return None
    if first == "self" and _is_iterated_elsewhere(module, plain):
        return None
    if first == "" and (
        plain in creation.function.parameters or plain in creation.function.local_names
    ):
        return None
    starts = []
    for node in _nodes_by_name(module).get(plain, ()):
        if not _named(node, first):
            continue
        if isinstance(node.ctx, ast.Load):
            if not _stays(module, node) or _is_batch(module, node):
                return None
        else:
            start = _starts_empty(module, node)
            if start is None:
                return None
            starts.append(start)
    return starts[0] if len(starts) == 1 else None


def _is_iterated_elsewhere(module: Module, plain: str) -> bool:
    """Whether another file may empty it. A private name that this file iterates as well is taken
    for the attribute of another class in that file."""
    if module.project is None or plain not in module.project.ended_elsewhere:
        return False
    return not (plain.startswith("_") and plain in ended_names(module.source.text.encode()))


@remembered
def _nodes_by_name(module: Module) -> dict[str, list[ast.Attribute | ast.Name]]:
    """The attributes and plain names of a file, by their last names."""
    found: dict[str, list[ast.Attribute | ast.Name]] = {}
    for node in module.parents:
        if isinstance(node, ast.Attribute):
            found.setdefault(node.attr, []).append(node)
        elif isinstance(node, ast.Name):
            found.setdefault(node.id, []).append(node)
    return found


def _named(node: ast.Attribute | ast.Name, first: str) -> bool:
    """Whether a node may name the container: an attribute of any object, as in `module.tasks.clear()`,
    or a plain name if that is searched."""
    return isinstance(node, ast.Attribute) or first == ""


def _stays(module: Module, node: ast.expr) -> bool:
    """Whether a read of the container removes nothing and does not pass it on."""
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
            return True  # passes on the tasks, not the container
        case ast.Call(ast.Name(name) | ast.Attribute(attr=name)):
            return name in _LOOKING
    return False


def _is_batch(module: Module, node: ast.expr) -> bool:
    """Whether all are awaited here, and not in a close method: the object is used for one batch."""
    starred = module.parents.get(node)
    call = module.parents.get(starred) if isinstance(starred, ast.Starred) else starred
    match call:
        case ast.Call(ast.Name(name) | ast.Attribute(attr=name)) if name in ("gather", "wait"):
            around = module.function_around(call)
            closes = is_close_name(around.name) and "drain" not in around.name
            return isinstance(module.parents.get(call), ast.Await) and not closes
    return False


def _starts_empty(module: Module, node: ast.expr) -> _Container | None:
    """The assignment that creates an empty container."""
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


RULE = Rule(_CODE, check, needs=(CREATING,))
