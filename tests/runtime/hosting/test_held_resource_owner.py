"""A held resource is entered and left in one owner task, in any order of calls (S3.1, S3.2)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

import anyio
import pytest

import handfast
from tests.runtime.hosting.resources import (
    GROUPS,
    INSIDES,
    Life,
    Uncancelled,
    gone_after,
    outcome,
    resource,
    tear_down_everywhere,
)
from tests.support.failures import errors_into
from tests.support.stepping import Stepping, SteppingLoop, cancel_everywhere, run_on, run_stepping


@pytest.mark.parametrize("kind", ["anyio task group", "anyio cancel scope"])
def test_without_an_owner_a_resource_cannot_be_left_in_another_task(kind: str) -> None:
    async def main() -> None:
        held = resource(Life(pause=0.0), kind)
        await asyncio.create_task(outcome(held.__aenter__))
        await held.__aexit__(None, None, None)

    with pytest.raises(RuntimeError, match="different task"):
        asyncio.run(main())


# --- ways to use a resource and to be rid of it ------------------------------------------------


async def structured(life: Life, kind: str) -> None:
    async with handfast.Scope("s") as scope:
        assert await scope.hold(resource(life, kind)) is life
        await asyncio.sleep(0)


async def body_raises(life: Life, kind: str) -> None:
    with pytest.raises(ExceptionGroup):
        async with handfast.Scope("s") as scope:
            await scope.hold(resource(life, kind))
            raise LookupError


async def times_out(life: Life, kind: str) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(1), handfast.Scope("s") as scope:
            await scope.hold(resource(life, kind))
            await asyncio.sleep(3600)


async def times_out_in_anyio(life: Life, kind: str) -> None:
    life.pause = 0.0  # anyio cancels at each turn, and virtual time stands still while there is one
    with anyio.move_on_after(1):
        async with handfast.Scope("s") as scope:
            await scope.hold(resource(life, kind))
            await asyncio.sleep(3600)


async def releases(life: Life, kind: str) -> None:
    scope = handfast.Scope("s", on_failure="report")
    try:
        value = await scope.hold(resource(life, kind))
        assert await scope.release(value)
        life.check()
        assert not await scope.release(value)
    finally:
        await scope.close()


async def held_and_closed_elsewhere(life: Life, kind: str) -> None:
    scope = handfast.Scope("s", on_failure="report")
    holder = asyncio.create_task(outcome(scope.hold, resource(life, kind)))
    try:
        await asyncio.wait({holder})
    finally:
        await scope.close()
        await asyncio.wait({holder})


MANNERS = [
    structured,
    body_raises,
    times_out,
    times_out_in_anyio,
    releases,
    held_and_closed_elsewhere,
]
Manner = Callable[[Life, str], Awaitable[None]]


@pytest.mark.parametrize("kind", INSIDES)
@pytest.mark.parametrize("manner", MANNERS)
def test_it_is_left_where_it_was_entered_however_often_the_holder_is_cancelled(
    manner: Manner, kind: str
) -> None:
    """S3.1, S3.4: at every step, with one cancel, two and five."""

    async def program(stepping: Stepping) -> str:
        life = Life()
        task = stepping.victim(asyncio.create_task(outcome(gone_after, manner, life, kind)))
        await asyncio.wait({task})
        life.check()
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return "cancelled" if task.cancelled() else task.result()

    for times in (1, 2, 5):
        ends = list(cancel_everywhere(program, times=times))
        assert ends[-1] == "finished"
        assert len(ends) > 10
        assert set(ends) == {"finished", "cancelled"}


@pytest.mark.parametrize("manner", [structured, body_raises, releases, held_and_closed_elsewhere])
def test_it_is_left_where_it_was_entered_on_each_kind_of_loop(kind: str, manner: Manner) -> None:
    """S3.1"""

    async def main() -> None:
        for inner in INSIDES:
            life = Life(pause=0.0)
            async with asyncio.timeout(5):
                await manner(life, inner)
            life.check()
            assert life.ended == 1

    run_on(kind, main())


# --- the end of the loop -----------------------------------------------------------------------


@pytest.mark.parametrize("kind", INSIDES)
@pytest.mark.parametrize("manner", [structured, releases, held_and_closed_elsewhere])
def test_the_loops_teardown_neither_cuts_nor_doubles_the_clean_up(
    manner: Manner, kind: str
) -> None:
    """S3.1: asyncio.run cancels everything at once, at every step: while it is being entered, while
    it is held, in the middle of its clean-up; holder, closer and owner together."""
    lives: list[Life] = []

    async def start() -> asyncio.Task[str]:
        lives.append(Life())
        return asyncio.create_task(outcome(gone_after, manner, lives[-1], kind))

    ends = list(tear_down_everywhere(start))
    assert len(ends) > 5
    assert set(ends) == {"finished", "cancelled"}
    for life in lives:
        life.check()


@pytest.mark.parametrize("kind", INSIDES)
@pytest.mark.parametrize("on_failure", ["cancel", "report"])
def test_a_resource_that_is_not_closed_is_left_by_its_owner_when_the_loop_ends(
    kind: str, on_failure: Any
) -> None:
    """S3.1: main returns without closing its scope."""
    scopes: list[handfast.Scope] = []
    life = Life()

    async def main() -> None:
        scopes.append(handfast.Scope("s", on_failure=on_failure))
        await scopes[0].hold(resource(life, kind))

    with asyncio.Runner(loop_factory=SteppingLoop) as runner:
        runner.run(main())
    life.check()
    assert life.ended == 1


@pytest.mark.parametrize("kind", INSIDES)
def test_a_shutdown_by_hand_that_cancels_all_tasks_again_and_again_cuts_nothing(kind: str) -> None:
    """S3.1: the well-known recipe, at every step of the clean-up."""

    async def program(rounds: int, stepping: Stepping) -> None:
        life = Life()
        scope = handfast.Scope("s", on_failure="report")
        await scope.hold(resource(life, kind))
        for _ in range(rounds):
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()
            await asyncio.sleep(0)
        report = await scope.close()
        assert report.clean
        life.check()

    for rounds in range(8):
        run_stepping(partial(program, rounds))


def test_the_resource_of_a_dropped_scope_is_left_by_its_owner() -> None:
    """S3.1: garbage collection; also what is held below a task of the scope."""
    lives = [Life(), Life()]

    async def main() -> None:
        scope = handfast.Scope("s", on_failure="report")
        await scope.hold(resource(lives[0]))
        scope.spawn(asyncio.sleep(3600))
        await scope.hold(resource(lives[1]))
        with pytest.warns(ResourceWarning, match="dropped without close"):
            del scope
        await asyncio.sleep(5)
        for life in lives:
            life.check()
            assert life.ended == 1, "it was left only by the end of the loop"

    with asyncio.Runner(loop_factory=SteppingLoop) as runner:
        runner.run(main())


# --- the host ----------------------------------------------------------------------------------


@asynccontextmanager
async def with_failing_child(kind: str, fail: asyncio.Event) -> AsyncIterator[None]:
    async def child() -> None:
        await fail.wait()
        raise ValueError("the child")

    if kind == "task group":
        async with asyncio.TaskGroup() as group:
            group.create_task(child())
            yield
    else:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(child)
            yield


@pytest.mark.parametrize("kind", GROUPS)
def test_a_failing_child_of_the_resource_is_an_error_and_no_cancel_of_the_host(kind: str) -> None:
    """S3.2"""

    async def program(stepping: Stepping) -> int:
        seen: list[BaseException] = []
        watch = Uncancelled(stepping, asyncio.current_task())
        fail = asyncio.Event()
        scope = handfast.Scope("s", on_failure=errors_into(seen))
        await scope.hold(with_failing_child(kind, fail))
        fail.set()
        await asyncio.sleep(1)
        [error] = seen
        assert [repr(e) for e in handfast.split_errors(error).operational] == [
            "ValueError('the child')"
        ]
        assert handfast.split_errors(error).cleanup == ()
        assert (await scope.close()).clean
        return watch.most

    assert run_stepping(program) == 0


@pytest.mark.parametrize("kind", GROUPS)
def test_in_a_structured_scope_it_surfaces_as_a_group_and_the_host_is_as_before(kind: str) -> None:
    """S3.2: the scope interrupts its own body, and takes that back."""

    async def program(stepping: Stepping) -> None:
        fail = asyncio.Event()
        with pytest.raises(ExceptionGroup) as caught:
            async with handfast.Scope("s") as scope:
                await scope.hold(with_failing_child(kind, fail))
                fail.set()
                await asyncio.sleep(3600)
        operational = handfast.split_errors(caught.value).operational
        assert [repr(error) for error in operational] == ["ValueError('the child')"]
        host = asyncio.current_task()
        assert host is not None
        assert host.cancelling() == 0
        await asyncio.sleep(0)

    run_stepping(program)


def test_a_cancel_scope_of_the_resource_ends_the_resource_and_nothing_else() -> None:
    """S3.2: it is cancelled from another task, swallows that in its owner, and is gone."""
    life = Life(pause=0.0)

    @asynccontextmanager
    async def cancellable() -> AsyncIterator[anyio.CancelScope]:
        life.enter()
        with anyio.CancelScope() as inner:
            yield inner
        await life.clean_up()

    async def program(stepping: Stepping) -> int:
        watch = Uncancelled(stepping, asyncio.current_task())
        scope = handfast.Scope("s", on_failure="report")
        inner = await scope.hold(cancellable())
        [owner] = scope.tasks
        inner.cancel()
        await asyncio.sleep(1)
        life.check()
        assert not owner.cancelled()
        assert len(scope) == 0
        assert (await scope.close()).clean
        return watch.most

    assert run_stepping(program) == 0


def test_an_owner_that_other_code_cancels_leaves_and_ends_as_cancelled() -> None:
    """S3.2: the holder goes on."""
    life = Life()

    async def program(stepping: Stepping) -> int:
        watch = Uncancelled(stepping, asyncio.current_task())
        scope = handfast.Scope("s", on_failure="report")
        await scope.hold(resource(life))
        [owner] = scope.tasks
        owner.cancel()
        await asyncio.sleep(1)
        life.check()
        assert owner.cancelled()
        assert (await scope.close()).clean
        return watch.most

    assert run_stepping(program) == 0
