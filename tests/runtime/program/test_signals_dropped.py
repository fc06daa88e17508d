"""What is left when a loop has gone under a program: it is dropped without a further word."""

from __future__ import annotations

import asyncio
import gc

import pytest

import handfast


@pytest.mark.filterwarnings("default::ResourceWarning")
def test_a_host_that_is_dropped_with_its_loop_says_nothing_but_that(
    recwarn: pytest.WarningsRecorder,
) -> None:
    """S4.8: the scope says that it was not closed; no error is made up in the dropping."""

    async def main() -> None:
        async with handfast.Scope("hosted") as scope:
            scope.spawn(asyncio.Event().wait(), name="left")
            await asyncio.Event().wait()

    loop = asyncio.new_event_loop()
    task = loop.create_task(main())
    for _ in range(3):
        loop.call_soon(loop.stop)
        loop.run_forever()
    for each in asyncio.all_tasks(loop):
        setattr(each, "_log_destroy_pending", False)  # noqa: B010
    loop.close()
    del task, each, loop
    gc.collect()
    assert ["scope 'hosted'" in str(warning.message) for warning in recwarn] == [True]
