"""A scripted child as asyncio holds it: its own subprocess transport around a `Popen` that has
started nothing.

The order of callbacks is that of asyncio's `base_subprocess`, because it is that code.
"""

from __future__ import annotations

import os
import signal
from asyncio import base_subprocess
from typing import Any

from holdfast.explore.twins.children.pipes import InputPipe, OutputPipe
from holdfast.explore.twins.children.table import Child

__all__ = ["ScriptedPopen", "ScriptedTransport"]


class ScriptedPopen:
    """What asyncio, and a program that asks the transport for its `subprocess`, need of a Popen."""

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
        """As the real one: it takes the exit status away from asyncio if it comes first."""
        if self.returncode is None:
            try:
                pid, status = self._table.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:
                self.returncode = 0
            else:
                if pid:
                    self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            self._table.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class ScriptedTransport(base_subprocess.BaseSubprocessTransport):
    """asyncio's transport; its `popen` is given, not started."""

    def _start(self, *, popen: ScriptedPopen, **options: Any) -> None:  # type: ignore[override]
        self._proc: Any = popen

    def forget(self) -> None:
        """The run is over: nobody is to be warned any more."""
        self._closed = True
