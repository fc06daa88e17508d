"""A stream is entered and left in one owner task, whatever the consumer does (S3.1, S3.2)."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, suppress
from functools import partial

import anyio
import pytest

import handfast
from tests.runtime.hosting.resources import (
    GROUPS,
    INSIDES,
    Life,
    Uncancelled,
    gone_after,
    numbers,
    outcome,
    tear_down_everywhere,
)
from tests.support.stepping import Stepping, SteppingLoop, cancel_everywhere, run_on, run_stepping


async def first(source: AsyncGenerator[int, None] | handfast.types.Stream[int]) -> int:
    return await source.__anext__()


# --- what goes wrong without an owner --------------------------------------------------------


@pytest.mark.parametrize("kind", ["anyio task group", "anyio cancel scope"])
def test_without_an_owner_a_cancel_scope_is_left_in_another_task(kind: str) -> None:
    async def main() -> None:
        generator = numbers(Life(pause=0.0), kind)
        await asyncio.create_task(first(generator))
        await generator.aclose()

    with pytest.raises(RuntimeError, match="different task"):
        asyncio.run(main())


def test_without_an_owner_breaking_out_cancels_an_innocent_host() -> None:
    async def main() -> None:
        async for _ in numbers(Life(pause=0.0), "anyio task group"):
            break
        gc.collect()
        await asyncio.sleep(3600)  # nobody has cancelled this

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(main())


@pytest.mark.parametrize("kind", GROUPS)
def test_aclosing_is_not_enough_for_a_task_group(kind: str) -> None:
    async def main() -> None:
        async with aclosing(numbers(Life(pause=0.0), kind)) as generator:
            async for _ in generator:
                break

    if kind == "task group" and sys.version_info >= (3, 15):
        # From there on asyncio's own lets a lone GeneratorExit out as it is; anyio's does not.
        asyncio.run(main())
        return
    with pytest.raises(BaseExceptionGroup) as caught:
        asyncio.run(main())
    assert [type(error) for error in caught.value.exceptions] == [GeneratorExit]


async def with_failing_child(kind: str, fail: asyncio.Event) -> AsyncGenerator[int, None]:
    async def child() -> None:
        await fail.wait()
        raise ValueError("the child")

    if kind == "task group":
        async with asyncio.TaskGroup() as group:
            group.create_task(child())
            yield 1
            yield 2
    else:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(child)
            yield 1
            yield 2


@pytest.mark.parametrize("kind", GROUPS)
def test_without_an_owner_a_failing_child_cancels_the_host(kind: str) -> None:
    async def main() -> bool:
        fail = asyncio.Event()
        generator = with_failing_child(kind, fail)
        await first(generator)
        fail.set()
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            return True
        finally:
            with suppress(BaseExceptionGroup):
                await generator.aclose()
        return False

    assert asyncio.run(main())


# --- and with one ----------------------------------------------------------------------------


async def breaks(life: Life, kind: str) -> None:
    async with handfast.stream(numbers(life, kind)) as items:
        async for n in items:
            if n == 1:
                break


async def raises(life: Life, kind: str) -> None:
    with pytest.raises(LookupError):
        async with handfast.stream(numbers(life, kind)) as items:
            async for _ in items:
                raise LookupError


async def times_out(life: Life, kind: str) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1), handfast.stream(numbers(life, kind)) as items:
            assert [n async for n in items] == []


async def times_out_in_anyio(life: Life, kind: str) -> None:
    life.pause = 0.0  # anyio cancels at each turn, and virtual time stands still while there is one
    with anyio.move_on_after(1):
        async with handfast.stream(numbers(life, kind)) as items:
            assert [n async for n in items] == []


async def consumes_elsewhere(life: Life, kind: str) -> None:
    async with handfast.stream(numbers(life, kind)) as items, asyncio.TaskGroup() as group:
        group.create_task(first(items))


async def closes_elsewhere(life: Life, kind: str) -> None:
    items = await handfast.stream(numbers(life, kind)).__aenter__()
    closer: asyncio.Task[None] | None = None
    try:
        await items.__anext__()
    finally:
        closer = asyncio.create_task(items.__aexit__(None, None, None))
        while not closer.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait({closer})
        closer.result()


async def held_by_a_scope(life: Life, kind: str) -> None:
    """One owner in another."""
    async with handfast.Scope("s") as scope:
        items = await scope.hold(handfast.stream(numbers(life, kind)))
        await items.__anext__()


MANNERS = [
    breaks,
    raises,
    times_out,
    times_out_in_anyio,
    consumes_elsewhere,
    closes_elsewhere,
    held_by_a_scope,
]


@pytest.mark.parametrize("kind", INSIDES)
@pytest.mark.parametrize("manner", MANNERS)
def test_it_is_left_where_it_was_entered_however_often_the_consumer_is_cancelled(
    manner: Callable[[Life, str], Awaitable[None]], kind: str
) -> None:
    """S3.1, S3.4: at every step, with one cancel, two and five."""

    async def program(stepping: Stepping) -> str:
        life = Life()
        task = stepping.victim(asyncio.create_task(outcome(gone_after, manner, life, kind)))
        await asyncio.wait({task})
        life.check()
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return "cancelled" if task.cancelled() else task.result()

    for times in (1, 2, 5):
        ends = list(cancel_everywhere(program, times=times))
        assert ends[-1] == "finished"
        assert len(ends) > 10
        assert set(ends) <= {"finished", "cancelled"}
        assert "cancelled" in ends


@pytest.mark.parametrize(
    "manner", [breaks, raises, consumes_elsewhere, closes_elsewhere, held_by_a_scope]
)
def test_it_is_left_where_it_was_entered_on_each_kind_of_loop(
    kind: str, manner: Callable[[Life, str], Awaitable[None]]
) -> None:
    """S3.1"""

    async def main() -> None:
        for inner in INSIDES:
            life = Life(pause=0.0)
            async with asyncio.timeout(5):
                await manner(life, inner)
            life.check()

    run_on(kind, main())


@pytest.mark.parametrize("kind", INSIDES)
@pytest.mark.parametrize("manner", [breaks, raises, times_out, consumes_elsewhere, held_by_a_scope])
def test_the_loops_teardown_neither_cuts_nor_doubles_the_clean_up(
    manner: Callable[[Life, str], Awaitable[None]], kind: str
) -> None:
    """S3.1: asyncio.run cancels everything at once, at every step, also in the middle of the
    clean-up; consumer and owner are cancelled together."""
    lives: list[Life] = []

    async def start() -> asyncio.Task[str]:
        lives.append(Life())
        return asyncio.create_task(outcome(gone_after, manner, lives[-1], kind))

    ends = list(tear_down_everywhere(start))
    assert len(ends) > 5
    assert set(ends) == {"finished", "cancelled"}
    for life in lives:
        life.check()


@pytest.mark.parametrize("kind", INSIDES)
def test_a_stream_that_is_not_closed_is_left_by_its_owner_when_the_loop_ends(kind: str) -> None:
    """S3.1"""
    kept: list[handfast.types.Stream[int]] = []
    lives: list[Life] = []

    async def consume(items: handfast.types.Stream[int]) -> None:
        for _ in range(3):
            await items.__anext__()

    async def start() -> asyncio.Task[None]:
        lives.append(Life())
        kept.append(await handfast.stream(numbers(lives[-1], kind)).__aenter__())
        return asyncio.create_task(consume(kept[-1]))

    assert len(list(tear_down_everywhere(start))) > 5
    for life in lives:
        life.check()


@pytest.mark.parametrize("turns", range(4))
def test_a_shutdown_by_hand_that_cancels_all_tasks_closes_it(turns: int) -> None:
    """S3.1: also before any of its tasks has made its first step."""

    async def program(stepping: Stepping) -> None:
        life = Life()
        items = await handfast.stream(numbers(life)).__aenter__()
        for _ in range(turns):
            await asyncio.sleep(0)
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        await asyncio.sleep(1)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        life.check()
        with pytest.raises(handfast.errors.StreamBroken, match="closed"):
            await items.__anext__()

    run_stepping(program)


@pytest.mark.parametrize("kind", INSIDES)
@pytest.mark.parametrize("turns", range(6))
def test_a_stream_that_is_dropped_is_closed_by_its_owner_and_says_so(kind: str, turns: int) -> None:
    """S3.1: garbage collection. The program may end in any phase of the close that follows."""
    life = Life()

    async def main() -> None:
        items = await handfast.stream(numbers(life, kind)).__aenter__()
        await items.__anext__()
        with pytest.warns(ResourceWarning, match=r"stream of numbers, created at .*test_stream_ow"):
            del items
        for _ in range(turns):
            await asyncio.sleep(0)

    with asyncio.Runner(loop_factory=SteppingLoop) as runner:
        runner.run(main())
    life.check()
    assert life.ended == 1


@pytest.mark.parametrize("kind", GROUPS)
@pytest.mark.parametrize("where", ["waiting", "asking", "leaving"])
def test_a_failing_child_is_an_error_and_no_cancel_of_the_host(kind: str, where: str) -> None:
    """S3.2"""

    async def program(stepping: Stepping) -> int:
        fail = asyncio.Event()
        watch = Uncancelled(stepping, asyncio.current_task())
        with pytest.raises(ExceptionGroup) as caught:
            async with handfast.stream(with_failing_child(kind, fail)) as items:
                await items.__anext__()
                fail.set()
                if where != "leaving":
                    await asyncio.sleep(1)
                if where == "asking":
                    await items.__anext__()
        assert [repr(error) for error in caught.value.exceptions] == ["ValueError('the child')"]
        assert handfast.split_errors(caught.value).cleanup == ()
        return watch.most

    assert run_stepping(program) == 0


def test_a_time_out_around_the_yield_is_raised_to_the_consumer() -> None:
    """S3.2: the generator's own time-out wants its host, which is the owner."""

    async def slow() -> AsyncGenerator[int, None]:
        async with asyncio.timeout(1):
            yield 1
            yield 2

    async def program(stepping: Stepping) -> int:
        watch = Uncancelled(stepping, asyncio.current_task())
        with pytest.raises(TimeoutError):
            async with handfast.stream(slow()) as items:
                await items.__anext__()
                await asyncio.sleep(2)
                await items.__anext__()
        return watch.most

    assert run_stepping(program) == 0


def test_a_generator_goes_on_after_a_time_out_of_its_own() -> None:
    async def moves_on() -> AsyncGenerator[int, None]:
        with anyio.move_on_after(1):
            yield 1
            yield 2
        yield 3

    async def program(stepping: Stepping) -> list[int]:
        got = []
        async with handfast.stream(moves_on()) as items:
            async for n in items:
                got.append(n)
                await asyncio.sleep(2)
        return got

    assert run_stepping(program) == [1, 3]


def test_a_cancel_of_its_own_and_a_close_in_the_same_turn() -> None:
    """S3.1: the generator sees its own cancel first, as it would in its own task."""
    scopes: list[anyio.CancelScope] = []

    async def moves_on() -> AsyncGenerator[int, None]:
        with anyio.CancelScope() as inner:
            scopes.append(inner)
            try:
                yield 1
            finally:
                await asyncio.sleep(0)
        yield 2

    async def program(stepping: Stepping) -> None:
        async with handfast.stream(moves_on()) as items:
            await items.__anext__()
            scopes[0].cancel()

    run_stepping(program)


def test_a_clean_up_that_the_generator_began_itself_is_not_cut_by_leaving() -> None:
    """S3.1: its task group has failed, and it is on its way out when the consumer leaves."""

    async def failing(log: list[str]) -> AsyncGenerator[int, None]:
        async with asyncio.TaskGroup() as group:
            try:
                group.create_task(first(broken()))
                yield 1
            finally:
                await asyncio.sleep(1)
                log.append("cleaned up")

    async def broken() -> AsyncGenerator[int, None]:
        await asyncio.sleep(1)
        raise ValueError
        yield 1

    async def program(pause: float, stepping: Stepping) -> None:
        log: list[str] = []
        with pytest.raises(ExceptionGroup):
            async with handfast.stream(failing(log)) as items:
                await items.__anext__()
                await asyncio.sleep(pause)
        assert log == ["cleaned up"]

    for pause in (1, 1.5, 2, 2.5):
        run_stepping(partial(program, pause))
