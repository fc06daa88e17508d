"""What the tests of the runtime share: a small heap and few tasks, since hundreds of them look at all."""

from __future__ import annotations

import asyncio
import gc

import pytest

from handfast._asyncio_internals import snapshot, task_sets


@pytest.fixture(autouse=True, scope="module")
def frozen_heap() -> None:
    """Freeze the heap again: an exploration, here or in another file, unfreezes all of it."""
    # Until 3.13 `asyncio.all_tasks` goes through each ended task that anything still refers to.
    for tasks in task_sets():
        for task in snapshot(tasks):
            if task.done():
                asyncio._unregister_task(task)
    gc.collect()
    gc.freeze()
