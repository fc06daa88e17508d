"""HF303: a close method cancels a task of its object and returns without waiting for its end.

Found where an async close method cancels a task that the class has made, and no method of the class
joins that task, waits for an event by which it tells its end, or hands it on to somebody who could.
A close method that is no coroutine cannot join, so there it is pedantic. Silent where a base class
is not known, where the method is asked for a key (it ends a part), and where another file ends a
public attribute of that name.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from holdfast.check.finding import Finding
from holdfast.check.fixes import joined_after
from holdfast.check.model.effects import Effect, effects, is_itself, members
from holdfast.check.model.function import Function
from holdfast.check.model.module import Class, Module
from holdfast.check.model.owned import Owned, bodies_in, own_tasks
from holdfast.check.model.roles import close_methods
from holdfast.check.model.teardown import ending, is_whole_close
from holdfast.check.rules.rule import Rule, found, related

__all__ = ["RULE"]

# The methods that end the whole object, or a whole part of it.
_CLOSES = re.compile(
    r"_*(a|async_|do_|on_)?(close|stop|shutdown|shut_down|kill|terminate|disconnect|cleanup|clean_up"
    r"|teardown|tear_down|dispose|destroy|unload|exit|quit|cancel)|__aexit__|__exit__"
    r"|_*(a|async_|do_)?(close|stop|shutdown|kill|terminate|disconnect|cleanup|teardown)_\w+"
)
# What a function is called that cancels because something ends, not to start it anew.
_ENDS = re.compile(
    r"cancel|clos|stop|shut|kill|termin|disconn|clean|tear|dispos|clear|end|exit|abort"
)
_TELLS = {"set", "notify", "notify_all", "set_result", "set_exception", "task_done"}
_KEEPS_NOTHING = {"len", "bool", "isinstance", "list", "tuple", "set", "sorted", "repr", "str", "id",
                  "print", "debug", "info", "warning", "error", "exception", "enumerate", "filter",
                  "discard", "remove", "hasattr", "getattr", "setattr", "reversed"}  # fmt: skip


def check(module: Module) -> Iterator[Finding]:
    seen: set[ast.AST] = set()
    for klass in module.classes.values():
        tasks = own_tasks(klass)
        if not tasks or not klass.is_complete:
            continue
        methods = sorted(close_methods(klass), key=lambda method: not method.is_async)
        for owned in tasks:
            ways = [(m, cancel) for m in methods for cancel in _cancels(klass, m, owned)]
            if not ways or _is_joined_somewhere(klass, owned):
                continue
            for method, cancel in ways:
                if cancel.deed.node not in seen and cancel.deed.function.module is module:
                    seen.add(cancel.deed.node)
                    yield _finding(module, method, owned, cancel)


def _cancels(klass: Class, method: Function, owned: Owned) -> Iterator[Effect]:
    if not is_whole_close(method) or not _CLOSES.fullmatch(method.name):
        return
    for cancel in ending(klass, method, owned.root).cancels:
        meant = cancel.deed.function is method or _ENDS.search(cancel.deed.function.name)
        if meant and not _waits_for_signal(klass, method, cancel):
            yield cancel


def _waits_for_signal(klass: Class, method: Function, cancel: Effect) -> bool:
    """Whether the method then waits for something that the class itself sets: an event, a
    condition or a future by which the task tells that it is over."""
    told = {
        root
        for function in members(klass)
        for call in function.calls
        if isinstance(call.func, ast.Attribute) and call.func.attr in _TELLS
        for root in function.roots(call.func.value)
    }
    return any(
        effect.kind == "join"
        and effect.root in told
        and effect.step is not None
        and cancel.step is not None
        and (cancel.step is effect.step or method.flow.reaches(cancel.step, effect.step))
        for effect in effects(method, klass)
    )


def _is_joined_somewhere(klass: Class, owned: Owned) -> bool:
    name, project = owned.root.removeprefix("self."), klass.module.project
    if not name.startswith("_") and project is not None and name in project.ended_elsewhere:
        return True
    functions = list(members(klass))
    if any(
        effect.kind == "join" and effect.root == owned.root
        for function in functions
        for effect in effects(function, klass)
    ):
        return True
    return any(_hands_on(function, owned.root) for function in functions)


def _hands_on(function: Function, root: str) -> bool:
    """Whether a function gives the task to somebody else: returns it, or passes it to a call."""
    for node in function.nodes:
        match node:
            case ast.Return(value) | ast.Yield(value) if value is not None:
                if is_itself(function, value, root):
                    return True
            case ast.Call(func, arguments):
                if function.name_of(func).rpartition(".")[2] in _KEEPS_NOTHING:
                    continue
                given = [*arguments, *(each.value for each in node.keywords)]
                if any(is_itself(function, each, root) for each in given):
                    return True
    return False


def _finding(module: Module, method: Function, owned: Owned, cancel: Effect) -> Finding:
    made = owned.creations[0]
    bodies = [body for each in owned.creations for body in bodies_in(method.klass, each)]
    return found(
        "HF303",
        module,
        cancel.deed.node,
        f"`{method.qualname}` cancels the task in `{owned.root}` (born on line "
        f"{made.call.lineno}) and nobody waits for its end; join it before returning",
        related(made.function.module, made.call, "the task is born here"),
        fix=joined_after(cancel.deed.function, cancel.deed.node, bodies),
        pedantic=not method.is_async,
    )


RULE = Rule("HF303", check)
