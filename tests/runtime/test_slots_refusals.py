"""What slots refuse: at once, with words that help, and with nothing started or left behind."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any

import pytest

from holdfast import (
    HoldfastError,
    Scope,
    ScopeClosed,
    SlotBusy,
    Slots,
    SlotStuck,
    WrongLoop,
)
from tests.runtime.slot_bouts import remains
from tests.runtime.workshop import turns
from tests.stepping import Stepping, run_on, run_stepping

STARTERS = ["replace", "queue", "reject", "keep"]


async def start(slots: Slots, what: str, key: Any, function: Any, *args: Any) -> Any:
    """Any of the four ways to start, as one."""
    started = getattr(slots, what)(key, function, *args)
    return started if what == "reject" else await started


async def linger() -> None:
    """Its clean-up takes two seconds."""
    try:
        await asyncio.sleep(3600)
    finally:
        await asyncio.sleep(2)


async def swallow(finish: asyncio.Future[None]) -> None:
    """It does not end before it is told to, however often it is cancelled."""
    while not finish.done():
        try:
            await asyncio.wait({finish})
        except asyncio.CancelledError:
            pass


# --- a slot that is in use -----------------------------------------------------------------


def test_reject_names_who_has_the_slot(kind: str) -> None:
    """S0.3."""

    async def main() -> None:
        scope = Scope("bot")
        slots = Slots(scope)
        first = slots.reject("user", asyncio.sleep, 3600)
        with pytest.raises(SlotBusy, match=r"slot 'user' is in use by 'sleep', born at .*refusals"):
            slots.reject("user", asyncio.sleep, 3600)
        assert not first.cancelling()
        await slots.cancel("user")
        slots.reject("user", asyncio.sleep, 3600)
        await scope.close()

    run_on(kind, main())


@pytest.mark.parametrize("what", ["replace", "queue"])
def test_reject_does_not_push_in_front_of_who_waits(what: str) -> None:
    """S0.3: a slot that passes from one to the next is not free in between."""

    async def program(stepping: Stepping) -> None:
        scope = Scope("bot")
        slots = Slots(scope)
        present = slots.reject("user", linger)
        await turns(1)
        waiting = asyncio.create_task(start(slots, what, "user", asyncio.sleep, 3600))
        await turns(1)
        said = set()

        def knock() -> None:
            if not waiting.done():
                with pytest.raises(SlotBusy) as refused:
                    slots.reject("user", asyncio.sleep, 0)
                said.add(str(refused.value).partition(" by ")[2].partition(",")[0])

        stepping.at_each_step(knock)
        present.cancel()
        await waiting
        assert said == {"'linger'", "a task that is about to start"}
        await scope.close()

    run_stepping(program)


def test_who_swallows_its_cancel_makes_the_next_one_fail_in_time() -> None:
    """S0.3: rather an error than two live tasks. The deadline counts from the one cancel, so
    whoever comes later does not wait for it again; a slot that gets free works again."""

    async def program(stepping: Stepping) -> None:
        loop = stepping.loop
        scope = Scope("bot")
        slots = Slots(scope, deadline=5)
        finish = loop.create_future()
        stuck = slots.reject("user", swallow, finish)
        await turns(1)
        start_time = loop.time()
        waiting = [
            asyncio.create_task(slots.replace("user", asyncio.sleep, 3600)),
            asyncio.create_task(slots.cancel("user")),
            asyncio.create_task(slots.replace("user", asyncio.sleep, 3600)),
        ]
        await asyncio.wait(waiting)
        assert loop.time() - start_time == 5
        for task in waiting:
            error = task.exception()
            assert isinstance(error, SlotStuck)
            assert isinstance(error, TimeoutError)
        words = str(error)
        assert "slot 'user': 'swallow', born at" in words
        assert "did not end within 5 s of being cancelled; it stands at" in words
        assert words.endswith("in swallow")
        with pytest.raises(SlotStuck):
            await slots.keep("user", asyncio.sleep, 0)
        assert loop.time() - start_time == 5
        assert len(slots._onlookers) == 0  # they have gone, though the task has not
        assert stuck.cancelling() == 1
        assert "user" in slots
        finish.set_result(None)
        assert await slots.keep("user", asyncio.sleep, 0, "free") == "free"
        await scope.close()
        assert remains(slots) == []

    run_stepping(program)


def test_a_deadline_that_is_not_needed_leaves_no_timer() -> None:
    """S0.6: a clean-up that takes its time, but not too long."""

    async def program(stepping: Stepping) -> None:
        scope = Scope("bot")
        slots = Slots(scope)
        slots.reject("user", linger)
        await turns(1)
        await slots.replace("user", asyncio.sleep, 0)
        assert stepping.loop.time() == 2
        await scope.close()

    run_stepping(program)  # which looks for timers at the end


# --- a task that would wait for itself -----------------------------------------------------


@pytest.mark.parametrize("what", ["replace", "queue", "keep", "cancel", "close"])
def test_the_task_of_a_slot_cannot_wait_for_its_own_end(kind: str, what: str) -> None:
    """S0.3: an error at once, instead of a deadlock; and the task goes on."""

    async def main() -> None:
        scope = Scope("bot")
        slots = Slots(scope)

        async def work() -> str:
            with pytest.raises(RuntimeError, match="cannot wait for its own end"):
                if what in STARTERS:
                    await start(slots, what, "user", asyncio.sleep, 0)
                else:
                    await (slots.cancel("user") if what == "cancel" else slots.close())
            await asyncio.sleep(0)
            with pytest.raises(SlotBusy):
                slots.reject("user", asyncio.sleep, 0)
            return "went on"

        assert await slots.keep("user", work) == "went on"
        assert await slots.keep("user", asyncio.sleep, 0, 1) == 1  # not closed, either
        await scope.close()

    run_on(kind, main())


# --- bad input -----------------------------------------------------------------------------


def synchronous() -> None:
    """Not an async function."""


def raising() -> Coroutine[Any, Any, None]:
    raise ZeroDivisionError


@pytest.mark.parametrize("what", STARTERS)
@pytest.mark.parametrize("occupied", [False, True])
def test_a_function_that_is_none_is_refused(kind: str, what: str, occupied: bool) -> None:
    """A call that gives no coroutine, one that raises, a coroutine instead of a function."""

    async def main() -> None:
        scope = Scope("bot")
        slots = Slots(scope)
        if occupied and what in ("replace", "queue"):
            slots.reject("user", asyncio.sleep, 0)
        with pytest.raises(TypeError, match=r"slot 'user' takes an async function, .* gave None"):
            await start(slots, what, "user", synchronous)
        with pytest.raises(ZeroDivisionError):
            await start(slots, what, "user", raising)
        coro: Any = asyncio.sleep(0)
        with pytest.raises(TypeError, match=r"as in replace\(key, fn, arg\)"):
            await start(slots, what, "user", coro)
        assert coro.cr_frame is None  # closed, and so no "never awaited"
        with pytest.raises(TypeError, match="not a function: 5"):
            await start(slots, what, "user", 5)
        assert "user" not in slots
        await scope.close()
        await turns(1)
        assert remains(slots) == []

    run_on(kind, main())


def test_a_present_task_does_not_die_for_a_bad_replacement() -> None:
    """What can be known before is refused before."""

    async def program(stepping: Stepping) -> None:
        scope = Scope("bot")
        slots = Slots(scope)
        present = slots.reject("user", asyncio.sleep, 3600)
        with pytest.raises(TypeError):
            await slots.replace("user", asyncio.sleep(0))  # type: ignore[arg-type]
        closing = asyncio.create_task(scope.close(grace=60))
        await turns(1)
        for what in ("replace", "queue"):
            with pytest.raises(ScopeClosed, match="slot 'user' refused: scope 'bot'"):
                await start(slots, what, "user", asyncio.sleep, 0)
        assert not present.cancelling()
        present.cancel()
        await closing

    run_stepping(program)


def test_who_keeps_may_join_what_is_under_way_in_a_scope_that_drains() -> None:
    """S4.6: joining is no new work."""

    async def program(stepping: Stepping) -> None:
        scope = Scope("bot")
        slots = Slots(scope)
        slots.reject("page", asyncio.sleep, 5, "result")
        closing = asyncio.create_task(scope.close(grace=60))
        await turns(1)
        assert await slots.keep("page", asyncio.sleep, 0, "another") == "result"
        with pytest.raises(ScopeClosed):
            await slots.keep("page", asyncio.sleep, 0)
        assert (await closing).clean

    run_stepping(program)


@pytest.mark.parametrize("what", [*STARTERS, "cancel"])
def test_an_unhashable_key_is_named(what: str) -> None:
    async def main() -> None:
        scope = Scope("bot")
        slots = Slots(scope)
        with pytest.raises(TypeError, match=r"the key of a slot must be hashable, not \['user'\]"):
            if what == "cancel":
                await slots.cancel(["user"])  # type: ignore[arg-type]
            else:
                await start(slots, what, ["user"], asyncio.sleep, 0)
        await scope.close()

    run_on("stock", main())


def test_a_key_that_changes_its_hash_harms_nobody_else(kind: str) -> None:
    """S0.1: the entry cannot be found again, but the task ends as it should."""

    class Key:
        value = 1

        def __hash__(self) -> int:
            return self.value

    async def main() -> None:
        async with Scope("bot") as scope:
            slots = Slots(scope)
            key = Key()
            task = slots.reject(key, asyncio.sleep, 0, "result")
            key.value = 2
            assert await task == "result"
            slots.reject("another", asyncio.sleep, 3600)
            report = await slots.close()
            assert len(report.cancelled) == 1

    run_on(kind, main())


@pytest.mark.parametrize("what", ["replace", "reject", "keep"])
def test_a_call_that_fills_the_slot_itself_is_refused(kind: str, what: str) -> None:
    """S0.3: a plain function may do anything before it gives its coroutine."""

    async def main() -> None:
        scope = Scope("bot")
        slots = Slots(scope)
        inner: list[asyncio.Task[Any]] = []

        def sly() -> Coroutine[Any, Any, None]:
            inner.append(slots.reject("user", asyncio.sleep, 3600))
            return asyncio.sleep(3600)

        with pytest.raises(SlotBusy, match="for slot 'user' has itself used it"):
            await start(slots, what, "user", sly)
        assert scope.tasks == tuple(inner)
        assert "user" in slots
        await scope.close()

    run_on(kind, main())


def test_one_coroutine_is_not_run_twice() -> None:
    """S0.3: a function that gives the same coroutine again."""

    async def main() -> None:
        scope = Scope("bot")
        slots = Slots(scope)
        coro = asyncio.sleep(0, "once")
        task = slots.reject("a", lambda: coro)
        with pytest.raises(HoldfastError, match="is already a task of scope 'bot'"):
            slots.reject("b", lambda: coro)
        assert await task == "once"
        await scope.close()

    run_on("stock", main())


# --- the wrong place -----------------------------------------------------------------------


@pytest.mark.parametrize("what", [*STARTERS, "cancel", "close"])
def test_another_loop_is_refused_and_touches_nothing(what: str) -> None:
    """S2.3: the books change on the loop's own thread only."""
    errors: list[BaseException] = []

    async def elsewhere(slots: Slots) -> None:
        if what in STARTERS:
            await start(slots, what, "user", asyncio.sleep, 0)
        else:
            await (slots.cancel("user") if what == "cancel" else slots.close())

    def thread(slots: Slots) -> None:
        try:
            asyncio.run(elsewhere(slots))
        except BaseException as error:
            errors.append(error)

    async def main() -> None:
        scope = Scope("bot")
        slots = Slots(scope)
        task = slots.reject("user", asyncio.sleep, 3600)
        other = threading.Thread(target=thread, args=(slots,))
        other.start()
        other.join()
        assert [type(error) for error in errors] == [WrongLoop]
        assert not task.cancelling()
        slots.reject("another", asyncio.sleep, 0)  # they are open as before
        await scope.close()

    run_on("stock", main())


def test_without_a_loop_there_is_no_start() -> None:
    scope = Scope("bot")
    slots = Slots(scope)
    with pytest.raises(WrongLoop, match="no event loop runs here"):
        slots.reject("user", asyncio.sleep, 0)
    assert scope.close_from_thread().clean


def test_slots_are_made_of_a_scope_and_a_span_of_time() -> None:
    with pytest.raises(TypeError, match="takes the scope that owns its tasks, not 'bot'"):
        Slots("bot")  # type: ignore[arg-type]
    scope = Scope("bot")
    with pytest.raises(ValueError, match="deadline must be a number of seconds"):
        Slots(scope, deadline=-1)
    slots = Slots(scope)
    assert bool(slots)
    assert len(slots) == 0
    assert scope.close_from_thread().clean
