"""Each verdict has its code, says what happened, and names the line."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from handfast._explore.verdict import verdict
from handfast._explore.verdict.verdict import Verdict
from handfast.catalogue import kind
from handfast.explore import Counterexample, explore, victim

Program = Callable[[], Coroutine[Any, Any, None]]
kept: list[object] = []


@pytest.fixture(autouse=True)
def _forget() -> None:
    kept.clear()


def found(program: Program, **options: Any) -> Counterexample:
    exploration = explore(program, schedules=200, **options)
    assert exploration.counterexample is not None, exploration
    assert kind(exploration.counterexample.code).name
    return exploration.counterexample


async def fails() -> None:
    raise ValueError("no")


def test_an_assertion_that_fails_under_a_schedule_is_hf441_and_names_the_line() -> None:
    async def program() -> None:
        seen: list[str] = []

        async def note(name: str, delay: float) -> None:
            await asyncio.sleep(delay)
            seen.append(name)

        await asyncio.gather(note("first", 0.01), note("second", 0.005))
        assert seen == ["second", "first"]

    counterexample = found(program)
    assert counterexample.code == "HF441"
    assert counterexample.verdict.message.startswith("the program fails under this schedule: ")
    assert isinstance(counterexample.error, AssertionError)
    assert Path(__file__).name in counterexample.verdict.where[0]
    assert 0 < counterexample.stall <= 0.1


def test_an_assertion_that_fails_in_a_normal_run_is_hf443() -> None:
    async def program() -> None:
        await asyncio.gather(asyncio.sleep(0.01), asyncio.sleep(0.02))
        assert not "always"

    counterexample = found(program)
    assert counterexample.code == "HF443"
    assert counterexample.verdict.message.startswith("the program fails in a normal run: Assert")
    assert counterexample.departures == ()
    assert "happens in a normal run" in counterexample.report()


def test_a_failing_test_is_called_a_test() -> None:
    async def test_it() -> None:
        raise KeyError("missing")

    assert found(test_it).verdict.message == "the test fails in a normal run: KeyError: 'missing'"


def test_a_failure_that_needs_a_cancel_is_hf441() -> None:
    async def program() -> None:
        outcome = await victim(asyncio.sleep(0.01))
        assert outcome.finished

    assert explore(program).counterexample is None
    assert found(program, cancel=True).code == "HF441"


def test_a_failure_stays_the_same_bug_when_it_shrinks_to_a_normal_run() -> None:
    under_schedule = Verdict("HF441", "", error_type="KeyError")
    assert under_schedule.same_bug(Verdict("HF443", "", error_type="KeyError"))
    assert not under_schedule.same_bug(Verdict("HF443", "", error_type="ValueError"))
    assert not under_schedule.same_bug(Verdict("HF431", "", error_type="KeyError"))
    assert not under_schedule.same_bug(None)


def test_advice_is_for_codes_of_the_catalogue() -> None:
    assert all(kind(code).code == code for code in verdict._ADVICE)
    assert Verdict("HF999", "").advice == ""


def test_a_dead_lock_names_each_waiter_and_what_it_waits_for() -> None:
    async def program() -> None:
        one, two = asyncio.Lock(), asyncio.Lock()

        async def take(first: asyncio.Lock, second: asyncio.Lock) -> None:
            async with first:
                await asyncio.sleep(0.01)
                async with second:
                    pass

        await asyncio.gather(take(one, two), take(two, one))

    counterexample = found(program)
    assert counterexample.code == "HF431"
    waits = [line for line in counterexample.verdict.where if "take waits for Lock.acquire" in line]
    assert len(waits) == 2


def test_a_dead_lock_on_another_task_names_that_task() -> None:
    async def program() -> None:
        task = asyncio.create_task(asyncio.Event().wait(), name="the waiter")
        await task

    where = found(program).verdict.where
    assert "the waiter" in where[0]


def test_a_program_that_spins_has_no_end() -> None:
    async def program() -> None:
        done = asyncio.Event()

        async def spin() -> None:
            while not done.is_set():
                await asyncio.sleep(0)

        async def set_it() -> None:
            done.set()

        spinning = asyncio.create_task(spin())
        outcome = await victim(set_it())
        if outcome.cancelled:
            await spinning
        await spinning

    counterexample = found(program, cancel=True)
    assert counterexample.code == "HF432"


def test_an_error_that_is_never_retrieved_is_found_while_the_task_is_referenced() -> None:
    async def program() -> None:
        kept.append(asyncio.create_task(fails()))
        await asyncio.sleep(0.01)

    counterexample = found(program)
    assert counterexample.code == "HF601"
    assert isinstance(counterexample.error, ValueError)


def test_an_error_that_is_never_retrieved_is_found_when_the_task_is_dropped() -> None:
    async def program() -> None:
        asyncio.create_task(fails())
        await asyncio.sleep(0.01)

    assert found(program).code == "HF601"


def test_a_callback_that_raises_is_found() -> None:
    async def program() -> None:
        asyncio.get_running_loop().call_soon(lambda: 1 / 0)
        await asyncio.sleep(0)

    counterexample = found(program)
    assert counterexample.code == "HF604"
    assert isinstance(counterexample.error, ZeroDivisionError)


def test_what_the_programs_own_exception_handler_takes_is_handled() -> None:
    async def program() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda *_: None)
        loop.call_soon(lambda: 1 / 0)
        await asyncio.sleep(0)

    assert explore(program).counterexample is None


def test_an_error_report_without_an_exception_keeps_its_message() -> None:
    async def program() -> None:
        asyncio.get_running_loop().call_exception_handler({"message": "something is odd"})

    counterexample = found(program)
    assert counterexample.code == "HF604"
    assert counterexample.verdict.message == "something is odd"


def test_a_swallowed_cancel_is_found_and_one_that_comes_out_is_not() -> None:
    async def deaf() -> None:
        try:
            await asyncio.sleep(1)
        except asyncio.CancelledError:
            await asyncio.sleep(0.1)

    async def polite() -> None:
        try:
            await asyncio.sleep(1)
        finally:
            await asyncio.sleep(0.1)

    async def with_deaf() -> None:
        await victim(deaf())

    async def with_polite() -> None:
        await victim(polite())

    assert found(with_deaf, cancel=True).code == "HF501"
    assert explore(with_polite, cancel=True).counterexample is None


def test_a_time_out_that_takes_its_own_cancel_back_swallows_nothing() -> None:
    async def bounded() -> str:
        try:
            async with asyncio.timeout(0.05):
                await asyncio.sleep(0.05)
        except TimeoutError:
            return "late"
        return "in time"

    async def program() -> None:
        await victim(bounded())

    assert explore(program, cancel=True).counterexample is None


def test_a_task_that_ends_where_it_catches_its_cancel_is_only_held_against_a_named_victim() -> None:
    async def until_cancelled() -> None:
        try:
            await asyncio.sleep(1)
        except asyncio.CancelledError:
            pass

    async def unnamed() -> None:
        task = asyncio.create_task(until_cancelled())
        await asyncio.wait([task])

    async def named() -> None:
        await victim(until_cancelled())

    assert explore(unnamed, cancel=True).counterexample is None
    assert found(named, cancel=True).code == "HF501"


def test_an_assertion_about_a_task_that_is_cancelled_counts_only_if_the_task_is_named() -> None:
    def program(mark: Callable[[Coroutine[Any, Any, None]], Awaitable[Any]]) -> Program:
        async def run() -> None:
            done: list[int] = []

            async def work() -> None:
                await asyncio.sleep(0.01)
                done.append(1)

            await mark(work())
            assert done

        return run

    async def unnamed(work: Coroutine[Any, Any, None]) -> None:
        await asyncio.wait([asyncio.create_task(work)])

    async def needed(work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        await asyncio.wait([task])
        if task.cancelled():
            raise RuntimeError("this cannot be cancelled")

    assert explore(program(unnamed), cancel=True).counterexample is None
    assert found(program(victim), cancel=True).verdict.error_type == "AssertionError"
    assert found(program(needed), cancel=True).verdict.error_type == "RuntimeError"


def test_a_leftover_task_is_found_with_the_lines_that_created_it_and_where_it_waits() -> None:
    async def program() -> None:
        kept.append(asyncio.create_task(asyncio.sleep(60), name="left"))

    counterexample = found(program)
    assert counterexample.code == "HF102"
    (line,) = counterexample.verdict.where
    assert re.fullmatch(
        r"left created at \S+test_verdict.py:\d+ in \S*program, waiting at .*", line
    )


def test_a_task_that_ends_by_itself_soon_after_is_not_left_over() -> None:
    async def soon() -> None:
        for _ in range(5):
            await asyncio.sleep(0)

    async def program() -> None:
        kept.append(asyncio.create_task(soon()))

    assert explore(program).counterexample is None


def test_a_timer_left_over_is_found() -> None:
    def ring() -> None:
        raise AssertionError("never")

    async def program() -> None:
        asyncio.get_running_loop().call_later(60, ring)

    counterexample = found(program)
    assert counterexample.code == "HF721"
    assert "ring" in counterexample.verdict.where[0]


def test_a_cancelled_timer_is_not_left_over() -> None:
    async def program() -> None:
        asyncio.get_running_loop().call_later(60, print).cancel()

    assert explore(program).counterexample is None


async def numbers() -> AsyncIterator[int]:
    yield 1
    yield 2


def test_an_async_generator_that_is_held_open_is_found() -> None:
    async def program() -> None:
        generator = numbers()
        kept.append(generator)
        await anext(generator)

    counterexample = found(program)
    assert counterexample.code == "HF731"
    assert "numbers" in counterexample.verdict.where[0]


def test_a_generator_that_is_on_its_advice_is_not_left_over() -> None:
    async def program() -> None:
        async for _ in numbers():
            break
        cycle: list[Any] = [numbers()]
        cycle.append(cycle)
        await anext(cycle[0])

    assert explore(program).counterexample is None


def test_a_generator_that_was_read_to_its_end_may_be_held() -> None:
    async def program() -> None:
        generator = numbers()
        kept.append(generator)
        assert [number async for number in generator] == [1, 2]

    assert explore(program).counterexample is None


def test_an_invariant_is_checked_after_each_step() -> None:
    open_now = 0

    async def program() -> None:
        nonlocal open_now
        open_now = 0

        async def use() -> None:
            nonlocal open_now
            open_now += 1
            await asyncio.sleep(0.01)
            open_now -= 1

        await asyncio.gather(use(), use())

    def one_at_a_time() -> bool:
        return open_now <= 1

    def asserted() -> None:
        assert open_now <= 1, f"{open_now} are open"

    assert found(program, invariant=one_at_a_time).code == "HF442"
    counterexample = found(program, invariant=asserted)
    assert counterexample.code == "HF442"
    assert str(counterexample.error).startswith("2 are open")
    assert explore(program, invariant=lambda: open_now <= 2).counterexample is None


def test_the_first_cause_is_the_only_verdict() -> None:
    async def program() -> None:
        kept.append(asyncio.create_task(asyncio.sleep(60)))
        raise ValueError("first")

    assert found(program).code == "HF443"


def test_what_is_ignored_is_not_reported() -> None:
    async def program() -> None:
        kept.append(asyncio.create_task(asyncio.sleep(60)))

    assert explore(program, ignore=["HF102"], schedules=5).counterexample is None


def test_a_task_that_is_destroyed_while_pending_was_dropped() -> None:
    async def program() -> None:
        context = {"message": "Task was destroyed but it is pending!", "task": "it"}
        asyncio.get_running_loop().call_exception_handler(context)

    assert found(program).code == "HF101"


def test_a_handler_that_fails_because_its_client_closed_is_reported_only_with_resets() -> None:
    async def program() -> None:
        async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                while line := await reader.readline():
                    writer.write(line)
            finally:
                writer.close()

        async def ask() -> None:
            reader, writer = await asyncio.open_connection("127.0.0.1", 9000)
            try:
                writer.write(b"hello\n")
                await reader.readline()
            except ConnectionError:
                pass
            finally:
                writer.close()

        async with await asyncio.start_server(echo, "127.0.0.1", 9000):
            await victim(ask())

    assert explore(program, cancel=True, schedules=150).counterexample is None
    assert found(program, faults=["reset"]).code == "HF604"
