"""Ending the tasks that were left behind, in bounded rounds.

The first round asks as the loop's own teardown does: one cancel, and time to clean up. Who is
still there after the last round swallows its cancellation; it is taken off asyncio's list, where
the teardown would wait for it for ever.
"""

from __future__ import annotations

import asyncio
from asyncio import AbstractEventLoop, Task
from collections.abc import Iterable, Sequence
from typing import Any

from holdfast.census import Thing
from holdfast.census.tasks import TaskAlive
from holdfast.leaks.settling import pass_time

__all__ = ["end", "end_here"]

# Seconds to end after each cancel. The first leaves a clean-up the time that it needs.
_ROUNDS = (1.0, 0.2, 0.2)
_BEAT = 0.02


def end(things: Sequence[Thing]) -> set[int]:
    """End those of `things` that are tasks; the ids of the tasks that cannot be ended."""
    tasks = _tasks(things)
    for patience in _ROUNDS:
        _ask(tasks)
        for loop, waiting in _by_loop(tasks):
            _wait(loop, waiting, patience)
        tasks = _still_there(tasks)
        if not tasks:
            break
    return _give_up(tasks)


async def end_here(things: Sequence[Thing]) -> set[int]:
    """The same, on the loop that runs in this thread."""
    here = asyncio.get_running_loop()
    tasks = [task for task in _tasks(things) if task.get_loop() is here]
    for patience in _ROUNDS:
        if tasks:
            _ask(tasks)
            await asyncio.wait(tasks, timeout=patience)
            tasks = _still_there(tasks)
    return _give_up(tasks)


def _tasks(things: Iterable[Thing]) -> list[Task[Any]]:
    return [thing.listed for thing in things if isinstance(thing, TaskAlive)]


def _ask(tasks: Iterable[Task[Any]]) -> None:
    for task in tasks:
        loop = task.get_loop()
        if loop.is_running() and loop is not asyncio._get_running_loop():
            try:
                loop.call_soon_threadsafe(task.cancel)
            except RuntimeError:  # closed since
                pass
        elif not loop.is_closed():
            task.cancel()


def _by_loop(
    tasks: Iterable[Task[Any]],
) -> Iterable[tuple[AbstractEventLoop, list[Task[Any]]]]:
    loops: dict[int, tuple[AbstractEventLoop, list[Task[Any]]]] = {}
    for task in tasks:
        loop = task.get_loop()
        loops.setdefault(id(loop), (loop, []))[1].append(task)
    return loops.values()


def _wait(loop: AbstractEventLoop, tasks: Sequence[Task[Any]], patience: float) -> None:
    if loop.is_closed():
        return
    spent = 0.0
    while spent < patience and not all(task.done() for task in tasks):
        if loop.is_running():  # in another thread, which goes on meanwhile
            pass_time([], _BEAT)
            spent += _BEAT
        else:
            _run(loop, tasks, patience)
            spent = patience


def _run(loop: AbstractEventLoop, tasks: Sequence[Task[Any]], patience: float) -> None:
    waiting = asyncio.wait(tasks, timeout=patience)
    try:
        loop.run_until_complete(waiting)
    except RuntimeError:  # stopped by a callback, or it cannot run here
        waiting.close()


def _still_there(tasks: Iterable[Task[Any]]) -> list[Task[Any]]:
    left = []
    for task in tasks:
        if not task.done():
            left.append(task)
        elif not task.cancelled():
            task.exception()  # it has been told of: its error is not told once more
    return left


def _give_up(tasks: Iterable[Task[Any]]) -> set[int]:
    stuck = [task for task in tasks if not task.get_loop().is_closed()]
    for task in stuck:
        asyncio._unregister_task(task)
        setattr(task, "_log_destroy_pending", False)  # noqa: B010 - only asyncio's name for it
    return {id(task) for task in stuck}
