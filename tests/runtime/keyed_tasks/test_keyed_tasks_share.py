"""A shared key: fetched once, and its outcome goes to all who wait, to nobody twice. S4.6.

An error that none of them will get is the scope's; so is one whose last waiter went away after it
had come. Which waiter is cancelled, and when, is walked step by step.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from handfast import KeyedTasks, Scope
from handfast.errors import KeyCancelled
from handfast.types import TaskEnd
from tests.runtime.keyed_tasks.random_sequences import remains
from tests.runtime.scope.workshop import Workshop, turns
from tests.support.failures import errors_into
from tests.support.stepping import Stepping, cancel_everywhere, run_on, run_stepping


class Fetch:
    """Something slow that is wanted once. It fails on request."""

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
        keyed = KeyedTasks(scope)
        fetch = Fetch()
        assert await asyncio.gather(*(keyed.share("page", fetch) for _ in range(5))) == [1] * 5
        assert await keyed.share("page", fetch) == 2
        await scope.close()

    run_on(kind, main())


def test_an_error_is_raised_in_all_waiters_and_not_to_the_scope(kind: str) -> None:
    """S4.6, S4.7: the same error for each; with a note that names the origin of the task."""

    async def main() -> None:
        async with Scope("cache") as scope:
            keyed = KeyedTasks(scope)
            error = ValueError("no such page")
            fetch = Fetch(error)
            waiting = [asyncio.create_task(keyed.share("page", fetch)) for _ in range(3)]
            assert await ended(*waiting) == [error] * 3
            assert fetch.calls == 1
            assert not scope.closing
            (note,) = error.__notes__
            assert "Fetch.__call__" in note
            assert Path(__file__).name in note

    run_on(kind, main())


@pytest.mark.parametrize("error", [None, ValueError("no such page")])
@pytest.mark.parametrize("victim", [0, 1, 2])
def test_other_waiters_are_not_affected_when_one_is_cancelled(
    victim: int, error: Exception | None
) -> None:
    """S4.6: at each step, whether it was the first of them or not."""
    outcomes = set()

    async def program(stepping: Stepping) -> None:
        failures: list[BaseException] = []
        scope = Scope("cache", on_failure=errors_into(failures))
        keyed = KeyedTasks(scope)
        fetch = Fetch(error)
        waiting = [asyncio.create_task(keyed.share("page", fetch)) for _ in range(3)]
        stepping.victim(waiting[victim])
        results = await ended(*waiting)
        outcomes.add(results.pop(victim))
        assert results == [error or 1] * 2
        assert fetch.calls == 1
        assert failures == []
        await scope.close()
        assert remains(keyed) == []

    for times in (1, 2):
        for _ in cancel_everywhere(program, times=times):
            pass
    assert outcomes == {"cancelled", error or 1}


def test_an_error_is_raised_somewhere_whichever_waiter_leaves() -> None:
    """S4.7: by those who wait, or else by the scope, and then once. Two waiters, each of them
    cancelled at any step or not at all; the last one also after the error has come."""
    seen = set()

    async def program(stepping: Stepping, second_leaves: int) -> None:
        failures: list[BaseException] = []
        scope = Scope("cache", on_failure=errors_into(failures))
        keyed = KeyedTasks(scope)
        error = ValueError("no such page")
        fetch = Fetch(error)
        first = stepping.victim(asyncio.create_task(keyed.share("page", fetch)))
        second = asyncio.create_task(keyed.share("page", fetch))
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
        assert remains(keyed) == []

    for second_leaves in range(24):
        for _ in cancel_everywhere(partial(program, second_leaves=second_leaves)):
            pass
    # No caller; both cancelled; one; none.
    assert seen == {(0, 0), (0, 1), (1, 0), (2, 0)}


@pytest.mark.parametrize("on_failure", ["cancel", "report"])
def test_an_error_whose_last_waiter_has_gone_is_reported_to_the_loop(on_failure: Any) -> None:
    """S4.7: in the moment between the end of the task and the next step of who waits."""

    async def program(stepping: Stepping) -> str | None:
        reported: list[dict[str, Any]] = []
        stepping.loop.set_exception_handler(lambda _, context: reported.append(context))
        scope = Scope("cache", on_failure=on_failure)
        keyed = KeyedTasks(scope)
        error = ValueError("no such page")
        waiter = stepping.victim(asyncio.create_task(keyed.share("page", Fetch(error))))
        (outcome,) = await ended(waiter)
        await asyncio.sleep(1)
        report = await scope.close()
        in_report = [ending.error for ending in report.failed]
        in_loop = [context["exception"] for context in reported]
        if outcome is error:
            assert in_report == in_loop == []
        elif in_loop + in_report:
            assert in_loop + in_report == [error]
            assert error.__notes__
        return reported[0]["message"] if reported else None

    messages = set(cancel_everywhere(program))
    assert "no caller got the error of key 'page'" in messages


def test_a_failure_handler_that_fails_does_not_swallow_the_cancel_of_the_last_waiter() -> None:
    """S4.7, S3.4: the waiter that was cancelled gets its cancel, and the loop hears of both."""

    async def program(stepping: Stepping) -> bool:
        reported: list[dict[str, Any]] = []
        stepping.loop.set_exception_handler(lambda _, context: reported.append(context))

        def broken(end: TaskEnd) -> None:
            raise OSError("disk full")

        scope = Scope("cache", on_failure=broken)
        keyed = KeyedTasks(scope)
        error = ValueError("no such page")
        waiter = stepping.victim(asyncio.create_task(keyed.share("page", Fetch(error))))
        (outcome,) = await ended(waiter)
        assert outcome in ("cancelled", error)
        await asyncio.sleep(1)
        await scope.close()
        return bool(reported)

    assert set(cancel_everywhere(program)) == {True, False}


def test_share_raises_when_other_code_cancels_the_task() -> None:
    """S4.6: a cancel of the task is not one of those who wait for it."""

    async def program(stepping: Stepping) -> None:
        scope = Scope("cache")
        keyed = KeyedTasks(scope)
        waiting = [asyncio.create_task(keyed.share("page", asyncio.sleep, 3600)) for _ in range(2)]
        await turns(3)
        assert await keyed.cancel("page")
        first, second = await ended(*waiting)
        assert type(first) is type(second) is KeyCancelled
        assert "'sleep' of key 'page', created at" in str(first)
        assert str(second).endswith("call share() again if you still need one")
        await scope.close()

    run_stepping(program)


@pytest.mark.parametrize("ending", ["cancel", "replace", "close"])
def test_a_shared_task_cancelled_at_any_step_resolves_all_waiters(ending: str) -> None:
    """S4.6: nobody waits for ever, and nobody takes the cancel for its own."""

    async def program(stepping: Stepping, after: int) -> None:
        failures: list[BaseException] = []
        scope = Scope("cache", on_failure=errors_into(failures))
        keyed = KeyedTasks(scope)
        shop = Workshop(keyed, lambda: scope.tasks, "a")
        stepping.at_each_step(shop.check)
        waiting = [
            asyncio.create_task(keyed.share("a", shop.worker("lingering"), "a")) for _ in range(3)
        ]
        await turns(after)
        enders: dict[str, Callable[[], Awaitable[object]]] = {
            "cancel": lambda: keyed.cancel("a"),
            "replace": lambda: keyed.replace("a", shop.worker("brief"), "a"),
            "close": keyed.close,
        }
        await enders[ending]()
        while not all(task.done() for task in waiting):
            await asyncio.sleep(1)
            await keyed.close()
        assert {type(outcome).__name__ for outcome in await ended(*waiting)} <= {
            "KeyCancelled",
            "ScopeClosed",
            "int",
        }
        await scope.close()
        assert failures == []
        assert shop.violations + remains(keyed) == []

    for after in range(6):
        run_stepping(partial(program, after=after))


def test_a_task_on_its_way_out_is_not_joined() -> None:
    """S4.6: its result will never come. The new one starts when it has ended."""

    async def program(stepping: Stepping, after: int, by: str) -> None:
        scope = Scope("cache")
        keyed = KeyedTasks(scope)
        shop = Workshop(keyed, lambda: scope.tasks, "a")
        stepping.at_each_step(shop.check)
        keyed.start("a", shop.worker("lingering"), "a")
        await turns(1)
        if by == "cancel":
            ender: asyncio.Task[Any] = asyncio.create_task(keyed.cancel("a"))
        else:
            ender = asyncio.create_task(keyed.replace("a", shop.worker("brief"), "a"))
        await turns(1 + after)
        waiting = [
            asyncio.create_task(keyed.share("a", shop.worker("brief"), "a")) for _ in range(3)
        ]
        # Those who replace go first, and who keeps joins what they have started.
        assert await ended(*waiting) == [1] * 3
        await ended(ender)
        await scope.close()
        assert shop.violations + remains(keyed) == []

    for after in range(4):
        for by in ("cancel", "replace"):
            run_stepping(partial(program, after=after, by=by))


def test_who_keeps_may_join_a_task_that_was_started_otherwise(kind: str) -> None:
    """S4.6: and then takes its error, which on_failure="report" need not report."""

    async def main() -> None:
        scope = Scope("cache", on_failure="report")
        keyed = KeyedTasks(scope)
        await keyed.replace("page", Fetch())
        assert await keyed.share("page", Fetch()) == 1
        error = ValueError("no such page")
        keyed.start("page", Fetch(error))
        waiting = [asyncio.create_task(keyed.share("page", Fetch())) for _ in range(2)]
        assert await ended(*waiting) == [error] * 2
        await scope.close()

    run_on(kind, main())


def test_a_shared_task_without_waiters_runs_on() -> None:
    """S4.6, S4.7: its error, if it comes to that, is the scope's."""

    async def program(stepping: Stepping, error: Exception | None) -> list[BaseException]:
        failures: list[BaseException] = []
        scope = Scope("cache", on_failure=errors_into(failures))
        keyed = KeyedTasks(scope)
        fetch = Fetch(error)
        waiter = asyncio.create_task(keyed.share("page", fetch))
        await turns(2)
        waiter.cancel()
        assert await ended(waiter) == ["cancelled"]
        assert "page" in keyed
        await asyncio.sleep(1)
        assert "page" not in keyed
        await scope.close()
        return failures

    error = ValueError("no such page")
    assert run_stepping(lambda stepping: program(stepping, None)) == []
    assert run_stepping(lambda stepping: program(stepping, error)) == [error]


def test_a_shared_task_that_fails_in_its_clean_up_is_in_the_report_and_in_its_waiter() -> None:
    """S4.7: the counts are true; the error of a task is not turned into a success."""

    async def program(stepping: Stepping) -> None:
        scope = Scope("cache")
        keyed = KeyedTasks(scope)
        shop = Workshop(keyed, lambda: scope.tasks, "a")
        waiter = asyncio.create_task(keyed.share("a", shop.worker("clumsy"), "a"))
        await turns(3)
        report = await keyed.close()
        (error,) = await ended(waiter)
        assert isinstance(error, OSError)
        assert report.cleanup_errors == (error,)
        assert not report.finished
        await scope.close()

    run_stepping(program)


def test_a_fatal_error_in_a_shared_task_is_not_for_the_waiters() -> None:
    """KeyboardInterrupt and SystemExit go through the loop, and close the scope."""

    async def interrupted() -> None:
        await asyncio.sleep(0)
        raise KeyboardInterrupt

    async def main(keyed: KeyedTasks) -> None:
        await keyed.share("page", interrupted)

    loop = asyncio.new_event_loop()
    scope = Scope("cache")
    keyed = KeyedTasks(scope)
    waiter = loop.create_task(main(keyed))
    with pytest.raises(KeyboardInterrupt):
        loop.run_until_complete(waiter)
    assert "page" not in keyed
    assert scope.closing
    with pytest.raises(KeyboardInterrupt):
        loop.run_until_complete(waiter)
    report = loop.run_until_complete(scope.close())
    assert [type(ending.error) for ending in report.failed] == [KeyboardInterrupt]
    assert remains(keyed) == []
    loop.close()
