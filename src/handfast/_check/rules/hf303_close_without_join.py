"""HF303: a close method cancels a task of its object and returns before the task has ended.

Reported: an async close method, or the `finally` of a coroutine method that has created the task itself
(`run`), cancels a task that the class has created, and no method of the class joins that task (one element
by its key is not all), loops until it is `done()`, waits for an event that the class sets, or passes the
task on. Pedantic for a close method that is no coroutine: it cannot await; for timers and keep-alives
without clean-up; and for a task whose clean-up does not suspend, unless it uses what the method closes.
Not reported: where a base class is not known, where the method has a required argument (it ends a
part), and where another file ends a public attribute of that name.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from handfast._check.finding import Finding
from handfast._check.fixes import joined_after
from handfast._check.model.operations.effects import Effect, effects, is_itself
from handfast._check.model.operations.teardown import (
    is_whole_close,
    suspends_in_cleanup,
    teardown_of,
)
from handfast._check.model.syntax.ancestors import enclosing_loop, is_in_finally
from handfast._check.model.syntax.call_graph import members, runs
from handfast._check.model.syntax.children import walk_here
from handfast._check.model.syntax.function import Function
from handfast._check.model.syntax.module import Class, Module
from handfast._check.model.tasks.method_roles import close_methods, is_close_name
from handfast._check.model.tasks.owned import Owned, bodies_in, own_tasks, uses
from handfast._check.model.vocabulary import COPYING, INSPECTING, LOGGING
from handfast._check.rules.rule import OWNING, Rule, line_of, once_per_place, related, report

# The methods that end the whole object, or a whole part of it.
_CLOSES = re.compile(
    r"_*(a|async_|do_|on_)?(close|stop|shutdown|shut_down|kill|terminate|disconnect|cleanup|clean_up"
    r"|teardown|tear_down|dispose|destroy|unload|exit|quit|cancel)|__aexit__|__exit__"
    r"|_*(a|async_|do_)?(close|stop|shutdown|kill|terminate|disconnect|cleanup|teardown)_\w+"
)
# Names of functions that cancel because something ends, and not to restart it.
_ENDS = re.compile(
    r"cancel|clos|stop|shut|kill|termin|disconn|clean|tear|dispos|clear|end|exit|abort"
)
_TIMER = re.compile(r"(?i)timer|timeout|keep_?alive|ping|watchdog|auto_?close")
_SIGNALS = {"set", "notify", "notify_all", "set_result", "set_exception", "task_done"}
_NOT_KEEPING = INSPECTING | COPYING | LOGGING | {
    "enumerate", "filter", "discard", "remove", "hasattr", "getattr", "setattr",
}  # fmt: skip


@once_per_place
def check(module: Module) -> Iterator[Finding]:
    for klass in module.classes.values():
        tasks = own_tasks(klass)
        if not tasks or not klass.is_complete:
            continue
        methods = sorted(close_methods(klass), key=lambda method: not method.is_async)
        for owned in tasks:
            cancels = [
                (each, cancel) for each in methods for cancel in _cancels(klass, each, owned)
            ]
            cancels += _cancels_at_end(klass, owned)
            if cancels and not _is_joined_somewhere(klass, owned):
                for method, cancel in cancels:
                    if cancel.operation.function.module is module:
                        yield _finding(module, method, owned, cancel)


def _cancels(klass: Class, method: Function, owned: Owned) -> Iterator[Effect]:
    if not is_whole_close(method) or not _CLOSES.fullmatch(method.name):
        return
    for cancel in teardown_of(klass, method, owned.root).cancels:
        meant = cancel.operation.function is method or _ENDS.search(cancel.operation.function.name)
        if meant and not _waits_for_signal(klass, method, cancel) and not _is_awaited(cancel):
            yield cancel


def _cancels_at_end(klass: Class, owned: Owned) -> Iterator[tuple[Function, Effect]]:
    """The cancels in the `finally` of a method that has created the task itself: it ends there what it
    has begun, as a close method does."""
    for method in {creation.function for creation in owned.creations}:
        if method.is_async and method.owner is not None and not is_close_name(method.name):
            for cancel in teardown_of(klass, method, owned.root).cancels:
                if is_in_finally(method, cancel.node) and not _is_awaited(cancel):
                    if not _waits_for_signal(klass, method, cancel):
                        yield method, cancel


def _is_awaited(cancel: Effect) -> bool:
    """Whether the same local name is awaited after the cancel: `task = tasks.pop(key)` is a task of
    its own, which `_joins_one` would take for one of many."""
    function = cancel.operation.function
    match cancel.operation.node:
        case ast.Call(ast.Attribute(ast.Name(name), "cancel")) as node:
            step = function.flow.of(node)
            return step is not None and any(
                isinstance(each, ast.Await)
                and isinstance(each.value, ast.Name)
                and each.value.id == name
                and function.flow.reaches(step, function.flow.of(each))
                for each in function.nodes
            )
    return False


def _waits_for_signal(klass: Class, method: Function, cancel: Effect) -> bool:
    """Whether the method then waits for something that the class itself sets: an event, a condition
    or a future by which the task signals its end."""
    signals = {
        root
        for function in members(klass)
        for call in function.calls
        if isinstance(call.func, ast.Attribute) and call.func.attr in _SIGNALS
        for root in function.roots(call.func.value)
    }
    return cancel.step is not None and any(
        each.kind == "join"
        and each.root in signals
        and (cancel.step is each.step or method.flow.reaches(cancel.step, each.step))
        for each in effects(method, klass)
    )


def _is_joined_somewhere(klass: Class, owned: Owned) -> bool:
    name, project = owned.root.removeprefix("self."), klass.module.project
    if not name.startswith("_") and project is not None and name in project.ended_elsewhere:
        return True
    functions = list(members(klass))
    if any(
        effect.kind == "join" and effect.root == owned.root and not _joins_one(effect, owned.root)
        for function in functions
        for effect in effects(function, klass)
    ):
        return True
    return any(
        _passes_on(function, owned.root) or _polls(function, owned.root) for function in functions
    )


def _joins_one(join: Effect, root: str) -> bool:
    """Whether only one element of a container is joined, by its key: the others may still run."""
    function, node = join.operation.function, join.operation.node
    value = node.value if isinstance(node, ast.Await) else None
    if isinstance(value, ast.Name) and len(function.assigned.get(value.id, ())) == 1:
        value = function.assigned[value.id][0]
    match value:
        case ast.Subscript(container) | ast.Call(ast.Attribute(container, "get" | "pop"), [_, *_]):
            return function.name_of(container) == root and enclosing_loop(function, node) is None
    return False


def _polls(function: Function, root: str) -> bool:
    """Whether a function loops until the task is done: `while not self._task.done(): await sleep(0)`."""
    return any(
        isinstance(loop, ast.While)
        and any(
            isinstance(each, ast.Attribute)
            and each.attr == "done"
            and root in function.roots(each.value)
            for each in walk_here(loop.test)
        )
        for loop in function.nodes
    )


def _passes_on(function: Function, root: str) -> bool:
    """Whether a function returns the task, or passes it to a call that may await it."""
    for node in function.nodes:
        match node:
            case ast.Return(value) | ast.Yield(value) if value is not None:
                if is_itself(function, value, root):
                    return True
            case ast.Call(func, arguments):
                if function.last_name_of(func) in _NOT_KEEPING:
                    continue
                given = [*arguments, *(each.value for each in node.keywords)]
                if any(is_itself(function, each, root) for each in given):
                    return True
    return False


def _is_harmful(method: Function, owned: Owned, bodies: list[Function]) -> bool:
    """Whether the task waits for something after the cancel, or uses what the method closes. Otherwise it
    ends in the step in which the cancel arrives: soon."""
    klass = method.klass
    if klass is None or any(suspends_in_cleanup(body, klass) for body in bodies):
        return True
    if any(_is_timer(owned.root, body) for body in bodies):
        return False
    if any(map(_is_abstract, bodies)) or _are_of_others(owned):
        return True
    closed = {each.root for each in effects(method, klass) if each.kind in ("close", "clear")}
    used = {use.root for creation in owned.creations for use in uses(klass, creation)}
    return not closed.isdisjoint(used - {owned.root})


def _is_timer(root: str, body: Function) -> bool:
    """Whether a task is a timer or a keep-alive: by its name, or because it sleeps first."""
    if _TIMER.search(root) or _TIMER.search(body.name):
        return True
    match body.body:
        case [ast.Expr(ast.Await(ast.Call(func))), *_]:
            return body.last_name_of(func) == "sleep"
    return False


def _are_of_others(owned: Owned) -> bool:
    """Whether it is a container of tasks with code that is not known, made in plain functions: these
    cannot wait for them."""
    return any(
        not each.bodies
        and not each.function.is_async
        and any(kept.how == "element" for kept in each.retentions)
        for each in owned.creations
    )


def _is_abstract(body: Function) -> bool:
    """Whether a derived class has the code."""
    return any(isinstance(each, ast.Raise) for each in body.body[:2])


def _finding(module: Module, method: Function, owned: Owned, cancel: Effect) -> Finding:
    creation = owned.creations[0]
    bodies = [body for each in owned.creations for body in bodies_in(method.klass, each)]
    ends_itself = any(each is method for body in bodies for each, _ in runs(body, method.klass))
    own = (
        ", unless it is `asyncio.current_task()`: the task can get here itself"
        if ends_itself
        else ""
    )
    return report(
        "HF303",
        module,
        cancel.operation.node,
        f"`{method.qualname}` cancels the task in `{owned.root}` (created on line "
        f"{line_of(creation.call)}), and nothing waits until it has ended: await it before returning"
        f"{own}",
        related(creation.function.module, creation.call, "the task is created here"),
        fix=joined_after(cancel.operation.function, cancel.operation.node, bodies),
        pedantic=not method.is_async or not _is_harmful(method, owned, bodies),
    )


RULE = Rule("HF303", check, needs=(OWNING,))
