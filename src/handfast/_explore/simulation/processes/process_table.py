"""The processes of one run: invented pids, and the results of system calls about them.

`os_patches` sends the calls of `os` here. A pid of this table is higher than any pid of a kernel, so
a call that is not redirected reaches no process.
"""

from __future__ import annotations

import os
import sys
from asyncio.log import logger
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from handfast._explore.simulation.processes.pipes import InputPipe, OutputPipe
from handfast._explore.simulation.processes.script import Step
from handfast._explore.simulation.processes.scripted_process import ScriptedProcess
from handfast._origin import Origin

# Linux goes up to 4,194,304, macOS to 99,998.
FIRST_PID = 5_000_001
# How asyncio waits for an exit on this Python: a thread for each child, or a pidfd.
THREADED = sys.version_info < (3, 12) or not hasattr(os, "pidfd_open")


class Child:
    """A child of the program: its process, and the state of its exit."""

    __slots__ = ("late", "origin", "process", "reaped", "transport", "zombie")

    def __init__(self, process: ScriptedProcess, origin: Origin | None) -> None:
        self.process = process
        self.origin = origin
        self.transport: Any = None
        self.zombie = False
        self.reaped = False
        # The program had ended when its exit arrived, so no task waited for it.
        self.late = False


class ProcessTable:
    """The children and grandchildren of one run, past ones included."""

    def __init__(self, loop: Any, report: Callable[[int, int, Any], object]) -> None:
        self.loop = loop
        # The callback of the stock loop for an exit: pid, status, transport.
        self._report = report
        self.children: dict[int, Child] = {}
        self.grandchildren: list[tuple[ScriptedProcess, int]] = []
        self.next_pid = FIRST_PID

    # --- start -------------------------------------------------------------------------------

    def start(
        self,
        name: str,
        stdin: InputPipe | None,
        stdout: OutputPipe | None,
        stderr: OutputPipe | None,
        *,
        own_group: bool,
        origin: Origin | None,
    ) -> Child:
        pid = self._new_pid()
        process = ScriptedProcess(
            self,
            name,
            pid,
            # Without a session of its own a child is in the group of the program, as in POSIX.
            pid if own_group else os.getpgrp(),
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            exit_channel=self.loop.channel(f"exit of {name} {pid}", between=THREADED),
        )
        child = self.children[pid] = Child(process, origin)
        return child

    def fork(self, parent: ScriptedProcess, steps: Iterable[Step], *, leaves: bool) -> None:
        pid = self._new_pid()
        process = ScriptedProcess(
            self,
            f"grandchild of {parent.name}",
            pid,
            pid if leaves else parent.group,
            stdout=parent.stdout,
            stderr=parent.stderr,
        )
        self.grandchildren.append((process, parent.pid))
        process.begin(steps)

    def _new_pid(self) -> int:
        self.next_pid += 1
        return self.next_pid - 1

    # --- system calls ------------------------------------------------------------------------

    def kill(self, pid: int, number: int) -> None:
        self._find(pid).signal(number)

    def killpg(self, group: int, number: int) -> None:
        members = list(self._members(group))
        if not members:
            raise ProcessLookupError(3, "No such process")
        for process in members:
            process.signal(number)

    def getpgid(self, pid: int) -> int:
        return self._find(pid).group

    def waitpid(self, pid: int, options: int) -> tuple[int, int]:
        child = self.children.get(pid)
        if child is None or child.reaped:
            raise ChildProcessError(10, "No child processes")
        if not child.zombie:
            blocks = not options & os.WNOHANG
            if not child.process.exits and blocks:
                self.loop.refuse(
                    f"os.waitpid({pid}, {options})",
                    f"it would block the loop until {child.process.name} ends",
                )
            # A blocking wait for a process that is about to end returns at once.
            if not (blocks or (child.process.exits and self._gone_already(child))):
                return 0, 0
            child.process.ending = True
        child.reaped = True
        return pid, _as_status(child.process.status or 0)

    def _gone_already(self, child: Child) -> bool:
        """Whether a child that is about to exit has done so when the program looks."""
        name = child.process.name
        answer = self.loop.choose(
            "reap",
            2,
            lambda: ("", name),
            lambda n: f"{name} has already exited, and this call takes its status",
        )
        return bool(answer)

    def running(self, group: int) -> list[int]:
        """The members of a group that have not ended."""
        return [process.pid for process in self._members(group) if not process.ending]

    def _find(self, pid: int) -> ScriptedProcess:
        for process in self._all():
            if process.pid == pid:
                return process
        raise ProcessLookupError(3, "No such process")

    def _members(self, group: int) -> Iterator[ScriptedProcess]:
        return (process for process in self._all() if process.group == group)

    def _all(self) -> Iterator[ScriptedProcess]:
        for child in self.children.values():
            if not child.reaped:
                yield child.process
        for process, _ in self.grandchildren:
            if not process.ending:  # process 1 reaps it at once
                yield process

    # --- exits -------------------------------------------------------------------------------

    def exited(self, process: ScriptedProcess) -> None:
        """The watcher of asyncio sees the exit."""
        child = self.children[process.pid]
        child.zombie = True
        # Closing the transport kills the child, and after that it cannot be waited for.
        child.late = self.loop.settling and not (child.reaped or child.transport.is_closing())
        if THREADED:
            status = self._reap(child)
            self.loop.call_soon_threadsafe(self._report, process.pid, status, child.transport)
        else:
            self.loop.enqueue(self._do_wait, child)

    def _do_wait(self, child: Child) -> None:
        status = self._reap(child)
        self._report(child.process.pid, status, child.transport)

    def _reap(self, child: Child) -> int:
        """As in asyncio's watchers: a status that another call took is reported as 255."""
        if child.reaped:
            logger.warning(
                "child process pid %d exit status already read: will report returncode 255",
                child.process.pid,
            )
            return 255
        child.reaped = True
        return child.process.status or 0


def _as_status(code: int) -> int:
    # The encoding of wait(2): exit status in the high byte, signal in the low one.
    return code << 8 if code >= 0 else -code
