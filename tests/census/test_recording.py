"""Recording: hooks go in with the first who asks, and out with the last; late imports are caught."""

from __future__ import annotations

import asyncio
import subprocess
import sys

from holdfast import census

LATE = """
import asyncio
from holdfast import census

async def main():
    task = asyncio.create_task(asyncio.sleep(60))
    seen = [thing.birth is not None for thing in census.take(["tasks"]).things if thing.task is task]
    task.cancel()
    return seen

with census.recording():
    import uvloop
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        print(runner.run(main()))
"""


def test_hooks_go_in_with_the_first_and_out_with_the_last() -> None:
    plain = asyncio.BaseEventLoop.create_task
    with census.recording():
        ours = asyncio.BaseEventLoop.create_task
        with census.recording():
            assert asyncio.BaseEventLoop.create_task is ours
        assert asyncio.BaseEventLoop.create_task is ours
    assert ours is not plain
    assert asyncio.BaseEventLoop.create_task is plain


def test_uvloop_is_seen_if_it_is_imported_after_the_beginning() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LATE], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "[True]\n"
