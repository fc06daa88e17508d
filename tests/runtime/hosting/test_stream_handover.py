"""The hand-over of a stream: no item lost, none made ahead of time, misuse named at once (S3.1)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import Any

import pytest

import handfast
from handfast.explore import explore, victim
from tests.runtime.hosting.resources import Life, numbers, outcome
from tests.support.stepping import Stepping, cancel_everywhere, run_on, run_stepping


class Counter:
    """Counts to five and knows how far it has come."""

    def __init__(self, pause: float = 0) -> None:
        self.made = 0
        self.pause = pause

    async def count(self) -> AsyncGenerator[int, None]:
        for n in range(5):
            self.made = n + 1
            await asyncio.sleep(self.pause)
            yield n


def test_every_item_arrives_once_and_in_order(kind: str) -> None:
    async def main() -> list[int]:
        async with handfast.stream(Counter().count()) as items:
            return [n async for n in items]

    assert run_on(kind, main()) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("times", [1, 2, 5])
def test_a_cancelled_consumer_loses_no_item_and_the_generator_never_runs_ahead(times: int) -> None:
    """The next consumer goes on where the cancelled one was, at every step."""

    async def program(stepping: Stepping) -> list[int]:
        counter = Counter(pause=1)
        got: list[int] = []
        requested = 0

        async def consume(items: handfast.types.Stream[int]) -> None:
            nonlocal requested
            while True:
                requested = len(got) + 1
                try:
                    got.append(await items.__anext__())
                except StopAsyncIteration:
                    return

        stepping.at_each_step(
            lambda: ahead.append(counter.made) if counter.made > requested else None
        )
        ahead: list[int] = []
        async with handfast.stream(counter.count()) as items:
            victim = stepping.victim(asyncio.create_task(consume(items)))
            await asyncio.wait({victim})
            await consume(items)
        assert ahead == []
        return got

    runs = list(cancel_everywhere(program, times=times))
    assert len(runs) > 10
    assert all(got == [0, 1, 2, 3, 4] for got in runs)


def test_an_error_comes_after_the_items_before_it_and_ends_the_stream(kind: str) -> None:
    async def two_then_fail() -> AsyncGenerator[int, None]:
        yield 1
        yield 2
        raise ValueError("three")

    async def main() -> None:
        async with handfast.stream(two_then_fail()) as items:
            assert [await items.__anext__(), await items.__anext__()] == [1, 2]
            with pytest.raises(ValueError, match="three") as caught:
                await items.__anext__()
            assert handfast.split_errors(caught.value).operational == (caught.value,)
            with pytest.raises(handfast.errors.StreamBroken, match="ended"):
                await items.__anext__()

    run_on(kind, main())


def test_the_end_stays_the_end(kind: str) -> None:
    async def main() -> None:
        async with handfast.stream(Counter().count()) as items:
            assert [n async for n in items] == [0, 1, 2, 3, 4]
            assert [n async for n in items] == []
        assert [n async for n in items] == []

    run_on(kind, main())


def test_a_stream_that_was_cut_does_not_look_like_one_that_has_ended() -> None:
    """S3.6: nothing turns into a success. Waiting and later requests get an error."""

    async def program(stepping: Stepping) -> None:
        items = await handfast.stream(numbers(Life())).__aenter__()
        for _ in range(3):
            await items.__anext__()
        reader = asyncio.create_task(outcome(items.__anext__))
        await asyncio.sleep(1)
        await items.__aexit__(None, None, None)
        assert await reader == "StreamBroken"
        with pytest.raises(handfast.errors.StreamBroken, match="closed before it reached its end"):
            await items.__anext__()

    run_stepping(program)


def test_an_owner_that_other_code_cancels_breaks_the_stream_and_not_its_consumer() -> None:
    """S3.2"""
    life = Life()

    async def program(stepping: Stepping) -> None:
        async with handfast.stream(numbers(life)) as items:
            await items.__anext__()
            assert life.owner is not None
            life.owner.cancel()
            with pytest.raises(handfast.errors.StreamBroken, match="ended by other code"):
                await items.__anext__()
        life.check()

    run_stepping(program)


def test_a_close_that_other_code_cancels_is_an_error() -> None:
    """S3.6: a clean-up that was cut is no success."""
    life = Life()

    async def program(stepping: Stepping) -> None:
        items = await handfast.stream(numbers(life)).__aenter__()
        await items.__anext__()
        closer = asyncio.create_task(items.__aexit__(None, None, None))
        await asyncio.sleep(0.1)
        assert life.owner is not None
        life.owner.cancel()
        with pytest.raises(
            handfast.errors.HandfastError, match="cancelled by other code"
        ) as caught:
            await closer
        assert handfast.split_errors(caught.value).cleanup == (caught.value,)

    run_stepping(program)


def test_an_item_that_was_not_fetched_does_not_outlive_the_stream() -> None:
    async def program(stepping: Stepping) -> None:
        async with handfast.stream(Counter(pause=1).count()) as items:
            reader = asyncio.create_task(outcome(items.__anext__))
            await asyncio.sleep(0.5)
            reader.cancel()
            await asyncio.sleep(1)
        with pytest.raises(handfast.errors.StreamBroken, match="closed"):
            await items.__anext__()

    run_stepping(program)


# --- misuse ----------------------------------------------------------------------------------


def test_two_tasks_cannot_ask_at_once(kind: str) -> None:
    async def main() -> None:
        async with handfast.stream(Counter().count()) as items:
            one, two = (asyncio.create_task(outcome(items.__anext__)) for _ in range(2))
            assert (await one, await two) == ("finished", "StreamBroken")
            assert await items.__anext__() == 1

    run_on(kind, main())


def test_a_stream_is_entered_before_use_and_once(kind: str) -> None:
    async def main() -> None:
        items = handfast.stream(Counter().count())
        with pytest.raises(
            handfast.errors.StreamBroken, match=r"enter the stream of .*count first"
        ):
            await items.__anext__()
        with pytest.raises(handfast.errors.StreamBroken, match="enter"):
            await items.__aexit__(None, None, None)
        async with items:
            with pytest.raises(handfast.errors.StreamBroken, match="entered already"):
                await items.__aenter__()
        with pytest.raises(handfast.errors.StreamBroken, match="entered already"):
            await items.__aenter__()

    run_on(kind, main())


async def no_generator() -> None: ...


@pytest.mark.parametrize(
    ("thing", "hint"),
    [
        (lambda: 3, "not 3"),
        (lambda: iter([1]), "not <list"),
        (lambda: None, "not None"),
        (lambda: no_generator, "no `yield`"),
        (lambda: handfast.stream(Counter().count()), "a stream already"),
        (lambda: no_generator(), "no `yield`"),
    ],
)
def test_what_is_no_async_generator_is_refused_at_once(thing: Any, hint: str) -> None:
    with pytest.raises(TypeError, match=hint):
        handfast.stream(thing())


@pytest.mark.parametrize(("timeout", "error"), [(-1, ValueError), ("soon", TypeError)])
def test_a_timeout_that_is_none_is_refused_at_once(timeout: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="timeout"):
        handfast.stream(Counter().count(), timeout=timeout)


def test_a_stream_belongs_to_one_loop() -> None:
    async def program(stepping: Stepping) -> None:
        async with handfast.stream(Counter().count()) as items:
            await items.__anext__()
            for use in (items.__anext__, lambda: items.__aexit__(None, None, None)):
                reported = await asyncio.to_thread(asyncio.run, outcome(use))
                assert reported == "WrongLoop"
            assert await items.__anext__() == 1

    run_stepping(program)


def test_a_generator_cannot_ask_itself_nor_wait_for_its_own_end() -> None:
    streams: list[handfast.types.Stream[str]] = []

    async def selfish() -> AsyncGenerator[str, None]:
        with pytest.raises(handfast.errors.StreamBroken, match="requests an item from itself"):
            await streams[0].__anext__()
        yield "StreamBroken"
        yield await outcome(streams[0].__aexit__, None, None, None)

    async def program(stepping: Stepping) -> list[str]:
        streams.append(handfast.stream(selfish()))
        async with streams[0] as items:
            return [item async for item in items]

    assert run_stepping(program) == ["StreamBroken", "RuntimeError"]


def test_a_stream_that_was_never_entered_leaves_nothing() -> None:
    handfast.stream(Counter().count())
    with suppress(AttributeError):  # a constructor that was refused
        handfast.types.Stream.__new__(handfast.types.Stream).__del__()


def test_a_cancel_that_comes_together_with_the_error_of_the_source_is_not_lost() -> None:
    """A16: the error is raised at the end of the block, and the cancel at the next await."""

    async def source() -> AsyncGenerator[int, None]:
        yield 1
        await asyncio.sleep(0)
        raise OSError("source")

    async def consume() -> None:
        with suppress(OSError):
            async with handfast.stream(source()) as items:
                async for _ in items:
                    pass
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    async def program() -> None:
        await victim(consume())  # a cancelled victim that returns is HF501

    found = explore(program, cancel=True)
    assert found.counterexample is None, str(found)
