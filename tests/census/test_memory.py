"""Memory by the line that allocated it (HF761)."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import Iterator

import pytest

from handfast._census import recording, take
from handfast._census.kinds import memory
from handfast._census.kinds.memory import grown, sizes, tracing

HELD: list[bytes] = []


@pytest.fixture(autouse=True)
def emptied() -> Iterator[None]:
    yield
    HELD.clear()


def hold(size: int) -> None:
    HELD.append(bytes(size))  # allocated here


HERE = (__file__, hold.__code__.co_firstlineno + 1)


def test_one_snapshot_lists_nothing_and_says_so() -> None:
    hold(100_000)
    census = take(["memory"])
    assert census.objects == ()
    assert census.not_checked == (
        "memory growth is only seen over rounds: use handfast.leaks.stress",
    )


def test_without_tracing_there_are_no_sizes() -> None:
    assert not tracemalloc.is_tracing()
    assert sizes() == {}


def test_what_has_grown_while_tracing_is_listed_with_its_line() -> None:
    with tracing():
        hold(100_000)
        census = take(["memory"])
    [live] = [t for t in census.objects if t.target == HERE]
    assert census.not_checked == ()
    assert (live.check, live.code) == ("memory", "HF761")
    assert live.size >= 100_000
    assert live.what == f"{live.size / 1024:.1f} KiB more, {live.size / 1024:.1f} KiB in all"
    [line] = live.waiting_at()
    assert line == f"{HERE[0]}:{HERE[1]}: HELD.append(bytes(size))  # allocated here"
    assert live.key == ("memory", *HERE)
    assert not live.ended()


def test_what_was_freed_has_not_grown() -> None:
    with tracing():
        hold(100_000)
        HELD.clear()
        places = [live.target for live in memory.grown_lines()]
    assert HERE not in places


def test_tracing_stops_only_if_it_was_started_here() -> None:
    with tracing():
        with tracing():
            assert tracemalloc.is_tracing()
        assert tracemalloc.is_tracing()
        assert memory._before is not None
    assert not tracemalloc.is_tracing()
    tracemalloc.start()
    try:
        with tracing():
            pass
        assert tracemalloc.is_tracing()
    finally:
        tracemalloc.stop()


def test_memory_of_a_library_counts_for_the_line_that_called_it() -> None:
    import json

    with tracing():
        before = sizes()
        HELD.append(json.dumps(["x" * 50_000]).encode())  # json allocates it
        after = sizes()
    assert {live.target[0] for live in grown(before, after)} == {__file__}


def test_memory_of_a_snapshot_is_not_counted() -> None:
    async def main() -> int:
        tasks = [asyncio.create_task(asyncio.sleep(60)) for _ in range(50)]
        before = sizes()
        # Of this loop only: a test before this one may have left a task on another.
        loop = asyncio.get_running_loop()
        kept = [take(["tasks"], loop=loop) for _ in range(10)]
        after = sizes()
        assert [len(each.objects) for each in kept] == [len(tasks) + 1] * 10
        return sum(live.size for live in grown(before, after))

    # Without a recording, a snapshot searches the whole heap for event loops since 3.14.
    with recording(), tracing():
        assert asyncio.run(main()) < 10_000


def test_growth_is_compared_line_by_line_the_most_first() -> None:
    before = {("a.py", 1): 100, ("a.py", 2): 500, ("b.py", 1): 10}
    after = {("a.py", 1): 150, ("a.py", 2): 400, ("b.py", 1): 10, ("c.py", 9): 2048}
    objects = list(grown(before, after))
    assert [(live.target, live.size) for live in objects] == [
        (("c.py", 9), 2048),
        (("a.py", 1), 50),
    ]
    assert objects[1].what == "50 bytes more, 150 bytes in all"
