"""Memory by the line that asked for it (HF761): told over rounds, never by one look."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator

import pytest

from holdfast.census import memory, take
from holdfast.census.memory import Grown, grown, sizes, watching

HELD: list[bytes] = []


@pytest.fixture(autouse=True)
def emptied() -> Iterator[None]:
    yield
    HELD.clear()


def hold(size: int) -> None:
    HELD.append(bytes(size))  # asked for here


HERE = (__file__, hold.__code__.co_firstlineno + 1)


def test_one_look_tells_nothing_and_says_so() -> None:
    hold(100_000)
    census = take(["memory"])
    assert census.things == ()
    assert census.not_checked == (
        "memory growth is only seen over rounds: use holdfast.leaks.stress",
    )


def test_without_tracing_there_are_no_sizes() -> None:
    assert not tracemalloc.is_tracing()
    assert sizes() == {}


def test_what_has_grown_while_somebody_watched_is_told_with_its_line() -> None:
    with watching():
        hold(100_000)
        census = take(["memory"])
    [thing] = [t for t in census.things if isinstance(t, Grown) and t.place == HERE]
    assert census.not_checked == ()
    assert (thing.check, thing.code) == ("memory", "HF761")
    assert thing.growth == thing.size >= 100_000
    assert thing.what == f"{thing.size / 1024:.1f} KiB more, {thing.size / 1024:.1f} KiB in all"
    [line] = thing.stands()
    assert line == f"{HERE[0]}:{HERE[1]}: HELD.append(bytes(size))  # asked for here"
    assert thing.key == ("memory", *HERE)
    assert not thing.over()


def test_what_was_given_back_has_not_grown() -> None:
    with watching():
        hold(100_000)
        HELD.clear()
        places = [thing.place for thing in memory.all_grown()]
    assert HERE not in places


def test_watching_stops_the_tracing_that_it_began_and_no_other() -> None:
    with watching():
        with watching():
            assert tracemalloc.is_tracing()
        assert tracemalloc.is_tracing()
        assert memory._before is not None
    assert not tracemalloc.is_tracing()
    tracemalloc.start()
    try:
        with watching():
            pass
        assert tracemalloc.is_tracing()
    finally:
        tracemalloc.stop()


def test_the_line_of_the_program_stands_for_the_library_that_it_calls() -> None:
    import json

    with watching():
        before = sizes()
        HELD.append(json.dumps(["x" * 50_000]).encode())  # json asks for it
        after = sizes()
    assert {thing.place[0] for thing in grown(before, after)} == {__file__}


def test_what_the_census_itself_notes_is_not_the_programs() -> None:
    with watching():
        before = sizes()
        kept = [take(["tasks", "timers"]) for _ in range(100)]
        after = sizes()
    assert len(kept) == 100
    assert sum(thing.growth for thing in grown(before, after)) < 10_000


def test_growth_is_compared_line_by_line_the_most_first() -> None:
    before = {("a.py", 1): 100, ("a.py", 2): 500, ("b.py", 1): 10}
    after = {("a.py", 1): 150, ("a.py", 2): 400, ("b.py", 1): 10, ("c.py", 9): 2048}
    things = list(grown(before, after))
    assert [(thing.place, thing.growth, thing.size) for thing in things] == [
        (("c.py", 9), 2048, 2048),
        (("a.py", 1), 50, 150),
    ]
    assert things[1].what == "50 bytes more, 150 bytes in all"
