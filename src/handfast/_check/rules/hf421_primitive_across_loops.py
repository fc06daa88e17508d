"""HF421: one lock, event or queue of asyncio is used by more than one event loop.

Reported: it is created once, at the top of a module or in the body of a class, a coroutine waits for
it, and that coroutine runs on more than one loop: `asyncio.run` in two functions, or in a function
that runs on threads. Without such evidence it is pedantic: with one loop in the process it works.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from handfast._check.finding import Finding
from handfast._check.model.syntax.call_graph import reached_from, resolve_function
from handfast._check.model.syntax.function import Function
from handfast._check.model.syntax.module import Class, Module
from handfast._check.model.threads.foreign_threads import thread_targets
from handfast._check.rules.rule import Rule, related, report

_CODE = "HF421"
_CREATING = {
    f"asyncio.{name}"
    for name in (
        "Lock", "Event", "Condition", "Semaphore", "BoundedSemaphore", "Queue", "PriorityQueue",
        "LifoQueue",
    )
}  # fmt: skip
# Each object of these classes gets its own copy of the attributes in the class body.
_COPYING = {"pydantic.BaseModel", "pydantic.main.BaseModel", "sqlmodel.SQLModel"}
_WAITING = {"acquire", "wait", "get", "put", "join", "wait_for"}


def check(module: Module) -> Iterator[Finding]:
    for name, created in _created_once(module):
        users = [each for each in module.functions if each.is_async and _waits_for(each, name)]
        if not users:
            continue
        starts = list(_loops_of(module, users))
        several = len({function for function, _ in starts}) > 1 or any(
            _is_on_thread(module, function) for function, _ in starts
        )
        is_used_as_own = name.startswith("self.") and any(
            user.name_of(each) == name for user in users for each in _waited(user)
        )
        more = (related(module, call, "an event loop is started here") for _, call in starts[:2])
        yield report(
            _CODE,
            module,
            created,
            f"`{name}` is created once for all event loops, and `{users[0].qualname}` waits for it"
            + (" on more than one loop" if several else ": it works with the first loop only")
            + (", and all objects of the class share it" if is_used_as_own else "")
            + "; create it in a coroutine of the loop that uses it",
            related(module, users[0].node, "waited for here"),
            *more,
            # With one loop it works, and that all objects share it may be intended.
            pedantic=not several,
        )


def _created_once(module: Module) -> Iterator[tuple[str, ast.stmt]]:
    """The primitives at the top of a module and in class bodies, by name."""
    for stmt in module.source.tree.body:
        yield from ((name, stmt) for name in _created_by(module, stmt))
    for klass in module.classes.values():
        created = [(name, stmt) for stmt in klass.node.body for name in _created_by(module, stmt)]
        # Tested last: it may read other files.
        if created and not _is_copied(klass):
            yield from ((f"self.{name}", stmt) for name, stmt in created)


def _is_copied(klass: Class) -> bool:
    return any(name in _COPYING for part in klass.lineage for name in part.base_names)


def _created_by(module: Module, stmt: ast.stmt) -> Iterator[str]:
    match stmt:
        case ast.Assign([ast.Name(name)], ast.Call(called)):
            pass
        case ast.AnnAssign(ast.Name(name), _, ast.Call(called)):
            pass
        case _:
            return
    if module.names.resolve(called) in _CREATING:
        yield name


def _waits_for(function: Function, name: str) -> bool:
    return any(_is(function, each, name) for each in _waited(function))


def _waited(function: Function) -> Iterator[ast.expr]:
    for node in function.nodes:
        match node:
            case ast.AsyncWith(items):
                yield from (item.context_expr for item in items)
            case ast.Await(ast.Call(ast.Attribute(holder, method))) if method in _WAITING:
                yield holder


def _is(function: Function, node: ast.expr, name: str) -> bool:
    own = function.name_of(node)
    plain = name.removeprefix("self.")
    if own == name and not (name == plain and name in function.local_names):
        return True
    klass = function.klass
    return name != plain and klass is not None and own in (f"{klass.name}.{plain}", f"cls.{plain}")


def _loops_of(module: Module, users: list[Function]) -> Iterator[tuple[Function, ast.Call]]:
    """Where an event loop is started that runs one of the users."""
    for function, call in module.calls():
        if function.name_of(call.func) != "asyncio.run" or not call.args:
            continue
        match call.args[0]:
            case ast.Call(called):
                for body in resolve_function(function, called):
                    if not set(users).isdisjoint(reached_from(body)):
                        yield function, call


def _is_on_thread(module: Module, function: Function) -> bool:
    return any(function in reached_from(start) for start in thread_targets(module))


RULE = Rule(_CODE, check, needs=("asyncio", "Lock(|Event(|Condition(|Semaphore(|Queue("))
