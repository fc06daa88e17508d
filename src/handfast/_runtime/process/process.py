"""`Process`: one child process, which is ended together with its descendants.

This is the public class, with its checks. The child's events and teardown are in `child.py`, its
output is in `output_pipe.py`. It keeps S1.3, S1.6 and S1.8.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import signal
import warnings
from collections.abc import Mapping
from typing import Self

from handfast._asyncio_internals import create_named_task, running_loop
from handfast._origin import Origin
from handfast._runtime.arguments import seconds, whole_number, wrong_type
from handfast._runtime.errors import WrongLoop
from handfast._runtime.process.child import Child
from handfast._runtime.process.command import Argument, Command
from handfast._runtime.process.exit_status import ExitStatus
from handfast._runtime.process.group import require_process_groups
from handfast._runtime.process.launch import launch
from handfast._runtime.process.live_groups import remove_group
from handfast._runtime.process.output_pipe import Pipe
from handfast._runtime.process.stdio import ErrorOutput, Input, Output
from handfast._runtime.uncancellable import raise_outcome, wait_uncancelled

# Seconds for a start whose caller was cancelled. It takes a few steps of the loop; only a loop with
# a bug of its own would need longer.
START_TIMEOUT = 5.0


class Process:
    r"""A child process in a session of its own; leaving the block ends it and its descendants.

    >>> import asyncio, handfast
    >>> async def main():
    ...     async with handfast.Process("bash", "-c", "read name; echo hello $name") as process:
    ...         await process.send(b"world\n")
    ...         async for line in process.stdout.lines():
    ...             print(line)
    ...         return await process.wait()
    >>> asyncio.run(main()).code
    b'hello world\n'
    0

    Each standard stream is one of these:

    - `"pipe"`, the default for stdin and stdout. Write with `send()` and `send_eof()`. A reader of
      an output gets every byte, whenever it starts: the child waits while much is unread. So an
      output that no one reads may block the child; `wait()` and `send()` warn if that happens.
    - `"keep"`, the default for stderr. The pipe is always drained, so that a child never blocks on
      an output without a reader. Only the first and the last bytes are kept, `keep` in all. Reading
      raises `OutputDropped` where bytes are missing.
    - `"inherit"`: the stream of this program.
    - `"null"`: no input; output is discarded.
    - `"stdout"`, for stderr: both outputs in one pipe.

    See `Pipe` for reading, and `run_process` for a program whose whole output is wanted at its end.

    `close` sends TERM to the whole process group, reads on until it has ended or `grace` seconds
    have passed, sends KILL to what is left, and reaps. A descendant that left the group on purpose
    (setsid, a daemon) cannot be ended; if it keeps a pipe open, `close` abandons that pipe after a
    second. One Process is one child: create another to start the program again.
    """

    def __init__(
        self,
        *argv: Argument,
        env: Mapping[str, str] | None = None,
        cwd: Argument | None = None,
        stdin: Input = "pipe",
        stdout: Output = "pipe",
        stderr: ErrorOutput = "keep",
        grace: float = 5.0,
        keep: int = 65536,
    ) -> None:
        require_process_groups()
        self.origin = Origin.here(1)
        self._command = Command(argv, env, cwd, self.origin, (stdin, stdout, stderr))
        self._grace = seconds("grace", grace)
        whole_number("keep", keep, at_least=0)
        self.stdout = Pipe(f"stdout of {self._command.program}", stdout, keep)
        self.stderr = Pipe(f"stderr of {self._command.program}", stderr, keep)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pid = 0
        self._new_child: Child | None = None
        self._starting: asyncio.Task[Child] | None = None
        self._teardown: asyncio.Task[None] | None = None
        self._closed_unstarted = False

    # --- start -----------------------------------------------------------------------------

    async def start(self) -> Self:
        """Start the program, as `async with` does. Without `async with`, call close() yourself."""
        if self._starting is not None or self._closed_unstarted:
            raise RuntimeError(
                f"{self!r} was {'closed' if self._closed_unstarted else 'started'} before; "
                "one Process is one child, so create another"
            )
        self._loop = asyncio.get_running_loop()
        self._pid = os.getpid()
        self._new_child = Child(self._loop, str(self._command), self.stdout, self.stderr)
        self._starting = launch(self._loop, self._command, self._new_child)
        try:
            await asyncio.wait({self._starting})
        except asyncio.CancelledError as cancel:
            await self._join_start()
            if self._child is not None:
                await self._join_teardown(0.0, cancel)
            raise
        self._starting.result()
        # What the caller starts before its next await, a task too, reads before more output comes.
        self._loop.call_soon(self.stdout.drain)
        self._loop.call_soon(self.stderr.drain)
        return self

    async def _join_start(self) -> asyncio.CancelledError | None:
        """Wait until the start has ended, or stop it; return a cancel of the caller."""
        assert self._starting is not None
        cancel = await wait_uncancelled({self._starting}, START_TIMEOUT)
        if not self._starting.done():
            assert self._new_child is not None
            self._new_child.abandon()
            self._starting.cancel()
            cancel = await wait_uncancelled({self._starting}, START_TIMEOUT) or cancel
        return cancel

    @property
    def _child(self) -> Child | None:
        """The child, once its start has succeeded."""
        task = self._starting
        if task is None or not task.done() or task.cancelled() or task.exception() is not None:
            return None
        return task.result()

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # --- input and exit --------------------------------------------------------------------

    @property
    def pid(self) -> int:
        """The process id, which is also the number of its group."""
        return self._started().pid

    async def send(self, data: bytes | bytearray | memoryview) -> None:
        """Write to its standard input; waits while that is full.

        Raises ProcessGone once it has ended or is being closed. Messages of several tasks do not mix.
        A cancelled `send` may have written a part.
        """
        if not isinstance(data, bytes | bytearray | memoryview):
            raise wrong_type("send", "bytes", data, "encode text first")
        await self._started().send(memoryview(data).cast("B"))

    async def send_eof(self) -> None:
        """End its standard input, after everything that was sent."""
        await self._started().send_eof()

    def send_signal(self, number: int) -> None:
        """Send a signal to the child itself, not to its descendants. ProcessGone if it has ended."""
        self._started().send_signal(signal.Signals(number))

    async def wait(self) -> ExitStatus:
        """Wait until it has exited. A descendant may still have the pipes open and write.

        Any number of tasks may wait, and cancelling one does not affect the others.
        """
        child = self._started()
        await child.wait_for_exit()
        return ExitStatus.of(child.returncode)

    def _collect(self, origin: Origin) -> None:
        """For `run_process`: hold the whole output in memory."""
        self.origin = self._command.origin = origin
        self.stdout = Pipe(self.stdout.name, "keep", 0, limit=math.inf)
        self.stderr = Pipe(self.stderr.name, "keep", 0, limit=math.inf)

    async def _drained(self) -> None:
        """Wait for the end of both outputs, which may come after the exit."""
        await self._started().drained.wait()

    # --- close -----------------------------------------------------------------------------

    async def close(self, grace: float | None = None) -> ExitStatus:
        """End it and its whole group: with SIGTERM, and after `grace` seconds with SIGKILL.

        All calls join one teardown; the shortest grace counts. A cancel of the caller is raised
        when the teardown has ended, not before: it is bounded. Raises StragglersLeft if a process
        has not ended even after SIGKILL.
        """
        grace = self._grace if grace is None else seconds("grace", grace)
        if self._starting is None:
            self._closed_unstarted = True
            return ExitStatus.of(None)
        self._check_loop()
        cancel = await self._join_start()
        child = self._child
        if child is not None:
            cancel = await self._join_teardown(grace, cancel)
        try:
            raise_outcome(None, cancel)
        finally:
            del cancel  # it refers to this frame
        return ExitStatus.of(None if child is None else child.returncode)

    async def _join_teardown(
        self, grace: float, cancel: asyncio.CancelledError | None
    ) -> asyncio.CancelledError | None:
        """Begin the one teardown, or shorten it, and wait; return a cancel of the caller."""
        child = self._started()
        if self._teardown is not None:
            child.shorten_grace(grace)
        while True:
            # A task that is cancelled before its first step never enters its coroutine, as at the
            # end of a loop: then start it again. Later the teardown ignores cancels.
            if self._teardown is None or self._teardown.cancelled():
                self._teardown = create_named_task(
                    child.loop, child.teardown(grace), f"close {self._command.program}"
                )
            task = self._teardown
            cancel = await wait_uncancelled({task}) or cancel
            if not task.cancelled():
                break
        error = task.exception()
        if error is not None and cancel is None:
            raise error
        if error is not None:
            # The cancel must be raised, and the error must not get lost.
            child.loop.call_exception_handler({"message": str(error), "exception": error})
        return cancel

    # --- checks ----------------------------------------------------------------------------

    def _started(self) -> Child:
        child = self._child
        if child is None:
            raise RuntimeError(f"{self!r} is not running: `async with` it, or await start()")
        self._check_loop()
        return child

    def _check_loop(self) -> None:
        if self._pid != os.getpid():
            raise WrongLoop(
                f"{self!r} was started by process {self._pid}, before a fork; it is not here"
            )
        running = running_loop()
        if running is not None and running is not self._loop:
            raise WrongLoop(f"{self!r} belongs to another event loop than this one: {running!r}")

    def __repr__(self) -> str:
        state = "not started"
        child = self._child
        if child is not None:
            code = child.returncode
            state = f"pid {child.pid}, {'running' if code is None else ExitStatus.of(code)}"
        return f"<{self._command}: {state}>"

    def __del__(self) -> None:
        child: Child | None = getattr(self, "_child", None)  # __init__ may have failed
        if child is None or child.group is None or self._teardown is not None:
            return
        # Killed here, without waiting, so that it does not leak. This may be any thread, and the
        # loop may be closed: the signal is sent at once, and the rest follows on the loop.
        child.group.signal(signal.SIGKILL)
        remove_group(child.group)
        with contextlib.suppress(RuntimeError):
            child.loop.call_soon_threadsafe(child.abandon)
        warnings.warn(
            f"{self!r} was dropped without close; its process group has been killed. Use "
            "`async with`, or await close()",
            ResourceWarning,
            stacklevel=2,
            source=self,
        )
