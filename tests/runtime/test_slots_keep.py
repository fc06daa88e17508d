"""A kept slot: fetched once, and its outcome goes to all who wait, to nobody twice. S4.6.

An error that none of them will get is the scope's; so is one whose last waiter went away after it
had come. Which waiter is cancelled, and when, is walked step by step.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest

from holdfast import Scope, SlotCancelled, Slots
from tests.runtime.slot_bouts import remains
from tests.runtime.workshop import Workshop, turns
from tests.stepping import Stepping, cancel_everywhere, run_on, run_stepping


class Fetch:
    """Something slow that is wanted once. It fails if it is told to."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.calls = 0

    async def __call__(self) -> int:
        self.calls += 1
        number = self.calls
        await turns(5)
        if self.error is not None:
            raise self.error
        return number


async def ended(*tasks: asyncio.Task[Any]) -> list[Any]:
    """What came of each: its result, its error, or that it was cancelled."""
    await asyncio.wait(tasks)
    return [
        "cancelled" if task.cancelled() else task.exception() or task.result() for task in tasks
    ]


def test_who_comes_second_joins_the_task_under_way(kind: str) -> None:
    """S4.6: one call, one result for all; the next one who asks after its end calls again."""

    async def main() -> None:
        scope = Scope("cache")
        slots = Slots(scope)
        fetch = Fetch()
        assert await asyncio.gather(*(slots.keep("page", fetch) for _ in range(5))) == [1] * 5
        assert await slots.keep("page", fetch) == 2
        await scope.close()

    run_on(kind, main())


def test_an_error_goes_to_all_who_wait_and_not_to_the_scope(kind: str) -> None:
    """S4.6, S4.7: the same error for each; with a note that says where the task was born."""

    async def main() -> None:
        async with Scope("cache") as scope:
            slots = Slots(scope)
            error = ValueError("no such page")
            fetch = Fetch(error)
            waiting = [asyncio.create_task(slots.keep("page", fetch)) for _ in range(3)]
            assert await ended(*waiting) == [error] * 3
            assert fetch.calls == 1
            assert not scope.closing
            (note,) = error.__notes__
            assert "Fetch.__call__" in note
            assert "test_slots_keep.py" in note

    run_on(kind, main())


@pytest.mark.parametrize("error", [None, ValueError("no such page")])
@pytest.mark.parametrize("victim", [0, 1, 2])
def test_others_who_wait_are_not_disturbed_when_one_is_cancelled(
    victim: int, error: Exception | None
) -> None:
    """S4.6: at each step, whether it was the first of them or not."""
    outcomes = set()

    async def program(stepping: Stepping) -> None:
        failures: list[BaseException] = []
        scope = Scope("cache", on_failure=failures.append)
        slots = Slots(scope)
        fetch = Fetch(error)
        waiting = [asyncio.create_task(slots.keep("page", fetch)) for _ in range(3)]
        stepping.victim(waiting[victim])
        results = await ended(*waiting)
        outcomes.add(results.pop(victim))
        assert results == [error or 1] * 2
        assert fetch.calls == 1
        assert failures == []
        await scope.close()
        assert remains(slots) == []

    for times in (1, 2):
        for _ in cancel_everywhere(program, times=times):
            pass
    assert outcomes == {"cancelled", error or 1}


def test_an_error_is_taken_by_somebody_whoever_goes_away_and_when() -> None:
    """S4.7: by those who wait, or else by the scope, and then once. Two waiters, each of them
    cancelled at any step or not at all; the last one also after the error has come."""
    seen = set()

    async def program(stepping: Stepping, second_leaves: int) -> None:
        failures: list[BaseException] = []
        scope = Scope("cache", on_failure=failures.append)
        slots = Slots(scope)
        error = ValueError("no such page")
        fetch = Fetch(error)
        first = stepping.victim(asyncio.create_task(slots.keep("page", fetch)))
        second = asyncio.create_task(slots.keep("page", fetch))
        steps = 0

        def leave() -> None:
            nonlocal steps
            steps += 1
            if steps == second_leaves:
                second.cancel()

        stepping.at_each_step(leave)
        results = await ended(first, second)
        await asyncio.sleep(1)
        assert fetch.calls <= 1
        taken = results.count(error)
        assert failures == ([error] if fetch.calls and not taken else [])
        seen.add((taken, len(failures)))
        await scope.close()
        assert remains(slots) == []

    for second_leaves in range(24):
        for _ in cancel_everywhere(partial(program, second_leaves=second_leaves)):
            pass
    # Nobody ever asked; both went away; one did; none did.
    assert seen == {(0, 0), (0, 1), (1, 0), (2, 0)}


@pytest.mark.parametrize("on_failure", ["cancel", "report"])
def test_an_error_whose_last_waiter_has_gone_is_told_to_the_loop(on_failure: Any) -> None:
    """S4.7: in the moment between the end of the task and the next step of who waits."""

    async def program(stepping: Stepping) -> str | None:
        told: list[dict[str, Any]] = []
        stepping.loop.set_exception_handler(lambda _, context: told.append(context))
        scope = Scope("cache", on_failure=on_failure)
        slots = Slots(scope)
        error = ValueError("no such page")
        waiter = stepping.victim(asyncio.create_task(slots.keep("page", Fetch(error))))
        (outcome,) = await ended(waiter)
        await asyncio.sleep(1)
        report = await scope.close()
        in_report = [ending.error for ending in report.failed]
        in_loop = [context["exception"] for context in told]
        if outcome is error:
            assert in_report == in_loop == []
        elif in_loop + in_report:
            assert in_loop + in_report == [error]
            assert error.__notes__
        return told[0]["message"] if told else None

    messages = set(cancel_everywhere(program))
    assert "nobody took the error of slot 'page'" in messages


def test_a_failure_handler_that_fails_does_not_swallow_the_cancel_of_the_last_waiter() -> None:
    """S4.7, S3.4: the waiter that was cancelled gets its cancel, and the loop hears of both."""

    async def program(stepping: Stepping) -> bool:
        told: list[dict[str, Any]] = []
        stepping.loop.set_exception_handler(lambda _, context: told.append(context))

        def broken(error: BaseException) -> None:
            raise OSError("disk full")

        scope = Scope("cache", on_failure=broken)
        slots = Slots(scope)
        error = ValueError("no such page")
        waiter = stepping.victim(asyncio.create_task(slots.keep("page", Fetch(error))))
        (outcome,) = await ended(waiter)
        assert outcome in ("cancelled", error)
        await asyncio.sleep(1)
        await scope.close()
        return bool(told)

    assert set(cancel_everywhere(program)) == {True, False}


def test_who_keeps_is_told_when_somebody_else_cancels_the_task() -> None:
    """S4.6: a cancel of the task is not one of those who wait for it."""

    async def program(stepping: Stepping) -> None:
        scope = Scope("cache")
        slots = Slots(scope)
        waiting = [asyncio.create_task(slots.keep("page", asyncio.sleep, 3600)) for _ in range(2)]
        await turns(3)
        assert await slots.cancel("page")
        first, second = await ended(*waiting)
        assert type(first) is type(second) is SlotCancelled
        assert "'sleep' of slot 'page', born at" in str(first)
        assert str(second).endswith("asks again")
        await scope.close()

    run_stepping(program)


@pytest.mark.parametrize("ending", ["cancel", "replace", "close"])
def test_a_kept_task_cancelled_at_any_step_answers_all_who_wait(ending: str) -> None:
    """S4.6: nobody waits for ever, and nobody takes the cancel for its own."""

    async def program(stepping: Stepping, after: int) -> None:
        failures: list[BaseException] = []
        scope = Scope("cache", on_failure=failures.append)
        slots = Slots(scope)
        shop = Workshop(slots, lambda: scope.tasks, "a")
        stepping.at_each_step(shop.check)
        waiting = [
            asyncio.create_task(slots.keep("a", shop.worker("lingering"), "a")) for _ in range(3)
        ]
        await turns(after)
        enders: dict[str, Callable[[], Awaitable[object]]] = {
            "cancel": lambda: slots.cancel("a"),
            "replace": lambda: slots.replace("a", shop.worker("brief"), "a"),
            "close": slots.close,
        }
        await enders[ending]()
        while not all(task.done() for task in waiting):
            await asyncio.sleep(1)
            await slots.close()
        assert {type(outcome).__name__ for outcome in await ended(*waiting)} <= {
            "SlotCancelled",
            "ScopeClosed",
            "int",
        }
        await scope.close()
        assert failures == []
        assert shop.violations + remains(slots) == []

    for after in range(6):
        run_stepping(partial(program, after=after))


def test_a_task_on_its_way_out_is_not_joined() -> None:
    """S4.6: its result will never come. The new one starts when it has ended."""

    async def program(stepping: Stepping, after: int, by: str) -> None:
        scope = Scope("cache")
        slots = Slots(scope)
        shop = Workshop(slots, lambda: scope.tasks, "a")
        stepping.at_each_step(shop.check)
        slots.reject("a", shop.worker("lingering"), "a")
        await turns(1)
        if by == "cancel":
            ender: asyncio.Task[Any] = asyncio.create_task(slots.cancel("a"))
        else:
            ender = asyncio.create_task(slots.replace("a", shop.worker("brief"), "a"))
        await turns(1 + after)
        waiting = [
            asyncio.create_task(slots.keep("a", shop.worker("brief"), "a")) for _ in range(3)
        ]
        # Those who replace go first, and who keeps joins what they have started.
        assert await ended(*waiting) == [1] * 3
        await ended(ender)
        await scope.close()
        assert shop.violations + remains(slots) == []

    for after in range(4):
        for by in ("cancel", "replace"):
            run_stepping(partial(program, after=after, by=by))


def test_who_keeps_may_join_a_task_that_was_started_otherwise(kind: str) -> None:
    """S4.6: and then takes its error, which on_failure="report" need not report."""

    async def main() -> None:
        scope = Scope("cache", on_failure="report")
        slots = Slots(scope)
        await slots.replace("page", Fetch())
        assert await slots.keep("page", Fetch()) == 1
        error = ValueError("no such page")
        slots.reject("page", Fetch(error))
        waiting = [asyncio.create_task(slots.keep("page", Fetch())) for _ in range(2)]
        assert await ended(*waiting) == [error] * 2
        await scope.close()

    run_on(kind, main())


def test_a_kept_task_that_nobody_waits_for_any_more_runs_on() -> None:
    """S4.6, S4.7: its error, if it comes to that, is the scope's."""

    async def program(stepping: Stepping, error: Exception | None) -> list[BaseException]:
        failures: list[BaseException] = []
        scope = Scope("cache", on_failure=failures.append)
        slots = Slots(scope)
        fetch = Fetch(error)
        waiter = asyncio.create_task(slots.keep("page", fetch))
        await turns(2)
        waiter.cancel()
        assert await ended(waiter) == ["cancelled"]
        assert "page" in slots
        await asyncio.sleep(1)
        assert "page" not in slots
        await scope.close()
        return failures

    error = ValueError("no such page")
    assert run_stepping(lambda stepping: program(stepping, None)) == []
    assert run_stepping(lambda stepping: program(stepping, error)) == [error]


def test_a_kept_task_that_fails_in_its_clean_up_is_in_the_report_and_its_waiter_is_told() -> None:
    """S4.7: the counts are true; the error of a task is not turned into a success."""

    async def program(stepping: Stepping) -> None:
        scope = Scope("cache")
        slots = Slots(scope)
        shop = Workshop(slots, lambda: scope.tasks, "a")
        waiter = asyncio.create_task(slots.keep("a", shop.worker("clumsy"), "a"))
        await turns(3)
        report = await slots.close()
        (error,) = await ended(waiter)
        assert isinstance(error, OSError)
        assert report.cleanup_errors == (error,)
        assert not report.finished
        await scope.close()

    run_stepping(program)


def test_a_fatal_error_in_a_kept_task_is_nobody_s_to_take() -> None:
    """KeyboardInterrupt and SystemExit go through the loop, and close the scope."""

    async def interrupted() -> None:
        await asyncio.sleep(0)
        raise KeyboardInterrupt

    async def main(slots: Slots) -> None:
        await slots.keep("page", interrupted)

    loop = asyncio.new_event_loop()
    scope = Scope("cache")
    slots = Slots(scope)
    waiter = loop.create_task(main(slots))
    with pytest.raises(KeyboardInterrupt):
        loop.run_until_complete(waiter)
    assert "page" not in slots
    assert scope.closing
    with pytest.raises(KeyboardInterrupt):
        loop.run_until_complete(waiter)
    report = loop.run_until_complete(scope.close())
    assert [type(ending.error) for ending in report.failed] == [KeyboardInterrupt]
    assert remains(slots) == []
    loop.close()
