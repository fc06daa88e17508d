"""An entry goes with its task, however that ends, and with no other.

S0.1, S0.2 and, seen from the caller, S0.4: walked step by step, with a cancel at each of them.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from handfast import KeyedTasks, Scope
from tests.runtime.keyed_tasks.random_sequences import remains
from tests.runtime.scope.workshop import Workshop, turns
from tests.support.failures import errors_into
from tests.support.stepping import Stepping, cancel_everywhere, run_on, run_stepping

# How many cancels, and how many steps apart.
CANCELS = [(1, 1), (2, 1), (2, 2), (2, 3), (3, 1)]


def open_shop(
    stepping: Stepping, failures: list[BaseException]
) -> tuple[Scope, KeyedTasks, Workshop]:
    scope = Scope("shop", on_failure=errors_into(failures))
    keyed = KeyedTasks(scope)
    shop = Workshop(keyed, lambda: scope.tasks, "a")
    stepping.at_each_step(shop.check)
    return scope, keyed, shop


@pytest.mark.parametrize(
    ("kind", "ends"),
    [
        ("instant", {"returned", "cancelled before the first step"}),
        ("brief", {"returned", "cancelled before the first step", "cancelled"}),
        ("idle", {"cancelled before the first step", "cancelled"}),
        ("lingering", {"cancelled before the first step", "cancelled", "cut in its clean-up"}),
        ("failing", {"cancelled before the first step", "cancelled", "failed"}),
        ("clumsy", {"cancelled before the first step", "failed", "cut in its clean-up"}),
    ],
)
def test_after_any_end_the_entry_is_gone_in_the_same_step(kind: str, ends: set[str]) -> None:
    """S0.1: no entry without a live task and no live task without an entry, at every step."""
    seen: set[str] = set()

    async def program(stepping: Stepping) -> str:
        failures: list[BaseException] = []
        scope, keyed, shop = open_shop(stepping, failures)
        task = stepping.victim(await keyed.replace("a", shop.worker(kind), "a"))
        await asyncio.sleep(1)
        assert ("a" in keyed) is not task.done()
        await keyed.close()
        await scope.close()
        assert shop.violations + remains(keyed) == []
        # As long as nobody cuts it, a clean-up is done to its end.
        full = {"lingering": 4, "clumsy": 3}.get(kind, 0)
        return how(task, len(shop.operations), full)

    for times, gap in CANCELS:
        seen.update(cancel_everywhere(program, times=times, gap=gap))
    assert seen == ends


def how(task: asyncio.Task[Any], operations: int, full: int) -> str:
    if not task.cancelled():
        return "returned" if task.exception() is None else "failed"
    if not operations:
        return "cancelled before the first step"
    return "cut in its clean-up" if operations < full else "cancelled"


@pytest.mark.parametrize("kind", ["idle", "lingering", "clumsy", "failing"])
def test_predecessor_finishing_late_leaves_successor_alone(kind: str) -> None:
    """S0.2: also when somebody else cancels the predecessor at whatever step, even twice."""

    async def program(stepping: Stepping) -> None:
        scope, keyed, shop = open_shop(stepping, [])
        stepping.victim(await keyed.replace("a", shop.worker(kind), "a"))
        await turns(1)
        successor = await keyed.replace("a", shop.worker("idle"), "a")
        shop.replaced_by(successor)
        await asyncio.sleep(1)
        assert "a" in keyed
        assert scope.tasks == (successor,)
        await keyed.close()
        assert successor.cancelled()
        await scope.close()
        assert shop.violations + remains(keyed) == []

    for times, gap in CANCELS:
        for _ in cancel_everywhere(program, times=times, gap=gap):
            pass


@pytest.mark.parametrize("present", ["idle", "lingering"])
@pytest.mark.parametrize("what", ["replace", "enqueue"])
def test_a_starter_that_is_cancelled_has_started_nothing(present: str, what: str) -> None:
    """S0.4: either the caller has the new task in hand, or there is none."""
    started: set[bool] = set()

    async def program(stepping: Stepping) -> bool:
        scope, keyed, shop = open_shop(stepping, [])
        first = await keyed.replace("a", shop.worker(present), "a")
        await turns(1)
        start = getattr(keyed, what)
        caller = stepping.victim(asyncio.create_task(start("a", shop.worker("idle"), "a")))
        await turns(2)
        first.cancel()  # for who queues; a second cancel for who replaces
        await asyncio.wait({caller})
        await asyncio.sleep(1)
        assert len(scope.tasks) == len(shop.runs) - 1
        assert ("a" in keyed) is not caller.cancelled()
        await keyed.close()
        await scope.close()
        assert shop.violations + remains(keyed) == []
        return not caller.cancelled()

    for times, gap in CANCELS[:2]:
        started.update(cancel_everywhere(program, times=times, gap=gap))
    assert started == {True, False}


def test_after_a_replacement_the_superseded_task_has_ended_with_its_clean_up(kind: str) -> None:
    """S0.4: on each kind of loop."""
    done: list[str] = []

    async def capture(command: str) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await turns(3)
            done.append(command)

    async def main() -> None:
        scope = Scope("bot")
        keyed = KeyedTasks(scope)
        tasks = []
        for number, command in enumerate(["make", "make test", "make install"]):
            tasks.append(await keyed.replace("user", capture, command))
            await turns(2)
            assert [task.done() for task in tasks] == [True] * number + [False]
            assert len(done) == number
        assert await keyed.cancel("user")
        assert not await keyed.cancel("user")
        assert done == ["make", "make test", "make install"]
        await scope.close()
        await turns(1)  # behind a factory the last of the books is cleared by a callback
        assert remains(keyed) == []

    run_on(kind, main())


def test_a_task_that_a_factory_holds_back_leaves_its_successor_alone() -> None:
    """S0.2, S0.1: a factory may put a coroutine of its own around ours. Then the task ends after
    what it ran; and if it is cancelled before its first step it never runs ours at all."""

    def factory(loop: asyncio.AbstractEventLoop, coro: Any, **options: Any) -> asyncio.Task[Any]:
        async def around() -> Any:
            try:
                return await coro
            finally:
                await turns(3)

        return asyncio.Task(around(), loop=loop, **options)

    async def program(stepping: Stepping) -> bool:
        stepping.loop.set_task_factory(factory)
        scope = Scope("traced")
        keyed = KeyedTasks(scope)
        first = stepping.victim(await keyed.replace("a", asyncio.sleep, 3600))
        await turns(1)
        second = await keyed.replace("a", asyncio.sleep, 3600, "result")
        late = not first.done()
        await asyncio.wait({first})
        await turns(2)
        assert "a" in keyed
        assert scope.tasks == (second,)
        assert await keyed.share("a", asyncio.sleep, 0, "another") == "result"
        await scope.close()
        assert remains(keyed) == []
        return late

    assert run_stepping(program)
    for _ in cancel_everywhere(program):
        pass
