"""map_async with a source that is faster than the work: block, error, or drop; never a loop's thread."""

from __future__ import annotations

import asyncio
import threading

import pytest
import reactivex
from reactivex.subject import Subject

import holdfast
from holdfast.bridges.reactivex import Overflow, map_async
from holdfast.bridges.reactivex.room import Room
from holdfast.explore import explore
from tests.bridges.watching import Watching, words
from tests.runtime.foreign import ForeignLoop


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
        assert max(ahead) <= 6  # five that have come in, and one at the door
        assert scope.close_from_thread(timeout=10).clean


def test_explored_no_more_are_under_way_than_there_is_room_for() -> None:
    """Ordered, the outcomes that wait for their predecessor take up room, too."""

    async def program() -> None:
        under_way = 0

        async def work(item: int) -> int:
            await asyncio.sleep(0.02 if item == 0 else 0.001)
            return item

        def emit() -> None:
            nonlocal under_way
            for item in range(4):
                source.on_next(item)
                under_way += 1
                assert under_way <= 2
            source.on_completed()

        def observe(outcome: object) -> None:
            nonlocal under_way
            under_way -= 1
            delivered.append(outcome)

        delivered: list[object] = []
        scope = holdfast.Scope("s", on_failure="report")
        source: Subject[int] = Subject()
        mapping = map_async(scope, work, concurrency=1, buffer=1, ordered=True)
        source.pipe(mapping).subscribe(observe)
        await asyncio.to_thread(emit)
        await mapping.join()
        assert len(delivered) == 4
        await scope.close()

    assert explore(program, schedules=100).counterexample is None


async def overflowing(**options: object) -> tuple[Watching[int], list[int]]:
    """Four items at once, emitted on the loop's own thread, where there is room for two."""
    gate = asyncio.Event()
    begun: list[int] = []

    async def work(item: int) -> None:
        begun.append(item)
        await gate.wait()

    watching: Watching[int] = Watching()
    async with holdfast.Scope("s") as scope:
        mapping = map_async(scope, work, concurrency=1, buffer=1, **options)  # type: ignore[arg-type]
        reactivex.range(4).pipe(mapping).subscribe(watching)
        await asyncio.sleep(0)
        gate.set()
        await mapping.join()
    return watching, begun


def test_on_the_thread_of_a_loop_nobody_waits_and_the_stream_ends_with_an_overflow() -> None:
    watching, begun = asyncio.run(overflowing())
    assert begun == [0, 1]
    assert [*map(words, watching.outcomes)] == ["0 -> None", "1 -> None"]
    assert isinstance(watching.error, Overflow)
    assert "no room for 2: 2 are under way" in str(watching.error)
    assert "ops.subscribe_on" in str(watching.error)


def test_an_error_may_be_what_is_wanted() -> None:
    watching, begun = asyncio.run(overflowing(when_full="error"))
    assert begun == [0, 1]
    assert isinstance(watching.error, Overflow)
    assert "subscribe_on" not in str(watching.error)


def test_a_source_that_overflowed_is_let_go_though_some_items_are_still_at_work() -> None:
    async def main() -> None:
        gate = asyncio.Event()

        async def work(item: int) -> None:
            await gate.wait()

        watching: Watching[int] = Watching()
        source: Subject[int] = Subject()
        async with holdfast.Scope("s") as scope:
            mapping = map_async(scope, work, concurrency=1, buffer=0)
            source.pipe(mapping).subscribe(watching)
            source.on_next(0)
            source.on_next(1)
            assert not source.observers
            assert not watching.ended.is_set()
            gate.set()
            await mapping.join()
        assert isinstance(watching.error, Overflow)

    asyncio.run(main())


def test_what_is_dropped_is_shown_to_somebody() -> None:
    dropped: list[int] = []
    watching, _ = asyncio.run(overflowing(when_full=dropped.append))
    assert dropped == [2, 3]
    assert [outcome.item for outcome in watching.outcomes] == [0, 1]
    assert watching.completed


def test_nothing_is_dropped_aloud_once_the_stream_is_over() -> None:
    async def main() -> list[int]:
        dropped: list[int] = []
        async with holdfast.Scope("s") as scope:
            source: Subject[int] = Subject()
            mapping = map_async(scope, asyncio.sleep, when_full=dropped.append)
            inner = mapping(source)
            inner.subscribe().dispose()
            source.on_next(0)
            await mapping.join()
        return dropped

    assert asyncio.run(main()) == []


def test_a_room_that_is_closed_lets_everybody_go() -> None:
    room = Room(1)
    assert room.try_enter()
    looked = threading.Event()
    entered: list[bool] = []
    waiting = threading.Thread(target=lambda: entered.append(room.enter(looked.set)))
    waiting.start()
    assert looked.wait(10)  # so it waits
    room.close()
    waiting.join(10)
    assert entered == [False]
    assert not room.try_enter()
    assert not room.enter(pytest.fail)


def test_whoever_leaves_a_room_lets_one_in() -> None:
    room = Room(1)
    assert room.try_enter()
    looked = threading.Event()
    entered: list[bool] = []
    waiting = threading.Thread(target=lambda: entered.append(room.enter(looked.set)))
    waiting.start()
    assert looked.wait(10)
    room.leave()
    waiting.join(10)
    assert entered == [True]
    assert not room.try_enter()
