"""Leaving a stream: bounded, once, and no error is lost on the way (S3.3 to S3.7)."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import AsyncGenerator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import handfast
from tests.runtime.hosting.resources import Life, numbers, outcome, overlapping, place
from tests.support.stepping import Stepping, SteppingLoop, cancel_everywhere, run_on, run_stepping


async def swallowing(release: asyncio.Event) -> AsyncGenerator[int, None]:
    """Its clean-up takes no notice of a cancel."""
    try:
        yield 1
    finally:
        while not release.is_set():
            try:
                await release.wait()  # it stands here
            except asyncio.CancelledError:
                pass


async def slow_to_leave(seconds: float) -> AsyncGenerator[int, None]:
    try:
        yield 1
    finally:
        await asyncio.sleep(seconds)  # it stands here


async def failing_to_leave() -> AsyncGenerator[int, None]:
    try:
        yield 1
    finally:
        await asyncio.sleep(0)
        raise OSError("disk full")


async def enter(generator: AsyncGenerator[Any, None], **options: Any) -> handfast.types.Stream[Any]:
    """A stream whose first item has been fetched."""
    items = await handfast.stream(generator, **options).__aenter__()
    await items.__anext__()
    return items


async def leave(items: handfast.types.Stream[Any]) -> None:
    await items.__aexit__(None, None, None)


# --- bounded ---------------------------------------------------------------------------------


def test_leaving_returns_only_when_the_generator_is_gone() -> None:
    """S3.3"""

    async def program(stepping: Stepping) -> float:
        life = Life(pause=7)
        items = await enter(numbers(life))
        await leave(items)
        life.check()
        return stepping.loop.time()

    assert run_stepping(program) == 7


def test_a_swallower_is_named_when_the_deadline_is_over() -> None:
    """S3.3, S3.7: what, where it was created, where it waits."""

    async def program(stepping: Stepping) -> float:
        release = asyncio.Event()
        items = await enter(swallowing(release), timeout=5)
        with pytest.raises(handfast.errors.StragglersLeft) as caught:
            await leave(items)
        elapsed = stepping.loop.time()
        words = str(caught.value)
        assert "not ended within 5 s: the stream of swallowing (5.0 s old, created at" in words
        assert Path(__file__).name + place(enter, "handfast.stream(") + ", waiting at" in words
        assert words.endswith(place(swallowing, "stands here") + ")")
        assert handfast.split_errors(caught.value).cleanup == (caught.value,)
        release.set()
        await asyncio.sleep(0.1)
        return elapsed

    assert run_stepping(program) == 5


def test_a_clean_up_that_is_too_slow_is_cut_within_the_deadline_and_says_where() -> None:
    """S3.3"""

    async def program(stepping: Stepping) -> float:
        items = await enter(slow_to_leave(60), timeout=10)
        with pytest.raises(
            TimeoutError, match=r"more than 10 s; it was waiting at .*slow_to_leave"
        ):
            await leave(items)
        return stepping.loop.time()

    assert run_stepping(program) == 9.95


def test_a_generator_that_takes_no_notice_of_its_cancel_is_left_all_the_same() -> None:
    """It answers the cancel with one more item."""

    async def stubborn() -> AsyncGenerator[int, None]:
        yield 1
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            yield 2

    async def program(stepping: Stepping) -> float:
        items = await enter(stubborn())
        reader = asyncio.create_task(outcome(items.__anext__))
        await asyncio.sleep(1)
        await leave(items)
        await reader
        return stepping.loop.time()

    assert run_stepping(program) == 1


def test_a_generator_that_yields_on_its_way_out_comes_to_its_end_in_its_owner() -> None:
    """S3.1: otherwise the rest of its clean-up would run where it is collected."""
    life = Life()

    async def unruly() -> AsyncGenerator[int, None]:
        life.enter()
        try:
            try:
                yield 1
            finally:
                yield 2
        finally:
            await life.clean_up()

    async def endless() -> AsyncGenerator[int, None]:
        try:
            yield 1
        finally:
            while True:
                yield 2

    async def program(stepping: Stepping) -> None:
        items = await enter(unruly())
        with pytest.raises(RuntimeError, match="ignored GeneratorExit"):
            await leave(items)
        life.check()
        items = await enter(endless())
        with pytest.raises(RuntimeError, match="ignored GeneratorExit"):
            await leave(items)

    run_stepping(program)


def test_a_closer_that_is_cancelled_hears_of_the_swallower_and_then_of_its_cancel() -> None:
    """S3.3, S3.4"""

    async def program(stepping: Stepping) -> None:
        log: list[str] = []
        release = asyncio.Event()
        items = await enter(swallowing(release), timeout=5)

        async def closer() -> None:
            log.append(await outcome(leave, items))
            await asyncio.sleep(1)
            log.append("went on")

        task = asyncio.create_task(closer())
        await asyncio.sleep(1)
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()
        assert log == ["StragglersLeft"]
        release.set()
        await asyncio.sleep(1)

    run_stepping(program)


def test_a_stream_that_is_left_in_the_moment_of_a_request_makes_no_item() -> None:
    async def program(stepping: Stepping) -> None:
        life = Life()
        items = await enter(numbers(life))
        reader = asyncio.create_task(outcome(items.__anext__))
        closer = asyncio.create_task(leave(items))
        await closer
        life.check()
        assert await reader == "StreamBroken"

    run_stepping(program)


# --- once ------------------------------------------------------------------------------------


def test_closers_that_overlap_share_one_clean_up_at_every_interleaving() -> None:
    """S3.5: three closers, the second and third beginning at any step of the first one's close."""

    async def program(steps: tuple[int, int, int], stepping: Stepping) -> None:
        life = Life()
        items = await enter(numbers(life, "task group"))

        async def close() -> None:
            await leave(items)
            life.check()
            assert life.ended == 1

        closers = await overlapping(stepping, steps, close)
        assert [closer.result() for closer in closers] == ["finished"] * 3

    for second in range(20):
        for third in range(second, 20):
            run_stepping(partial(program, (0, second, third)))


@pytest.mark.parametrize("times", [1, 2, 5])
def test_all_closers_see_the_error_of_the_clean_up_and_a_later_one_does_not(times: int) -> None:
    """S3.5, S3.6: the first of them cancelled at every step."""

    async def program(stepping: Stepping) -> tuple[str, str, str]:
        items = await enter(failing_to_leave())
        victim = stepping.victim(asyncio.create_task(outcome(leave, items)))
        other = asyncio.create_task(outcome(leave, items))
        await asyncio.wait({victim, other})
        first = "cancelled" if victim.cancelled() else victim.result()
        return first, other.result(), await outcome(leave, items)

    runs = list(cancel_everywhere(program, times=times))
    # Cancelled before it had begun to close, it never came to see the error.
    assert runs[0] == ("cancelled", "OSError", "finished")
    assert set(runs[1:]) == {("OSError", "OSError", "finished")}


# --- no error is lost ------------------------------------------------------------------------


def test_a_failing_clean_up_covers_neither_the_error_of_the_body_nor_itself(kind: str) -> None:
    """S3.6"""

    async def main() -> handfast.types.Failure:
        try:
            async with handfast.stream(failing_to_leave()) as items:
                await items.__anext__()
                raise LookupError("the body")
        except OSError as error:
            return handfast.split_errors(error)

    failure = run_on(kind, main())
    assert [repr(error) for error in failure.operational] == ["LookupError('the body')"]
    assert [repr(error) for error in failure.cleanup] == ["OSError('disk full')"]


def test_an_error_that_the_consumer_has_not_seen_comes_with_that_of_the_body() -> None:
    """S3.6: two operational errors, and both surface."""

    async def interrupted() -> AsyncGenerator[int, None]:
        async with asyncio.timeout(1):
            yield 1

    async def program(stepping: Stepping) -> handfast.types.Failure:
        try:
            async with handfast.stream(interrupted()) as items:
                await items.__anext__()
                await asyncio.sleep(2)
                raise LookupError("the body")
        except TimeoutError as error:
            return handfast.split_errors(error)

    failure = run_stepping(program)
    assert [type(error) for error in failure.operational] == [TimeoutError, LookupError]
    assert failure.cleanup == ()


@pytest.mark.parametrize("times", [1, 2, 5])
def test_a_cancel_that_an_error_stands_in_the_way_of_strikes_at_the_next_await(times: int) -> None:
    """S3.4: the consumer handles the error and would go on for ever."""

    async def program(stepping: Stepping) -> tuple[bool, str]:
        log: list[str] = []
        items = await enter(failing_to_leave())

        async def consumer() -> None:
            try:
                await leave(items)
            except OSError:
                log.append("seen")
            await asyncio.sleep(0)
            await asyncio.sleep(1)
            log.append("went on")

        task = stepping.victim(asyncio.create_task(consumer()))
        await asyncio.wait({task})
        await leave(items) if not log else None
        return task.cancelled(), " ".join(log)

    async def unseen(stepping: Stepping) -> tuple[bool, str]:
        try:
            return await program(stepping)
        except OSError:
            return True, "seen later"

    runs = list(cancel_everywhere(unseen, times=times))
    assert runs[-1] == (False, "seen went on")
    assert all(run[0] and "went on" not in run[1] for run in runs[:-1])


def test_an_error_of_the_same_kind_as_for_a_yield_on_the_way_out_is_just_an_error(
    kind: str,
) -> None:
    async def failing() -> AsyncGenerator[int, None]:
        try:
            yield 1
        finally:
            raise RuntimeError("of its own")

    async def main() -> None:
        items = await enter(failing())
        with pytest.raises(RuntimeError, match="of its own"):
            await leave(items)

    run_on(kind, main())


def test_a_stream_that_ends_in_the_moment_it_is_dropped_loses_no_error() -> None:
    """S3.6"""
    reported: list[dict[str, Any]] = []

    async def short() -> AsyncGenerator[int, None]:
        async with asyncio.timeout(1):
            yield 1

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: reported.append(context))
        kept = [await enter(short())]

        def drop() -> None:
            with pytest.warns(ResourceWarning):
                kept.clear()

        # The time-out strikes in the same turn, and the owner ends before the close begins.
        loop.call_at(loop.time() + 1, drop)
        await asyncio.sleep(2)

    with asyncio.Runner(loop_factory=SteppingLoop) as runner:
        runner.run(main())
    assert [type(context["exception"]) for context in reported] == [TimeoutError]


def test_an_error_after_the_stream_was_dropped_goes_to_the_loop() -> None:
    """S3.6: nobody is there to raise it to."""
    reported: list[dict[str, Any]] = []

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: reported.append(context)
        )
        items = await enter(failing_to_leave())
        with pytest.warns(ResourceWarning):
            del items
        await asyncio.sleep(1)

    with asyncio.Runner(loop_factory=SteppingLoop) as runner:
        runner.run(main())
    assert [repr(context["exception"]) for context in reported] == ["OSError('disk full')"]
    assert "the stream of failing_to_leave, created at" in reported[0]["message"]


@pytest.mark.parametrize("closed", [False, True])
def test_an_error_that_was_not_fetched_goes_to_the_loop_when_the_stream_is_dropped(
    closed: bool,
) -> None:
    """S3.6: also when the loop is closed by then."""
    reported: list[dict[str, Any]] = []
    kept: list[handfast.types.Stream[Any]] = []

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: reported.append(context)
        )
        kept.append(await enter(failing_to_leave()))
        if not closed:
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()
            await asyncio.sleep(1)
            kept.clear()

    with asyncio.Runner(loop_factory=SteppingLoop) as runner:
        runner.run(main())
    kept.clear()
    assert [repr(context["exception"]) for context in reported] == ["OSError('disk full')"]


def test_an_error_of_a_straggler_goes_to_the_loop_in_the_end() -> None:
    """S3.6"""
    reported: list[dict[str, Any]] = []

    async def late(release: asyncio.Event) -> AsyncGenerator[int, None]:
        try:
            async for n in swallowing(release):
                yield n
        finally:
            while not release.is_set():
                try:
                    await release.wait()
                except asyncio.CancelledError:
                    pass
            raise OSError("in the end")

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: reported.append(context)
        )
        release = asyncio.Event()
        items = await enter(late(release), timeout=1)
        with pytest.raises(handfast.errors.StragglersLeft):
            await leave(items)
        release.set()
        await asyncio.sleep(1)
        assert [repr(context["exception"]) for context in reported] == ["OSError('in the end')"]
        del items

    with asyncio.Runner(loop_factory=SteppingLoop) as runner:
        runner.run(main())
    assert len(reported) == 1


def test_an_owner_that_is_all_that_refers_to_itself_is_not_collected() -> None:
    """The loop holds tasks weakly; its own clean-up has been cut, and no timer runs any more."""
    reported: list[dict[str, Any]] = []
    waits: list[weakref.ref[asyncio.Future[None]]] = []

    async def alone() -> AsyncGenerator[int, None]:
        try:
            yield 1
        finally:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            waits.append(weakref.ref(future))
            while not future.done():
                try:
                    await asyncio.wait({future})
                except asyncio.CancelledError:
                    pass

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: reported.append(context)
        )
        items = await enter(alone(), timeout=1)
        with pytest.warns(ResourceWarning):
            del items
        await asyncio.sleep(5)
        gc.collect()
        future = waits[0]()
        assert future is not None, "the owner was collected in the middle of its clean-up"
        future.set_result(None)

    with asyncio.Runner(loop_factory=SteppingLoop) as runner:
        runner.run(main())
    assert reported == []


def test_a_swallower_does_not_hang_the_loops_teardown_and_is_named() -> None:
    """S3.3, S3.7: asyncio.run would wait for it for ever."""
    reported: list[dict[str, Any]] = []

    async def main() -> tuple[handfast.types.Stream[Any], asyncio.Event]:
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: reported.append(context)
        )
        release = asyncio.Event()
        return await enter(swallowing(release), timeout=5), release

    with asyncio.Runner(loop_factory=SteppingLoop) as runner:
        loop = runner.get_loop()
        items, release = runner.run(main())
        asyncio.runners._cancel_all_tasks(loop)  # type: ignore[attr-defined]
        assert loop.time() == 5
        assert (
            "at the end of its loop: not ended within 5 s: the stream of" in reported[0]["message"]
        )
        release.set()
        runner.run(asyncio.sleep(1))
        del items


def test_keyboard_interrupt_does_not_wait_for_the_consumer_to_ask() -> None:
    async def interrupted() -> AsyncGenerator[int, None]:
        try:
            async with asyncio.timeout(1):
                yield 1
        except TimeoutError:
            raise KeyboardInterrupt from None

    async def main() -> None:
        async with handfast.stream(interrupted()) as items:
            await items.__anext__()
            await asyncio.sleep(60)

    with pytest.raises(KeyboardInterrupt), asyncio.Runner(loop_factory=SteppingLoop) as runner:
        try:
            runner.run(main())
        finally:
            assert runner.get_loop().time() == 1


def test_keyboard_interrupt_goes_its_own_way_and_the_consumer_is_cleaned_up() -> None:
    life = Life()

    async def interrupted() -> AsyncGenerator[int, None]:
        yield 1
        raise KeyboardInterrupt

    async def main() -> None:
        async with handfast.stream(numbers(life)) as other:
            await other.__anext__()
            async with handfast.stream(interrupted()) as items:
                async for _ in items:
                    pass

    with pytest.raises(KeyboardInterrupt), asyncio.Runner(loop_factory=SteppingLoop) as runner:
        runner.run(main())
    life.check()
