"""An owner that goes away without close still gets a loud, named report."""

from __future__ import annotations

import asyncio
import gc
import weakref
from pathlib import Path

import pytest

import handfast
from tests.support.stepping import Stepping, run_on, run_stepping


async def forever() -> None:
    await asyncio.Event().wait()


def test_a_dropped_scope_names_itself_its_origin_and_its_tasks() -> None:
    """S4.8; and its tasks do not live on without an owner."""

    async def program(_: Stepping) -> None:
        def careless() -> list[asyncio.Task[None]]:
            scope = handfast.Scope("bot")
            return [scope.spawn(forever(), name=name) for name in ("listen", "poll")]

        with pytest.warns(ResourceWarning) as caught:
            tasks = careless()
        message = str(caught[0].message)
        assert "scope 'bot' (created at " in message
        assert Path(__file__).name in message
        assert "listen, poll" in message
        await asyncio.wait(tasks)
        assert all(task.cancelled() for task in tasks)

    run_stepping(program)


def test_a_scope_that_was_closed_or_never_used_says_nothing() -> None:
    async def program(_: Stepping) -> None:
        used = handfast.Scope("used", on_failure="cancel")
        used.spawn(asyncio.sleep(1))
        await used.close()
        finished = handfast.Scope("finished", on_failure="cancel")
        await finished.spawn(asyncio.sleep(1))
        async with handfast.Scope("left") as left:
            left.spawn(asyncio.sleep(1))
        handfast.Scope("unused")
        del used, finished, left
        gc.collect()

    run_stepping(program)


def test_a_failure_in_a_scope_that_is_not_closed_goes_to_the_loops_handler() -> None:
    """An error that nobody has looked at is never lost."""

    async def program(stepping: Stepping) -> str:
        async def fail() -> None:
            raise ValueError("unseen")

        scope = handfast.Scope("bot", on_failure="cancel")
        scope.spawn(fail())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not stepping.errors  # it waits for the report
        del scope
        gc.collect()
        context = stepping.errors.pop()
        assert "was not closed, and one of its tasks failed" in context["message"]
        return repr(context["exception"])

    assert run_stepping(program) == "ValueError('unseen')"


def test_a_scope_dropped_after_its_loop_has_closed_still_speaks() -> None:
    scopes: list[handfast.Scope] = []

    async def main() -> None:
        scopes.append(handfast.Scope("bot"))
        scopes[0].spawn(forever())

    loop = asyncio.new_event_loop()
    loop.run_until_complete(main())
    (task,) = scopes[0].tasks
    task.cancel()
    loop.run_until_complete(asyncio.wait({task}))
    loop.close()
    scopes.clear()  # all its tasks had ended: nothing to say
    gc.collect()

    loop = asyncio.new_event_loop()
    loop.run_until_complete(main())
    (task,) = scopes[0].tasks
    loop.close()
    with pytest.warns(ResourceWarning, match="was dropped without close"):
        scopes.clear()
        gc.collect()
    task._log_destroy_pending = False  # type: ignore[attr-defined]


def test_a_scope_that_could_not_be_made_is_silent() -> None:
    with pytest.raises(ValueError, match="limit"):
        handfast.Scope("bot", limit=-3)
    gc.collect()


def test_a_closed_scope_is_freed_without_the_garbage_collector(any_kind: str) -> None:
    """The look for the closer's own frames leaves no reference cycle."""

    async def main() -> None:
        scope = handfast.Scope("bot")
        await scope.spawn(asyncio.sleep(0))
        await scope.close()
        dropped = weakref.ref(scope)
        gc.disable()
        try:
            del scope
            assert dropped() is None
        finally:
            gc.enable()

    run_on(any_kind, main())
