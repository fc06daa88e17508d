"""Closing a scope from inside of its own work is refused at once, at any depth (A12)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import handfast
from tests.support.stepping import Stepping, run_on, run_stepping

Close = Callable[[], Awaitable[object]]


async def directly(close: Close) -> None:
    await close()


async def in_a_coroutine(close: Close) -> None:
    await directly(close)


async def in_an_awaited_task(close: Close) -> None:
    await asyncio.create_task(directly(close))


async def in_a_gather(close: Close) -> None:
    await asyncio.gather(asyncio.sleep(0), in_an_awaited_task(close))


async def in_wait_for(close: Close) -> None:
    await asyncio.wait_for(directly(close), 3600)


async def in_a_task_group(close: Close) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(in_a_gather(close))


async def in_a_scope(close: Close) -> None:
    async with handfast.Scope("inner") as scope:
        scope.spawn(in_a_task_group(close))


async def in_a_held_scope(close: Close) -> None:
    async with handfast.Scope("middle") as scope:
        inner = await scope.hold(handfast.Scope("inner"))
        inner.spawn(in_a_scope(close))


async def in_a_scope_that_is_being_closed(close: Close) -> None:
    inner = handfast.Scope("inner", on_failure="cancel")

    async def close_in_clean_up() -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            await in_a_scope(close)

    inner.spawn(close_in_clean_up())
    await asyncio.sleep(0)
    (await inner.close()).raise_if_unclean()


async def in_shielded_clean_up(close: Close) -> None:
    await handfast.shielded(in_a_scope(close))


async def in_a_key(close: Close) -> None:
    async with handfast.Scope("inner") as scope:
        await handfast.KeyedTasks(scope).replace("key", directly, close)


PLACES = [
    directly,
    in_a_coroutine,
    in_an_awaited_task,
    in_a_gather,
    in_wait_for,
    in_a_task_group,
    in_a_scope,
    in_a_held_scope,
    in_a_scope_that_is_being_closed,
    in_shielded_clean_up,
    in_a_key,
]


def leaves(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [leaf for inner in error.exceptions for leaf in leaves(inner)]
    return [error]


@pytest.mark.parametrize("place", PLACES)
def test_a_close_from_inside_of_the_scopes_own_work_is_refused(
    any_kind: str, place: Callable[[Close], Any]
) -> None:
    """A12"""

    async def main() -> None:
        scope = handfast.Scope("outer", timeout=3600)
        refused: list[str] = []

        async def close() -> None:
            try:
                await scope.close()
            except RuntimeError as error:
                refused.append(str(error))
                raise

        async def work() -> None:
            with pytest.raises((RuntimeError, BaseExceptionGroup)) as info:
                await place(close)
            assert {type(leaf) for leaf in leaves(info.value)} == {RuntimeError}

        await scope.spawn(work(), name="work")
        assert len(refused) == 1
        assert "cannot wait for the end of scope 'outer'" in refused[0]
        assert "scope.cancel()" in refused[0]
        assert not scope.closing
        assert (await scope.close()).clean

    run_on(any_kind, main())


def test_a_submitted_call_cannot_close_its_scope(any_kind: str) -> None:
    """A12"""

    async def main() -> None:
        scope = handfast.Scope("outer")
        future = scope.submit(directly, scope.close)
        with pytest.raises(RuntimeError, match="cannot wait for the end of scope 'outer'"):
            await asyncio.wrap_future(future)
        await scope.close()

    run_on(any_kind, main())


def test_a_task_that_no_task_of_the_scope_waits_for_may_close_it(any_kind: str) -> None:
    """A12: it is no part of the scope's work, even if the work has started it."""

    async def main() -> str:
        scope = handfast.Scope("outer")
        closers: list[asyncio.Task[handfast.types.CloseReport]] = []

        async def work() -> None:
            closers.append(asyncio.create_task(scope.close()))
            await asyncio.sleep(3600)

        scope.spawn(work(), name="work")
        while not closers:
            await asyncio.sleep(0)
        return str(await closers[0])

    assert run_on(any_kind, main()) == "scope 'outer' closed: 1 cancelled"


def test_the_block_of_a_scope_cannot_be_entered_by_its_own_task(any_kind: str) -> None:
    """A12: the end of the block would wait for the task that is in it."""

    async def main() -> None:
        scope = handfast.Scope("outer")

        async def work() -> None:
            with pytest.raises(RuntimeError, match="cannot enter scope 'outer'"):
                async with scope:
                    pass

        await scope.spawn(work())
        await scope.close()

    run_on(any_kind, main())


def test_the_host_of_a_block_may_close_it_in_the_block() -> None:
    async def program(_: Stepping) -> str:
        async with handfast.Scope("s") as scope:
            scope.spawn(asyncio.sleep(3600), name="idle")
            return str(await scope.close())

    assert run_stepping(program) == "scope 's' closed: 1 cancelled"


def test_one_of_two_scopes_may_close_the_other() -> None:
    """A12: also when the other one is being closed by a task of the first."""

    async def program(_: Stepping) -> list[str]:
        reports: list[str] = []
        async with handfast.Scope("first") as first:
            second = handfast.Scope("second")

            async def close() -> None:
                reports.append(str(await second.close()))

            second.spawn(asyncio.sleep(3600))
            first.spawn(close())
            first.spawn(close())
        return reports

    assert run_stepping(program) == ["scope 'second' closed: 1 cancelled"] * 2
