"""`Scope.map`: results in order or as completed, back-pressure, and nothing left under way."""

from __future__ import annotations

import asyncio
import gc
import re
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    Awaitable,
    Generator,
    Iterable,
    Iterator,
)
from typing import Any, assert_type

import pytest

import handfast
from handfast.errors import HandfastError, ScopeClosed, StragglersLeft, StreamBroken
from handfast.explore import explore, victim
from handfast.types import Stream
from tests.runtime.hosting.resources import Life
from tests.support.stepping import Stepping, cancel_everywhere, run_on, run_stepping


class Work:
    """A function to map, and how many calls of it have begun, run and ended."""

    def __init__(self, *failing: int, seconds: float = 0.0, cleanup: float = 0.0) -> None:
        self.failing = failing
        self.seconds = seconds
        self.cleanup = cleanup
        self.taken = 0
        self.running = 0
        self.most = 0
        self.cut = 0  # clean-ups that were interrupted
        self.tasks: dict[int, asyncio.Task[Any] | None] = {}

    async def __call__(self, n: int) -> int:
        self.tasks[n] = asyncio.current_task()
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await asyncio.sleep(self.seconds or 0.001 * (n % 3))
            if n in self.failing:
                raise ValueError(n)
            return 10 * n
        except asyncio.CancelledError:
            self.cut += 1
            await asyncio.sleep(self.cleanup)
            self.cut -= 1
            raise
        finally:
            self.running -= 1

    def items(self, count: int) -> Iterator[int]:
        for n in range(count):
            self.taken += 1
            yield n

    async def async_items(self, count: int, life: Life | None = None) -> AsyncGenerator[int, None]:
        life = life or Life(pause=0.0)
        life.enter()
        try:
            for n in self.items(count):
                await asyncio.sleep(0)
                yield n
        finally:
            await life.clean_up()

    def source(self, kind: str, count: int) -> Iterable[int] | AsyncIterable[int]:
        return self.items(count) if kind == "plain" else self.async_items(count)


@pytest.fixture(params=["plain", "async"])
def source(request: pytest.FixtureRequest) -> str:
    value: str = request.param
    return value


@pytest.fixture(params=[True, False], ids=["ordered", "as completed"])
def ordered(request: pytest.FixtureRequest) -> bool:
    value: bool = request.param
    return value


def alone() -> None:
    """No task but this one is there."""
    assert asyncio.all_tasks() == {asyncio.current_task()}


# --- results -----------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [1, 3, 50])
def test_every_result_arrives_once(any_kind: str, source: str, ordered: bool, limit: int) -> None:
    async def main() -> list[int]:
        work = Work()
        async with handfast.Scope() as scope:
            async with scope.map(
                work, work.source(source, 20), limit=limit, ordered=ordered
            ) as results:
                assert_type(results, Stream[int])
                got = [n async for n in results]
            alone()
        assert work.most <= limit
        return got if ordered else sorted(got)

    assert run_on(any_kind, main()) == [10 * n for n in range(20)]


def test_it_can_be_consumed_to_its_end_without_a_block(any_kind: str, source: str) -> None:
    async def main() -> None:
        work = Work()
        async with handfast.Scope() as scope:
            results = scope.map(work, work.source(source, 7), limit=2)
            assert [n async for n in results] == [0, 10, 20, 30, 40, 50, 60]
            await asyncio.sleep(0)
            alone()
            assert [n async for n in results] == []

    run_on(any_kind, main())


def test_results_come_as_completed_if_they_need_no_order() -> None:
    async def program(_: Stepping) -> list[float]:
        async def wait(seconds: float) -> float:
            await asyncio.sleep(seconds)
            return seconds

        async with handfast.Scope() as scope:
            return [n async for n in scope.map(wait, [3, 1, 2], limit=3, ordered=False)]

    assert run_stepping(program) == [1, 2, 3]


def test_maps_can_be_chained(any_kind: str) -> None:
    async def main() -> list[int]:
        first, second = Work(), Work()
        async with handfast.Scope() as scope:
            tens = scope.map(first, range(5), limit=2)
            return [n async for n in scope.map(second, tens, limit=3)]

    assert run_on(any_kind, main()) == [0, 100, 200, 300, 400]


def test_a_scope_with_a_limit_can_map_in_its_children(kind: str) -> None:
    """The calls are not children that wait for a place: the consumer would wait for ever."""

    async def main() -> int:
        async with handfast.Scope(limit=1) as scope:

            async def consume() -> int:
                return sum([n async for n in scope.map(Work(), range(4), limit=2)])

            task = scope.spawn(consume())
        return task.result()

    assert run_on(kind, main()) == 60


# --- back-pressure -----------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_nothing_is_taken_before_the_first_request_and_no_more_than_there_is_place_for(
    source: str, ordered: bool, limit: int
) -> None:
    """At most `limit` calls under way, and twice as many items that were not consumed."""

    async def program(stepping: Stepping) -> None:
        work = Work(seconds=1)
        consumed = 0

        def check() -> None:
            assert work.running <= limit
            assert work.taken <= consumed + 1 + 2 * limit  # one is on its way to the consumer

        stepping.at_each_step(check)
        async with (
            handfast.Scope() as scope,
            scope.map(work, work.source(source, 30), limit=limit, ordered=ordered) as results,
        ):
            await asyncio.sleep(5)
            assert work.taken == 0
            async for _ in results:
                consumed += 1
                if consumed % 10 == 0:
                    await asyncio.sleep(20)
                    assert work.running == 0
                    assert work.taken == min(30, consumed + 2 * limit)
        assert consumed == 30
        assert work.most == limit

    run_stepping(program)


def test_a_slow_call_does_not_keep_the_others_waiting_until_the_results_are_full() -> None:
    async def program(stepping: Stepping) -> None:
        started: list[int] = []

        async def wait(n: int) -> None:
            started.append(n)
            await asyncio.sleep(10 if n == 0 else 1)

        async with (
            handfast.Scope() as scope,
            scope.map(wait, range(100), limit=2) as results,
        ):
            await anext(results)
            assert stepping.loop.time() == 10
            assert started == [0, 1, 2, 3, 4]

    run_stepping(program)


# --- errors ------------------------------------------------------------------------------------


def test_an_error_is_raised_after_the_results_before_it_and_nothing_runs_then(
    any_kind: str, source: str
) -> None:
    async def main() -> None:
        work = Work(5, seconds=0.001)
        async with handfast.Scope() as scope:
            got: list[int] = []
            with pytest.raises(ValueError, match="5") as caught:
                results = scope.map(work, work.source(source, 100), limit=3)
                while True:
                    got.append(await anext(results))
            assert work.running == 0
            assert got == [0, 10, 20, 30, 40]
            assert handfast.split_errors(caught.value).operational == (caught.value,)
        assert work.taken < 15

    run_on(any_kind, main())


def test_an_error_of_the_source_is_raised_after_the_results_before_it(
    any_kind: str, source: str
) -> None:
    async def broken() -> AsyncGenerator[int, None]:
        yield 1
        yield 2
        raise LookupError("source")

    def broken_plain() -> Iterator[int]:
        yield 1
        yield 2
        raise LookupError("source")

    async def main() -> list[int]:
        got: list[int] = []
        async with handfast.Scope() as scope:
            with pytest.raises(LookupError, match="source") as caught:
                async with scope.map(
                    Work(), broken() if source == "async" else broken_plain(), limit=5
                ) as results:
                    while True:
                        got.append(await anext(results))
            assert handfast.split_errors(caught.value).operational == (caught.value,)
        return got

    assert run_on(any_kind, main()) == [10, 20]


def test_a_plain_iterable_that_cannot_be_iterated_is_an_error_for_the_consumer() -> None:
    class Broken:
        def __iter__(self) -> Iterator[int]:
            raise LookupError("no iterator")

    async def program(_: Stepping) -> None:
        async with handfast.Scope() as scope:
            with pytest.raises(LookupError, match="no iterator"):
                await anext(scope.map(Work(), Broken(), limit=1))

    run_stepping(program)


def test_of_several_errors_the_first_is_raised_and_the_others_are_reported() -> None:
    """S3.6: none is lost, and `except ValueError` works however many there are."""

    async def program(stepping: Stepping) -> list[str]:
        work = Work(1, 2, 3, seconds=1)
        async with handfast.Scope() as scope:
            with pytest.raises(ValueError, match="1"):
                async for _ in scope.map(work, range(9), limit=4):
                    pass
        reported = [repr(context["exception"]) for context in stepping.errors]
        assert "in the map of Work, created at" in stepping.errors[0]["message"]
        stepping.errors.clear()
        return reported

    assert run_stepping(program) == ["ValueError(2)", "ValueError(3)"]


def test_an_error_that_the_consumer_has_not_come_to_is_reported() -> None:
    async def program(stepping: Stepping) -> list[str]:
        work = Work(1, seconds=1)
        async with handfast.Scope() as scope, scope.map(work, range(9), limit=4) as results:
            assert await anext(results) == 0
        reported = [repr(context["exception"]) for context in stepping.errors]
        stepping.errors.clear()
        return reported

    assert run_stepping(program) == ["ValueError(1)"]


def test_an_error_in_the_clean_up_of_a_call_is_reported() -> None:
    async def program(stepping: Stepping) -> list[str]:
        async def stubborn(n: int) -> int:
            try:
                await asyncio.sleep(n)
            except asyncio.CancelledError:
                raise OSError("disk") from None
            return n

        async with handfast.Scope() as scope, scope.map(stubborn, [0, 5], limit=2) as results:
            assert await anext(results) == 0
        reported = [str(context["exception"]) for context in stepping.errors]
        stepping.errors.clear()
        return reported

    assert run_stepping(program) == ["disk"]


async def failing_to_leave() -> AsyncGenerator[int, None]:
    try:
        for n in range(9):
            yield n
    finally:
        raise OSError("source")


def test_an_error_in_the_clean_up_of_the_source_is_raised_at_the_end_of_the_block() -> None:
    async def program(_: Stepping) -> None:
        async with handfast.Scope() as scope:
            with pytest.raises(OSError, match="source") as caught:
                async with scope.map(Work(), failing_to_leave(), limit=2) as results:
                    await anext(results)
            assert handfast.split_errors(caught.value).cleanup == (caught.value,)

    run_stepping(program)


def test_a_plain_generator_is_closed_too() -> None:
    """As an async one is: a file that it has open does not wait for the garbage collector."""

    def numbers() -> Generator[int, None, None]:
        try:
            yield from range(9)
        finally:
            raise OSError("source")

    async def program(_: Stepping) -> None:
        source = numbers()
        async with handfast.Scope() as scope:
            with pytest.raises(OSError, match="source") as caught:
                async with scope.map(Work(), source, limit=2) as results:
                    await anext(results)
            assert handfast.split_errors(caught.value).cleanup == (caught.value,)

    run_stepping(program)


def test_an_error_in_the_clean_up_of_the_source_does_not_hide_that_of_a_call() -> None:
    async def program(stepping: Stepping) -> list[str]:
        async with handfast.Scope() as scope:
            with pytest.raises(ValueError, match="1"):
                async for _ in scope.map(Work(1), failing_to_leave(), limit=2):
                    pass
        reported = [str(context["exception"]) for context in stepping.errors]
        stepping.errors.clear()
        return reported

    assert run_stepping(program) == ["source"]


def test_a_call_that_other_code_cancels_is_an_error_and_no_end(ordered: bool) -> None:
    async def program(_: Stepping) -> None:
        work = Work(seconds=1)
        async with handfast.Scope() as scope:
            results = scope.map(work, range(4), limit=2, ordered=ordered)
            assert await anext(results) == 0
            while (task := work.tasks.get(2)) is None:
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(HandfastError, match="a call of 'Work' was cancelled by other code"):
                assert [n async for n in results] == [10]

    run_stepping(program)


def test_an_error_that_is_no_exception_is_raised_to_the_consumer(any_kind: str) -> None:
    """A4: also a subclass of BaseException."""

    class Alarm(BaseException):
        pass

    async def ring(n: int) -> int:
        await asyncio.sleep(0)
        raise Alarm(n)

    async def main() -> None:
        async with handfast.Scope() as scope:
            with pytest.raises(Alarm, match="4"):
                await anext(scope.map(ring, [4], limit=2))

    run_on(any_kind, main())


def test_the_call_itself_may_fail(any_kind: str, ordered: bool) -> None:
    """An error before there is a coroutine comes in the place of its result."""
    work = Work()

    def call(n: int) -> Awaitable[int]:
        if n == 1:
            raise LookupError(n)
        return work(n)

    async def main() -> None:
        async with handfast.Scope() as scope:
            results = scope.map(call, [0, 1, 2], limit=1, ordered=ordered)
            assert await anext(results) == 0
            with pytest.raises(LookupError, match="1"):
                await anext(results)

    run_on(any_kind, main())


def test_the_task_of_a_call_shows_the_function(kind: str) -> None:
    """A25."""

    async def wait(_: int) -> str:
        await asyncio.sleep(0)
        return repr(asyncio.current_task())

    async def main() -> str:
        async with handfast.Scope() as scope:
            return await anext(scope.map(wait, [1], limit=1))

    assert re.search(r"coro=<\S+wait\(\) running at ", run_on(kind, main()))


def test_a_call_that_does_not_end_is_named() -> None:
    async def program(stepping: Stepping) -> None:
        gate = asyncio.Event()

        async def stuck(n: int) -> int:
            while n and not gate.is_set():
                try:
                    await gate.wait()
                except asyncio.CancelledError:
                    continue
            return n

        async with handfast.Scope() as scope:
            with pytest.raises(StragglersLeft, match=r"stuck .* waiting at .*test_map") as caught:
                async with scope.map(stuck, range(3), limit=2) as results:
                    await anext(results)
            assert stepping.loop.time() < 10
            assert handfast.split_errors(caught.value).cleanup == (caught.value,)
            gate.set()
            await asyncio.sleep(1)

    run_stepping(program)


# --- leaving -----------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["break", "raise"])
def test_leaving_the_block_ends_what_is_under_way(
    any_kind: str, source: str, ordered: bool, way: str
) -> None:
    async def main() -> None:
        work = Work(seconds=0.001, cleanup=0.001)
        async with handfast.Scope() as scope:
            try:
                async with scope.map(
                    work, work.source(source, 50), limit=4, ordered=ordered
                ) as results:
                    async for _ in results:
                        if way == "break":
                            break
                        raise LookupError
            except LookupError:
                assert way == "raise"
            assert work.running == 0
            alone()

    run_on(any_kind, main())


def test_leaving_a_loop_without_a_block_ends_it_and_its_scope_waits_for_that(
    any_kind: str, source: str
) -> None:
    work = Work(seconds=0.001, cleanup=0.001)

    async def main() -> None:
        async with handfast.Scope() as scope:
            async for _ in scope.map(work, work.source(source, 50), limit=4):
                break
            gc.collect()
        assert work.running == 0
        alone()
        assert work.taken < 50

    run_on(any_kind, main())


def test_a_map_that_is_kept_and_left_is_ended_by_its_scope(any_kind: str, source: str) -> None:
    work = Work(seconds=0.001, cleanup=0.001)

    async def main() -> None:
        async with handfast.Scope() as scope:
            results = scope.map(work, work.source(source, 50), limit=4)
            await anext(results)
        assert work.running == 0
        alone()
        with pytest.raises(StreamBroken, match="the map of Work was closed before it reached"):
            await anext(results)

    run_on(any_kind, main())


def test_a_failure_in_the_scope_ends_its_maps(any_kind: str, source: str) -> None:
    work = Work(seconds=0.01, cleanup=0.001)

    async def main() -> None:
        async def fail() -> None:
            raise LookupError("sibling")

        with pytest.raises(ExceptionGroup) as caught:
            async with handfast.Scope() as scope:
                async for n in scope.map(work, work.source(source, 50), limit=4):
                    if n == 10:
                        scope.spawn(fail())
        assert [repr(error) for error in caught.value.exceptions] == ["LookupError('sibling')"]
        assert work.running == 0
        alone()

    run_on(any_kind, main())


def test_a_closed_scope_maps_nothing() -> None:
    async def program(_: Stepping) -> None:
        scope = handfast.Scope("service")
        results = scope.map(Work(), range(3), limit=1)
        await scope.close()
        with pytest.raises(ScopeClosed, match=r"map\(Work\) refused"):
            await anext(results)

    run_stepping(program)


def test_a_stream_that_the_program_has_entered_is_left_by_the_program() -> None:
    async def program(_: Stepping) -> list[int]:
        work = Work(seconds=1)
        async with handfast.Scope() as scope, handfast.stream(work.async_items(9)) as items:
            async with scope.map(work, items, limit=2) as results:
                await anext(results)
            return [n async for n in items]

    rest = run_stepping(program)
    assert rest == [3, 4, 5, 6, 7, 8]  # also the item that was requested when the block ended


def test_two_readers_of_one_stream_are_an_error() -> None:
    async def program(_: Stepping) -> None:
        async with (
            handfast.Scope() as scope,
            handfast.stream(Work(seconds=1).async_items(9)) as items,
        ):
            reader = asyncio.create_task(anext(items))
            await asyncio.sleep(0)
            with pytest.raises(StreamBroken, match="two tasks"):
                await anext(scope.map(Work(), items, limit=2))
            assert await reader == 0

    run_stepping(program)


@pytest.mark.parametrize("block", [True, False])
@pytest.mark.parametrize("times", [1, 2, 5])
def test_a_consumer_that_is_cancelled_at_any_step_leaves_nothing_under_way(
    source: str, ordered: bool, times: int, block: bool
) -> None:
    """S3.1, S3.4: also during the clean-up. With a block it is over when the block is."""

    async def program(stepping: Stepping) -> bool:
        work = Work(seconds=1, cleanup=0.5)
        life = Life()
        items = work.items(5) if source == "plain" else work.async_items(5, life)
        left: list[int] = []

        async def consume() -> None:
            async with handfast.Scope() as scope:
                results = scope.map(work, items, limit=2, ordered=ordered)
                if not block:
                    assert len([n async for n in results]) == 5
                    return
                try:
                    async with results:
                        assert len([n async for n in results]) == 5
                finally:
                    left.append(work.running)

        task = stepping.victim(asyncio.create_task(consume()))
        await asyncio.wait({task})
        assert (work.running, work.cut) == (0, 0)
        assert left in ([], [0])
        assert asyncio.all_tasks() == {asyncio.current_task()}
        life.check()
        assert task.cancelled() or task.exception() is None
        return task.cancelled()

    runs = list(cancel_everywhere(program, times=times))
    assert len(runs) > 20
    assert set(runs[:-1]) == {True}  # A16: no cancel is lost
    assert runs[-1] is False


def test_a_failing_item_and_a_cancel_at_any_step(ordered: bool) -> None:
    async def program(stepping: Stepping) -> str:
        work = Work(2, seconds=1, cleanup=0.5)

        async def consume() -> None:
            async with (
                handfast.Scope() as scope,
                scope.map(work, work.items(6), limit=2, ordered=ordered) as results,
            ):
                async for _ in results:
                    pass

        task = stepping.victim(asyncio.create_task(consume()))
        await asyncio.wait({task})
        assert work.running == 0
        for context in stepping.errors:  # the error, if the consumer was cancelled before it got it
            assert repr(context["exception"]) == "ValueError(2)"
            assert task.cancelled()
        stepping.errors.clear()
        return "cancelled" if task.cancelled() else repr(task.exception())

    runs = set(cancel_everywhere(program))
    assert "cancelled" in runs
    assert len(runs) == 2


def test_the_errors_of_calls_and_a_cancel_at_any_step(ordered: bool) -> None:
    """A18: also of a call that fails in the very step in which the map ends."""

    async def program(stepping: Stepping) -> None:
        raised: list[OSError] = []

        async def fail(n: int) -> None:
            try:
                await asyncio.sleep(1)
            finally:
                raised.append(OSError(n))
                raise raised[-1]

        async def consume() -> None:
            async with (
                handfast.Scope() as scope,
                scope.map(fail, range(3), limit=3, ordered=ordered) as results,
            ):
                await anext(results)

        task = stepping.victim(asyncio.create_task(consume()))
        await asyncio.wait({task})
        found = {id(context["exception"]) for context in stepping.errors}
        stepping.errors.clear()
        if not task.cancelled() and (group := task.exception()):
            found |= {id(error) for error in handfast.split_errors(group).operational}
        assert {id(error) for error in raised} <= found

    assert len(list(cancel_everywhere(program))) > 10


async def _explored() -> None:
    work = Work(seconds=1, cleanup=0.5)

    async def consume() -> None:
        async with handfast.Scope() as scope:
            async with scope.map(work, work.async_items(3), limit=2, ordered=False) as results:
                async for n in results:
                    if n == 10:
                        break
            assert work.running == 0

    await victim(consume())
    assert work.running == 0


def test_the_explorer_finds_no_schedule_that_breaks_it() -> None:
    assert explore(_explored, cancel=True, schedules=300).counterexample is None


# --- arguments ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "items", "limit", "error", "words"),
    [
        (3, [], 1, TypeError, "an async function"),
        (Work(), 3, 1, TypeError, "an iterable of items, async or plain, not 3"),
        (Work(), [], 0, ValueError, "limit must be at least 1"),
        (Work(), [], True, TypeError, "limit must be a whole number"),
    ],
)
def test_wrong_arguments_are_refused_at_the_call(
    function: Any, items: Any, limit: Any, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        handfast.Scope().map(function, items, limit=limit)


def test_a_function_that_is_not_async_is_an_error_for_the_consumer() -> None:
    async def program(_: Stepping) -> None:
        async with handfast.Scope() as scope:
            with pytest.raises(TypeError, match="await"):
                await anext(scope.map(lambda n: n, [1], limit=1))  # type: ignore[arg-type, return-value]

    run_stepping(program)
