"""`race`: the first success wins; losers are cancelled and joined; all fail: a group."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import pytest

import handfast
from handfast.errors import HandfastError, StragglersLeft
from tests.support.stepping import Stepping, cancel_everywhere, run_on, run_stepping


class Runners:
    """Coroutines that note their end."""

    def __init__(self) -> None:
        self.running = 0

    async def run(self, seconds: float, result: Any, cleanup: Exception | None = None) -> Any:
        self.running += 1
        try:
            await asyncio.sleep(seconds)
        except asyncio.CancelledError:
            await asyncio.sleep(0.01)
            if cleanup is not None:
                raise cleanup from None
            raise
        finally:
            self.running -= 1
        if isinstance(result, Exception):
            raise result
        return result


def test_the_first_success_wins_and_the_losers_have_ended(any_kind: str) -> None:
    runners = Runners()

    async def main() -> str:
        value: str = await handfast.race(
            runners.run(60, "slow"), runners.run(0, OSError("lost")), runners.run(0.001, "fast")
        )
        assert runners.running == 0
        return value

    assert run_on(any_kind, main()) == "fast"


def test_of_two_that_end_at_once_the_earlier_one_wins() -> None:
    async def main(_: Stepping) -> Any:
        runners = Runners()
        return await handfast.race(runners.run(1, "first"), runners.run(1, "second"))

    assert run_stepping(main) == "first"


def test_if_all_fail_their_errors_are_raised_in_order(any_kind: str) -> None:
    async def main() -> None:
        runners = Runners()
        errors = [OSError("a"), ValueError("b")]
        with pytest.raises(ExceptionGroup, match="all coroutines of the race at") as caught:
            await handfast.race(runners.run(0.002, errors[0]), runners.run(0.001, errors[1]))
        assert list(caught.value.exceptions) == errors

    run_on(any_kind, main())


def test_a_coroutine_that_other_code_cancels_has_lost() -> None:
    async def main(_: Stepping) -> None:
        async def suicide() -> None:
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            await asyncio.sleep(0)

        await handfast.race(suicide(), asyncio.sleep(1))
        with pytest.raises(ExceptionGroup) as caught:
            await handfast.race(suicide())
        assert isinstance(caught.value.exceptions[0], HandfastError)

    run_stepping(main)


@pytest.mark.parametrize("times", [1, 2, 3])
def test_a_race_that_is_cancelled_at_any_step_leaves_nobody_running(times: int) -> None:
    async def program(stepping: Stepping) -> bool:
        runners = Runners()

        async def compete() -> None:
            await handfast.race(runners.run(2, "a"), runners.run(1, OSError()), runners.run(3, "c"))

        victim = stepping.victim(asyncio.create_task(compete()))
        await asyncio.wait({victim})
        assert runners.running == 0
        assert not asyncio.all_tasks() - {asyncio.current_task()}
        assert victim.cancelled() or victim.exception() is None
        return victim.cancelled()

    runs = list(cancel_everywhere(program, times=times))
    assert len(runs) > 10
    assert set(runs[:-1]) == {True}  # A16: no cancel is lost


def test_an_error_in_the_clean_up_of_a_loser_is_reported() -> None:
    async def main(stepping: Stepping) -> list[str]:
        runners = Runners()
        winner = await handfast.race(
            runners.run(1, "winner"), runners.run(9, "", cleanup=OSError("disk"))
        )
        assert winner == "winner"
        await asyncio.sleep(0)
        reported = [str(context["exception"]) for context in stepping.errors]
        stepping.errors.clear()
        return reported

    assert run_stepping(main) == ["disk"]


def test_a_loser_that_does_not_end_is_named() -> None:
    async def main(_: Stepping) -> None:
        gate = asyncio.Event()

        async def stubborn() -> None:
            while not gate.is_set():
                try:
                    await gate.wait()
                except asyncio.CancelledError:
                    continue

        with pytest.raises(StragglersLeft, match="stubborn"):
            await handfast.race(stubborn(), asyncio.sleep(1))
        gate.set()
        await asyncio.sleep(1)

    run_stepping(main)


def test_wrong_arguments_are_refused_and_every_coroutine_is_closed() -> None:
    coros = [asyncio.sleep(0), asyncio.sleep(1)]
    with pytest.raises(TypeError, match="race"):
        _ = handfast.race(coros[0], asyncio.sleep, coros[1])  # type: ignore[arg-type]
    assert {inspect.getcoroutinestate(coro) for coro in coros} == {inspect.CORO_CLOSED}
    with pytest.raises(ValueError, match="no winner"):
        _ = handfast.race()
