"""on_failure="report": reported to the loop, unless the task is awaited. Our own bookkeeping
hangs on a task, too, and that is nobody who would look at its error. S4.7."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from handfast import Restart, Scope
from tests.runtime.scope.workshop import turns
from tests.support.stepping import run_on


async def fail() -> None:
    await asyncio.sleep(0)
    raise ValueError("work")


@pytest.mark.parametrize("creation", ["spawn", "supervise"])
@pytest.mark.parametrize("awaited", [False, True])
def test_a_failure_that_is_not_awaited_is_reported_to_the_loop_at_once(
    kind: str, creation: str, awaited: bool
) -> None:
    """S4.7: and not when the collector finds the task."""

    async def main() -> None:
        reported: list[dict[str, Any]] = []
        loop = asyncio.get_running_loop()
        before = loop.get_exception_handler()
        loop.set_exception_handler(lambda _, context: reported.append(context))
        scope = Scope("services", on_failure="report")
        if creation == "supervise":
            task = scope.supervise(fail, restart=Restart(when="never"))
        else:
            task = scope.spawn(fail())
        if awaited:
            with pytest.raises(ValueError, match="work"):
                await task
        await turns(8)
        assert [type(context["exception"]) for context in reported] == [ValueError] * (not awaited)
        await scope.close()
        loop.set_exception_handler(before)

    run_on(kind, main())
