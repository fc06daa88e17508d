"""A scripted child for asyncio: its own subprocess transport around a `Popen` that starts nothing.

The order of callbacks is that of `asyncio.base_subprocess`, because that code runs.
"""

from __future__ import annotations

import os
import signal
from asyncio import base_subprocess
from collections.abc import Iterator
from typing import Any

from handfast._explore.simulation.processes.pipes import InputPipe, OutputPipe
from handfast._explore.simulation.processes.process_table import Child
from handfast._explorer_internals import order_exit_waiters


class ScriptedPopen:
    """The part of `Popen` that asyncio uses, and a program that gets it from the transport."""

    def __init__(
        self,
        child: Child,
        args: Any,
        stdin: InputPipe | None,
        stdout: OutputPipe | None,
        stderr: OutputPipe | None,
    ) -> None:
        self._table = child.process.table
        self.args = args
        self.pid = child.process.pid
        self.returncode: int | None = None
        self.stdin = stdin
        self.stdout = stdout
        self.stderr = stderr

    def poll(self) -> int | None:
        """As in the real one: if it is first, asyncio does not get the exit status."""
        if self.returncode is None:
            try:
                pid, status = self._table.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:
                # The standard library does the same when the status was taken elsewhere.
                self.returncode = 0
            else:
                if pid:
                    self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def send_signal(self, number: int) -> None:
        # A signal to a reaped pid could reach another process (bpo-38630).
        if self.poll() is None:
            self._table.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class ExitWaiters:
    """The futures that wait for an exit, in place of the set in which asyncio keeps them.

    The order of that set depends on addresses. Any order is possible, so it is a choice; otherwise
    the same schedule would not give the same run.
    """

    def __init__(self, loop: Any) -> None:
        self._loop = loop
        self._waiters: dict[Any, None] = {}

    def add(self, waiter: Any) -> None:
        self._waiters[waiter] = None

    def discard(self, waiter: Any) -> None:
        self._waiters.pop(waiter, None)

    def __iter__(self) -> Iterator[Any]:
        # A copy: a waiter may remove itself while it is woken.
        left = list(self._waiters)
        while left:
            yield left.pop(self._next(len(left)))

    def _next(self, count: int) -> int:
        if count == 1:
            return 0
        return int(
            self._loop.choose(
                "waiters",
                count,
                lambda: tuple(f"waiter{n}" for n in range(count)),
                lambda n: f"waiter {n + 1} of {count} for the exit of a child is woken first",
            )
        )


class ScriptedTransport(base_subprocess.BaseSubprocessTransport):
    """asyncio's transport; its `popen` is an argument."""

    def __init__(self, loop: Any, *args: Any, **options: Any) -> None:
        super().__init__(loop, *args, **options)
        order_exit_waiters(self, lambda: ExitWaiters(loop))

    def _start(self, *, popen: ScriptedPopen, **options: Any) -> None:  # type: ignore[override]
        self._proc: Any = popen

    def silence(self) -> None:
        """Do not warn when this is collected after the run."""
        self._closed = True
