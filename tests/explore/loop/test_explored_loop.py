"""Unmodified code runs on the explored loop: asyncio's own things, anyio, handfast's runtime."""

from __future__ import annotations

import asyncio
import contextvars
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import anyio
import pytest

import handfast
from handfast._explore.latency import latency
from handfast._explore.loop.explored_loop import ExploredLoop
from handfast._explore.loop.stepping import Stepper
from handfast._explore.search.plan import Plan, Record, Settings
from handfast._explore.search.run import run
from tests.explore.all_schedules import logs, outcomes, schedules

Program = Callable[[], Coroutine[Any, Any, object]]


def _always(program: Program, settings: Settings | None = None, *, bound: int = 20_000) -> int:
    """The number of schedules of a program that is right in all of them."""
    count = 0
    for record in schedules(program, settings or Settings(), bound=bound):
        assert record.verdict is None, (record.verdict, record.departed)
        count += 1
    return count


def _code(program: Program, settings: Settings | None = None) -> str:
    verdict = run(program, Plan(), settings or Settings()).verdict
    return verdict.code if verdict else ""


# --- asyncio's own ---------------------------------------------------------------------------


def test_a_task_group_cancels_the_siblings_of_a_task_that_fails() -> None:
    async def program() -> None:
        ended: list[str] = []

        async def sibling() -> None:
            try:
                await asyncio.sleep(3600)
            finally:
                ended.append("sibling")

        async def fail() -> None:
            await asyncio.sleep(0.01)
            raise KeyError("mine")

        with pytest.raises(ExceptionGroup) as caught:
            async with asyncio.TaskGroup() as group:
                group.create_task(sibling())
                group.create_task(fail())
        assert caught.group_contains(KeyError)
        assert ended == ["sibling"]

    assert _always(program) >= 1


def test_a_condition_wakes_those_who_wait() -> None:
    async def program() -> None:
        condition = asyncio.Condition()
        ready: list[int] = []

        async def consume() -> int:
            async with condition:
                await condition.wait_for(lambda: ready)
                return ready.pop()

        consumers = [asyncio.create_task(consume()) for _ in range(2)]
        for number in range(2):
            await asyncio.sleep(0.01)
            async with condition:
                ready.append(number)
                condition.notify_all()
        assert sorted(await asyncio.gather(*consumers)) == [0, 1]

    assert _always(program) >= 1


def test_a_queue_hands_over_in_order() -> None:
    async def program(log: list[str]) -> None:
        queue: asyncio.Queue[str] = asyncio.Queue(2)

        async def produce() -> None:
            for letter in "abcd":
                await queue.put(letter)
                await asyncio.sleep(0.01)

        producer = asyncio.create_task(produce())
        for _ in range(4):
            log.append(await queue.get())
            queue.task_done()
        await queue.join()
        await producer

    assert logs(program) == {"abcd"}


def test_a_barrier_lets_go_when_all_are_there() -> None:
    async def program() -> None:
        barrier = asyncio.Barrier(3)

        async def meet(delay: float) -> int:
            await asyncio.sleep(delay)
            return await barrier.wait()

        places = await asyncio.gather(meet(0), meet(0.01), meet(0.01))
        assert sorted(places) == [0, 1, 2]

    assert _always(program) > 1


def test_a_shield_keeps_the_inner_task_from_the_cancel() -> None:
    async def program() -> None:
        inner = asyncio.create_task(asyncio.sleep(0.01, "kept"))

        async def outer() -> None:
            await asyncio.shield(inner)

        task = asyncio.create_task(outer())
        await asyncio.sleep(0)
        task.cancel()
        assert isinstance(
            (await asyncio.gather(task, return_exceptions=True))[0], asyncio.CancelledError
        )
        assert await inner == "kept"

    assert _always(program) >= 1


def test_wait_for_and_timeout_end_in_virtual_time() -> None:
    async def program() -> None:
        began = asyncio.get_running_loop().time()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.Event().wait(), 86_400)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(86_400) as scope:
                await asyncio.sleep(1)
                scope.reschedule(asyncio.get_running_loop().time() + 3600)
                await asyncio.Event().wait()
        async with asyncio.timeout(None):
            await asyncio.sleep(0)
        assert asyncio.get_running_loop().time() - began >= 86_400 + 3601

    assert _always(program) >= 1


def test_an_async_generator_that_is_left_open_is_a_finding_and_one_in_aclosing_is_not() -> None:
    async def numbers() -> AsyncIterator[int]:
        try:
            for number in range(3):
                await asyncio.sleep(0)
                yield number
        finally:
            await asyncio.sleep(0)

    kept: list[object] = []

    async def leaves_it_open() -> None:
        generator = numbers()
        kept.append(generator)
        await anext(generator)

    async def closes_it() -> None:
        generator = numbers()
        await anext(generator)
        await generator.aclose()  # type: ignore[attr-defined]

    assert _code(leaves_it_open) == "HF731"
    assert _code(closes_it) == ""


def test_context_variables_are_each_tasks_own_and_each_runs_own() -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")

    async def program() -> None:
        assert variable.get() == "unset"
        variable.set("main")

        async def child() -> None:
            assert variable.get() == "main"
            variable.set("child")
            await asyncio.sleep(0.01)
            assert variable.get() == "child"

        await asyncio.gather(child(), child())
        assert variable.get() == "main"

    assert _always(program) > 1
    assert variable.get() == "unset"


@pytest.mark.skipif(sys.version_info < (3, 12), reason="eager tasks are new in 3.12")
def test_eager_tasks_start_at_once_and_are_counted() -> None:
    async def program(log: list[str]) -> None:
        asyncio.get_running_loop().set_task_factory(getattr(asyncio, "eager_task_factory"))  # noqa: B009

        async def child(letter: str) -> None:
            log.append(letter)
            await asyncio.sleep(0.01)
            log.append(letter.upper())

        tasks = [asyncio.create_task(child("a")), asyncio.create_task(child("b"))]
        log.append("-")
        await asyncio.gather(*tasks)

    assert logs(program) == {"ab-AB"}


def test_debug_mode_changes_nothing() -> None:
    async def program(log: list[str]) -> None:
        asyncio.get_running_loop().set_debug(True)
        for letter in "ab":
            await asyncio.sleep(0.01)
            log.append(letter)

    assert logs(program) == {"ab"}


def test_get_running_loop_returns_the_explored_one() -> None:
    async def program() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, ExploredLoop)
        assert asyncio.get_event_loop() is loop
        assert loop.is_running()
        assert not loop.is_closed()

    assert _code(program) == ""


def test_a_program_that_stops_the_loop_fails() -> None:
    async def program() -> None:
        asyncio.get_running_loop().stop()
        await asyncio.sleep(1)

    record = run(program, Plan(), Settings())
    assert record.verdict is not None
    assert record.verdict.error_type == "RuntimeError"


def test_a_run_inside_a_running_loop_leaves_that_loop_alone() -> None:
    async def outer() -> Record:
        loop = asyncio.get_running_loop()
        record = run(lambda: asyncio.sleep(1), Plan(), Settings())
        assert asyncio.get_running_loop() is loop
        await asyncio.sleep(0)
        return record

    assert asyncio.run(outer()).verdict is None


@pytest.mark.parametrize(("call", "name"), [("call_later", "delay"), ("call_at", "when")])
def test_a_timer_without_a_time_is_refused_as_on_the_stock_loop(call: str, name: str) -> None:
    async def program() -> None:
        with pytest.raises(TypeError, match=name):
            getattr(asyncio.get_running_loop(), call)(None, print)

    assert _code(program) == ""


def test_a_closed_loop_takes_no_timer() -> None:
    loop = ExploredLoop()
    loop.prepare(Stepper(Settings(), _Plain()))
    loop.close()
    with pytest.raises(RuntimeError, match="closed"):
        loop.call_later(1, print)
    with pytest.raises(RuntimeError, match="closed"):
        loop.call_at(1, print)


class _Plain:
    def choose(self, kind: str, options: int, actors: object) -> int:
        return 0


def test_a_timer_without_delay_fires_in_the_next_batch() -> None:
    async def program(log: list[str]) -> None:
        loop = asyncio.get_running_loop()
        loop.call_later(0.05, log.append, "later")
        loop.call_later(0, log.append, "now")
        loop.call_at(loop.time() - 1, log.append, "past")
        await asyncio.sleep(0)
        log.append("turn")
        try:
            async with asyncio.timeout(0):
                await asyncio.sleep(1)
        except TimeoutError:
            log.append("out")
        await asyncio.sleep(1)

    (ideal,) = outcomes(program, Settings(stall=0.0))
    assert ideal == ("turn", "past", "now", "out", "later")


def test_a_program_that_sleeps_for_the_rest_of_a_period_gets_to_its_end() -> None:
    """The rest may be less than the last digit of a deadline."""

    async def program() -> None:
        loop = asyncio.get_running_loop()
        for rate in range(1, 100):
            end = loop.time() + 1 / rate
            while (rest := end - loop.time()) > 0:
                await asyncio.sleep(rest)

    assert _code(program) == ""


def test_a_sleep_is_never_shorter_than_requested() -> None:
    async def program() -> None:
        loop = asyncio.get_running_loop()
        for rate in range(1, 300):
            before = loop.time()
            await asyncio.sleep(1 / rate)
            assert loop.time() - before >= 1 / rate

    assert _code(program) == ""


def test_sums_of_delays_are_due_together_although_their_last_digits_differ() -> None:
    async def program() -> None:
        woken: list[str] = []

        async def work(name: str, *delays: float) -> None:
            for delay in delays:
                await asyncio.sleep(delay)
            woken.append(name)

        await asyncio.gather(
            work("one", 0.3), work("two", 0.1, 0.2), work("three", 0.1, 0.1, 0.1), work("last", 0.3)
        )
        assert woken == ["one", "last", "two", "three"]

    assert _code(program) == ""


def test_an_event_after_a_timer_arrives_first_only_together_with_it() -> None:
    """An event 20 ms after a timer comes first only if the loop wakes that late; the timer is
    then past, and fires in the same batch."""

    async def program(log: list[str]) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, ExploredLoop)

        def fire() -> None:
            log.append("T")
            loop.call_soon(log.append, "t")

        loop.channel("peer").post(
            lambda: loop.enqueue(log.append, "E"),
            label="an event",
            after=0.05,
            faults={"reset": lambda: loop.enqueue(log.append, "R")},
        )
        loop.call_later(0.03, fire)
        await asyncio.sleep(1)

    assert logs(program, Settings(stall=0.0)) == {"TtE"}
    assert logs(program, Settings(stall=0.1)) == {"TtE", "ETt"}
    assert "TtR" in logs(program, Settings(stall=0.0, faults=("reset",)))


# --- other people's --------------------------------------------------------------------------


def test_anyio_runs_unmodified() -> None:
    async def program() -> None:
        send, receive = anyio.create_memory_object_stream[int](1)

        async def produce() -> None:
            async with send:
                for number in range(3):
                    await send.send(number)
                    await anyio.sleep(0.01)

        async with anyio.create_task_group() as group, receive:
            group.start_soon(produce)
            with anyio.move_on_after(3600) as scope:
                got = [number async for number in receive]
        assert got == [0, 1, 2]
        assert not scope.cancelled_caught
        with anyio.move_on_after(0.01) as scope:
            await anyio.sleep(5)
        assert scope.cancelled_caught
        with pytest.raises(TimeoutError):
            with anyio.fail_after(1):
                await anyio.Event().wait()

    for seed in range(30):
        record = run(program, Plan(tail="random", seed=seed), Settings())
        assert record.verdict is None, record.verdict


def test_handfasts_own_scope_runs_unmodified() -> None:
    async def program() -> None:
        done: list[int] = []

        async def work(number: int) -> None:
            await asyncio.sleep(0.01 * number)
            done.append(number)

        async with handfast.Scope("scope") as scope:
            for number in range(3):
                scope.spawn(work(number))
        assert sorted(done) == [0, 1, 2]
        owner = handfast.Scope("owner")
        owner.spawn(asyncio.sleep(3600))
        report = await owner.close(grace=0.01)
        assert len(report.cancelled) == 1

    for seed in range(30):
        record = run(program, Plan(tail="random", seed=seed), Settings())
        assert record.verdict is None, record.verdict


# --- answers from outside --------------------------------------------------------------------


def test_an_answer_arrives_when_the_loop_is_idle_or_is_late_by_the_stall() -> None:
    async def program(log: list[str]) -> None:
        async def ask(letter: str) -> None:
            log.append(await latency(letter, name=letter))

        async def sleep() -> None:
            await asyncio.sleep(0.05)
            log.append("T")

        await asyncio.gather(ask("a"), ask("b"), sleep())

    orders = {"abT", "baT", "aTb", "bTa", "Tab", "Tba"}
    assert logs(program, Settings(stall=0.0)) == {"abT", "baT"}
    assert logs(program, Settings(stall=0.1)) == orders
    assert logs(program, Settings(stall=0.0, model="latency")) == orders


def test_only_model_latency_lets_an_answer_arrive_after_a_long_timer() -> None:
    async def program(log: list[str]) -> None:
        async def ask() -> None:
            log.append(await latency("a"))

        task = asyncio.create_task(ask())
        await asyncio.sleep(5)
        log.append("T")
        await task

    assert logs(program) == {"aT"}
    assert logs(program, Settings(model="latency")) == {"aT", "Ta"}


def test_a_task_cancelled_while_it_waits_for_an_answer_leaves_no_event() -> None:
    """At any moment: before the answer, after it has come and before its handle, and after."""

    async def program(log: list[str]) -> None:
        task = asyncio.create_task(latency("answer"))
        for _ in range(2):
            await asyncio.sleep(0)
        task.cancel()
        log.extend(str(one) or "cut" for one in await asyncio.gather(task, return_exceptions=True))
        loop = asyncio.get_running_loop()
        assert isinstance(loop, ExploredLoop)
        assert not loop.events.waiting

    assert set(outcomes(program)) == {("cut",)}


def test_elsewhere_an_answer_takes_a_turn() -> None:
    async def program() -> str:
        asyncio.get_running_loop().call_soon(log.append, "turn")
        value = await latency("value")
        log.append(value)
        return value

    log: list[str] = []
    assert asyncio.run(program()) == "value"
    assert log == ["turn", "value"]
