"""Starts a program without being interrupted half-way.

A start that is cancelled in the middle leaves an orphan: only the loop knows the pid. So the start
itself is never cancelled; a cancel of the caller is raised afterwards. It keeps S1.8.
"""

from __future__ import annotations

import asyncio
import types
from collections.abc import Awaitable, Callable, Generator
from typing import Any, TypeVar

from handfast._runtime.process.child import Child
from handfast._runtime.process.command import Command
from handfast._runtime.process.live_groups import begin_start, end_start
from handfast._runtime.process.stdio import popen_target
from handfast._runtime.uncancellable import hide_from_all_tasks, run_uncancelled

T = TypeVar("T")


def launch(loop: asyncio.AbstractEventLoop, command: Command, child: Child) -> asyncio.Task[Child]:
    """Start the command with `child` as its protocol; the task ends when the child is connected.

    The end of a loop cancels all tasks at once: this one, and the one in which asyncio connects
    the pipes. The child would be killed but not its descendants, and the start would wait for
    ever for pipes that are never connected (#103847, #125502). A start takes a few steps of the
    loop, so both tasks are hidden from that. Only the caller can be cancelled; it waits until the
    start has ended, and then ends the child.
    """
    return run_uncancelled(_launch(loop, command, child), f"start {command.program}")


async def _launch(loop: asyncio.AbstractEventLoop, command: Command, child: Child) -> Child:
    pending = begin_start(command)
    before = asyncio.all_tasks(loop)

    def hide_the_rest() -> None:
        for task in asyncio.all_tasks(loop) - before:
            hide_from_all_tasks(task)

    # On uvloop the child has a second copy of each pipe, so it cannot close one before it ends.
    start = loop.subprocess_exec(
        lambda: child,
        *command.argv,
        stdin=popen_target(command.stdin),
        stdout=popen_target(command.stdout),
        stderr=popen_target(command.stderr),
        env=command.env,
        cwd=command.cwd,
        start_new_session=True,
    )
    try:
        await _after_first_step(start, hide_the_rest)
    except BaseException as error:
        child.stdout.end(eof=False)
        child.stderr.end(eof=False)
        child.abandon()
        if isinstance(error, OSError):
            end_start(pending)
            raise command.start_error(error) from error
        if child.group is None:
            # From a signal handler, or out of memory, perhaps after the fork. It stays pending, so
            # that it is looked for again when the interpreter exits.
            pending.kill()
        raise
    end_start(pending)
    return child


@types.coroutine
def _after_first_step(awaitable: Awaitable[T], then: Callable[[], None]) -> Generator[Any, Any, T]:
    """Await it, and call `then` after its first step: here, right after the fork."""
    steps = awaitable.__await__()
    try:
        waiting_for = steps.send(None)
        then()
        while True:
            try:
                value = yield waiting_for
            except BaseException as error:
                waiting_for = steps.throw(error)
            else:
                waiting_for = steps.send(value)
    except StopIteration as end:
        result: T = end.value
        return result
