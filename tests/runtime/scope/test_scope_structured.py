"""A scope as `async with`: children are joined, failures surface as a group, nothing leaks."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import handfast
from tests.support.stepping import Stepping, cancel_everywhere, run_on, run_stepping


async def fail(error: BaseException, after: float = 0) -> None:
    await asyncio.sleep(after)
    raise error


async def forever(log: list[str] | None = None) -> None:
    try:
        await asyncio.sleep(3600)
    except asyncio.CancelledError:
        if log is not None:
            log.append("cancelled")
        raise


def leaves(group: BaseException) -> list[BaseException]:
    if isinstance(group, BaseExceptionGroup):
        return [leaf for member in group.exceptions for leaf in leaves(member)]
    return [group]


def test_children_are_joined_and_give_their_results(kind: str) -> None:
    async def double(n: int) -> int:
        await asyncio.sleep(0)
        return 2 * n

    async def main() -> None:
        async with handfast.Scope("s") as scope:
            tasks = [scope.spawn(double(n)) for n in range(5)]
            assert all(isinstance(task, asyncio.Task) for task in tasks)
        assert [task.result() for task in tasks] == [0, 2, 4, 6, 8]
        assert len(scope) == 0
        assert scope.closed

    run_on(kind, main())


def test_a_failure_cancels_the_siblings_and_surfaces_as_a_group(kind: str) -> None:
    log: list[str] = []

    async def main() -> None:
        with pytest.raises(ExceptionGroup) as caught:
            async with handfast.Scope("s") as scope:
                scope.spawn(forever(log))
                scope.spawn(fail(ValueError("boom")))
                await asyncio.sleep(3600)
        assert [repr(error) for error in caught.value.exceptions] == ["ValueError('boom')"]
        assert log == ["cancelled"]
        host = asyncio.current_task()
        assert host is not None
        assert host.cancelling() == 0

    run_on(kind, main())


def test_a_failed_child_says_which_task_it_was_and_where_it_was_created(kind: str) -> None:
    async def main() -> str:
        try:
            async with handfast.Scope("bot") as scope:
                scope.spawn(fail(ValueError("boom")), name="fetch")
        except ExceptionGroup as group:
            return "".join(group.exceptions[0].__notes__)
        raise AssertionError

    note = run_on(kind, main())
    assert "'fetch'" in note
    assert "'bot'" in note
    assert Path(__file__).name in note


def test_an_error_in_the_body_cancels_the_children_and_stands_first_in_the_group() -> None:
    async def program(_: Stepping) -> list[str]:
        log: list[str] = []
        with pytest.raises(ExceptionGroup) as caught:
            async with handfast.Scope("s") as scope:
                scope.spawn(forever(log))
                await asyncio.sleep(0)
                raise KeyError("body")
        assert [repr(e) for e in caught.value.exceptions] == ["KeyError('body')"]
        return log

    assert run_stepping(program) == ["cancelled"]


def test_errors_in_clean_up_stand_in_a_group_of_their_own() -> None:
    async def untidy() -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            raise OSError("disk")

    async def program(_: Stepping) -> handfast.types.Failure:
        try:
            async with handfast.Scope("s") as scope:
                scope.spawn(untidy())
                scope.spawn(fail(ValueError("work"), after=1))
        except ExceptionGroup as group:
            return handfast.split_errors(group)
        raise AssertionError

    failure = run_stepping(program)
    assert [repr(e) for e in failure.operational] == ["ValueError('work')"]
    assert [repr(e) for e in failure.cleanup] == ["OSError('disk')"]


def test_cancelling_the_host_anywhere_ends_all_children_and_passes_the_cancel_on() -> None:
    """At every step, once, twice and five times in a row."""

    async def program(stepping: Stepping) -> tuple[str, int]:
        alive = 0

        async def child() -> None:
            nonlocal alive
            alive += 1
            try:
                await asyncio.sleep(1)
            except asyncio.CancelledError:
                await asyncio.sleep(1)  # clean-up that a second cancel would cut
                raise
            finally:
                alive -= 1

        async def host() -> str:
            async with handfast.Scope("s") as scope:
                for _ in range(3):
                    scope.spawn(child())
                await asyncio.sleep(0.5)
            return "finished"

        task = stepping.victim(asyncio.create_task(host()))
        await asyncio.wait({task})
        return ("cancelled" if task.cancelled() else task.result()), alive

    for times in (1, 2, 5):
        outcomes = list(cancel_everywhere(program, times=times))
        assert len(outcomes) > 10
        assert all(alive == 0 for _, alive in outcomes)
        assert all(how == "cancelled" for how, _ in outcomes[:-1])
        assert outcomes[-1] == ("finished", 0)


def test_a_child_cancelled_anywhere_is_dropped_and_does_not_affect_others() -> None:
    """Also before its first step, when its own body never runs."""

    async def program(stepping: Stepping) -> tuple[int, str]:
        async def child() -> None:
            await asyncio.sleep(1)
            await asyncio.sleep(1)

        async with handfast.Scope("s") as scope:
            stepping.victim(scope.spawn(child()))
            other = scope.spawn(asyncio.sleep(5, "other"))
        return len(scope), other.result()

    outcomes = list(cancel_everywhere(program))
    assert len(outcomes) > 3
    assert set(outcomes) == {(0, "other")}


def test_an_outer_cancel_is_not_lost_when_a_child_fails_at_the_same_time() -> None:
    """#116720: nested task groups lose it on 3.11 and 3.12. Cancelled at every step."""

    async def program(stepping: Stepping) -> tuple[bool, bool]:
        reached_after = False

        async def host() -> None:
            nonlocal reached_after
            try:
                async with handfast.Scope("outer") as outer:
                    outer.spawn(asyncio.sleep(10))
                    async with handfast.Scope("inner") as inner:
                        inner.spawn(fail(ValueError("boom"), after=1))
                        await asyncio.sleep(5)
            except* ValueError:
                pass
            await asyncio.sleep(1)
            reached_after = True

        task = stepping.victim(asyncio.create_task(host()))
        await asyncio.wait({task})
        return task.cancelled(), reached_after

    outcomes = list(cancel_everywhere(program))
    assert len(outcomes) > 10
    # A task that was cancelled before the end ended as cancelled, and did not go on.
    assert all(outcome == (True, False) for outcome in outcomes[:-1])
    assert outcomes[-1] == (False, True)


def test_the_hosts_cancel_count_is_in_balance_afterwards() -> None:
    """#95289: also when the body has swallowed the interrupt, or ended before it came."""

    async def program(_: Stepping) -> list[int]:
        host = asyncio.current_task()
        assert host is not None
        counts = []
        for body in ("waits", "swallows", "ends at once"):
            try:
                async with handfast.Scope("s") as scope:
                    scope.spawn(fail(ValueError(body)))
                    if body == "waits":
                        await asyncio.sleep(5)
                    elif body == "swallows":
                        try:
                            await asyncio.sleep(5)
                        except asyncio.CancelledError:
                            pass
            except* ValueError:
                pass
            await asyncio.sleep(0)
            counts.append(host.cancelling())
        return counts

    assert run_stepping(program) == [0, 0, 0]


def test_an_interrupt_that_comes_in_the_last_line_of_the_body_does_not_strike_later() -> None:
    async def program(_: Stepping) -> str:
        async def fail_now() -> None:
            raise ValueError

        try:
            async with handfast.Scope("s") as scope:
                scope.spawn(fail_now())
                scope.spawn(asyncio.sleep(0))
                await asyncio.sleep(0)  # the failure happens now; the body ends before the cancel
        except* ValueError:
            pass
        await asyncio.sleep(1)
        return "went on"

    assert run_stepping(program) == "went on"


def test_uncancel_of_an_outer_timeout_stays_right() -> None:
    async def program(_: Stepping) -> str:
        try:
            async with asyncio.timeout(3):
                async with handfast.Scope("s") as scope:
                    scope.spawn(asyncio.sleep(10))
        except TimeoutError:
            return "timed out"
        raise AssertionError

    assert run_stepping(program) == "timed out"


def test_keyboard_interrupt_in_a_child_goes_out_as_it_is() -> None:
    """#95571, #102572: the bookkeeping is finished first."""
    scopes: list[handfast.Scope] = []

    async def main() -> None:
        async with handfast.Scope("s") as scope:
            scopes.append(scope)
            scope.spawn(forever())
            scope.spawn(fail(KeyboardInterrupt()))

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(main())
    assert len(scopes[0]) == 0
    assert scopes[0].closed


def test_a_limit_lets_so_many_run_at_once_and_all_in_the_end(kind: str) -> None:
    async def main() -> None:
        running, most, done = 0, 0, 0

        async def child() -> None:
            nonlocal running, most, done
            running += 1
            most = max(most, running)
            await asyncio.sleep(0)
            running -= 1
            done += 1

        async with handfast.Scope("s", limit=3) as scope:
            for _ in range(20):
                scope.spawn(child())
        assert (most, done, len(scope)) == (3, 20, 0)

    run_on(kind, main())


def test_who_waits_for_a_turn_can_be_cancelled_anywhere() -> None:
    async def program(stepping: Stepping) -> tuple[bool, int]:
        ran = 0

        async def child() -> None:
            nonlocal ran
            ran += 1
            await asyncio.sleep(1)

        async with handfast.Scope("s", limit=1) as scope:
            scope.spawn(child())
            victim = stepping.victim(scope.spawn(child()))
            scope.spawn(child())
        return victim.cancelled(), ran

    outcomes = list(cancel_everywhere(program))
    assert len(outcomes) > 5
    assert all(ran in (2, 3) for _, ran in outcomes)
    assert outcomes[-1] == (False, 3)


def test_a_scope_can_be_entered_once_only() -> None:
    async def program(_: Stepping) -> None:
        scope = handfast.Scope("s")
        async with scope:
            with pytest.raises(RuntimeError, match="entered already"):
                await scope.__aenter__()
        with pytest.raises(handfast.errors.ScopeClosed):
            await scope.__aenter__()

    run_stepping(program)


def test_entering_outside_of_a_task_says_so() -> None:
    loop = asyncio.new_event_loop()
    reported: list[Any] = []

    def try_it() -> None:
        coro = handfast.Scope("s").__aenter__()
        try:
            coro.send(None)
        except RuntimeError as error:
            reported.append(str(error))

    loop.call_soon(try_it)
    loop.call_soon(loop.stop)
    loop.run_forever()
    loop.close()
    assert "in a task only" in reported[0]


def test_leaving_in_another_task_closes_all_the_same() -> None:
    """An async generator that is finalised elsewhere leaves its scope elsewhere."""

    async def program(_: Stepping) -> tuple[int, bool]:
        scope = handfast.Scope("s")
        await scope.__aenter__()
        scope.spawn(asyncio.sleep(1))

        async def leave() -> None:
            await scope.__aexit__(None, None, None)

        await asyncio.create_task(leave())
        return len(scope), scope.closed

    assert run_stepping(program) == (0, True)


def test_a_failure_under_report_leaves_siblings_and_host_alone() -> None:
    async def program(stepping: Stepping) -> str:
        async with handfast.Scope("s", on_failure="report") as scope:
            scope.spawn(fail(ValueError("boom")))
            other = scope.spawn(asyncio.sleep(5, "lives"))
            await asyncio.sleep(1)
        context = stepping.errors.pop()
        assert repr(context["exception"]) == "ValueError('boom')"
        assert not stepping.errors
        return str(other.result())

    assert run_stepping(program) == "lives"


def test_a_time_out_whose_cancel_gives_way_to_an_error_does_not_strike_twice() -> None:
    """#117407: the cancel is taken back by the time-out when the error passes through it."""

    async def program(_: Stepping) -> str:
        async def untidy() -> None:
            try:
                await asyncio.sleep(100)
            finally:
                raise OSError("disk")

        try:
            async with asyncio.timeout(1):
                async with handfast.Scope("s") as scope:
                    scope.spawn(untidy())
        except* OSError:
            pass
        await asyncio.sleep(1)
        return "went on"

    assert run_stepping(program) == "went on"
