"""States: equal graphs of objects have equal numbers, others do not, and what is out of sight is said
to be so."""

from __future__ import annotations

import asyncio
import contextvars
import decimal
import inspect
import itertools
import logging
import sys
import types
from collections.abc import Callable
from typing import Any

import pytest

import handfast
from handfast._explore.loop.explored_loop import ExploredLoop
from handfast._explore.search.plan import Plan, Settings
from handfast._explore.search.run import run
from handfast._explore.search.states import UnknownState
from handfast._explore.search.states import loop_state as snapshot
from handfast._explore.search.states.loop_state import state_of
from handfast._explore.search.states.object_graph import Graph
from handfast._explore.search.states.reachable_globals import harmless
from handfast.explore import latency


class Loop:
    """All that the graph asks of a loop."""

    tasks: tuple[Any, ...] = ()


def number(*things: object, limit: int = 1_000) -> int:
    graph = Graph(Loop(), 0.0, limit=limit)
    graph.write(*things)
    return graph.digest()


class Thing:
    def __init__(self, value: object) -> None:
        self.value = value


def cycle(value: object) -> list[object]:
    whole: list[object] = [value]
    whole.append(whole)
    return whole


def counting(steps: int) -> Any:
    def count() -> Any:
        yield from range(9)
        kept = "never"
        yield kept

    generator = count()
    for _ in range(steps):
        next(generator)
    return generator


def ended() -> Any:
    generator = counting(10)
    assert next(generator, None) is None
    return generator


def with_closure(value: object) -> Callable[[], object]:
    return lambda: value


def same_twice(*values: object) -> tuple[object, ...]:
    one = [0]
    return (one, one) if values else (one, [0])


SAMPLES: tuple[tuple[Callable[..., object], tuple[Any, ...], tuple[Any, ...]], ...] = (
    (Thing, (1,), (2,)),
    (cycle, (1,), (2,)),
    (counting, (2,), (3,)),
    (with_closure, (1,), (2,)),
    (same_twice, (1,), ()),
    (set, ("ab",), ("ac",)),
    (frozenset, ([("a", 1), ("b", 2)],), ([("a", 1)],)),
    (types.MappingProxyType, ({"a": 1},), ({"a": 2},)),
    (types.SimpleNamespace, (), ()),
    (decimal.Decimal, ("1.0",), ("1.00",)),
    (logging.getLogger, ("handfast.one",), ("handfast.two",)),
    (lambda name: getattr(str, name), ("join",), ("split",)),
    (lambda name: getattr(types, name), ("FunctionType",), ("ModuleType",)),
    (lambda size: 10**size, (5_000,), (5_001,)),
    (lambda error: error("failed"), (ValueError,), (KeyError,)),
    (lambda name: sys.modules[name], ("asyncio",), ("json",)),
    (lambda value: types.CellType(value), (1,), (2,)),
    (lambda step: iter(range(3, 30, step)), (1,), (2,)),
)


@pytest.mark.parametrize(("make", "one", "other"), SAMPLES)
def test_equal_things_have_equal_numbers_and_others_have_not(
    make: Callable[..., object], one: tuple[Any, ...], other: tuple[Any, ...]
) -> None:
    assert number(make(*one)) == number(make(*one))
    if one != other:
        assert number(make(*one)) != number(make(*other))


def test_an_empty_cell_and_an_ended_generator_have_a_state() -> None:
    assert number(types.CellType()) != number(types.CellType(None))
    assert number(ended()) != number(counting(10))


def test_an_object_without_anything_is_itself() -> None:
    one, other = object(), object()
    assert number(one, one) != number(one, other)


def test_a_timer_that_fires_later_is_another() -> None:
    loop = asyncio.new_event_loop()
    handles = [asyncio.TimerHandle(when, print, (), loop) for when in (1.0, 1.0, 2.0)]
    numbers = [number(handle) for handle in handles]
    loop.close()
    assert numbers[0] == numbers[1] != numbers[2]


def running_itself() -> None:
    generator: Any = None

    def look() -> Any:
        yield number(generator)

    generator = look()
    next(generator)


def with_variables_of_one_name() -> None:
    context = contextvars.Context()
    for value in (1, 2):
        variable: contextvars.ContextVar[int] = contextvars.ContextVar("name")
        context.run(variable.set, value)
    number(context)


def imports_later() -> None:
    import handfast.nowhere  # type: ignore[import-not-found]  # noqa: F401


def opens() -> None:
    open("/nowhere").close()


def reaches_outside() -> None:
    sys.exit()


HIDDEN: tuple[Callable[[], object], ...] = (
    running_itself,
    with_variables_of_one_name,
    lambda: number(imports_later),
    lambda: number(opens),
    lambda: number(reaches_outside),
    lambda: number({Thing(1), Thing(2)}),
    lambda: number(itertools.count()),
    lambda: number(memoryview(b"")),
    lambda: number(sys),
    lambda: number(sys.modules[__name__]),
    lambda: number(sys.intern),
    lambda: number([[] for _ in range(9)], limit=5),
    lambda: number(types.FunctionType((lambda: None).__code__, {})),
)


@pytest.mark.parametrize("look", HIDDEN)
def test_what_cannot_be_read_makes_the_state_unknown(look: Callable[[], object]) -> None:
    with pytest.raises(UnknownState):
        look()


# --- a whole loop ----------------------------------------------------------------------------------


def states(program: Callable[[], Any], settings: Settings | None = None) -> list[int | None]:
    return run(program, Plan(observe=True, states=True), settings or Settings()).states


def test_the_same_run_has_the_same_states_each_time() -> None:
    async def program() -> None:
        await asyncio.gather(latency(), latency(), asyncio.sleep(0.01))

    first = states(program)
    assert first == states(program)
    assert None not in first
    assert len(set(first)) == len(first) > 1


def test_a_task_that_nothing_leads_to_is_part_of_the_state() -> None:
    def with_a_task_that_waits(turns: int) -> list[int | None]:
        async def forgotten() -> None:
            await asyncio.get_running_loop().create_future()

        async def program() -> None:
            for _ in range(turns):
                asyncio.create_task(forgotten())
            await asyncio.gather(latency(), latency())

        return states(program)

    assert with_a_task_that_waits(1)[-1] != with_a_task_that_waits(2)[-1]


def test_faults_that_may_come_are_part_of_the_state() -> None:
    def with_faults(**faults: Callable[[], None]) -> list[int | None]:
        async def program() -> None:
            loop = asyncio.get_running_loop()
            assert isinstance(loop, ExploredLoop)
            came = loop.create_future()
            channel = loop.channel("wire")
            channel.post(lambda: loop.enqueue(came.set_result, 1), label="it", faults=faults)
            await asyncio.gather(came, latency())

        return states(program)

    assert with_faults() != with_faults(reset=lambda: None)


def test_a_choice_in_the_middle_of_a_step_has_no_state() -> None:
    async def program() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, ExploredLoop)
        loop.choose("chunk", 2, lambda: ["a", "b"], str)

    assert states(program) == [None]


def test_a_program_with_threads_has_no_states() -> None:
    async def program() -> None:
        await asyncio.gather(asyncio.to_thread(int), latency())

    assert set(states(program)) == {None}


def test_an_object_that_does_not_bear_to_be_looked_at_hides_the_state() -> None:
    class Shy:
        def __getattribute__(self, name: str) -> Any:
            raise LookupError(name)

        @property
        def __class__(self) -> Any:
            raise LookupError("who knows")

        @__class__.setter
        def __class__(self, kind: Any) -> None: ...

    async def program() -> None:
        shy = Shy()
        await asyncio.gather(latency(), latency())
        assert shy is not None

    assert set(states(program)) == {None}


def test_a_loop_of_another_kind_has_no_states() -> None:
    assert state_of(object(), sys._getframe()) is None


def test_the_order_of_the_queue_is_part_of_the_state() -> None:
    async def program() -> None:
        await asyncio.gather(*(latency(name=name) for name in "abc"))

    # In one poll the answers a and b arrive, in one order and in the other; c is still to come.
    first = run(program, Plan(((1, 1),), observe=True, states=True), Settings())
    other = run(program, Plan(((0, 1), (1, 1)), observe=True, states=True), Settings())
    assert first.points[2] == other.points[2]
    assert None not in (first.states[2], other.states[2])
    assert first.states[2] != other.states[2]


# --- names that a rename would break without an error ------------------------------------------


def test_every_attribute_left_out_is_one_that_the_loop_has() -> None:
    """A name that the loop no longer has would let its successor into every state."""
    attributes: set[str] = set()

    async def program() -> None:
        attributes.update(vars(asyncio.get_running_loop()))

    run(program, Plan(), Settings())
    # The stock loop keeps the hooks of the thread in an attribute since it sets up in a method.
    later = (
        {"_old_agen_hooks"} if not hasattr(asyncio.BaseEventLoop, "_run_forever_setup") else set()
    )
    assert snapshot._LEFT_OUT - attributes == later


def test_every_local_that_is_part_of_a_state_is_one_of_its_function() -> None:
    for code, names in snapshot._FRAMES.items():
        assert set(names) <= {*code.co_varnames, *code.co_cellvars}, code.co_qualname


def test_the_explorer_is_no_part_of_a_state_and_the_runtime_is() -> None:
    assert harmless(ExploredLoop.__module__)
    assert harmless(Graph.__module__)
    assert not harmless(inspect.unwrap(handfast.Scope.close).__module__)
