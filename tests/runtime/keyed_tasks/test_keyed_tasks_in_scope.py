"""KeyedTasks inside their scope: limits, failures, factories, interrupts, and the origin of a task."""

from __future__ import annotations

import asyncio
import gc
import sys
from typing import Any

import pytest

from handfast import KeyedTasks, Scope
from handfast._runtime.scope.tasks.task_creation import wrapper_of
from tests.runtime.keyed_tasks.random_sequences import remains
from tests.runtime.scope.workshop import Workshop, turns
from tests.support.failures import errors_into
from tests.support.stepping import Stepping, cancel_everywhere, run_on, run_stepping


def test_a_limit_counts_keyed_tasks_and_all_can_be_replaced() -> None:
    """S0.3: one that waits for its turn has its key, and gives it up like any other; at each
    step somebody else cancels it, too."""

    async def program(stepping: Stepping) -> None:
        scope = Scope("pool", limit=2)
        keyed = KeyedTasks(scope)
        shop = Workshop(keyed, lambda: scope.tasks, "abcd")
        stepping.at_each_step(shop.check)
        for key in "abc":
            keyed.start(key, shop.worker("idle"), key)
        await turns(2)
        assert len(shop.operations) == 2
        stepping.victim(next(task for task in scope.tasks if task.get_name() == "work:2"))
        shop.replaced_by(await keyed.replace("c", shop.worker("lingering"), "c"))
        assert await keyed.cancel("a")
        await turns(2)
        assert {run.number for run in shop.operations} >= {0, 1, 3}
        shop.replaced_by(await keyed.replace("c", shop.worker("brief"), "c"))
        assert await keyed.share("d", shop.worker("instant"), "d") == 5
        await scope.close()
        assert shop.violations + remains(keyed) == []

    for _ in cancel_everywhere(program):
        pass


def test_a_failure_of_a_keyed_task_is_the_scope_s(kind: str) -> None:
    """S0.1: "cancel" ends the siblings, and the error comes out of the scope as a group."""

    async def fail() -> None:
        raise ValueError("work")

    async def main() -> None:
        scope = Scope("bot")
        with pytest.raises(ExceptionGroup) as raised:
            async with scope:
                keyed = KeyedTasks(scope)
                sibling = keyed.start("a", asyncio.sleep, 3600)
                keyed.start("b", fail)
                await asyncio.sleep(3600)
        assert [str(error) for error in raised.value.exceptions] == ["work"]
        assert sibling.cancelled()
        await turns(1)
        assert remains(keyed) == []

    run_on(kind, main())


@pytest.mark.parametrize("waits", ["replace", "enqueue", "cancel"])
def test_who_waits_for_an_end_does_not_take_the_error(waits: str) -> None:
    """ "report" leaves an error to who awaits the task; waiting for its end is not that."""

    async def program(stepping: Stepping) -> None:
        reported: list[dict[str, Any]] = []
        stepping.loop.set_exception_handler(lambda _, context: reported.append(context))
        scope = Scope("bot", on_failure="report")
        keyed = KeyedTasks(scope)
        shop = Workshop(keyed, lambda: scope.tasks, "a")
        task = keyed.start("a", shop.worker("clumsy"), "a")
        await turns(1)
        if waits == "enqueue":
            waiter: asyncio.Task[Any] = asyncio.create_task(keyed.enqueue("a", asyncio.sleep, 0))
            await turns(1)
            task.cancel()
            await waiter
        elif waits == "replace":
            await keyed.replace("a", asyncio.sleep, 0)
        else:
            await keyed.cancel("a")
        await turns(2)
        assert [type(context["exception"]) for context in reported] == [OSError]
        await scope.close()

    run_stepping(program)


def test_a_task_that_ends_inside_its_start_leaves_a_free_key(kind: str) -> None:
    """S0.1: with an eager factory; on the other loops it ends a turn later."""

    async def instant(error: Exception | None) -> str:
        if error is not None:
            raise error
        return "at once"

    async def main() -> None:
        failures: list[BaseException] = []
        scope = Scope("bot", on_failure=errors_into(failures))
        keyed = KeyedTasks(scope)
        for start in (keyed.replace, keyed.enqueue):
            task = await start("a", instant, None)
            if kind == "eager":
                assert task.done()
                assert "a" not in keyed
            assert await task == "at once"
        task = keyed.start("a", instant, None)
        assert await task == "at once"
        assert await keyed.share("a", instant, None) == "at once"
        error = ValueError()
        with pytest.raises(ValueError):  # noqa: PT011
            await keyed.share("a", instant, error)
        assert failures == []
        keyed.start("a", instant, error)
        await turns(2)
        assert failures == [error]
        await scope.close()
        assert remains(keyed) == []

    run_on(kind, main())


@pytest.mark.parametrize("fatal", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_in_a_keyed_task_leaves_the_books_in_order(
    fatal: type[BaseException],
) -> None:
    """S0.1: it flies through the loop at once (#95571), and the bookkeeping comes before that."""

    async def work(ready: asyncio.Event) -> None:
        ready.set()
        await asyncio.sleep(0)
        raise fatal

    async def main() -> None:
        ready = asyncio.Event()
        sibling = keyed.start("b", asyncio.sleep, 3600)
        keyed.start("a", work, ready)
        waiting = asyncio.create_task(keyed.enqueue("a", asyncio.sleep, 0))
        try:
            await ready.wait()
            await asyncio.sleep(3600)
        finally:
            assert sibling.cancelling()
            await asyncio.wait({waiting})
            waiting.exception()

    scope = Scope("bot")
    keyed = KeyedTasks(scope)
    loop = asyncio.new_event_loop()
    running = loop.create_task(main())
    with pytest.raises(fatal):
        loop.run_until_complete(running)
    assert "a" not in keyed
    assert scope.closing
    report = loop.run_until_complete(scope.close())
    assert [type(ending.error) for ending in report.failed] == [fatal]
    assert len(report.cancelled) == 1
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        loop.run_until_complete(running)
    loop.close()
    assert remains(keyed) == []


def test_a_factory_that_refuses_leaves_no_entry() -> None:
    """S0.1: and the coroutine is closed."""

    def refuse(loop: asyncio.AbstractEventLoop, coro: Any, **options: Any) -> asyncio.Task[Any]:
        raise MemoryError

    async def main() -> None:
        loop = asyncio.get_running_loop()
        scope = Scope("bot")
        keyed = KeyedTasks(scope)
        coro: Any = asyncio.sleep(0)
        loop.set_task_factory(refuse)
        for start in (keyed.replace, keyed.enqueue, keyed.share):
            with pytest.raises(MemoryError):
                await start("a", lambda: coro)
        loop.set_task_factory(None)
        assert coro.cr_frame is None
        assert remains(keyed) == []
        await scope.close()

    run_on("stock", main())


def test_the_origin_of_a_task_is_the_line_of_the_call(kind: str) -> None:
    """S3.7: also when another task takes the first step of the call."""

    async def main() -> None:
        scope = Scope("bot")
        keyed = KeyedTasks(scope)
        await asyncio.gather(
            keyed.replace("a", asyncio.sleep, 3600),  # created here
            keyed.enqueue("b", asyncio.sleep, 3600),  # created here
        )
        keyed.start("c", asyncio.sleep, 3600)  # created here
        sharer = asyncio.create_task(keyed.share("d", asyncio.sleep, 3600))  # created here
        await turns(1)
        report = await keyed.close()
        assert len(report.cancelled) == 4
        for ending in report.cancelled:
            assert ending.origin is not None
            assert ending.origin.source.endswith("# created here")
        await asyncio.wait({sharer})
        sharer.exception()
        await scope.close()

    run_on(kind, main())


@pytest.mark.skipif(sys.version_info < (3, 12), reason="eager tasks came with 3.12")
def test_many_keys_with_an_eager_factory_under_watch() -> None:
    """S0.1: entry and task agree at every step, with a cancel of the present task at each."""

    async def program(stepping: Stepping) -> None:
        stepping.loop.set_task_factory(getattr(asyncio, "eager_task_factory"))  # noqa: B009
        scope = Scope("bot", on_failure=lambda _: None)
        keyed = KeyedTasks(scope)
        shop = Workshop(keyed, lambda: scope.tasks, "a")
        stepping.at_each_step(shop.check)
        for kind in ("lingering", "instant", "clumsy", "brief", "failing"):
            task = await keyed.replace("a", shop.worker(kind), "a")
            shop.replaced_by(task)
            if kind == "lingering":
                stepping.victim(task)
        await keyed.close()
        await scope.close()
        assert shop.violations + remains(keyed) == []

    for times in (1, 2):
        for _ in cancel_everywhere(program, times=times):
            pass


def test_a_loop_that_is_closed_under_a_waiter_makes_no_noise() -> None:
    """S4.8: coroutines that the collector ends do their bookkeeping in silence."""

    async def leave() -> None:
        keyed.start("a", asyncio.sleep, 3600)
        waiters.append(asyncio.create_task(keyed.enqueue("a", asyncio.sleep, 0)))
        await turns(2)

    waiters: list[asyncio.Task[Any]] = []
    scope = Scope("bot")
    keyed = KeyedTasks(scope)
    loop = asyncio.new_event_loop()
    loop.run_until_complete(leave())
    loop.close()
    for task in (*scope.tasks, *waiters):
        coro: Any = wrapper_of(task)
        coro.close()
        setattr(task, "_log_destroy_pending", False)  # noqa: B010
    assert remains(keyed) == []
    assert scope.close_from_thread(timeout=0).clean
    del task, coro
    waiters.clear()
    gc.collect()
