"""map_async with a fast source: block, error or drop; never block the thread of a loop."""

from __future__ import annotations

import asyncio
import threading

import pytest
import reactivex
from reactivex.subject import Subject

import handfast
from handfast.bridges.reactivex import Overflow, map_async
from handfast.bridges.reactivex._backpressure import InFlightLimit
from handfast.explore import explore
from tests.bridges.recording_observer import RecordingObserver, describe
from tests.runtime.wrapped_loop import ForeignLoop


def test_a_thread_that_emits_too_fast_waits_and_no_item_is_lost() -> None:
    emitted: list[int] = []
    delivered: list[int] = []
    ahead: list[int] = []

    async def work(item: int) -> int:
        ahead.append(len(emitted) - len(delivered))
        await asyncio.sleep(0)
        return item

    with ForeignLoop() as foreign:
        scope = foreign.scope(on_failure="report")
        source: Subject[int] = Subject()
        mapping = map_async(scope, work, concurrency=2, buffer=3, ordered=True)
        source.pipe(mapping).subscribe(lambda outcome: delivered.append(outcome.item))
        for item in range(200):
            emitted.append(item)
            source.on_next(item)
        source.on_completed()
        mapping.join_from_thread()
        assert delivered == emitted
        assert max(ahead) <= 6  # five in flight, and one that waits
        assert scope.close_from_thread(timeout=10).clean


def test_explored_no_more_items_are_in_flight_than_the_limit() -> None:
    """With ordered=True, outcomes that wait for their predecessor count as well."""

    async def program() -> None:
        in_flight = 0

        async def work(item: int) -> int:
            await asyncio.sleep(0.02 if item == 0 else 0.001)
            return item

        def emit() -> None:
            nonlocal in_flight
            for item in range(4):
                source.on_next(item)
                in_flight += 1
                assert in_flight <= 2
            source.on_completed()

        def observe(outcome: object) -> None:
            nonlocal in_flight
            in_flight -= 1
            delivered.append(outcome)

        delivered: list[object] = []
        scope = handfast.Scope("s", on_failure="report")
        source: Subject[int] = Subject()
        mapping = map_async(scope, work, concurrency=1, buffer=1, ordered=True)
        source.pipe(mapping).subscribe(observe)
        await asyncio.to_thread(emit)
        await mapping.join()
        assert len(delivered) == 4
        await scope.close()

    assert explore(program, schedules=100).counterexample is None


async def overflowing(**options: object) -> tuple[RecordingObserver[int], list[int]]:
    """Four items at once, emitted on the loop's own thread, with a limit of two."""
    gate = asyncio.Event()
    begun: list[int] = []

    async def work(item: int) -> None:
        begun.append(item)
        await gate.wait()

    observer: RecordingObserver[int] = RecordingObserver()
    async with handfast.Scope("s") as scope:
        mapping = map_async(scope, work, concurrency=1, buffer=1, **options)  # type: ignore[arg-type]
        reactivex.range(4).pipe(mapping).subscribe(observer)
        await asyncio.sleep(0)
        gate.set()
        await mapping.join()
    return observer, begun


def test_in_the_thread_of_a_loop_the_stream_ends_with_an_overflow() -> None:
    observer, begun = asyncio.run(overflowing())
    assert begun == [0, 1]
    assert [*map(describe, observer.outcomes)] == ["0 -> None", "1 -> None"]
    assert isinstance(observer.error, Overflow)
    assert "2 is not accepted: 2 items are in flight" in str(observer.error)
    assert "ops.subscribe_on" in str(observer.error)


def test_when_full_error_ends_the_stream() -> None:
    observer, begun = asyncio.run(overflowing(when_full="error"))
    assert begun == [0, 1]
    assert isinstance(observer.error, Overflow)
    assert "subscribe_on" not in str(observer.error)


def test_a_source_that_overflowed_is_disposed_while_items_are_in_flight() -> None:
    async def main() -> None:
        gate = asyncio.Event()

        async def work(item: int) -> None:
            await gate.wait()

        observer: RecordingObserver[int] = RecordingObserver()
        source: Subject[int] = Subject()
        async with handfast.Scope("s") as scope:
            mapping = map_async(scope, work, concurrency=1, buffer=0)
            source.pipe(mapping).subscribe(observer)
            source.on_next(0)
            source.on_next(1)
            assert not source.observers
            assert not observer.ended.is_set()
            gate.set()
            await mapping.join()
        assert isinstance(observer.error, Overflow)

    asyncio.run(main())


def test_the_function_gets_the_dropped_items() -> None:
    dropped: list[int] = []
    observer, _ = asyncio.run(overflowing(when_full=dropped.append))
    assert dropped == [2, 3]
    assert [outcome.item for outcome in observer.outcomes] == [0, 1]
    assert observer.completed


def test_items_after_the_end_are_not_reported_as_dropped() -> None:
    async def main() -> list[int]:
        dropped: list[int] = []
        async with handfast.Scope("s") as scope:
            source: Subject[int] = Subject()
            mapping = map_async(scope, asyncio.sleep, when_full=dropped.append)
            inner = mapping(source)
            inner.subscribe().dispose()
            source.on_next(0)
            await mapping.join()
        return dropped

    assert asyncio.run(main()) == []


def test_closing_the_limit_wakes_the_waiting_threads() -> None:
    limit = InFlightLimit(1)
    assert limit.try_acquire()
    waited = threading.Event()
    entered: list[bool] = []
    waiting = threading.Thread(target=lambda: entered.append(limit.acquire(waited.set)))
    waiting.start()
    assert waited.wait(10)  # so it waits
    limit.close()
    waiting.join(10)
    assert entered == [False]
    assert not limit.try_acquire()
    assert not limit.acquire(pytest.fail)


def test_a_released_place_admits_one_thread() -> None:
    limit = InFlightLimit(1)
    assert limit.try_acquire()
    waited = threading.Event()
    entered: list[bool] = []
    waiting = threading.Thread(target=lambda: entered.append(limit.acquire(waited.set)))
    waiting.start()
    assert waited.wait(10)
    limit.release()
    waiting.join(10)
    assert entered == [True]
    assert not limit.try_acquire()
