"""HF402: a future, event or queue of asyncio is set or filled from a thread other than the loop's.

Reported: a function that is started on a thread in this module calls a method that wakes waiters, on
an object that is asyncio's: every assignment of it in the class or module creates one of asyncio's.
Not reported: where the object comes from elsewhere, where the thread runs a loop of its own or tests
on which thread it is, and `call_soon_threadsafe(event.set)`, which is correct.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from handfast._check.finding import Finding
from handfast._check.model.syntax.function import Function
from handfast._check.model.syntax.module import Module
from handfast._check.model.threads.foreign_threads import foreign_threads
from handfast._check.model.threads.primitives import Primitive, primitive
from handfast._check.rules.rule import Rule, related, report

_CODE = "HF402"
_OF_QUEUES = {"put_nowait", "get_nowait", "task_done"}
# The methods that wake waiters, by class.
_WAKING = {
    "Future": {"set_result", "set_exception", "cancel"},
    "Event": {"set"},
    "Queue": _OF_QUEUES,
    "PriorityQueue": _OF_QUEUES,
    "LifoQueue": _OF_QUEUES,
    "Lock": {"release"},
    "Semaphore": {"release"},
    "BoundedSemaphore": {"release"},
    "Condition": {"notify", "notify_all", "release"},
}


def check(module: Module) -> Iterator[Finding]:
    for function, why in foreign_threads(module).items():
        for call in function.calls:
            what = _woken(function, call)
            if what is None:
                continue
            name = function.name_of(call.func)
            yield report(
                _CODE,
                module,
                call,
                f"`{name}` of an asyncio {what.kind} is called in `{function.qualname}`, which runs on "
                "a thread other than the event loop's: it is not thread-safe, and its waiters are not "
                "woken; use `loop.call_soon_threadsafe`",
                related(module, why.node, f"`{why.start.qualname}` is started on a thread here"),
                related(what.module, what.created, f"the asyncio {what.kind} is created here"),
            )


def _woken(function: Function, call: ast.Call) -> Primitive | None:
    match call.func:
        case ast.Attribute(receiver, method) if any(method in each for each in _WAKING.values()):
            what = primitive(function, receiver)
            if what is not None and method in _WAKING.get(what.kind, ()):
                return what
    return None


RULE = Rule(
    _CODE, check, needs=("set_result|set_exception|cancel|.set(|nowait|task_done|release|notify",)
)
