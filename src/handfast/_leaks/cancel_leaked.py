"""Cancel leaked tasks, in bounded rounds.

The first round does what the loop's own teardown does: one cancel, and time to clean up. A task
that survives the last round swallows its cancellation. It is removed from asyncio's list, where
the teardown would wait for it forever.
"""

from __future__ import annotations

from asyncio import Task
from collections.abc import Iterable
from typing import Any

from handfast._asyncio_internals import mute_destroyed_warning, running_loop, unregister_task
from handfast._census import LiveObject
from handfast._leaks.settle import Pause, Steps, pauses

# Seconds to end after each cancel. The first leaves time for a clean-up.
_ROUNDS = (1.0, 0.2, 0.2)


def cancel_leaked(leaked: Iterable[LiveObject]) -> Steps[set[int]]:
    """Cancel the tasks among `leaked`; the ids of those that cannot be ended.

    On a running loop, only the tasks of that loop: others cannot run meanwhile.
    """
    here = running_loop()
    tasks = [live.task_to_cancel for live in leaked if live.task_to_cancel is not None]
    tasks = [task for task in tasks if here is None or task.get_loop() is here]
    for seconds in _ROUNDS:
        for task in tasks:
            _cancel(task)
        for pause in pauses(seconds):
            waiting = [task for task in tasks if _may_end(task)]
            if not waiting:
                break
            yield Pause(pause, [task.get_loop() for task in waiting])
        tasks = _pending(tasks)
    return _give_up(tasks)


def _cancel(task: Task[Any]) -> None:
    loop = task.get_loop()
    if loop.is_running() and loop is not running_loop():
        try:
            loop.call_soon_threadsafe(task.cancel)
        except RuntimeError:  # closed since
            pass
    elif not loop.is_closed():
        task.cancel()


def _may_end(task: Task[Any]) -> bool:
    return not task.done() and not task.get_loop().is_closed()


def _pending(tasks: Iterable[Task[Any]]) -> list[Task[Any]]:
    pending = []
    for task in tasks:
        if not task.done():
            pending.append(task)
        elif not task.cancelled():
            task.exception()  # the leak is reported: asyncio shall not log this error as well
    return pending


def _give_up(tasks: Iterable[Task[Any]]) -> set[int]:
    stuck = [task for task in tasks if not task.get_loop().is_closed()]
    for task in stuck:
        unregister_task(task)
        mute_destroyed_warning(task)
    return {id(task) for task in stuck}
