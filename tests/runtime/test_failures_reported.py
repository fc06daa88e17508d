"""on_failure="report": told to the loop, unless somebody awaits the task. Our own bookkeeping
hangs on a task, too, and that is nobody who would look at its error. S4.7."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast import Restart, Scope
from tests.runtime.workshop import turns
from tests.stepping import run_on


async def fail() -> None:
    await asyncio.sleep(0)
    raise ValueError("work")


@pytest.mark.parametrize("birth", ["spawn", "spawn with uses", "serve"])
@pytest.mark.parametrize("awaited", [False, True])
def test_a_failure_that_nobody_awaits_is_told_to_the_loop_at_once(
    kind: str, birth: str, awaited: bool
) -> None:
    """S4.7: and not when the collector finds the task."""

    async def main() -> None:
        told: list[dict[str, Any]] = []
        loop = asyncio.get_running_loop()
        before = loop.get_exception_handler()
        loop.set_exception_handler(lambda _, context: told.append(context))
        scope = Scope("services", on_failure="report")
        used = scope.spawn(asyncio.sleep(3600))
        if birth == "serve":
            task = scope.serve(fail, restart=Restart(when="never"))
        else:
            task = scope.spawn(fail(), uses=used if birth == "spawn with uses" else ())
        if awaited:
            with pytest.raises(ValueError, match="work"):
                await task
        await turns(4)
        assert [type(context["exception"]) for context in told] == [ValueError] * (not awaited)
        await scope.close()
        loop.set_exception_handler(before)

    run_on(kind, main())
