"""`Process`: one child process, owned, whose end leaves nothing behind.

This is the public face: what may be asked for, and when. The child's events and the order of its
teardown are in `child.py`, its output in `pipes.py`. It keeps S1.3, S1.6 and S1.8.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import warnings
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from holdfast.origin import Origin
from holdfast.runtime.child import Child
from holdfast.runtime.command import Argument, Command
from holdfast.runtime.durations import seconds
from holdfast.runtime.errors import WrongLoop
from holdfast.runtime.exit_status import ExitStatus
from holdfast.runtime.launching import launch
from holdfast.runtime.patience import join_patiently
from holdfast.runtime.pipes import Pipe
from holdfast.runtime.process_group import require_process_groups

__all__ = ["ExitStatus", "Process"]

# How long a start that is no longer wanted may go on. It takes a few turns of the loop; only a loop
# with a bug of its own would need longer.
START_PATIENCE = 5.0


class Process:
    r"""A child process in a session of its own; leaving it ends it and all that it started.

    >>> import asyncio, holdfast
    >>> async def main():
    ...     async with holdfast.Process("bash", "-c", "read name; echo hello $name") as process:
    ...         await process.send(b"world\n")
    ...         async for line in process.stdout.lines():
    ...             print(line)
    ...         return await process.wait()
    >>> asyncio.run(main()).code
    b'hello world\n'
    0

    Both outputs are read from the first moment, whether anybody listens or not, and at most `keep`
    bytes of each are kept: see `Pipe`. Standard input is a pipe; `send_eof()` ends it.

    Closing sends TERM to the whole process group, reads on until it has ended or `grace` seconds have
    passed, sends KILL to what is left, and reaps. A descendant that left the group on purpose (setsid,
    a daemon) is out of reach; it can hold a pipe open, and then closing gives that pipe up after a
    second. One Process is one child: to start the program again, make another.
    """

    def __init__(
        self,
        *argv: Argument,
        env: Mapping[str, str] | None = None,
        cwd: Argument | None = None,
        grace: float = 5.0,
        keep: int = 65536,
    ) -> None:
        require_process_groups()
        self.origin = Origin.here(1)
        self._command = Command(argv, env, cwd, self.origin)
        self._grace = seconds("grace", grace)
        _check_keep(keep)
        self.stdout = Pipe(f"stdout of {self._command.program}", keep)
        self.stderr = Pipe(f"stderr of {self._command.program}", keep)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._unborn: Child | None = None
        self._starting: asyncio.Task[Child] | None = None
        self._teardown: asyncio.Task[None] | None = None
        self._closed_unstarted = False

    # Beginning.

    async def start(self) -> Self:
        """Start the program. `async with` does it for you; without it, close() is yours to call."""
        if self._starting is not None or self._closed_unstarted:
            raise RuntimeError(
                f"{self!r} was {'closed' if self._closed_unstarted else 'started'} before; "
                "one Process is one child, so make another"
            )
        self._loop = asyncio.get_running_loop()
        self._unborn = Child(self._loop, str(self._command), self.stdout, self.stderr)
        self._starting = launch(self._loop, self._command, self._unborn)
        try:
            await asyncio.wait({self._starting})
        except asyncio.CancelledError as cancel:
            await self._join_start()
            if self._child is not None:
                await self._join_teardown(0.0, cancel)
            raise
        self._starting.result()
        return self

    async def _join_start(self) -> asyncio.CancelledError | None:
        """Wait until the start is over, or give it up; give back a cancel of the caller."""
        assert self._starting is not None
        cancel = await join_patiently({self._starting}, START_PATIENCE)
        if not self._starting.done():
            assert self._unborn is not None
            self._unborn.forsake()
            self._starting.cancel()
            cancel = await join_patiently({self._starting}, START_PATIENCE) or cancel
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

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    # Life.

    @property
    def pid(self) -> int:
        """The process id, which is also the number of its group."""
        return self._started().pid

    async def send(self, data: bytes | bytearray | memoryview) -> None:
        """Write to its standard input; waits while that is full.

        Raises ProcessGone once it has ended or is being closed. Messages of several tasks do not mix.
        A cancelled `send` may have written a part.
        """
        _check_bytes(data)
        await self._started().send(memoryview(data).cast("B"))

    async def send_eof(self) -> None:
        """End its standard input, after all that was sent."""
        await self._started().send_eof()

    async def wait(self) -> ExitStatus:
        """Wait until it has exited. Its output may go on: a descendant can hold the pipes.

        Any number of tasks may wait, and cancelling one disturbs nobody.
        """
        child = self._started()
        await child.exited.wait()
        return ExitStatus.of(child.returncode)

    # End.

    async def close(self, grace: float | None = None) -> ExitStatus:
        """End it and its whole group, within `grace` seconds by itself, or else by force.

        Every call joins the one teardown; a shorter grace hurries it. A cancel of the caller is
        raised when the teardown is over, not before: it is bounded. Raises StragglersLeft if even
        SIGKILL did not end somebody.
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
            if cancel is not None:
                raise cancel
        finally:
            del cancel  # it refers to this frame
        return ExitStatus.of(None if child is None else child.returncode)

    async def _join_teardown(
        self, grace: float, cancel: asyncio.CancelledError | None
    ) -> asyncio.CancelledError | None:
        """Begin the one teardown, or hurry it, and wait for it; give back a cancel of the caller."""
        child = self._started()
        if self._teardown is not None:
            child.hurry(grace)
        while True:
            # A task that is cancelled before its first step never enters its coroutine, as when the
            # loop shuts down. Later than that, the teardown does not let itself be cancelled.
            if self._teardown is None or self._teardown.cancelled():
                self._teardown = child.loop.create_task(
                    child.teardown(grace), name=f"close {self._command.program}"
                )
            task = self._teardown
            cancel = await join_patiently({task}) or cancel
            if not task.cancelled():
                break
        error = task.exception()
        if error is not None and cancel is None:
            raise error
        if error is not None:
            # The cancel has to go on, and the error may not get lost.
            child.loop.call_exception_handler({"message": str(error), "exception": error})
        return cancel

    # Guards and names.

    def _started(self) -> Child:
        child = self._child
        if child is None:
            raise RuntimeError(f"{self!r} is not running: `async with` it, or await start()")
        self._check_loop()
        return child

    def _check_loop(self) -> None:
        running = asyncio._get_running_loop()
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
        child: Child | None = getattr(self, "_child", None)  # __init__ may have refused
        if child is None or child.group is None or self._teardown is not None:
            return
        # Nothing may be left behind, so it is killed here, though nobody can wait for it. This may
        # be any thread, and the loop may be closed: the signal goes out at once, the rest if it can.
        child.group.signal(signal.SIGKILL)
        with contextlib.suppress(RuntimeError):
            child.loop.call_soon_threadsafe(child.forsake)
        warnings.warn(
            f"{self!r} was dropped without close; its process group has been killed. Use "
            "`async with`, or await close()",
            ResourceWarning,
            stacklevel=2,
            source=self,
        )


def _check_keep(keep: object) -> None:
    if not isinstance(keep, int):
        raise TypeError(f"keep must be a number of bytes, not {keep!r}")
    if keep < 0:
        raise ValueError(f"keep must be a number of bytes, 0 or more, not {keep!r}")


def _check_bytes(data: object) -> None:
    if not isinstance(data, bytes | bytearray | memoryview):
        raise TypeError(f"send() takes bytes, not {type(data).__name__}; encode text first")
