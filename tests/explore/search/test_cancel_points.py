"""Who is cancelled, when, and how much of that was tried."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from handfast._explore.search.plan import Cancel, Plan, Settings
from handfast._explore.search.run import run
from handfast.explore import Exploration, explore, victim

Program = Callable[[], Coroutine[Any, Any, None]]


def sweep(program: Program, **options: Any) -> Exploration:
    return explore(program, cancel=options.pop("cancel", True), schedules=2_000, **options)


def test_every_point_of_a_victim_is_cancelled_once() -> None:
    async def program() -> None:
        await victim(asyncio.sleep(0.01))

    exploration = sweep(program)
    assert exploration.complete
    # Before its first step, while it sleeps, when the timer is due, and when its sleep is over.
    assert exploration.coverage.points_seen == 4
    assert exploration.coverage.points_cancelled == 4


def test_the_window_after_the_future_is_done_and_before_its_waiter_resumes_is_one_of_them() -> None:
    async def program() -> None:
        future = asyncio.get_running_loop().create_future()
        lost: list[bool] = []

        async def waiting() -> None:
            try:
                await future
            except asyncio.CancelledError:
                lost.append(future.done() and not future.cancelled())
                raise

        waiter = victim(waiting())
        await asyncio.sleep(0.01)
        if not future.done():
            future.set_result(None)
        await waiter
        assert lost != [True], "the result came and was lost"

    exploration = sweep(program)
    assert exploration.counterexample is not None
    assert len(exploration.counterexample.departures) == 1


def test_without_victims_each_task_of_the_program_is_tried_and_the_program_itself_is_not() -> None:
    cancelled: set[str] = set()

    async def program() -> None:
        async def named(name: str) -> None:
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                cancelled.add(name)
                raise

        both = [asyncio.create_task(named("one")), asyncio.ensure_future(named("two"))]
        await asyncio.wait(both)

    assert sweep(program).counterexample is None
    assert cancelled == {"one", "two"}


def test_a_cancel_that_reaches_the_program_by_awaiting_the_victim_is_no_failure() -> None:
    async def program() -> None:
        first = asyncio.create_task(asyncio.sleep(0.01))
        second = asyncio.create_task(asyncio.sleep(60))
        await first
        second.cancel()
        await asyncio.wait([second])

    # The second task is left over only because the cancel of the first ended the program.
    assert sweep(program).counterexample is None


def test_a_cancelled_error_that_was_not_injected_is_a_failure() -> None:
    async def program() -> None:
        raise asyncio.CancelledError

    exploration = explore(program)
    assert exploration.counterexample is not None
    assert exploration.counterexample.code == "HF443"


def test_main_cancels_the_program_and_what_it_leaves_behind_is_the_verdict() -> None:
    async def careless() -> None:
        task = asyncio.create_task(asyncio.sleep(60))
        await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.wait([task])

    async def careful() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.sleep(0.01))

    left = sweep(careless, cancel="main").counterexample
    assert left is not None
    assert left.code == "HF102"
    assert sweep(careful, cancel="main").counterexample is None


def test_a_second_cancel_falls_into_the_clean_up() -> None:
    async def program() -> None:
        released: list[bool] = []
        entered: list[bool] = []

        async def work() -> None:
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                entered.append(True)
                await asyncio.sleep(0.01)
                released.append(True)
                raise

        await victim(work())
        assert released == entered, "the clean-up was cut short"

    assert sweep(program).counterexample is None
    twice = sweep(program, cancel="double").counterexample
    assert twice is not None
    assert len(twice.departures) == 2


def test_cancel_and_completion_may_fall_into_one_tick() -> None:
    async def program() -> None:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()

        async def waiting() -> None:
            await future

        waiter = victim(waiting())

        def answer() -> None:
            if not future.done():
                future.set_result(None)

        loop.call_later(0.01, answer)
        outcome = await waiter
        await asyncio.sleep(0.02)
        assert not (outcome.cancelled and not future.cancelled())

    assert sweep(program).counterexample is not None


def test_a_cancel_without_a_task_does_not_count() -> None:
    async def program() -> None:
        await asyncio.sleep(0.01)

    for cancel in (Cancel(0, 7), Cancel(99, 0)):
        record = run(program, Plan(cancels=(cancel,)), Settings(cancel="main"))
        assert record.cancelled == 0
        assert record.verdict is None


def test_who_is_no_victim_is_not_cancelled_though_it_has_the_number_of_one() -> None:
    async def program() -> None:
        named = victim(asyncio.sleep(0.01))
        other = asyncio.create_task(asyncio.sleep(0.01))
        await named
        await other

    # The first task is the program itself; another schedule may have given a victim this number.
    for instant in range(3):
        record = run(program, Plan(cancels=(Cancel(instant, 2),)), Settings(cancel="tasks"))
        assert record.cancelled == 0
    record = run(program, Plan(cancels=(Cancel(1, 1),)), Settings(cancel="tasks"))
    assert record.cancelled == 1


def test_a_victim_without_an_explorer_is_a_task_like_any_other() -> None:
    async def program() -> tuple[Any, ...]:
        async def fails() -> None:
            raise ValueError

        async def gives_up() -> None:
            raise asyncio.CancelledError

        return (
            await victim(asyncio.sleep(0, "value")),
            await victim(fails()),
            await victim(gives_up()),
        )

    finished, failed, cancelled = asyncio.run(program())
    assert (finished.finished, finished.value, finished.error) == (True, "value", None)
    assert failed.failed
    assert isinstance(failed.error, ValueError)
    assert cancelled.cancelled
    assert [o.finished + o.failed + o.cancelled for o in (finished, failed, cancelled)] == [1, 1, 1]


def test_awaiting_a_victim_passes_the_own_cancel_on_and_waits_for_the_end() -> None:
    async def program() -> None:
        ended: list[bool] = []

        async def slow_to_end() -> None:
            try:
                await asyncio.sleep(60)
            finally:
                await asyncio.sleep(0.01)
                ended.append(True)

        async def waiter() -> None:
            await victim(slow_to_end())

        task = asyncio.create_task(waiter())
        await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        assert ended == [True]

    assert explore(program).counterexample is None


def test_before_3_12_the_cancel_that_wait_for_drops_is_not_held_against_the_program() -> None:
    async def program() -> None:
        queue: asyncio.Queue[str] = asyncio.Queue()

        async def take() -> None:
            await asyncio.wait_for(queue.get(), 1)

        async def give() -> None:
            await asyncio.sleep(0.01)
            queue.put_nowait("value")

        giving = asyncio.create_task(give())
        await victim(take())
        await giving

    assert sweep(program).counterexample is None
