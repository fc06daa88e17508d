"""HF402: a future, event or queue of asyncio is set or filled on a thread that is not the loop's.

Evidence: the function is started on a thread in this module, and the object is asyncio's: every
place in the class or module that gives it a value makes one of asyncio's.
Silent where the object comes from elsewhere, where the thread brings a loop of its own or asks on
which thread it is, and for `call_soon_threadsafe(event.set)`, which is the right way.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from holdfast.check.finding import Finding
from holdfast.check.model.function import Function
from holdfast.check.model.module import Module
from holdfast.check.model.primitives import Primitive, primitive
from holdfast.check.model.roles import foreign
from holdfast.check.rules.rule import Rule, found, related

__all__ = ["RULE"]

_CODE = "HF402"
_OF_QUEUES = {"put_nowait", "get_nowait", "task_done"}
# The methods that wake waiters, by what they are methods of.
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
    for function, why in foreign(module).items():
        for call in function.calls:
            what = _woken(function, call)
            if what is None:
                continue
            name = function.name_of(call.func)
            yield found(
                _CODE,
                module,
                call,
                f"`{name}` of an asyncio {what.kind} is called in `{function.qualname}`, which runs "
                "on a thread that is not the loop's: its waiters are not woken; use "
                "`loop.call_soon_threadsafe`",
                related(module, why.node, f"`{why.start.qualname}` is put on a thread here"),
                related(what.module, what.made, f"the asyncio {what.kind} is made here"),
            )


def _woken(function: Function, call: ast.Call) -> Primitive | None:
    match call.func:
        case ast.Attribute(receiver, method) if any(method in each for each in _WAKING.values()):
            what = primitive(function, receiver)
            if what is not None and method in _WAKING.get(what.kind, ()):
                return what
    return None


RULE = Rule(_CODE, check)
