"""What `on_failure` is if it is not given, and what refused work says about the failure. A20."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from handfast import KeyedTasks, Scope
from handfast.errors import ScopeClosed
from tests.runtime.scope.workshop import turns
from tests.support.stepping import new_loop, run_on


async def fail() -> None:
    raise ValueError("work")


def test_a_kept_scope_does_not_die_of_one_failure(any_kind: str) -> None:
    """A20: the failure is reported to the loop, and the siblings continue."""
    reported: list[BaseException] = []

    async def main() -> str:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: reported.append(context["exception"]))
        scope = Scope("bot")
        sibling = scope.spawn(asyncio.Event().wait())
        scope.spawn(fail())
        await turns(4)
        assert not scope.closing
        assert not sibling.done()
        return str(await scope.close())

    with asyncio.Runner(loop_factory=lambda: new_loop(any_kind)) as runner:
        assert runner.run(main()).splitlines()[0] == "scope 'bot' closed: 1 cancelled"
    assert [repr(error) for error in reported] == ["ValueError('work')"]


def test_a_failure_in_an_entered_scope_cancels_its_siblings(any_kind: str) -> None:
    """A20."""

    async def main() -> None:
        with pytest.raises(ExceptionGroup) as caught:
            async with Scope("batch") as scope:
                sibling = scope.spawn(asyncio.Event().wait())
                scope.spawn(fail())
                await asyncio.Event().wait()
        assert [repr(error) for error in caught.value.exceptions] == ["ValueError('work')"]
        assert sibling.cancelled()

    run_on(any_kind, main())


def test_a_scope_that_is_held_by_a_scope_is_an_entered_one(any_kind: str) -> None:
    """A20: its failure is a failure of the scope that holds it."""

    async def main() -> None:
        with pytest.raises(ExceptionGroup) as caught:
            async with Scope("outer") as outer:
                inner = await outer.hold(Scope("inner"))
                inner.spawn(fail())
                await asyncio.Event().wait()
        assert caught.group_contains(ValueError, match="work")

    run_on(any_kind, main())


async def spawn(scope: Scope) -> None:
    scope.spawn(asyncio.sleep(0))


async def hold(scope: Scope) -> None:
    await scope.hold(asyncio.timeout(None))


async def supervise(scope: Scope) -> None:
    scope.supervise(asyncio.sleep, 0)


async def start(scope: Scope) -> None:
    async def server(ready: Callable[[None], None]) -> None:
        ready(None)

    await scope.start(server)


async def keyed(scope: Scope) -> None:
    KeyedTasks(scope).start("key", fail)


async def submit(scope: Scope) -> None:
    def in_thread() -> Any:
        return scope.submit(fail).result()

    await asyncio.to_thread(in_thread)


@pytest.mark.parametrize("work", [spawn, hold, supervise, start, keyed, submit])
@pytest.mark.parametrize("failure", ["a task", "the body"])
def test_refused_work_is_chained_to_the_failure_that_closed_the_scope(
    any_kind: str, work: Callable[[Scope], Awaitable[None]], failure: str
) -> None:
    """A20."""

    async def main() -> None:
        error = ValueError("work")

        async def raise_it() -> None:
            raise error

        async def late() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                with pytest.raises(ScopeClosed) as caught:
                    await work(scope)
                assert caught.value.__cause__ is error

        with pytest.raises(ExceptionGroup):
            async with Scope("batch") as scope:
                task = scope.spawn(late())
                await asyncio.sleep(0)
                if failure == "the body":
                    raise error
                scope.spawn(raise_it())
        assert task.cancelled()

    run_on(any_kind, main())


def test_a_scope_that_was_closed_on_purpose_has_no_failure_to_name(any_kind: str) -> None:
    """A20."""

    async def main() -> None:
        scope = Scope("bot")
        await scope.close()
        with pytest.raises(ScopeClosed) as caught:
            scope.spawn(asyncio.sleep(0))
        assert caught.value.__cause__ is None

    run_on(any_kind, main())
