"""Places in which a program can keep the order of two events, one function each.

Every function gives two others: `mark(name)` is called by a task when its event has come, `read()`
at the very end. A search that takes two schedules for one though the place tells them apart
would lose an outcome.
"""

from __future__ import annotations

import array
import asyncio
import collections
import contextvars
import enum
import functools
import itertools
import random
import types
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

Place = tuple[Callable[[str], object], Callable[[], object]]

_SEEN: list[str] = []
_COUNT = 0
_VARIABLE: contextvars.ContextVar[str] = contextvars.ContextVar("order", default="")


def a_closure() -> Place:
    seen = ""

    def mark(name: str) -> None:
        nonlocal seen
        seen += name

    return mark, lambda: seen


def a_global_list() -> Place:
    _SEEN.clear()
    return _SEEN.append, lambda: "".join(_SEEN)


def a_global_number() -> Place:
    global _COUNT
    _COUNT = 0

    def mark(name: str) -> None:
        global _COUNT
        _COUNT = _COUNT * 2 + (name == "a")

    return mark, lambda: _COUNT


def an_attribute_of_a_module() -> Place:
    def mark(name: str) -> None:
        import tests.explore.search.hidden_state as here

        here._SEEN.append(name)

    def read() -> object:
        from tests.explore.search import hidden_state as hiding_places

        return "".join(hiding_places._SEEN)

    _SEEN.clear()
    return mark, read


class _Counted:
    seen: ClassVar[str] = ""


def a_class() -> Place:
    _Counted.seen = ""

    def mark(name: str) -> None:
        _Counted.seen += name

    return mark, lambda: _Counted.seen


class _Slotted:
    __slots__ = ("never_set", "seen")

    def __init__(self) -> None:
        self.seen = ""

    def mark(self, name: str) -> None:
        self.seen += name


def a_slot() -> Place:
    slotted = _Slotted()
    return slotted.mark, lambda: slotted.seen


@dataclass
class _Data:
    seen: list[str] = field(default_factory=list)


def a_dataclass() -> Place:
    data = _Data()
    return data.seen.append, lambda: str(data)


def the_order_of_a_dictionary() -> Place:
    seen: dict[str, int] = {}
    return lambda name: seen.setdefault(name, 1), lambda: "".join(seen)


def an_ordered_dictionary() -> Place:
    seen: collections.OrderedDict[str, int] = collections.OrderedDict()
    return lambda name: seen.setdefault(name, 1), lambda: "".join(seen)


class _Mapping(dict[str, int]):
    pass


def a_subclass_of_a_dictionary() -> Place:
    seen = _Mapping()
    return lambda name: seen.setdefault(name, 1), lambda: "".join(seen)


def a_deque() -> Place:
    seen: collections.deque[str] = collections.deque(maxlen=1)
    return seen.append, lambda: "".join(seen)


def a_default_dictionary() -> Place:
    seen: collections.defaultdict[str, str] = collections.defaultdict(str)

    def mark(name: str) -> None:
        seen["first"] = seen["first"] or name

    return mark, lambda: seen["first"]


def a_set() -> Place:
    seen: set[str] = set()
    return lambda name: seen.add(name) if not seen else None, lambda: "".join(seen)


def a_set_of_tuples() -> Place:
    seen: set[tuple[str, int]] = set()
    return lambda name: seen.add((name, len(seen))), lambda: str(sorted(seen))


def bytes_that_change() -> Place:
    seen = bytearray()
    return lambda name: seen.extend(name.encode()), lambda: bytes(seen).decode()


def an_array() -> Place:
    seen = array.array("b")
    return lambda name: seen.append(ord(name)), lambda: str(seen)


def a_counter_in_c() -> Place:
    counter = itertools.count()

    def mark(name: str) -> None:
        if next(counter) == 0 and name == "b":
            next(counter)

    return mark, lambda: next(counter)


def an_iterator() -> Place:
    numbers = iter([1, 2, 3, 4, 5])

    def mark(name: str) -> None:
        if next(numbers) == 1 and name == "a":
            next(numbers)

    return mark, lambda: next(numbers)


def a_generator() -> Place:
    def remembers() -> Iterator[str]:
        first = yield ""
        yield ""
        if first == "a":
            yield "a first"
        yield "b first"

    generator: Any = remembers()
    next(generator)
    return generator.send, lambda: next(generator)


def a_frame_that_waits() -> Place:
    """A local without a name: it lies on the stack of a suspended generator."""

    def remembers() -> Iterator[str]:
        both = (yield "") + (yield "")  # type: ignore[operator]
        yield both

    generator: Any = remembers()
    next(generator)
    last = [""]

    def mark(name: str) -> None:
        last[0] = generator.send(name)

    return mark, lambda: last[0]


def a_default_argument() -> Place:
    def mark(name: str, seen: list[str] = []) -> list[str]:  # noqa: B006
        seen.append(name)
        return seen

    return mark, lambda: "".join(mark("")[:2])


def an_attribute_of_a_function() -> Place:
    def mark(name: str) -> None:
        mark.seen += name  # type: ignore[attr-defined]

    mark.seen = ""  # type: ignore[attr-defined]
    return mark, lambda: mark.seen  # type: ignore[attr-defined]


def a_partial() -> Place:
    def append(seen: list[str], name: str) -> None:
        seen.append(name)

    mark = functools.partial(append, [])
    return mark, lambda: "".join(mark.args[0])


def a_cache() -> Place:
    first = [""]

    @functools.lru_cache
    def once(what: str) -> str:
        return first[0]

    def mark(name: str) -> None:
        first[0] = name
        once("who")
        first[0] = ""

    return mark, lambda: once("who")


def a_context_variable() -> Place:
    context = contextvars.copy_context()

    def add(name: str) -> None:
        _VARIABLE.set(_VARIABLE.get() + name)

    return lambda name: context.run(add, name), lambda: context.run(_VARIABLE.get)


def random_numbers() -> Place:
    def mark(name: str) -> None:
        if name == "a":
            random.random()
        else:
            random.seed(random.random())

    return mark, lambda: random.randrange(10**6)


def random_numbers_of_its_own() -> Place:
    lots = random.Random(0)

    def mark(name: str) -> None:
        if name == "a":
            lots.random()
        else:
            lots.seed(lots.random())

    return mark, lambda: lots.randrange(10**6)


def the_result_of_a_future() -> Place:
    future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    return lambda name: None if future.done() else future.set_result(name), future.result


def the_callbacks_of_a_future() -> Place:
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    seen: list[str] = []

    def mark(name: str) -> None:
        future.add_done_callback(lambda _: seen.append(name))

    def read() -> list[str]:
        future.set_result(None)
        return seen

    return mark, read


def an_error() -> Place:
    error = ValueError()

    def mark(name: str) -> None:
        error.args += (name,)

    return mark, lambda: str(error)


def a_queue() -> Place:
    queue: asyncio.Queue[str] = asyncio.Queue()
    return queue.put_nowait, queue.get_nowait


def a_weak_reference() -> Place:
    kept = {name: _Counted() for name in "ab"}
    first: list[weakref.ref[_Counted]] = []

    def mark(name: str) -> None:
        if not first:
            first.append(weakref.ref(kept[name]))

    def read() -> str:
        kept.pop("a")
        return str(first[0]() is None)

    return mark, read


def a_namespace() -> Place:
    space = types.SimpleNamespace(seen="")

    def mark(name: str) -> None:
        space.seen += name

    return mark, lambda: space.seen


class _First(enum.Enum):
    A = "a"
    B = "b"


def an_enumeration() -> Place:
    first: list[_First] = []
    return lambda name: first.append(_First(name)), lambda: first[0].name


def a_property() -> Place:
    class Holder:
        _seen = ""

        @property
        def seen(self) -> str:
            return self._seen

        @staticmethod
        def join(left: str, right: str) -> str:
            return left + right

        @classmethod
        def mark(cls, name: str) -> None:
            cls._seen = cls.join(cls._seen, name)

    return Holder.mark, lambda: Holder().seen


def a_timer() -> Place:
    loop = asyncio.get_running_loop()
    first: list[str] = []
    timers: list[asyncio.TimerHandle] = []

    def mark(name: str) -> None:
        if not timers:
            timers.append(loop.call_later(5, first.append, name))

    def read() -> str:
        said = repr(timers[0]._args)
        timers[0].cancel()
        return said

    return mark, read


PLACES: tuple[Callable[[], Place], ...] = (
    a_closure,
    a_global_list,
    a_global_number,
    an_attribute_of_a_module,
    a_class,
    a_slot,
    a_dataclass,
    the_order_of_a_dictionary,
    an_ordered_dictionary,
    a_subclass_of_a_dictionary,
    a_deque,
    a_default_dictionary,
    a_set,
    a_set_of_tuples,
    bytes_that_change,
    an_array,
    a_counter_in_c,
    an_iterator,
    a_generator,
    a_frame_that_waits,
    a_default_argument,
    an_attribute_of_a_function,
    a_partial,
    a_cache,
    a_context_variable,
    random_numbers,
    random_numbers_of_its_own,
    the_result_of_a_future,
    the_callbacks_of_a_future,
    an_error,
    a_queue,
    a_weak_reference,
    a_namespace,
    an_enumeration,
    a_property,
    a_timer,
)
