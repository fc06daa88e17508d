"""What `KeyedTasks` refuses: at once, with a helpful message, and with nothing started or leaked."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any

import pytest

from handfast import KeyedTasks, Scope
from handfast.errors import HandfastError, KeyBusy, KeyStuck, ScopeClosed, WrongLoop
from tests.runtime.keyed_tasks.random_sequences import remains
from tests.runtime.scope.workshop import turns
from tests.support.stepping import Stepping, run_on, run_stepping

STARTERS = ["replace", "enqueue", "start", "share"]


async def start(keyed: KeyedTasks, what: str, key: Any, function: Any, *args: Any) -> Any:
    """Any of the four ways to start, as one."""
    started = getattr(keyed, what)(key, function, *args)
    return started if what == "start" else await started


async def linger() -> None:
    """Its clean-up takes two seconds."""
    try:
        await asyncio.sleep(3600)
    finally:
        await asyncio.sleep(2)


async def swallow(finish: asyncio.Future[None]) -> None:
    """It does not end before its event is set, however often it is cancelled."""
    while not finish.done():
        try:
            await asyncio.wait({finish})
        except asyncio.CancelledError:
            pass


# --- a key that is in use -----------------------------------------------------------------


def test_start_names_the_task_of_the_key(kind: str) -> None:
    """S0.3."""

    async def main() -> None:
        scope = Scope("bot")
        keyed = KeyedTasks(scope)
        first = keyed.start("user", asyncio.sleep, 3600)
        with pytest.raises(
            KeyBusy, match=r"key 'user' is in use by 'sleep', created at .*refusals"
        ):
            keyed.start("user", asyncio.sleep, 3600)
        assert not first.cancelling()
        await keyed.cancel("user")
        keyed.start("user", asyncio.sleep, 3600)
        await scope.close()

    run_on(kind, main())


@pytest.mark.parametrize("what", ["replace", "enqueue"])
def test_start_does_not_push_in_front_of_waiters(what: str) -> None:
    """S0.3: a key that passes from one to the next is not free in between."""

    async def program(stepping: Stepping) -> None:
        scope = Scope("bot")
        keyed = KeyedTasks(scope)
        present = keyed.start("user", linger)
        await turns(1)
        waiting = asyncio.create_task(start(keyed, what, "user", asyncio.sleep, 3600))
        await turns(1)
        said = set()

        def knock() -> None:
            if not waiting.done():
                with pytest.raises(KeyBusy) as refused:
                    keyed.start("user", asyncio.sleep, 0)
                said.add(str(refused.value).partition(" by ")[2].partition(",")[0])

        stepping.at_each_step(knock)
        present.cancel()
        await waiting
        assert said == {"'linger'", "a task that is about to start"}
        await scope.close()

    run_stepping(program)


def test_a_task_that_swallows_its_cancel_makes_the_next_one_fail_in_time() -> None:
    """S0.3: rather an error than two live tasks. The deadline counts from the one cancel, so
    later callers do not wait for it again; a key that gets free works again."""

    async def program(stepping: Stepping) -> None:
        loop = stepping.loop
        scope = Scope("bot")
        keyed = KeyedTasks(scope, timeout=5)
        finish = loop.create_future()
        stuck = keyed.start("user", swallow, finish)
        await turns(1)
        start_time = loop.time()
        waiting = [
            asyncio.create_task(keyed.replace("user", asyncio.sleep, 3600)),
            asyncio.create_task(keyed.cancel("user")),
            asyncio.create_task(keyed.replace("user", asyncio.sleep, 3600)),
        ]
        await asyncio.wait(waiting)
        assert loop.time() - start_time == 5
        for task in waiting:
            error = task.exception()
            assert isinstance(error, KeyStuck)
            assert isinstance(error, TimeoutError)
        words = str(error)
        assert "key 'user': 'swallow', created at" in words
        assert "did not end within 5 s of being cancelled; it is waiting at" in words
        assert words.endswith("in swallow")
        with pytest.raises(KeyStuck):
            await keyed.share("user", asyncio.sleep, 0)
        assert loop.time() - start_time == 5
        assert len(keyed._waiters) == 0  # they have gone, though the task has not
        assert stuck.cancelling() == 1
        assert "user" in keyed
        finish.set_result(None)
        assert await keyed.share("user", asyncio.sleep, 0, "free") == "free"
        await scope.close()
        assert remains(keyed) == []

    run_stepping(program)


def test_a_deadline_that_is_not_needed_leaves_no_timer() -> None:
    """S0.6: a clean-up that takes its time, but not too long."""

    async def program(stepping: Stepping) -> None:
        scope = Scope("bot")
        keyed = KeyedTasks(scope)
        keyed.start("user", linger)
        await turns(1)
        await keyed.replace("user", asyncio.sleep, 0)
        assert stepping.loop.time() == 2
        await scope.close()

    run_stepping(program)  # which looks for timers at the end


# --- a task that would wait for itself -----------------------------------------------------


@pytest.mark.parametrize("what", ["replace", "enqueue", "share", "cancel", "close"])
def test_the_task_of_a_key_cannot_wait_for_its_own_end(kind: str, what: str) -> None:
    """S0.3: an error at once, instead of a deadlock; and the task goes on."""

    async def main() -> None:
        scope = Scope("bot")
        keyed = KeyedTasks(scope)

        async def work() -> str:
            with pytest.raises(RuntimeError, match="cannot wait for its own end"):
                if what in STARTERS:
                    await start(keyed, what, "user", asyncio.sleep, 0)
                else:
                    await (keyed.cancel("user") if what == "cancel" else keyed.close())
            await asyncio.sleep(0)
            with pytest.raises(KeyBusy):
                keyed.start("user", asyncio.sleep, 0)
            return "went on"

        assert await keyed.share("user", work) == "went on"
        assert await keyed.share("user", asyncio.sleep, 0, 1) == 1  # not closed, either
        await scope.close()

    run_on(kind, main())


# --- bad input -----------------------------------------------------------------------------


def synchronous() -> None:
    """Not an async function."""


def raising() -> Coroutine[Any, Any, None]:
    raise ZeroDivisionError


@pytest.mark.parametrize("what", STARTERS)
@pytest.mark.parametrize("occupied", [False, True])
def test_what_is_not_a_function_is_refused(kind: str, what: str, occupied: bool) -> None:
    """A call that gives no coroutine, one that raises, a coroutine instead of a function."""

    async def main() -> None:
        scope = Scope("bot")
        keyed = KeyedTasks(scope)
        if occupied and what in ("replace", "enqueue"):
            keyed.start("user", asyncio.sleep, 0)
        with pytest.raises(TypeError, match=r"key 'user' takes an async function, .* gave None"):
            await start(keyed, what, "user", synchronous)
        with pytest.raises(ZeroDivisionError):
            await start(keyed, what, "user", raising)
        coro: Any = asyncio.sleep(0)
        with pytest.raises(TypeError, match=r"as in [a-z]+\(key, fn, arg\)"):
            await start(keyed, what, "user", coro)
        assert coro.cr_frame is None  # closed, and so no "never awaited"
        with pytest.raises(TypeError, match="its arguments, not 5"):
            await start(keyed, what, "user", 5)
        assert "user" not in keyed
        await scope.close()
        await turns(1)
        assert remains(keyed) == []

    run_on(kind, main())


def test_a_present_task_does_not_die_for_a_bad_replacement() -> None:
    """What can be known before is refused before."""

    async def program(stepping: Stepping) -> None:
        scope = Scope("bot")
        keyed = KeyedTasks(scope)
        present = keyed.start("user", asyncio.sleep, 3600)
        with pytest.raises(TypeError):
            await keyed.replace("user", asyncio.sleep(0))  # type: ignore[arg-type]
        closing = asyncio.create_task(scope.close(grace=60))
        await turns(1)
        for what in ("replace", "enqueue"):
            with pytest.raises(ScopeClosed, match="key 'user' refused: scope 'bot'"):
                await start(keyed, what, "user", asyncio.sleep, 0)
        assert not present.cancelling()
        present.cancel()
        await closing

    run_stepping(program)


def test_who_keeps_may_join_what_is_under_way_in_a_scope_that_drains() -> None:
    """S4.6: joining is no new work."""

    async def program(stepping: Stepping) -> None:
        scope = Scope("bot")
        keyed = KeyedTasks(scope)
        keyed.start("page", asyncio.sleep, 5, "result")
        closing = asyncio.create_task(scope.close(grace=60))
        await turns(1)
        assert await keyed.share("page", asyncio.sleep, 0, "another") == "result"
        with pytest.raises(ScopeClosed):
            await keyed.share("page", asyncio.sleep, 0)
        assert (await closing).clean

    run_stepping(program)


@pytest.mark.parametrize("what", [*STARTERS, "cancel"])
def test_an_unhashable_key_is_named(what: str) -> None:
    async def main() -> None:
        scope = Scope("bot")
        keyed = KeyedTasks(scope)
        with pytest.raises(TypeError, match=r"a key must be hashable, not \['user'\]"):
            if what == "cancel":
                await keyed.cancel(["user"])  # type: ignore[arg-type]
            else:
                await start(keyed, what, ["user"], asyncio.sleep, 0)
        await scope.close()

    run_on("stock", main())


def test_a_key_that_changes_its_hash_does_not_affect_other_keys(kind: str) -> None:
    """S0.1: the entry cannot be found again, but the task ends as it should."""

    class Key:
        value = 1

        def __hash__(self) -> int:
            return self.value

    async def main() -> None:
        async with Scope("bot") as scope:
            keyed = KeyedTasks(scope)
            key = Key()
            task = keyed.start(key, asyncio.sleep, 0, "result")
            key.value = 2
            assert await task == "result"
            keyed.start("another", asyncio.sleep, 3600)
            report = await keyed.close()
            assert len(report.cancelled) == 1

    run_on(kind, main())


@pytest.mark.parametrize("what", ["replace", "start", "share"])
def test_a_call_that_uses_the_key_itself_is_refused(kind: str, what: str) -> None:
    """S0.3: a plain function may do anything before it gives its coroutine."""

    async def main() -> None:
        scope = Scope("bot")
        keyed = KeyedTasks(scope)
        inner: list[asyncio.Task[Any]] = []

        def sly() -> Coroutine[Any, Any, None]:
            inner.append(keyed.start("user", asyncio.sleep, 3600))
            return asyncio.sleep(3600)

        with pytest.raises(KeyBusy, match="for key 'user' has started a task for it"):
            await start(keyed, what, "user", sly)
        assert scope.tasks == tuple(inner)
        assert "user" in keyed
        await scope.close()

    run_on(kind, main())


def test_one_coroutine_is_not_run_twice() -> None:
    """S0.3: a function that gives the same coroutine again."""

    async def main() -> None:
        scope = Scope("bot")
        keyed = KeyedTasks(scope)
        coro = asyncio.sleep(0, "once")
        task = keyed.start("a", lambda: coro)
        with pytest.raises(HandfastError, match="is already a task of scope 'bot'"):
            keyed.start("b", lambda: coro)
        assert await task == "once"
        await scope.close()

    run_on("stock", main())


# --- the wrong place -----------------------------------------------------------------------


@pytest.mark.parametrize("what", [*STARTERS, "cancel", "close"])
def test_another_loop_is_refused_and_touches_nothing(what: str) -> None:
    """S2.3: the books change on the loop's own thread only."""
    errors: list[BaseException] = []

    async def elsewhere(keyed: KeyedTasks) -> None:
        if what in STARTERS:
            await start(keyed, what, "user", asyncio.sleep, 0)
        else:
            await (keyed.cancel("user") if what == "cancel" else keyed.close())

    def thread(keyed: KeyedTasks) -> None:
        try:
            asyncio.run(elsewhere(keyed))
        except BaseException as error:
            errors.append(error)

    async def main() -> None:
        scope = Scope("bot")
        keyed = KeyedTasks(scope)
        task = keyed.start("user", asyncio.sleep, 3600)
        other = threading.Thread(target=thread, args=(keyed,))
        other.start()
        other.join()
        assert [type(error) for error in errors] == [WrongLoop]
        assert not task.cancelling()
        keyed.start("another", asyncio.sleep, 0)  # they are open as before
        await scope.close()

    run_on("stock", main())


def test_without_a_loop_there_is_no_start() -> None:
    scope = Scope("bot")
    keyed = KeyedTasks(scope)
    with pytest.raises(WrongLoop, match="no event loop runs here"):
        keyed.start("user", asyncio.sleep, 0)
    assert scope.close_from_thread().clean


def test_they_are_made_of_a_scope_and_a_span_of_time() -> None:
    with pytest.raises(TypeError, match="takes the scope that owns its tasks, not 'bot'"):
        KeyedTasks("bot")  # type: ignore[arg-type]
    scope = Scope("bot")
    with pytest.raises(ValueError, match="timeout must be a number of seconds"):
        KeyedTasks(scope, timeout=-1)
    keyed = KeyedTasks(scope)
    assert bool(keyed)
    assert len(keyed) == 0
    assert scope.close_from_thread().clean
