"""Closing joins them all, asks each of them once, and says how that went. S0.5."""

from __future__ import annotations

import asyncio
import sys
from functools import partial
from itertools import permutations, product
from typing import Any

import pytest

from handfast import KeyedTasks, Scope
from handfast.errors import ScopeClosed
from handfast.types import CloseReport
from tests.runtime.keyed_tasks.random_sequences import remains
from tests.runtime.scope.workshop import Workshop, turns
from tests.support.failures import errors_into
from tests.support.stepping import Stepping, cancel_everywhere, run_on, run_stepping

KINDS = ("idle", "lingering", "clumsy")


async def occupy(scope: Scope, stepping: Stepping) -> tuple[KeyedTasks, Workshop]:
    """A key for each kind of worker that does not end by itself."""
    keyed = KeyedTasks(scope)
    shop = Workshop(keyed, lambda: scope.tasks, KINDS)
    stepping.at_each_step(shop.check)
    for key in KINDS:
        keyed.start(key, shop.worker(key), key)
    await turns(2)
    return keyed, shop


@pytest.mark.parametrize("owner", ["keyed", "scope"])
def test_closing_the_owner_cancels_and_joins_all(owner: str) -> None:
    """S0.5: whichever task is cancelled meanwhile, at whatever step, and however often: the closer gets
    its cancel when all is over."""

    async def program(stepping: Stepping) -> bool:
        failures: list[BaseException] = []
        scope = Scope("shop", on_failure=errors_into(failures))
        keyed, shop = await occupy(scope, stepping)
        close: Any = keyed.close if owner == "keyed" else scope.close
        closer = stepping.victim(asyncio.create_task(close()))
        await turns(1)  # it has begun, unless it was cancelled before
        await asyncio.wait({closer})
        if closer.cancelled() and len(keyed) == len(KINDS):
            await close()  # it never came to its first step
        assert shop.live() == []
        assert len(shop.operations) == 2 + 4 + 3  # each clean-up was done to its end
        assert [type(error) for error in failures] == [OSError]
        assert shop.violations + remains(keyed) == []
        await scope.close()
        if not closer.cancelled():
            report: CloseReport = closer.result()
            assert [ending.name for ending in report.cancelled] == ["work:0", "work:1"]
            assert [type(error) for error in report.cleanup_errors] == [OSError]
            assert report.finished + report.failed + report.stragglers == ()
        assert closer.cancelled() is stepping.cancelled
        return closer.cancelled()

    for times in (1, 2, 3):
        assert set(cancel_everywhere(program, times=times)) == {True, False}


def test_a_clean_up_is_not_cut_however_many_ask_for_the_end() -> None:
    """S0.5: one cancel for each task, from whichever side, in all orders."""

    async def program(stepping: Stepping, order: tuple[str, ...], gap: int) -> None:
        scope = Scope("shop")
        keyed, shop = await occupy_one(scope, stepping)
        askers = []
        for what in order:
            if what == "scope":
                asker: Any = scope.close()
            elif what == "close":
                asker = keyed.close()
            elif what == "cancel":
                asker = keyed.cancel("a")
            else:
                asker = keyed.replace("a", shop.worker("brief"), "a")
            askers.append(asyncio.create_task(asker))
            await turns(gap)
        await asyncio.wait(askers)
        for asker in askers:
            error = asker.exception()
            if error is not None and not isinstance(error, ScopeClosed):
                raise error
        first = shop.runs[0]
        assert shop.operations.count(first) == 4, "its clean-up was cut short"
        await scope.close()
        assert shop.violations + remains(keyed) == []

    for order in permutations(("scope", "close", "cancel", "replace")):
        for gap in (0, 1, 2):
            run_stepping(partial(program, order=order, gap=gap))


async def occupy_one(scope: Scope, stepping: Stepping) -> tuple[KeyedTasks, Workshop]:
    keyed = KeyedTasks(scope)
    shop = Workshop(keyed, lambda: scope.tasks, "a")
    stepping.at_each_step(shop.check)
    keyed.start("a", shop.worker("lingering"), "a")
    await turns(2)
    return keyed, shop


def test_a_task_that_was_cancelled_is_not_cancelled_again_by_a_failing_sibling() -> None:
    """S0.5: with on_failure="cancel" a failure cancels the siblings, but not this one twice."""

    async def program(stepping: Stepping) -> None:
        scope = Scope("shop", on_failure="cancel")
        keyed, shop = await occupy_one(scope, stepping)
        asker = asyncio.create_task(keyed.cancel("a"))
        await turns(2)
        scope.spawn(fail(), name="sibling")
        assert await asker
        assert shop.operations.count(shop.runs[0]) == 4
        assert shop.violations == []
        assert len((await scope.close()).failed) == 1

    async def fail() -> None:
        raise ValueError

    run_stepping(program)


# On 3.11 and 3.12 a TaskGroup with a failed child loses a cancel that comes after (#116720).
INSIDE = ["timeout", "task group"] if sys.version_info >= (3, 13) else ["timeout"]


@pytest.mark.parametrize("inside", INSIDE)
def test_a_cancel_that_comes_from_inside_the_task_is_not_taken_for_ours(inside: str) -> None:
    """S0.5, S0.3: Task.cancelling() counts the cancels of a timeout() or a TaskGroup, too."""

    async def survivor() -> None:
        try:
            if inside == "timeout":
                async with asyncio.timeout(1):
                    await linger()
            else:
                async with asyncio.TaskGroup() as group:
                    group.create_task(fail())
                    await linger()
        except (TimeoutError, ExceptionGroup):
            pass
        await asyncio.sleep(3600)

    async def linger() -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            await asyncio.sleep(1)

    async def fail() -> None:
        await asyncio.sleep(1)
        raise ValueError

    async def program(stepping: Stepping) -> None:
        scope = Scope("shop")
        keyed = KeyedTasks(scope, timeout=5)
        task = keyed.start("a", survivor)
        await asyncio.sleep(1.5)  # it has been cancelled from the inside, and cleans up
        assert task.cancelling() == 1
        assert await keyed.cancel("a")
        assert stepping.loop.time() < 3
        await scope.close()

    run_stepping(program)


def test_closing_is_bounded_and_lists_stragglers(kind: str) -> None:
    """S0.5: a task that swallows a cancel is in the report, with where it waits."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        scope = Scope("shop", timeout=0)
        keyed = KeyedTasks(scope, timeout=0)
        finish = loop.create_future()

        async def swallow() -> None:
            while not finish.done():
                try:
                    await asyncio.wait({finish})
                except asyncio.CancelledError:
                    pass

        keyed.start(1.5, swallow)  # a float, as is its start time
        keyed.start("b", asyncio.sleep, 3600)
        await turns(1)
        report = await keyed.close()
        assert [straggler.name.rpartition(".")[2] for straggler in report.stragglers] == ["swallow"]
        (straggler,) = report.stragglers
        assert straggler.origin is not None
        assert straggler.origin.source.startswith("keyed.start(1.5")
        assert straggler.stack[0].endswith("swallow")
        assert straggler.age < 1
        assert 1.5 in keyed
        finish.set_result(None)
        await turns(2)
        assert 1.5 not in keyed
        await scope.close()

    run_on(kind, main())


def test_closing_takes_the_deadline_and_not_a_moment_longer() -> None:
    """S0.5: in virtual time, with more than one who does not end."""

    async def program(stepping: Stepping) -> None:
        scope = Scope("shop")
        keyed = KeyedTasks(scope, timeout=7)
        for key in range(3):
            keyed.start(key, asyncio.sleep, 3600)
        for key in range(3, 6):
            keyed.start(key, stay_until, 20)
        await turns(1)
        start = stepping.loop.time()
        report = await keyed.close()
        assert stepping.loop.time() - start == 7
        assert (len(report.cancelled), len(report.stragglers)) == (3, 3)
        assert [straggler.age for straggler in report.stragglers] == [7, 7, 7]
        await scope.close(timeout=60)
        assert stepping.loop.time() - start == 20

    run_stepping(program)


async def stay_until(end: float) -> None:
    loop = asyncio.get_running_loop()
    while loop.time() < end:
        try:
            await asyncio.sleep(end - loop.time())
        except asyncio.CancelledError:
            pass


def test_closed_keyed_tasks_take_nothing_and_the_scope_lives_on() -> None:
    """S0.5: closing them closes no scope; a second close has nothing to do."""

    async def program(stepping: Stepping) -> None:
        scope = Scope("shop")
        keyed, other = KeyedTasks(scope), KeyedTasks(scope)
        keyed.start("a", asyncio.sleep, 3600)
        await keyed.close()
        with pytest.raises(
            ScopeClosed, match=r"key 'a' refused: these keyed tasks of scope 'shop'"
        ):
            keyed.start("a", asyncio.sleep, 0)
        for start in (keyed.replace, keyed.enqueue, keyed.share):
            with pytest.raises(ScopeClosed):
                await start("a", asyncio.sleep, 0)
        assert str(await keyed.close()) == "scope 'shop' closed: nothing was running"
        assert not await keyed.cancel("a")
        assert await other.share("a", asyncio.sleep, 0, 5) == 5
        await scope.close()

    run_stepping(program)


def test_who_waits_for_a_key_is_refused_when_it_closes() -> None:
    """S0.5: nobody starts after the close, and nobody waits for ever."""

    async def program(stepping: Stepping, owner: str, present: str) -> None:
        scope = Scope("shop", on_failure="report")
        keyed = KeyedTasks(scope)
        shop = Workshop(keyed, lambda: scope.tasks, "a")
        stepping.at_each_step(shop.check)
        keyed.start("a", shop.worker(present), "a")
        await turns(2)
        waiting = [
            asyncio.create_task(start("a", shop.worker("idle"), "a"))
            for start in (keyed.replace, keyed.enqueue, keyed.replace, keyed.enqueue, keyed.share)
        ]
        await turns(1)
        await (keyed.close() if owner == "keyed" else scope.close())
        await asyncio.wait(waiting)
        assert {type(task.exception()) for task in waiting} == {ScopeClosed}
        assert len(shop.runs) == 1
        await scope.close()
        assert shop.violations + remains(keyed) == []

    for owner, present in product(("keyed", "scope"), ("idle", "lingering")):
        run_stepping(partial(program, owner=owner, present=present))


def test_a_task_that_was_cancelled_before_its_first_step_is_gone_too(any_kind: str) -> None:
    """S0.5: it has ended when the close begins, and its done callbacks have not run."""

    async def program() -> int:
        async with Scope("shop") as scope:
            keyed = KeyedTasks(scope)
            keyed.start("a", asyncio.sleep, 3600).cancel()
            await asyncio.sleep(0)
            await keyed.close()
            return len(keyed)

    assert run_on(any_kind, program()) == 0
