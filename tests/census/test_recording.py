"""Recording: installs the patches once, and patches late imports."""

from __future__ import annotations

import asyncio
import subprocess
import sys

from handfast import _census as census

LATE = """
import asyncio
from handfast import _census as census

async def main():
    task = asyncio.create_task(asyncio.sleep(60))
    seen = [live.creation is not None for live in census.take(["tasks"]).objects if live.target is task]
    task.cancel()
    return seen

with census.recording():
    import uvloop
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        print(runner.run(main()))
"""


def test_nested_recordings_patch_once() -> None:
    plain = asyncio.BaseEventLoop.create_task
    with census.recording():
        ours = asyncio.BaseEventLoop.create_task
        with census.recording():
            assert asyncio.BaseEventLoop.create_task is ours
        assert asyncio.BaseEventLoop.create_task is ours
    assert ours is not plain
    assert asyncio.BaseEventLoop.create_task is plain


def test_uvloop_is_patched_if_it_is_imported_during_a_recording() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LATE], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "[True]\n"
