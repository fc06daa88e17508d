"""An async generator inside a hosted one is closed by the same owner task (A19)."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import AsyncGenerator

import pytest

import handfast
from handfast.explore import explore, victim
from tests.runtime.hosting.resources import INSIDES, Life, numbers, outcome
from tests.support.stepping import Stepping, cancel_everywhere, run_on, run_stepping


async def relayed(life: Life, around: str = "nothing") -> AsyncGenerator[int, None]:
    """The common way to write it: the inner generator is never closed explicitly."""
    async for n in numbers(life, around):
        yield n


async def twice_relayed(life: Life, around: str = "nothing") -> AsyncGenerator[int, None]:
    async for n in relayed(life, around):
        yield n


RELAYS = [relayed, twice_relayed]


@pytest.mark.parametrize("relay", RELAYS)
@pytest.mark.parametrize("around", INSIDES)
def test_it_is_closed_in_the_owner_task_before_the_block_ends(
    any_kind: str, around: str, relay: type
) -> None:
    """A19."""

    async def main() -> None:
        life = Life(pause=0.001)
        async with handfast.stream(relay(life, around)) as items:
            assert await anext(items) == 0
        assert life.owner is not None
        life.check()

    run_on(any_kind, main())


@pytest.mark.parametrize("relay", RELAYS)
@pytest.mark.parametrize("around", INSIDES)
@pytest.mark.parametrize("times", [1, 2])
def test_it_is_closed_once_if_the_consumer_is_cancelled_at_any_step(
    around: str, times: int, relay: type
) -> None:
    """A19, S3.4: in the clean-up too."""

    async def program(stepping: Stepping) -> str:
        life = Life()

        async def consume() -> None:
            try:
                async with handfast.stream(relay(life, around)) as items:
                    assert await anext(items) == 0
                    assert await anext(items) == 1
            finally:
                life.check()

        task = stepping.victim(asyncio.create_task(outcome(consume)))
        await asyncio.wait({task})
        return "cancelled" if task.cancelled() else task.result()

    runs = list(cancel_everywhere(program, times=times))
    assert len(runs) > 10
    assert set(runs[:-1]) == {"cancelled"}
    assert runs[-1] == "finished"


@pytest.mark.parametrize("around", ["nothing", "time-out"])
def test_one_that_is_dropped_on_the_way_is_closed_before_the_next_item(around: str) -> None:
    """A19: the generator goes on after it has left the inner one."""

    async def program(_: Stepping) -> None:
        lives = [Life(), Life()]

        async def firsts() -> AsyncGenerator[int, None]:
            for life in lives:
                async for n in numbers(life, around):
                    yield n
                    break
            yield 9

        async with handfast.stream(firsts()) as items:
            assert await anext(items) == 0
            assert await anext(items) == 0
            assert await anext(items) == 9
            assert lives[0].ended == 1
        for life in lives:
            life.check()

    run_stepping(program)


def test_a_generator_that_fails_has_closed_the_inner_one_when_the_error_arrives(
    any_kind: str,
) -> None:
    """A19."""

    async def main() -> None:
        life = Life(pause=0.001)

        async def failing() -> AsyncGenerator[int, None]:
            async for n in numbers(life):
                yield n
                raise LookupError("work")

        async with handfast.stream(failing()) as items:
            await anext(items)
            with pytest.raises(LookupError, match="work"):
                await anext(items)
            life.check()
            assert life.ended == 1

    run_on(any_kind, main())


async def broken() -> AsyncGenerator[int, None]:
    try:
        yield 1
        yield 2
    finally:
        raise OSError("disk")


def test_an_error_of_its_clean_up_is_raised_at_the_end_of_the_block() -> None:
    """A19, S3.6."""

    async def program(_: Stepping) -> None:
        async def outer() -> AsyncGenerator[int, None]:
            async for n in broken():
                yield n

        with pytest.raises(OSError, match="disk") as caught:
            async with handfast.stream(outer()) as items:
                await anext(items)
        assert handfast.split_errors(caught.value).cleanup == (caught.value,)

    run_stepping(program)


def test_an_error_of_the_work_is_raised_and_that_of_the_clean_up_is_reported() -> None:
    """S3.6: neither hides the other."""

    async def program(stepping: Stepping) -> None:
        async def outer() -> AsyncGenerator[int, None]:
            async for n in broken():
                yield n
                raise LookupError("work")

        async with handfast.stream(outer()) as items:
            await anext(items)
            with pytest.raises(LookupError, match="work"):
                await anext(items)
        assert [str(context["exception"]) for context in stepping.errors] == ["disk"]
        assert "a generator inside the stream of" in stepping.errors[0]["message"]
        stepping.errors.clear()

    run_stepping(program)


def test_a_clean_up_that_does_not_end_is_bounded_and_named() -> None:
    async def program(stepping: Stepping) -> None:
        async def slow() -> AsyncGenerator[int, None]:
            try:
                yield 1
            finally:
                await asyncio.sleep(3600)  # here

        async def outer() -> AsyncGenerator[int, None]:
            async for n in slow():
                yield n

        with pytest.raises(TimeoutError, match=r"took more than 1 s; it was waiting at .*\.slow"):
            async with handfast.stream(outer(), timeout=1) as items:
                await anext(items)
        assert stepping.loop.time() <= 1

    run_stepping(program)


def test_one_that_the_program_goes_on_with_is_not_closed() -> None:
    async def program(_: Stepping) -> list[int]:
        async def count() -> AsyncGenerator[int, None]:
            for n in range(4):
                yield n

        counted = count()

        async def first_two() -> AsyncGenerator[int, None]:
            yield await anext(counted)
            yield await anext(counted)

        async with handfast.stream(first_two()) as items:
            assert [n async for n in items] == [0, 1]
        return [n async for n in counted]

    assert run_stepping(program) == [2, 3]


def test_one_that_is_dropped_after_the_end_is_closed_by_the_loop() -> None:
    async def program(_: Stepping) -> None:
        closed = False

        async def count() -> AsyncGenerator[int, None]:
            nonlocal closed
            try:
                for n in range(4):
                    yield n
            finally:
                await asyncio.sleep(0)
                closed = True

        kept = [count()]

        async def first() -> AsyncGenerator[int, None]:
            yield await anext(kept[0])

        async with handfast.stream(first()) as items:
            assert await anext(items) == 0
        assert not closed
        kept.clear()
        gc.collect()
        await asyncio.sleep(1)
        assert closed

    run_stepping(program)


def test_other_tasks_have_the_hooks_of_the_loop(any_kind: str) -> None:
    async def main() -> None:
        hooks = sys.get_asyncgen_hooks()

        async def count() -> AsyncGenerator[int, None]:
            for n in range(9):
                await asyncio.sleep(0)
                yield n

        async with handfast.stream(count()) as items:
            async for _ in items:
                assert sys.get_asyncgen_hooks() == hooks
        assert sys.get_asyncgen_hooks() == hooks

    run_on(any_kind, main())


async def _explored() -> None:
    life = Life()

    async def consume() -> None:
        async with handfast.stream(twice_relayed(life, "task group")) as items:
            await anext(items)
        life.check()

    await victim(consume())
    life.check()


def test_the_explorer_finds_no_schedule_that_breaks_it() -> None:
    """A19."""
    assert explore(_explored, cancel=True, schedules=300).counterexample is None
