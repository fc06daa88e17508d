"""Time to settle: what is on its way out gets it, and nobody waits where nothing is left."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable

import pytest

from holdfast.census import Thing
from holdfast.leaks import settling
from holdfast.leaks.settling import settle, settle_here


class Left(Thing):
    """Something that is there as long as it is asked to be."""

    check = "generators"

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None, passes: bool = False) -> None:
        super().__init__(None, loop)
        self._passes = passes

    @property
    def key(self) -> Hashable:
        return ("left", id(self))

    @property
    def passing(self) -> bool:
        return self._passes


def gone_after(looks: int, thing: Thing) -> Callable[[], list[Thing]]:
    seen = 0

    def look() -> list[Thing]:
        nonlocal seen
        seen += 1
        return [thing] if seen <= looks else []

    return look


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    pauses: list[float] = []
    monkeypatch.setattr(settling, "_sleep", pauses.append)
    return pauses


def test_where_nothing_is_left_nobody_waits(slept: list[float]) -> None:
    assert settle(list, grace=60) == []
    assert slept == []


def test_without_a_grace_the_first_look_decides(slept: list[float]) -> None:
    thing = Left()
    assert settle(lambda: [thing], grace=0) == [thing]
    assert slept == []


def test_turns_that_take_no_time_come_first(slept: list[float]) -> None:
    assert settle(gone_after(3, Left()), grace=60) == []
    assert slept == [0.0, 0.0, 0.0]


def test_the_grace_is_given_in_full_and_no_more(slept: list[float]) -> None:
    thing = Left()
    assert settle(lambda: [thing], grace=0.3) == [thing]
    assert sum(slept) == pytest.approx(0.3)


def test_what_passes_by_itself_is_not_told_after_the_grace(slept: list[float]) -> None:
    assert settle(lambda: [Left(passes=True)], grace=0.1) == []


def test_an_idle_loop_runs_meanwhile() -> None:
    loop = asyncio.new_event_loop()
    task = loop.create_task(asyncio.sleep(0))
    try:
        assert settle(lambda: [] if task.done() else [Left(loop)], grace=10) == []
        assert task.done()
    finally:
        loop.close()


def test_a_loop_that_stops_itself_is_waited_for_all_the_same(slept: list[float]) -> None:
    loop = asyncio.new_event_loop()
    loop.call_soon(loop.stop)
    thing = Left(loop)
    try:
        assert settle(gone_after(1, thing), grace=1) == []
    finally:
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()


def test_on_the_running_loop_the_same_holds() -> None:
    async def main() -> None:
        task = asyncio.create_task(asyncio.sleep(0))
        assert await settle_here(lambda: [] if task.done() else [Left()], grace=10) == []
        thing = Left()
        assert await settle_here(lambda: [thing], grace=0.002) == [thing]

    asyncio.run(main())
