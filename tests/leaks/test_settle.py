"""Settling: what is about to end gets time, and there is no wait if nothing has leaked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from handfast._census import LiveObject
from handfast._leaks import settle as settling
from handfast._leaks.settle import run_steps, run_steps_here
from handfast._leaks.settle import settle as steps


def settle(look: Callable[[], list[LiveObject]], grace: float) -> list[LiveObject]:
    return run_steps(steps(look, grace))


def leaked(
    loop: asyncio.AbstractEventLoop | None = None, ends_by_itself: bool = False
) -> LiveObject:
    """A live object that never ends."""
    return LiveObject(
        check="generators",
        code="HF731",
        key=object(),
        what="a leak",
        ended=lambda: False,
        loop=loop,
        ends_by_itself=ends_by_itself,
    )


def gone_after(looks: int, live: LiveObject) -> Callable[[], list[LiveObject]]:
    seen = 0

    def look() -> list[LiveObject]:
        nonlocal seen
        seen += 1
        return [live] if seen <= looks else []

    return look


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    pauses: list[float] = []
    monkeypatch.setattr(settling, "_sleep", pauses.append)
    return pauses


def test_there_is_no_wait_if_nothing_has_leaked(slept: list[float]) -> None:
    assert settle(list, grace=60) == []
    assert slept == []


def test_without_a_grace_the_first_look_decides(slept: list[float]) -> None:
    live = leaked()
    assert settle(lambda: [live], grace=0) == [live]
    assert slept == []


def test_turns_that_take_no_time_come_first(slept: list[float]) -> None:
    assert settle(gone_after(3, leaked()), grace=60) == []
    assert slept == [0.0, 0.0, 0.0]


def test_the_grace_is_given_in_full_and_no_more(slept: list[float]) -> None:
    live = leaked()
    assert settle(lambda: [live], grace=0.3) == [live]
    assert sum(slept) == pytest.approx(0.3)


def test_what_ends_by_itself_is_no_leak_after_the_grace(slept: list[float]) -> None:
    assert settle(lambda: [leaked(ends_by_itself=True)], grace=0.1) == []


def test_an_idle_loop_runs_meanwhile() -> None:
    loop = asyncio.new_event_loop()
    task = loop.create_task(asyncio.sleep(0))
    try:
        assert settle(lambda: [] if task.done() else [leaked(loop)], grace=10) == []
        assert task.done()
    finally:
        loop.close()


def test_time_passes_also_if_the_loop_stops_itself(slept: list[float]) -> None:
    loop = asyncio.new_event_loop()
    loop.call_soon(loop.stop)
    live = leaked(loop)
    try:
        assert settle(gone_after(1, live), grace=1) == []
    finally:
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()


def test_on_the_running_loop_the_same_holds() -> None:
    async def main() -> None:
        task = asyncio.create_task(asyncio.sleep(0))
        assert await run_steps_here(steps(lambda: [] if task.done() else [leaked()], 10)) == []
        live = leaked()
        assert await run_steps_here(steps(lambda: [live], 0.002)) == [live]

    asyncio.run(main())


def test_a_loop_that_stops_itself_is_left_without_a_task_of_the_detector() -> None:
    loop = asyncio.new_event_loop()
    failed: list[object] = []
    loop.set_exception_handler(lambda loop, context: failed.append(context))
    for _ in range(3):
        loop.call_soon(loop.stop)
        settle(gone_after(2, leaked(loop)), 0.001)
    assert asyncio.all_tasks(loop) == set()
    loop.close()
    assert failed == []


@pytest.mark.parametrize("grace", [0.05, 0.3])
def test_a_clock_that_a_test_has_stopped_does_not_stop_the_wait(
    monkeypatch: pytest.MonkeyPatch, slept: list[float], grace: float
) -> None:
    loop = asyncio.new_event_loop()
    monkeypatch.setattr("time.monotonic", lambda: 1e12)
    live = leaked(loop)
    assert settle(lambda: [live], grace) == [live]
    waited = [seconds for seconds in slept if seconds > settling._TICK]
    assert sum(waited) == pytest.approx(grace)
    monkeypatch.undo()
    loop.close()


def test_a_stopped_clock_does_not_stop_the_wait_on_the_running_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def main() -> list[LiveObject]:
        monkeypatch.setattr("time.monotonic", lambda: 1e12)
        live = [leaked()]
        found = await run_steps_here(steps(lambda: live, 0.01))
        monkeypatch.undo()
        return found

    assert len(asyncio.run(main())) == 1
