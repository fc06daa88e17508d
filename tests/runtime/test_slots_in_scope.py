"""Slots inside their scope: limits, failures, factories, interrupts, and where a task was born."""

from __future__ import annotations

import asyncio
import gc
import sys
from typing import Any

import pytest

from holdfast import Scope, Slots
from tests.runtime.slot_bouts import remains
from tests.runtime.workshop import Workshop, turns
from tests.stepping import Stepping, cancel_everywhere, run_on, run_stepping


def test_a_limit_counts_the_tasks_of_slots_and_all_can_be_replaced() -> None:
    """S0.3: one that waits for its turn has its slot, and gives it up like any other; at each
    step somebody else cancels it, too."""

    async def program(stepping: Stepping) -> None:
        scope = Scope("pool", limit=2)
        slots = Slots(scope)
        shop = Workshop(slots, lambda: scope.tasks, "abcd")
        stepping.at_each_step(shop.check)
        for key in "abc":
            slots.reject(key, shop.worker("idle"), key)
        await turns(2)
        assert len(shop.deeds) == 2
        stepping.victim(next(task for task in scope.tasks if task.get_name() == "work:2"))
        shop.replaced_by(await slots.replace("c", shop.worker("lingering"), "c"))
        assert await slots.cancel("a")
        await turns(2)
        assert {run.number for run in shop.deeds} >= {0, 1, 3}
        shop.replaced_by(await slots.replace("c", shop.worker("brief"), "c"))
        assert await slots.keep("d", shop.worker("instant"), "d") == 5
        await scope.close()
        assert shop.violations + remains(slots) == []

    for _ in cancel_everywhere(program):
        pass


def test_a_failure_of_a_slot_s_task_is_the_scope_s(kind: str) -> None:
    """S0.1: "cancel" ends the siblings, and the error comes out of the scope as a group."""

    async def fail() -> None:
        raise ValueError("work")

    async def main() -> None:
        scope = Scope("bot")
        with pytest.raises(ExceptionGroup) as raised:
            async with scope:
                slots = Slots(scope)
                sibling = slots.reject("a", asyncio.sleep, 3600)
                slots.reject("b", fail)
                await asyncio.sleep(3600)
        assert [str(error) for error in raised.value.exceptions] == ["work"]
        assert sibling.cancelled()
        await turns(1)
        assert remains(slots) == []

    run_on(kind, main())


@pytest.mark.parametrize("waits", ["replace", "queue", "cancel"])
def test_who_waits_for_an_end_does_not_take_the_error(waits: str) -> None:
    """ "report" leaves an error to who awaits the task; waiting for its end is not that."""

    async def program(stepping: Stepping) -> None:
        told: list[dict[str, Any]] = []
        stepping.loop.set_exception_handler(lambda _, context: told.append(context))
        scope = Scope("bot", on_failure="report")
        slots = Slots(scope)
        shop = Workshop(slots, lambda: scope.tasks, "a")
        task = slots.reject("a", shop.worker("clumsy"), "a")
        await turns(1)
        if waits == "queue":
            waiter: asyncio.Task[Any] = asyncio.create_task(slots.queue("a", asyncio.sleep, 0))
            await turns(1)
            task.cancel()
            await waiter
        elif waits == "replace":
            await slots.replace("a", asyncio.sleep, 0)
        else:
            await slots.cancel("a")
        await turns(2)
        assert [type(context["exception"]) for context in told] == [OSError]
        await scope.close()

    run_stepping(program)


def test_a_task_that_ends_inside_its_start_leaves_a_free_slot(kind: str) -> None:
    """S0.1: with an eager factory; on the other loops it ends a turn later."""

    async def instant(error: Exception | None) -> str:
        if error is not None:
            raise error
        return "at once"

    async def main() -> None:
        failures: list[BaseException] = []
        scope = Scope("bot", on_failure=failures.append)
        slots = Slots(scope)
        for start in (slots.replace, slots.queue):
            task = await start("a", instant, None)
            if kind == "eager":
                assert task.done()
                assert "a" not in slots
            assert await task == "at once"
        task = slots.reject("a", instant, None)
        assert await task == "at once"
        assert await slots.keep("a", instant, None) == "at once"
        error = ValueError()
        with pytest.raises(ValueError):  # noqa: PT011
            await slots.keep("a", instant, error)
        assert failures == []
        slots.reject("a", instant, error)
        await turns(2)
        assert failures == [error]
        await scope.close()
        assert remains(slots) == []

    run_on(kind, main())


@pytest.mark.parametrize("fatal", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_in_a_slot_s_task_leaves_the_books_in_order(
    fatal: type[BaseException],
) -> None:
    """S0.1: it flies through the loop at once (#95571), and the bookkeeping comes before that."""

    async def work(ready: asyncio.Event) -> None:
        ready.set()
        await asyncio.sleep(0)
        raise fatal

    async def main() -> None:
        ready = asyncio.Event()
        sibling = slots.reject("b", asyncio.sleep, 3600)
        slots.reject("a", work, ready)
        waiting = asyncio.create_task(slots.queue("a", asyncio.sleep, 0))
        try:
            await ready.wait()
            await asyncio.sleep(3600)
        finally:
            assert sibling.cancelling()
            await asyncio.wait({waiting})
            waiting.exception()

    scope = Scope("bot")
    slots = Slots(scope)
    loop = asyncio.new_event_loop()
    running = loop.create_task(main())
    with pytest.raises(fatal):
        loop.run_until_complete(running)
    assert "a" not in slots
    assert scope.closing
    report = loop.run_until_complete(scope.close())
    assert [type(ending.error) for ending in report.failed] == [fatal]
    assert len(report.cancelled) == 1
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        loop.run_until_complete(running)
    loop.close()
    assert remains(slots) == []


def test_a_factory_that_refuses_leaves_no_entry() -> None:
    """S0.1: and the coroutine is closed."""

    def refuse(loop: asyncio.AbstractEventLoop, coro: Any, **options: Any) -> asyncio.Task[Any]:
        raise MemoryError

    async def main() -> None:
        loop = asyncio.get_running_loop()
        scope = Scope("bot")
        slots = Slots(scope)
        coro: Any = asyncio.sleep(0)
        loop.set_task_factory(refuse)
        for start in (slots.replace, slots.queue, slots.keep):
            with pytest.raises(MemoryError):
                await start("a", lambda: coro)
        loop.set_task_factory(None)
        assert coro.cr_frame is None
        assert remains(slots) == []
        await scope.close()

    run_on("stock", main())


def test_a_task_is_born_where_it_was_asked_for(kind: str) -> None:
    """S3.7: also when another task takes the first step of the call."""

    async def main() -> None:
        scope = Scope("bot")
        slots = Slots(scope)
        await asyncio.gather(
            slots.replace("a", asyncio.sleep, 3600),  # born here
            slots.queue("b", asyncio.sleep, 3600),  # born here
        )
        slots.reject("c", asyncio.sleep, 3600)  # born here
        keeper = asyncio.create_task(slots.keep("d", asyncio.sleep, 3600))  # born here
        await turns(1)
        report = await slots.close()
        assert len(report.cancelled) == 4
        for ending in report.cancelled:
            assert ending.origin is not None
            assert ending.origin.source.endswith("# born here")
        await asyncio.wait({keeper})
        keeper.exception()
        await scope.close()

    run_on(kind, main())


@pytest.mark.skipif(sys.version_info < (3, 12), reason="eager tasks came with 3.12")
def test_many_slots_with_an_eager_factory_under_watch() -> None:
    """S0.1: entry and task agree at every step, with a cancel of the present task at each."""

    async def program(stepping: Stepping) -> None:
        stepping.loop.set_task_factory(getattr(asyncio, "eager_task_factory"))  # noqa: B009
        scope = Scope("bot", on_failure=lambda _: None)
        slots = Slots(scope)
        shop = Workshop(slots, lambda: scope.tasks, "a")
        stepping.at_each_step(shop.check)
        for kind in ("lingering", "instant", "clumsy", "brief", "failing"):
            task = await slots.replace("a", shop.worker(kind), "a")
            shop.replaced_by(task)
            if kind == "lingering":
                stepping.victim(task)
        await slots.close()
        await scope.close()
        assert shop.violations + remains(slots) == []

    for times in (1, 2):
        for _ in cancel_everywhere(program, times=times):
            pass


def test_a_loop_that_is_closed_under_a_waiter_makes_no_noise() -> None:
    """S4.8: coroutines that the collector ends do their bookkeeping in silence."""

    async def leave() -> None:
        slots.reject("a", asyncio.sleep, 3600)
        waiters.append(asyncio.create_task(slots.queue("a", asyncio.sleep, 0)))
        await turns(2)

    waiters: list[asyncio.Task[Any]] = []
    scope = Scope("bot")
    slots = Slots(scope)
    loop = asyncio.new_event_loop()
    loop.run_until_complete(leave())
    loop.close()
    for task in (*scope.tasks, *waiters):
        coro: Any = task.get_coro()
        coro.close()
        setattr(task, "_log_destroy_pending", False)  # noqa: B010
    assert remains(slots) == []
    assert scope.close_from_thread(timeout=0).clean
    del task, coro
    waiters.clear()
    gc.collect()
