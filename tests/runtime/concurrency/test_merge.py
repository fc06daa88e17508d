"""`merge`: every item once, none too early, and no source left open."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any, assert_type

import pytest

import handfast
from handfast.errors import StreamBroken
from handfast.explore import explore, victim
from handfast.types import Stream
from tests.runtime.hosting.resources import GROUPS, INSIDES, Life, inside, outcome
from tests.support.stepping import Stepping, cancel_everywhere, run_on, run_stepping


class Ticks:
    """Sources that count what they have produced, and how many of them are open."""

    def __init__(self, cleanup: float = 0.0) -> None:
        self.cleanup = cleanup
        self.produced = 0
        self.open = 0
        self.cut = 0

    async def __call__(
        self, name: str, count: int, seconds: float = 0.0, error: Exception | None = None
    ) -> AsyncGenerator[str, None]:
        self.open += 1
        try:
            for n in range(count):
                await asyncio.sleep(seconds)
                self.produced += 1
                yield f"{name}{n}"
            if error is not None:
                raise error
        finally:
            self.cut += 1
            await asyncio.sleep(self.cleanup)
            self.cut -= 1
            self.open -= 1


def alone() -> None:
    assert asyncio.all_tasks() == {asyncio.current_task()}


# --- items -------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_every_item_arrives_once_and_each_source_in_its_order(any_kind: str, count: int) -> None:
    names = "abcde"[:count]

    async def main() -> list[str]:
        ticks = Ticks()
        async with handfast.merge(*(ticks(name, 4) for name in names)) as merged:
            assert_type(merged, Stream[str])
            got = [item async for item in merged]
        assert ticks.open == 0
        alone()
        return got

    got = run_on(any_kind, main())
    for name in names:
        assert [item for item in got if item[0] == name] == [f"{name}{n}" for n in range(4)]
    assert len(got) == 4 * count


def test_items_come_as_they_arrive() -> None:
    async def program(_: Stepping) -> list[str]:
        ticks = Ticks()
        async with handfast.merge(ticks("a", 2, 2.5), ticks("b", 3, 1)) as merged:
            return [item async for item in merged]

    assert run_stepping(program) == ["b0", "b1", "a0", "b2", "a1"]


def test_a_source_that_is_always_ready_does_not_push_the_others_aside() -> None:
    async def program(_: Stepping) -> list[str]:
        ticks = Ticks()
        async with handfast.merge(ticks("a", 90), ticks("b", 90)) as merged:
            return [(await anext(merged))[0] for _ in range(20)]

    assert sorted(run_stepping(program)) == ["a"] * 10 + ["b"] * 10


def test_no_source_starts_before_the_first_request_or_runs_more_than_one_item_ahead() -> None:
    async def program(_: Stepping) -> None:
        ticks = Ticks()
        async with handfast.merge(ticks("a", 9), ticks("b", 9), ticks("c", 9)) as merged:
            await asyncio.sleep(5)
            assert (ticks.open, ticks.produced) == (0, 0)
            for consumed in range(1, 10):
                await anext(merged)
                await asyncio.sleep(5)
                assert ticks.produced <= consumed + 2  # one of each of the others

    run_stepping(program)


def test_other_iterables_streams_maps_and_merges_can_be_merged(any_kind: str) -> None:
    class Letters:
        def __init__(self) -> None:
            self._left = list("xy")

        def __aiter__(self) -> AsyncIterator[str]:
            return self

        async def __anext__(self) -> str:
            if not self._left:
                raise StopAsyncIteration
            return self._left.pop()

    async def text(n: int) -> str:
        return str(n)

    async def main() -> list[str]:
        ticks = Ticks()
        async with (
            handfast.Scope() as scope,
            handfast.merge(
                Letters(),
                handfast.stream(ticks("a", 2)),
                scope.map(text, range(2), limit=2),
                handfast.merge(ticks("b", 1), ticks("c", 1)),
            ) as merged,
        ):
            return sorted([item async for item in merged])

    assert run_on(any_kind, main()) == ["0", "1", "a0", "a1", "b0", "c0", "x", "y"]


def test_a_stream_that_the_program_has_entered_is_left_by_the_program() -> None:
    async def program(_: Stepping) -> list[str]:
        ticks = Ticks()
        async with handfast.stream(ticks("a", 4, 1)) as entered:
            async with handfast.merge(entered, ticks("b", 4, 0.25)) as merged:
                assert await anext(merged) == "b0"
                await asyncio.sleep(9)  # a0 has arrived, and is not requested
            return [item async for item in entered]

    assert run_stepping(program) == ["a0", "a1", "a2", "a3"]


# --- errors ------------------------------------------------------------------------------------


def test_an_error_comes_after_the_items_before_it_and_the_others_are_closed(any_kind: str) -> None:
    async def main() -> None:
        ticks = Ticks(cleanup=0.001)
        got: list[str] = []
        async with handfast.merge(ticks("a", 2, error=LookupError("a")), ticks("b", 900)) as merged:
            with pytest.raises(LookupError, match="a") as caught:
                while True:
                    got.append(await anext(merged))
            assert ticks.open == 0
        assert [item for item in got if item[0] == "a"] == ["a0", "a1"]
        assert handfast.split_errors(caught.value).operational == (caught.value,)
        alone()

    run_on(any_kind, main())


def test_of_several_errors_one_is_raised_and_the_others_are_reported() -> None:
    """S3.6."""

    async def program(stepping: Stepping) -> tuple[str, list[str]]:
        ticks = Ticks()
        raised = ""
        async with handfast.merge(
            ticks("a", 0, error=LookupError("a")), ticks("b", 0, error=LookupError("b"))
        ) as merged:
            try:
                await anext(merged)
            except LookupError as error:
                raised = str(error)
        reported = [str(context["exception"]) for context in stepping.errors]
        assert "in the merge of Ticks.__call__, Ticks" in stepping.errors[0]["message"]
        stepping.errors.clear()
        return raised, reported

    assert run_stepping(program) == ("a", ["b"])


def test_an_error_that_was_not_requested_yet_is_raised_at_the_end_of_the_block() -> None:
    """S3.6: it is one of the work, also if the block has been left by then."""

    async def program(_: Stepping) -> None:
        ticks = Ticks()
        with pytest.raises(LookupError, match="a") as caught:
            async with handfast.merge(
                ticks("a", 0, 1, error=LookupError("a")), ticks("b", 2)
            ) as merged:
                await anext(merged)
                await asyncio.sleep(5)
        assert handfast.split_errors(caught.value).operational == (caught.value,)

    run_stepping(program)


async def failing_to_leave() -> AsyncGenerator[str, None]:
    try:
        while True:
            await asyncio.sleep(0)
            yield "item"
    finally:
        raise OSError("disk")


def test_an_error_in_a_clean_up_is_raised_at_the_end_of_the_block() -> None:
    async def program(stepping: Stepping) -> None:
        with pytest.raises(OSError, match="disk") as caught:
            async with handfast.merge(failing_to_leave(), failing_to_leave()) as merged:
                await anext(merged)
        assert handfast.split_errors(caught.value).cleanup == (caught.value,)
        assert [str(context["exception"]) for context in stepping.errors] == ["disk"]
        stepping.errors.clear()

    run_stepping(program)


def test_an_error_with_which_it_ends_is_not_lost_if_the_consumer_leaves_meanwhile() -> None:
    """A17: the others are being closed because of it when the consumer is cancelled."""

    async def program(stepping: Stepping) -> str:
        ticks = Ticks(cleanup=1)

        async def consume() -> None:
            failing = Ticks()("a", 1, error=LookupError("a"))
            async with handfast.merge(failing, ticks("b", 9, 1)) as merged:
                async for _ in merged:
                    pass

        task = stepping.victim(asyncio.create_task(outcome(consume)))
        await asyncio.wait({task})
        assert (ticks.open, ticks.cut) == (0, 0)
        return "cancelled" if task.cancelled() else task.result()

    runs = list(cancel_everywhere(program))
    late = runs.index("LookupError")
    assert len(runs) - late > 5
    assert set(runs[late:]) == {"LookupError"}
    assert set(runs[:late]) == {"cancelled"}


@pytest.mark.parametrize("times", [1, 4])
def test_an_error_that_a_clean_up_has_replaced_is_not_lost(times: int) -> None:
    """S3.6: it is a context of the error, also if a cancel comes in the step that raises it."""

    async def program(stepping: Stepping) -> None:
        raised: list[Exception] = []

        def note(error: Exception) -> Exception:
            raised.append(error)
            return error

        async def source() -> AsyncGenerator[str, None]:
            try:
                yield "item"
                raise note(LookupError("work"))
            finally:
                await asyncio.sleep(1)
                raise note(OSError("disk"))

        async def consume() -> None:
            async with handfast.merge(source(), Ticks()("b", 9, 1)) as merged:
                async for item in merged:
                    if item == "b2":
                        raise ValueError("body")

        task = stepping.victim(asyncio.create_task(consume()))
        await asyncio.wait({task})
        error = None if task.cancelled() else task.exception()
        found: list[BaseException] = []
        while error is not None:
            found.append(error)
            error = error.__context__
        assert {*raised} <= {*found}

    list(cancel_everywhere(program, times=times))


# --- leaving -----------------------------------------------------------------------------------


@pytest.mark.parametrize("around", INSIDES)
@pytest.mark.parametrize("times", [1, 2, 5])
def test_a_consumer_that_is_cancelled_at_any_step_leaves_no_source_open(
    times: int, around: str
) -> None:
    """S3.1, S3.2, S3.4: in the clean-up too, and each source in one task."""

    async def source(life: Life) -> AsyncGenerator[int, None]:
        life.enter()
        try:
            async with inside(around):
                for n in range(90):
                    await asyncio.sleep(0)
                    yield n
        finally:
            await life.clean_up()

    async def program(stepping: Stepping) -> str:
        lives = [Life(), Life(pause=0.25)]

        async def consume() -> None:
            try:
                async with handfast.merge(*map(source, lives)) as merged:
                    for _ in range(6):
                        await anext(merged)
            finally:
                for life in lives:
                    life.check()

        task = stepping.victim(asyncio.create_task(outcome(consume)))
        await asyncio.wait({task})
        alone()
        return "cancelled" if task.cancelled() else task.result()

    runs = list(cancel_everywhere(program, times=times))
    assert len(runs) > 20 + 5 * (around in GROUPS)
    assert set(runs[:-1]) == {"cancelled"}  # A16: no cancel is lost
    assert runs[-1] == "finished"


@pytest.mark.parametrize("way", ["break", "raise"])
def test_leaving_the_block_closes_the_sources(any_kind: str, way: str) -> None:
    async def main() -> None:
        ticks = Ticks(cleanup=0.001)
        try:
            async with handfast.merge(*(ticks(name, 90) for name in "abc")) as merged:
                async for _ in merged:
                    if way == "break":
                        break
                    raise LookupError
        except LookupError:
            assert way == "raise"
        assert (ticks.open, ticks.cut) == (0, 0)
        alone()

    run_on(any_kind, main())


async def _explored() -> None:
    ticks = Ticks(cleanup=0.5)

    async def consume() -> None:
        async with handfast.merge(ticks("a", 9, 1), ticks("b", 9, 1)) as merged:
            async for item in merged:
                if item == "b1":
                    break
        assert ticks.open == 0

    await victim(consume())
    assert (ticks.open, ticks.cut) == (0, 0)


def test_the_explorer_finds_no_schedule_that_breaks_it() -> None:
    assert explore(_explored, cancel=True, schedules=300).counterexample is None


# --- arguments ---------------------------------------------------------------------------------


@pytest.mark.parametrize("source", [3, [1, 2], print])
def test_what_is_no_async_iterable_is_refused_at_the_call(source: Any) -> None:
    with pytest.raises(TypeError, match=r"merge\(\) takes async iterables, not"):
        handfast.merge(Ticks()("a", 1), source)


def test_it_must_be_entered_and_only_once() -> None:
    async def main() -> None:
        merged = handfast.merge(Ticks()("a", 1))
        with pytest.raises(StreamBroken, match=r"enter the merge of Ticks.__call__ first"):
            await anext(merged)
        async with merged:
            with pytest.raises(StreamBroken, match="has been entered already"):
                await merged.__aenter__()

    asyncio.run(main())


def test_two_readers_of_one_stream_are_an_error() -> None:
    async def program(_: Stepping) -> None:
        ticks = Ticks()
        async with handfast.stream(ticks("a", 3, 1)) as entered:
            async with handfast.merge(ticks("b", 3, 1), entered, entered) as merged:
                with pytest.raises(StreamBroken, match="two tasks request an item"):
                    await anext(merged)
            assert ticks.open == 1
            assert await anext(entered) == "a0"

    run_stepping(program)
