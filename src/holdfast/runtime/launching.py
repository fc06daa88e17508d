"""Starting a program so that nothing can stop it half-way.

A start that is cut in the middle leaves an orphan: the loop knows the pid, and nobody else ever will.
So the start itself is never cut; who asked for it is told afterwards. It keeps S1.8.
"""

from __future__ import annotations

import asyncio
import subprocess
import types
from collections.abc import Awaitable, Callable, Generator
from typing import Any, TypeVar

from holdfast.runtime.child import Child
from holdfast.runtime.command import Command
from holdfast.runtime.patience import out_of_reach

__all__ = ["launch"]

T = TypeVar("T")


def launch(loop: asyncio.AbstractEventLoop, command: Command, child: Child) -> asyncio.Task[Child]:
    """Start the command with `child` as its protocol; the task ends when the child is connected.

    When a loop shuts down it cancels all tasks at once: this one, and the one in which asyncio
    connects the pipes. The child would be killed but not its descendants, and the start would wait
    for ever for pipes that are never connected (#103847, #125502). It takes a few turns of the loop,
    so the two are kept out of reach for that long: what can be cancelled is the caller, who waits
    for the end of the start in any case, and then takes the child down.
    """
    task = loop.create_task(_launch(loop, command, child), name=f"start {command.program}")
    out_of_reach(task)
    return task


async def _launch(loop: asyncio.AbstractEventLoop, command: Command, child: Child) -> Child:
    before = asyncio.all_tasks(loop)

    def hide_the_rest() -> None:
        for task in asyncio.all_tasks(loop) - before:
            out_of_reach(task)

    # On uvloop the child keeps a second copy of each pipe: it cannot close one before it ends.
    start = loop.subprocess_exec(
        lambda: child,
        *command.argv,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=command.env,
        cwd=command.cwd,
        start_new_session=True,
    )
    try:
        await _after_first_step(start, hide_the_rest)
    except BaseException as error:
        child.stdout.end(eof=False)
        child.stderr.end(eof=False)
        child.forsake()
        if isinstance(error, OSError):
            raise command.start_error(error) from error
        raise
    return child


@types.coroutine
def _after_first_step(awaitable: Awaitable[T], then: Callable[[], None]) -> Generator[Any, Any, T]:
    """Await it, and call `then` as soon as it waits for the first time: here, right after the fork."""
    steps = awaitable.__await__()
    try:
        waiting_for = steps.send(None)
        then()
        while True:
            try:
                answer = yield waiting_for
            except BaseException as error:
                waiting_for = steps.throw(error)
            else:
                waiting_for = steps.send(answer)
    except StopIteration as end:
        result: T = end.value
        return result
