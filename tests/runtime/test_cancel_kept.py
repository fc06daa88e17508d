"""A16: a cancel of the surrounding task is never lost, even if clean-up raises instead of it.

Each program is cancelled at every step, once and several times, and by a time-out at many moments.
It survives every error that it gets; so it must be cancelled at its next await.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from handfast import KeyedTasks, Restart, Scope, race, shielded, stream
from tests.support.stepping import Stepping, cancel_everywhere, run_stepping


async def work() -> None:
    """Its clean-up fails, if it is cancelled or not."""
    try:
        await asyncio.sleep(1)
    finally:
        await asyncio.sleep(0)
        raise OSError("disk")


class Resource:
    def __init__(self, *, enters: bool = True) -> None:
        self.enters = enters

    async def __aenter__(self) -> None:
        await asyncio.sleep(0.5)
        if not self.enters:
            raise OSError("enter")

    async def __aexit__(self, *_: object) -> None:
        await asyncio.sleep(0.5)
        raise OSError("exit")


async def items() -> AsyncIterator[int]:
    try:
        yield 1
        await asyncio.sleep(0.5)
        yield 2
    finally:
        await asyncio.sleep(0.1)
        raise OSError("clean-up of the generator")


async def nested_scopes() -> None:
    async with Scope() as outer, Scope() as inner:
        inner.spawn(work())
        outer.spawn(work())
        await asyncio.sleep(0.5)


async def body_of_a_scope() -> None:
    async with Scope():
        await work()


async def failing_sibling() -> None:
    async def fail() -> None:
        await asyncio.sleep(0.2)
        raise ValueError("sibling")

    async with Scope() as scope:
        scope.spawn(fail())
        scope.spawn(work())
        await work()


async def scope_with_grace() -> None:
    async with Scope(grace=0.3) as scope:
        scope.spawn(work())
        await asyncio.sleep(0.1)


async def cancelled_scope() -> None:
    async with Scope() as scope:
        scope.spawn(work())
        await asyncio.sleep(0.1)
        scope.cancel()
        await asyncio.sleep(5)


async def held_scope() -> None:
    async with Scope() as scope:
        inner = await scope.hold(Scope())
        inner.spawn(work())
        await asyncio.sleep(0.5)


async def held_resource() -> None:
    async with Scope() as scope:
        resource = Resource()
        await scope.hold(resource)
        await asyncio.sleep(0.2)
        await scope.release(resource)


async def resource_that_fails_to_enter() -> None:
    async with Scope() as scope:
        await scope.hold(Resource(enters=False))


async def only_shielded() -> None:
    await shielded(work())


async def shielded_in_finally() -> None:
    """The cancel comes before the clean-up, which then raises instead of it."""
    try:
        await asyncio.sleep(1)
    finally:
        await shielded(work())


async def shielded_in_a_scope() -> None:
    async with Scope() as scope:
        scope.spawn(work())
        await shielded(work())


async def whole_stream() -> None:
    async with stream(items()) as source:
        async for _ in source:
            await asyncio.sleep(0.1)


async def stream_that_is_left() -> None:
    async with stream(items()) as source:
        async for _ in source:
            break


async def racing() -> None:
    await race(work(), work())


async def starting() -> None:
    async def serve(ready: Callable[[None], None]) -> None:
        await work()

    async with Scope() as scope:
        await scope.start(serve)


async def supervised() -> None:
    async with Scope() as scope:
        scope.supervise(work, restart=Restart(backoff=0.1, intensity=1))
        await asyncio.sleep(3)


async def by_key() -> None:
    async with Scope(on_failure=lambda _: None) as scope:
        keyed = KeyedTasks(scope)
        await keyed.replace("a", work)
        await keyed.replace("a", work)
        await keyed.cancel("a")
        await keyed.share("a", work)
        await keyed.close()


PROGRAMS = [
    nested_scopes,
    body_of_a_scope,
    failing_sibling,
    scope_with_grace,
    cancelled_scope,
    held_scope,
    held_resource,
    resource_that_fails_to_enter,
    only_shielded,
    shielded_in_finally,
    shielded_in_a_scope,
    whole_stream,
    stream_that_is_left,
    racing,
    starting,
    supervised,
    by_key,
]

programs = pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)


@programs
@pytest.mark.parametrize(("times", "gap"), [(1, 1), (2, 1), (2, 3), (3, 2)])
def test_a_cancel_at_any_step_is_kept(
    program: Callable[[], Awaitable[None]], times: int, gap: int
) -> None:
    """A16."""

    async def main(stepping: Stepping) -> bool:
        async def survive() -> None:
            try:
                await program()
            except Exception:
                await asyncio.sleep(0)
            for _ in range(8):
                await asyncio.sleep(0)

        stepping.loop.set_exception_handler(lambda _loop, _context: None)
        task = stepping.victim(asyncio.ensure_future(survive()))
        await asyncio.wait({task})
        return task.cancelled() is stepping.cancelled

    assert set(cancel_everywhere(main, times=times, gap=gap)) == {True}


@programs
def test_a_time_out_that_expires_during_clean_up_is_kept(
    program: Callable[[], Awaitable[None]],
) -> None:
    """A16: and it takes back its own cancel, and no other."""

    async def main(stepping: Stepping) -> int:
        stepping.loop.set_exception_handler(lambda _loop, _context: None)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(until):
                try:
                    await program()
                except Exception:
                    await asyncio.sleep(0)
                await asyncio.Event().wait()
        await asyncio.sleep(0)
        task = asyncio.current_task()
        assert task is not None
        return task.cancelling()

    for moment in range(40):
        until = moment * 0.05
        assert run_stepping(main) == 0, f"a time-out of {until} s"


# If both have come in one step, before the clean-up began, it gets one CancelledError for the two.
@pytest.mark.parametrize(
    "program",
    [each for each in PROGRAMS if each is not shielded_in_finally],
    ids=lambda program: program.__name__,
)
@pytest.mark.parametrize("until", [0.25, 0.75])
def test_a_cancel_that_comes_together_with_a_time_out_is_kept(
    program: Callable[[], Awaitable[None]], until: float
) -> None:
    """A16: the time-out takes back its own cancel, and the other one is left."""

    async def main(stepping: Stepping) -> bool:
        async def survive() -> None:
            try:
                async with asyncio.timeout(until):
                    await program()
            except Exception:
                await asyncio.sleep(0)
            for _ in range(8):
                await asyncio.sleep(0)

        stepping.loop.set_exception_handler(lambda _loop, _context: None)
        task = stepping.victim(asyncio.ensure_future(survive()))
        await asyncio.wait({task})
        return task.cancelled() is stepping.cancelled

    assert set(cancel_everywhere(main)) == {True}
