"""The traps of asyncio itself: each row of the table, on every Python that runs this.

Where the stock tool falls into the trap, that is shown first, so that the test is known to be
able to fail; then that the runtime does not.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import sys
import threading
import weakref
from collections.abc import AsyncGenerator
from typing import Any

import pytest

import handfast
from tests.support.stepping import Stepping, cancel_everywhere, run_on, run_stepping


async def forever() -> None:
    await asyncio.Event().wait()


def test_a_task_without_other_references_is_not_collected(kind: str) -> None:
    """#88831, #91887: the loop holds tasks weakly."""

    async def waits_on_itself() -> None:
        # Only the task's own frame knows the future: without an owner this is garbage.
        await asyncio.get_running_loop().create_future()

    async def main() -> None:
        scope = handfast.Scope("s")
        alive = weakref.ref(scope.spawn(waits_on_itself()))
        await asyncio.sleep(0)
        gc.collect()
        assert alive() is not None
        report = await scope.close()
        assert len(report.cancelled) == 1

    run_on(kind, main())


def test_a_task_cancelled_before_its_first_step_is_dropped_and_its_coroutine_closed(
    kind: str,
) -> None:
    """S0.1: it never enters its coroutine, so no bookkeeping may live in there."""

    async def main() -> None:
        scope = handfast.Scope("s")
        entered = []

        async def body() -> None:
            entered.append(1)
            await forever()

        task = scope.spawn(body())
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()
        assert len(scope) == 0
        assert entered == ([1] if kind == "eager" else [])
        await scope.close()

    run_on(kind, main())


def test_cancel_does_not_silence_an_error_that_was_not_read() -> None:
    """A task that has failed is harvested, not cancelled."""

    async def program(_: Stepping) -> list[str]:
        async def fail() -> None:
            raise ValueError("first")

        scope = handfast.Scope("s", on_failure="cancel")
        scope.spawn(fail())
        await asyncio.sleep(0)
        report = await scope.close()
        return [repr(ending.error) for ending in report.failed]

    assert run_stepping(program) == ["ValueError('first')"]


def test_the_waiters_cancel_does_not_pass_into_what_it_waits_for() -> None:
    """`await task` would cut the clean-up; a close that is cancelled does not."""

    async def clean_up(log: list[str]) -> None:
        try:
            await forever()
        finally:
            log.append("begin")
            await asyncio.sleep(1)
            log.append("end")

    async def naive(stepping: Stepping) -> list[str]:
        log: list[str] = []

        async def join() -> None:
            task = asyncio.create_task(clean_up(log))
            try:
                await asyncio.sleep(0)
            finally:
                task.cancel()
                await task

        victim = stepping.victim(asyncio.create_task(join()))
        await asyncio.wait({victim})
        await asyncio.sleep(2)
        return log

    async def ours(stepping: Stepping) -> list[str]:
        log: list[str] = []

        async def join() -> None:
            scope = handfast.Scope("s")
            try:
                scope.spawn(clean_up(log))
                await asyncio.sleep(0)
            finally:
                await scope.close()

        victim = stepping.victim(asyncio.create_task(join()))
        await asyncio.wait({victim})
        return log

    assert ["begin"] in list(cancel_everywhere(naive))
    assert all(log in ([], ["begin", "end"]) for log in cancel_everywhere(ours))


def test_a_swallower_does_not_outlast_the_bound() -> None:
    """`timeout(): await task` waits for it; a close does not."""

    async def swallow() -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await forever()
        await asyncio.sleep(1000)

    async def naive(stepping: Stepping) -> float:
        task = asyncio.create_task(swallow())
        await asyncio.sleep(0)
        task.cancel()
        with contextlib.suppress(TimeoutError, asyncio.CancelledError):
            async with asyncio.timeout(5):
                await asyncio.shield(task)
        with contextlib.suppress(asyncio.CancelledError):
            await task
        return stepping.loop.time()

    async def ours(stepping: Stepping) -> float:
        scope = handfast.Scope("s")
        task = scope.spawn(swallow())
        await asyncio.sleep(0)
        report = await scope.close(timeout=5)
        assert len(report.stragglers) == 1
        bounded = stepping.loop.time()
        await asyncio.wait({task})
        return bounded

    assert run_stepping(naive) >= 1000
    assert run_stepping(ours) == pytest.approx(5)


def test_clean_up_gets_one_cancel_and_the_time_it_needs() -> None:
    """Cancelling again and again cuts it short."""

    async def program(_: Stepping) -> int:
        cancels = 0

        async def tidy() -> None:
            nonlocal cancels
            try:
                await forever()
            except asyncio.CancelledError:
                cancels += 1
                for _ in range(3):
                    try:
                        await asyncio.sleep(1)
                    except asyncio.CancelledError:
                        cancels += 1
                raise

        scope = handfast.Scope("s")
        scope.spawn(tidy())
        await asyncio.sleep(0)
        await asyncio.gather(scope.close(), scope.close(), scope.close())
        return cancels

    assert run_stepping(program) == 1


def test_run_comes_to_an_end_where_asyncio_run_waits_for_ever(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async def swallow() -> None:
        while True:
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                pass

    stuck: list[asyncio.Task[None]] = []

    async def main() -> str:
        stuck.append(asyncio.create_task(swallow(), name="swallower"))
        await asyncio.sleep(0)
        return "value"

    assert handfast.run(main(), timeout=0.05) == "value"
    assert "still running" in (said := capsys.readouterr().err)
    assert "'swallower'" in said
    coro: Any = stuck[0].get_coro()
    coro.close()
    # It can end neither way now: keep asyncio from saying so when it is collected.
    stuck[0]._log_destroy_pending = False  # type: ignore[attr-defined]


def test_nested_scopes_do_not_lose_an_outer_cancel() -> None:
    """#116720: asyncio.TaskGroup does on 3.11 and 3.12."""

    async def program(stepping: Stepping) -> tuple[bool, bool]:
        went_on = False

        async def fail() -> None:
            try:
                await forever()
            finally:
                raise ValueError

        async def host() -> None:
            nonlocal went_on
            async with handfast.Scope("outer"):
                try:
                    async with handfast.Scope("inner") as inner:
                        inner.spawn(fail())
                        await asyncio.sleep(5)
                        inner.spawn(_raise(KeyError()))
                except ExceptionGroup:
                    pass
                await asyncio.sleep(1)
                went_on = True

        task = stepping.victim(asyncio.create_task(host()))
        await asyncio.wait({task})
        return task.cancelled(), went_on

    outcomes = list(cancel_everywhere(program))
    assert all(outcome == (True, False) for outcome in outcomes[:-1])
    assert outcomes[-1] == (False, True)


async def _raise(error: BaseException) -> None:
    raise error


def test_the_time_out_around_a_scope_counts_its_cancels_right() -> None:
    """#95289: swallow only back to what was there on entry."""

    async def program(_: Stepping) -> list[str]:
        said: list[str] = []
        try:
            async with asyncio.timeout(10):
                try:
                    async with asyncio.timeout(1):
                        try:
                            async with handfast.Scope("s") as scope:
                                scope.spawn(asyncio.sleep(100))
                                scope.spawn(_fail_late())
                        except* ValueError:
                            said.append("failed")
                        await asyncio.sleep(100)
                except TimeoutError:
                    said.append("inner")
                await asyncio.sleep(100)
        except TimeoutError:
            said.append("outer")
        return said

    async def _fail_late() -> None:
        await asyncio.sleep(0.5)
        raise ValueError

    assert run_stepping(program) == ["failed", "inner", "outer"]


def test_nothing_builds_on_wait_for_or_shield() -> None:
    """#86296, #86802, #155854, #156321: the runtime uses neither."""
    import ast
    import inspect
    import pathlib

    import handfast._runtime

    folder = pathlib.Path(inspect.getfile(handfast._runtime)).parent
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            name = getattr(node, "attr", None) or getattr(node, "id", None)
            assert name not in ("wait_for", "shield"), f"{path}:{node.lineno}"  # type: ignore[attr-defined]


def test_all_tasks_is_not_what_the_registry_is_made_of() -> None:
    """#79151: `all_tasks` is racy against other threads; a snapshot of our own is not."""
    stop = threading.Event()
    errors: list[BaseException] = []

    async def main() -> int:
        scope = handfast.Scope("s")

        def read() -> None:
            try:
                while not stop.is_set():
                    assert all(isinstance(task, asyncio.Task) for task in scope.tasks)
                    len(scope)
            except BaseException as error:
                errors.append(error)

        reader = threading.Thread(target=read)
        reader.start()
        spawned = 0
        for _ in range(200):
            for _ in range(20):
                scope.spawn(asyncio.sleep(0))
                spawned += 1
            await asyncio.sleep(0)
        stop.set()
        reader.join()
        await scope.close()
        return spawned

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        assert asyncio.run(main()) == 4000
    finally:
        sys.setswitchinterval(before)
    assert not errors


def test_bookkeeping_never_raises_into_the_loops_handler() -> None:
    """An end that was seen twice, by a done callback too, disturbs nobody."""

    async def program(_: Stepping) -> int:
        async with handfast.Scope("s") as scope:
            task = scope.spawn(asyncio.sleep(1))
            task.add_done_callback(lambda _: scope.tasks)
            task.cancel()
        return len(scope)

    assert run_stepping(program) == 0


def test_system_exit_in_a_child_finishes_the_bookkeeping_first() -> None:
    """#95571, #102572."""
    scopes: list[handfast.Scope] = []
    log: list[str] = []

    async def tidy() -> None:
        try:
            await forever()
        finally:
            log.append("tidied")

    async def main() -> None:
        async with handfast.Scope("s") as scope:
            scopes.append(scope)
            scope.spawn(tidy())
            await asyncio.sleep(0)
            scope.spawn(_raise(SystemExit(7)))

    with pytest.raises(SystemExit) as caught:
        asyncio.run(main())
    assert caught.value.code == 7
    assert log == ["tidied"]
    assert len(scopes[0]) == 0


def test_a_generator_is_finalised_in_the_task_that_began_it() -> None:
    """#88684, #118944; PEP 789."""

    async def where(log: list[asyncio.Task[Any] | None]) -> AsyncGenerator[int, None]:
        log.append(asyncio.current_task())
        try:
            yield 1
            yield 2
        finally:
            log.append(asyncio.current_task())

    async def program(_: Stepping) -> tuple[bool, bool]:
        plain: list[asyncio.Task[Any] | None] = []
        async for _item in where(plain):
            break
        gc.collect()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        ours: list[asyncio.Task[Any] | None] = []
        async with handfast.stream(where(ours)) as items:
            async for _item in items:
                break
        return plain[0] is plain[1], ours[0] is ours[1]

    assert run_stepping(program) == (False, True)
