"""A graph of objects as text: two texts are equal only if the two graphs are the same, except for the
addresses of the objects.

Objects are numbered in the order in which they are met, and `id` serves only to recognise an object
that was met before. For each kind of object there is a rule here for what it holds; a kind without
a rule makes the state unknown.
"""

from __future__ import annotations

import asyncio
import contextvars
import datetime
import decimal
import enum
import functools
import gc
import hashlib
import logging
import random
import re
import types
import weakref
from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from typing import Any

from handfast._explore.loop.external_events import Channel, Event, ExternalEvents
from handfast._explore.search.states import UnknownState
from handfast._explore.search.states.class_layout import attributes, check_layout, members
from handfast._explore.search.states.reachable_globals import harmless, reachable

# Beyond so many objects the text costs more than running the schedule.
_LIMIT = 20_000
# A header, then what the object holds, in order.
Held = tuple[str, Iterable[Any]]
_AUTOMATIC = re.compile(r"Task-\d+")


class Graph:
    """A text in progress. `now` is the loop's time: how long something has been due does not matter."""

    def __init__(self, loop: Any, now: float, *, limit: int = _LIMIT) -> None:
        self._loop = loop
        self._now = now
        self._limit = limit
        self._text: list[str] = []
        self._numbers: dict[int, int] = {}
        # Temporary objects must stay alive: the id of a freed one could be used again.
        self._kept: list[Any] = []

    def met(self, thing: object) -> bool:
        return id(thing) in self._numbers

    def add(self, *values: object) -> None:
        """Add plain values: numbers, strings, and tuples of them."""
        self._text.append(repr(values))

    def write(self, *things: Any) -> None:
        """Add these objects, and all that can be reached from them."""
        text, numbers = self._text, self._numbers
        todo = list(reversed(things))
        while todo:
            thing = todo.pop()
            kind = type(thing)
            if kind in _ATOMS:
                text.append(hex(thing) if kind is int else repr(thing))
                continue
            number = numbers.get(id(thing))
            # An object that was met before is written as its number: cycles end, and sharing counts.
            if number is not None:
                text.append(f"#{number}")
                continue
            rule = _RULES.get(kind)
            if rule is None:
                atom = self._atom(thing)
                if atom is not None:
                    text.append(atom)
                    continue
            numbers[id(thing)] = len(numbers)
            if len(numbers) > self._limit:
                raise UnknownState("too many objects")
            header, held = self._held(thing) if rule is None else rule(self, thing)
            inside = list(held)
            self._kept.append((thing, inside))
            text.append(f"{header}:{len(inside)}")
            inside.reverse()
            todo += inside

    def digest(self) -> int:
        """The text as a number, the same in every process."""
        text = "\n".join(self._text).encode("utf-8", "surrogatepass")
        return int.from_bytes(hashlib.blake2b(text, digest_size=16).digest(), "big")

    # --- one object --------------------------------------------------------------------------

    def _atom(self, thing: Any) -> str | None:
        """A name for an object that cannot change; None if it can."""
        kind = type(thing)
        if thing is self._loop or kind is ExternalEvents:
            return kind.__name__
        if isinstance(thing, type) and harmless(thing.__module__):
            return f"class {thing.__module__}.{thing.__qualname__}"
        if isinstance(thing, _NAMED):
            return f"{kind.__name__} {getattr(thing, '__qualname__', None) or thing.__name__}"
        if isinstance(thing, types.CodeType):
            return f"code {thing.co_qualname} {thing.co_filename}:{thing.co_firstlineno}"
        if isinstance(thing, enum.Enum):
            return f"{kind.__module__}.{kind.__qualname__}.{thing.name}"
        if isinstance(thing, logging.Logger):
            return f"logger {thing.name}"  # the program does not read its log
        if isinstance(thing, types.ModuleType):
            if not harmless(thing.__name__):
                raise UnknownState(f"module {thing.__name__} as an object")
            return f"module {thing.__name__}"
        return None

    def _held(self, thing: Any) -> Held:
        kind = type(thing)
        if isinstance(thing, type):
            return self._class(thing)
        if isinstance(thing, random.Random):
            return f"random {hash(thing.getstate())}", ()
        if kind.__name__ in _SEE_THROUGH and kind.__module__ in ("builtins", "_asyncio"):
            return kind.__name__, [it for it in gc.get_referents(thing) if it is not kind]
        if kind.__name__ in _ITERATORS and kind.__module__ == "builtins":
            return kind.__name__, thing.__reduce__()
        return self._instance(thing)

    def _class(self, cls: Any) -> Held:
        held: list[Any] = [type(cls), *cls.__bases__]
        for name, value in members(cls):
            held += (name, value)
        return f"class {cls.__module__}.{cls.__qualname__}", held

    def _instance(self, thing: Any) -> Held:
        check_layout(type(thing))
        held: list[Any] = [type(thing)]
        for base, content in _CONTENTS:
            if isinstance(thing, base):
                header, inside = content(self, thing)
                held += (header, *inside)
        for name, value in attributes(thing):
            held += (name, value)
        return "instance", held

    # --- containers ----------------------------------------------------------------------------

    def sequence(self, thing: Any) -> Held:
        return type(thing).__name__, list(thing)

    def deque(self, thing: Any) -> Held:
        return f"deque {thing.maxlen}", list(thing)

    def mapping(self, thing: Any) -> Held:
        return type(thing).__name__, [part for item in dict.items(thing) for part in item]

    def proxy(self, thing: Any) -> Held:
        return "mappingproxy", [part for item in thing.items() for part in item]

    def default_mapping(self, thing: Any) -> Held:
        header, held = self.mapping(thing)
        return header, [thing.default_factory, *held]

    def unordered(self, thing: Any) -> Held:
        return type(thing).__name__, sorted(thing, key=self._rank)

    def _rank(self, thing: Any) -> tuple[int, int, str]:
        """A sort key for a member of a set that does not depend on its address."""
        if type(thing) in _ATOMS:
            return 0, 0, repr(thing)
        if self.met(thing):
            return 1, self._numbers[id(thing)], ""
        if isinstance(thing, asyncio.Task) and thing in self._loop.tasks:
            return 2, self._loop.tasks.index(thing), ""
        if type(thing) is tuple and all(type(part) in _ATOMS for part in thing):
            return 3, 0, repr(thing)
        raise UnknownState("a set of objects without an order")

    # --- code --------------------------------------------------------------------------------------

    def function(self, thing: Any) -> Held:
        held: list[Any] = [
            thing.__code__,
            thing.__defaults__,
            thing.__kwdefaults__,
            thing.__closure__,
            thing.__dict__,
        ]
        for name, value in reachable(thing.__code__, thing.__globals__):
            held += (name, value)
        return "function", held

    def method(self, thing: Any) -> Held:
        return "method", (thing.__func__, thing.__self__)

    def builtin(self, thing: Any) -> Held:
        owner = thing.__self__
        if owner is None or isinstance(owner, types.ModuleType):
            if owner is not None:
                harmless(owner.__name__)
            return f"builtin {thing.__module__}.{thing.__qualname__}", ()
        return f"builtin {thing.__qualname__}", (owner,)

    def cell(self, thing: Any) -> Held:
        try:
            return "cell", (thing.cell_contents,)
        except ValueError:
            return "empty cell", ()

    def partial(self, thing: Any) -> Held:
        return "partial", (thing.func, thing.args, thing.keywords, thing.__dict__)

    def property(self, thing: Any) -> Held:
        return "property", (thing.fget, thing.fset, thing.fdel)

    def wrapper(self, thing: Any) -> Held:
        return type(thing).__name__, (thing.__func__,)

    def suspended(self, thing: Any) -> Held:
        """A coroutine or generator: where it is suspended, its locals, and what is on its stack."""
        prefix = _PREFIXES[type(thing)]
        frame = getattr(thing, f"{prefix}_frame")
        if frame is None:
            return f"ended {type(thing).__name__}", ()
        if getattr(thing, f"{prefix}_running") and prefix != "ag":
            raise UnknownState("a coroutine that is running")
        bound = _bound(frame)
        held: list[Any] = [frame.f_code, bound]
        # The value stack of a frame (the iterator of a `for`, a pending operand) is visible only
        # to the garbage collector.
        held += [it for it in gc.get_referents(thing) if not isinstance(it, types.FrameType)]
        for name, value in reachable(frame.f_code, frame.f_globals):
            held += (name, value)
        running = getattr(thing, f"{prefix}_running")
        return f"{type(thing).__name__} at {frame.f_lasti} {running}", held

    # --- asyncio -------------------------------------------------------------------------------------

    def future(self, thing: Any) -> Held:
        held: list[Any] = [
            thing._state,
            thing._result if thing._state == "FINISHED" and thing._exception is None else None,
            thing._exception,
            thing._callbacks,
            thing._asyncio_future_blocking,
            thing._cancel_message,
            bool(thing._log_traceback),
        ]
        if isinstance(thing, asyncio.Task):
            # The number in an automatic name depends on how many tasks there have been.
            name = thing.get_name()
            held += (
                "" if _AUTOMATIC.fullmatch(name) else name,
                None if thing.done() else thing.get_coro(),
                thing._fut_waiter,  # type: ignore[attr-defined]
                thing._must_cancel,  # type: ignore[attr-defined]
                thing.cancelling(),
                *_contexts(thing),
            )
        return type(thing).__name__, held

    def handle(self, thing: Any) -> Held:
        when = repr(thing.when()) if isinstance(thing, asyncio.TimerHandle) else ""
        armed = bool(getattr(thing, "_scheduled", False))
        held = (thing._callback, thing._args, thing._context)
        return f"{type(thing).__name__} {when} {armed} {thing._cancelled}", held

    def context(self, thing: Any) -> Held:
        # A context has no order of its own.
        items = sorted(thing.items(), key=lambda item: str(item[0].name))
        names = [variable.name for variable, _ in items]
        if len(set(names)) < len(names):
            raise UnknownState("two context variables of one name")
        return "context", [part for item in items for part in item]

    def variable(self, thing: Any) -> Held:
        return f"context variable {thing.name}", ()

    def channel(self, thing: Any) -> Held:
        return f"channel {thing.name!r} {thing.between}", list(thing.queue)

    def event(self, thing: Any) -> Held:
        held: list[Any] = [thing.label, max(thing.at, self._now), thing.channel, thing.arrive]
        for name, arrive in thing.faults.items():
            held += (name, arrive)
        return "event", held

    # --- the rest ----------------------------------------------------------------------------------

    def error(self, thing: Any) -> Held:
        held: list[Any] = [
            thing.args,
            thing.__cause__,
            thing.__context__,
            thing.__suppress_context__,
        ]
        # The locals of the frames are left out: programs do not read them.
        traceback = thing.__traceback__
        while traceback is not None:
            held += (traceback.tb_frame.f_code, traceback.tb_lasti)
            traceback = traceback.tb_next
        return "error", held

    def reference(self, thing: Any) -> Held:
        return "weak", (thing(), thing.__callback__)

    def bare(self, thing: Any) -> Held:
        return "object", ()

    def namespace(self, thing: Any) -> Held:
        return "namespace", (vars(thing),)

    def characters(self, thing: Any) -> Held:
        """An object whose `repr` contains all of its state."""
        return repr(thing), ()


def _bound(frame: types.FrameType) -> str:
    """Which locals have a value."""
    snapshot = frame.f_locals
    names = ",".join(sorted(snapshot))
    if type(snapshot) is dict:
        snapshot.clear()  # before 3.13 it is a copy that would keep the values alive
    return names


def _contexts(task: asyncio.Task[Any]) -> list[contextvars.Context]:
    return [it for it in gc.get_referents(task) if isinstance(it, contextvars.Context)]


_ATOMS = frozenset(
    {int, str, float, bool, bytes, complex, range, type(None), type(...), type(NotImplemented)}
)
_NAMED = (
    types.WrapperDescriptorType,
    types.MethodDescriptorType,
    types.ClassMethodDescriptorType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
)
# Written in C, without state except for what they refer to.
_SEE_THROUGH = frozenset(
    {
        "FutureIter", "TaskStepMethWrapper", "anext_awaitable", "async_generator_asend",
        "async_generator_athrow", "async_generator_wrapped_value", "coroutine_wrapper",
    }
)  # fmt: skip
_ITERATORS = frozenset(
    {
        "bytes_iterator", "dict_itemiterator", "dict_keyiterator", "dict_valueiterator",
        "enumerate", "filter", "list_iterator", "list_reverseiterator", "map", "range_iterator",
        "reversed", "str_ascii_iterator", "str_iterator", "tuple_iterator", "zip",
    }
)  # fmt: skip
_PREFIXES = {types.CoroutineType: "cr", types.GeneratorType: "gi", types.AsyncGeneratorType: "ag"}
_RULES: dict[Any, Callable[[Graph, Any], Held]] = {
    list: Graph.sequence,
    tuple: Graph.sequence,
    deque: Graph.deque,
    dict: Graph.mapping,
    defaultdict: Graph.default_mapping,
    types.MappingProxyType: Graph.proxy,
    set: Graph.unordered,
    frozenset: Graph.unordered,
    types.FunctionType: Graph.function,
    types.MethodType: Graph.method,
    types.BuiltinFunctionType: Graph.builtin,
    types.MethodWrapperType: Graph.builtin,
    types.CellType: Graph.cell,
    functools.partial: Graph.partial,
    property: Graph.property,
    staticmethod: Graph.wrapper,
    classmethod: Graph.wrapper,
    types.CoroutineType: Graph.suspended,
    types.GeneratorType: Graph.suspended,
    types.AsyncGeneratorType: Graph.suspended,
    asyncio.Future: Graph.future,
    asyncio.Task: Graph.future,
    asyncio.Handle: Graph.handle,
    asyncio.TimerHandle: Graph.handle,
    contextvars.Context: Graph.context,
    contextvars.ContextVar: Graph.variable,
    Channel: Graph.channel,
    Event: Graph.event,
    weakref.ref: Graph.reference,
    object: Graph.bare,
    types.SimpleNamespace: Graph.namespace,
    bytearray: Graph.characters,
    decimal.Context: Graph.characters,
    decimal.Decimal: Graph.characters,
    datetime.date: Graph.characters,
    datetime.datetime: Graph.characters,
    datetime.timedelta: Graph.characters,
    datetime.timezone: Graph.characters,
    re.Pattern: Graph.characters,
    types.GenericAlias: Graph.characters,
    types.UnionType: Graph.characters,
}
# What instances of a subclass hold beside their attributes.
_CONTENTS: tuple[tuple[Any, Callable[[Graph, Any], Held]], ...] = (
    (dict, Graph.mapping),
    ((list, tuple), Graph.sequence),
    ((set, frozenset), Graph.unordered),
    (deque, Graph.deque),
    (asyncio.Future, Graph.future),
    (BaseException, Graph.error),
)
