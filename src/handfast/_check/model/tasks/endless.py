"""Tasks that run until they are cancelled, and whether anything cancels them.

A task is endless if its body has a `while True` with no exit. It is not reported where anything may
end it: a cancel, a join, a signal, other code that gets the task, or another file that names the
attribute. "Never" is a strong claim, so each doubt counts against it.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from handfast._check.model.operations.operations import operations
from handfast._check.model.syntax.ancestors import is_true, last_name
from handfast._check.model.syntax.call_graph import awaited_from, members, reached_from, resolve_in
from handfast._check.model.syntax.children import walk_here
from handfast._check.model.syntax.function import Function
from handfast._check.model.syntax.handlers import caught, is_cancellation
from handfast._check.model.syntax.memo import remembered
from handfast._check.model.syntax.module import Class, Module
from handfast._check.model.syntax.project import ended_names
from handfast._check.model.tasks.creation import TaskCreation
from handfast._check.model.tasks.makers import MadeTask
from handfast._check.model.tasks.method_roles import close_methods
from handfast._check.model.tasks.owned import bodies_in, creates_tasks, owned_tasks
from handfast._check.model.tasks.records import recorded_tasks
from handfast._check.model.vocabulary import INSPECTING, LOGGING, PUTTING_ONE, TAKING, TASK_QUERIES

# Methods of a task, or of a container of tasks, that neither end a task nor return one.
_HARMLESS_METHODS = TASK_QUERIES | (PUTTING_ONE - {"setdefault"}) | {
    "cancelling", "remove_done_callback", "discard", "remove", "clear",
}  # fmt: skip
_HARMLESS_FUNCTIONS = INSPECTING | {"hasattr"}


@dataclass(frozen=True, slots=True, eq=False)
class EndlessTask:
    """A task in an attribute, and its loop without an exit."""

    root: str
    creation: TaskCreation
    loop: ast.While
    loop_module: Module


@remembered
def never_ended(klass: Class) -> tuple[EndlessTask, ...]:
    """The endless tasks that a class creates in its own methods and that nothing can end."""
    # In this order: whether all bases are known may need other files.
    recorded = recorded_tasks(klass)
    if not (recorded or creates_tasks(klass)) or not klass.is_complete:
        return ()
    in_records = (
        endless
        for each in recorded
        if (endless := _endless_task(klass, f"{each.root}` as `.{each.field}", each.creation))
        if not is_end_known(klass, f"self.{each.field}") and not is_signalled(klass, each.creation)
    )
    return (*_never_ended_directly(klass), *in_records)


def _never_ended_directly(klass: Class) -> Iterator[EndlessTask]:
    # A task of one `create_task` may be made by several calls of the method around it.
    seen: set[tuple[str, ast.Call]] = set()
    for owned in owned_tasks(klass):
        for creation in owned.creations:
            created = creation.created.call if isinstance(creation, MadeTask) else creation.call
            if creation.function.klass is not klass or (owned.root, created) in seen:
                continue
            endless = _endless_task(klass, owned.root, creation)
            if endless is not None and not is_end_known(klass, owned.root):
                if not is_signalled(klass, creation):
                    seen.add((owned.root, created))
                    yield endless


def _endless_task(klass: Class, root: str, creation: TaskCreation) -> EndlessTask | None:
    for body in bodies_in(klass, creation):
        for function in awaited_from(body):
            loop = endless_loop(function)
            if loop is not None:
                return EndlessTask(root, creation, loop, function.module)
    return None


@remembered
def endless_loop(function: Function) -> ast.While | None:
    """The `while True` of a coroutine function that only a cancellation leaves."""
    if not function.is_async or function.is_generator:
        return None
    for node in function.nodes:
        if isinstance(node, ast.While) and is_true(node.test):
            # A loop without an `await` blocks the event loop, which is another bug.
            if _suspends(node) and not any(_exits(function, node.body, inner=False)):
                return node
    return None


def _suspends(loop: ast.While) -> bool:
    return any(
        isinstance(each, (ast.Await, ast.AsyncFor, ast.AsyncWith)) for each in walk_here(loop)
    )


def _exits(function: Function, body: list[ast.stmt], inner: bool) -> Iterator[ast.stmt]:
    """The statements that leave the loop around `body`, without those that handle a cancellation."""
    for stmt in body:
        match stmt:
            case ast.Return() | ast.Raise():
                yield stmt
            case ast.Break() if not inner:
                yield stmt
            case ast.For() | ast.AsyncFor() | ast.While():
                yield from _exits(function, stmt.body, True)
                yield from _exits(function, stmt.orelse, inner)
            case ast.Try() | ast.TryStar():
                for part in (stmt.body, stmt.orelse, stmt.finalbody):
                    yield from _exits(function, part, inner)
                for handler in stmt.handlers:
                    if not _is_for_cancellation(function, handler):
                        yield from _exits(function, handler.body, inner)
            case ast.If():
                yield from _exits(function, stmt.body, inner)
                yield from _exits(function, stmt.orelse, inner)
            case ast.With() | ast.AsyncWith():
                yield from _exits(function, stmt.body, inner)
            case ast.Match():
                for case in stmt.cases:
                    yield from _exits(function, case.body, inner)


def _is_for_cancellation(function: Function, handler: ast.ExceptHandler) -> bool:
    # `except (CancelledError, OSError)` is an exit: an OSError ends the loop as well.
    names = caught(function, handler.type)
    return handler.type is not None and all(map(is_cancellation, names))


# --- what ends it --------------------------------------------------------------------------------


def is_end_known(klass: Class, root: str) -> bool:
    """Whether anything may end a task in this attribute: this class, code that gets hold of the task,
    or another file."""
    module = klass.module
    plain = root.removeprefix("self.")
    # First the cheap question: most attributes are named once in a file that ends them.
    restarts = _restarts(klass, root) if plain in _named_in(module) else ()
    if plain in (_named_outside(module, restarts) if restarts else _named_in(module)):
        return True
    if any(
        _exposes(module, node) and not _is_ended_in(module, node, restarts)
        for node in _attributes(module).get(plain, ())
    ):
        return True
    # On whatever object: another file has another name for the object, and the attribute in common.
    if module.project is not None and plain in module.project.ended_elsewhere:
        return True
    return any(
        each.root == root and each.kind in ("cancel", "join")
        for function in members(klass)
        if function not in restarts
        for each in operations(function)
    )


def _restarts(klass: Class, root: str) -> tuple[Function, ...]:
    """The methods that end a task of the attribute only to start the next one, and that no close
    method runs: after each of them a task runs."""
    cancelling = {
        klass.module.function_around(node)
        for node in _attributes(klass.module).get(root.removeprefix("self."), ())
        if last_name(klass.module.parents.get(node)) == "cancel"
    }
    if cancelling.isdisjoint(klass.functions):
        return ()
    creating = {
        creation.function
        for owned in owned_tasks(klass)
        if owned.root == root
        for creation in owned.creations
    }
    closing = {each for method in close_methods(klass) for each in reached_from(method)}
    return tuple(
        function
        for function in klass.functions
        if function in cancelling
        and function not in closing
        and _starts_again(klass, function, root, creating)
    )


def _starts_again(klass: Class, function: Function, root: str, creating: set[Function]) -> bool:
    flow = function.flow
    cancels = [
        each.step for each in operations(function) if each.root == root and each.kind == "cancel"
    ]
    if not cancels:
        return False
    starts = {
        flow.of(call)
        for call in function.calls
        for callee in (*resolve_in(klass, function, call.func), function)
        if callee in creating and (callee is not function or _is_creation(klass, call, root))
    } - {None}
    return bool(starts) and not any(flow.reaches(each, flow.end, starts) for each in cancels)


def _is_creation(klass: Class, call: ast.Call, root: str) -> bool:
    return any(
        creation.call is call
        for owned in owned_tasks(klass)
        if owned.root == root
        for creation in owned.creations
    )


def _named_outside(module: Module, functions: Iterable[Function]) -> frozenset[str]:
    """The attribute names that the file cancels, joins or has as strings outside of some functions."""
    lines = module.source.text.splitlines(keepends=True)
    spans = [(each.node.lineno - 1, each.node.end_lineno or 0) for each in functions]
    for first, last in spans:
        lines[first:last] = ["\n"] * (last - first)
    return _strings(module) | ended_names("".join(lines).encode())


def _is_ended_in(module: Module, node: ast.expr, functions: Collection[Function]) -> bool:
    """Whether one of the functions cancels or awaits the task here, and does not pass it on."""
    if not functions or module.function_around(node) not in functions:
        return False
    parent = module.parents.get(node)
    return isinstance(parent, ast.Await) or (
        isinstance(parent, ast.Attribute) and parent.attr == "cancel"
    )


def is_signalled(klass: Class, creation: TaskCreation) -> bool:
    """Whether a close method sets or closes something that the task reads."""
    read = {
        each.root
        for body in creation.bodies
        for function in reached_from(body)
        for each in operations(function)
        if each.kind in ("read", "use")
    }
    return any(
        each.root in read
        for method in close_methods(klass)
        for function in reached_from(method)
        for each in operations(function)
        if each.kind in ("signal", "close", "cancel") or _sends_signal(each.node)
    )


def _sends_signal(node: ast.AST) -> bool:
    """`queue.put_nowait(None)`, or a flag that is set."""
    match node:
        case ast.Call(ast.Attribute(attr="put_nowait" | "put")):
            return True
        # `self._running = False`, which the loop may test.
        case ast.Assign(value=ast.Constant(bool())):
            return True
    return False


@remembered
def _named_in(module: Module) -> frozenset[str]:
    """The attribute names that the file cancels or joins, on any object, or has as strings.

    A string counts because of `getattr(self, name).cancel()` over a list of names.
    """
    return _strings(module) | ended_names(module.source.text.encode())


def _strings(module: Module) -> frozenset[str]:
    return _strings_and_attributes(module)[0]


def _attributes(module: Module) -> dict[str, list[ast.Attribute]]:
    return _strings_and_attributes(module)[1]


@remembered
def _strings_and_attributes(
    module: Module,
) -> tuple[frozenset[str], dict[str, list[ast.Attribute]]]:
    """The strings of a file, and where it reads attributes, by their names."""
    strings: set[str] = set()
    attributes: dict[str, list[ast.Attribute]] = {}
    for node in module.parents:  # every node of the file, without another walk through the tree
        if isinstance(node, ast.Attribute):
            if isinstance(node.ctx, ast.Load):
                attributes.setdefault(node.attr, []).append(node)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            strings.add(node.value)
    return frozenset(strings), attributes


def _exposes(module: Module, node: ast.expr) -> bool:
    """Whether other code may get hold of a task where the attribute that keeps it is read."""
    parent = module.parents.get(node)
    match parent:
        case ast.Attribute(attr=attr):
            return attr not in _HARMLESS_METHODS and not _is_dropped(module, parent, attr)
        # `self._tasks[key] = task` and `del self._tasks[key]` do not return a task.
        case ast.Subscript(ctx=ast.Store() | ast.Del()):
            return False
        case ast.Compare() | ast.UnaryOp() | ast.If() | ast.While() | ast.Assert() | ast.Expr():
            return False
        case ast.IfExp(test):
            return test is not node
        case ast.BoolOp():
            return _exposes(module, parent)
        case ast.Call(ast.Name(name)) if name in _HARMLESS_FUNCTIONS:
            return False
        case ast.Call(ast.Attribute(attr=attr)) if attr in LOGGING:
            return False
    return True


def _is_dropped(module: Module, method: ast.Attribute, name: str) -> bool:
    """Whether `self._tasks.pop(key)` is a statement: what it returns goes nowhere."""
    call = module.parents.get(method)
    return name in TAKING and isinstance(module.parents.get(call) if call else None, ast.Expr)
