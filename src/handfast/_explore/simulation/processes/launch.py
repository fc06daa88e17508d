"""Start a scripted child: its pipes, its entry in the process table, its transport.

One launcher serves one run. It keeps every transport that it created, so that the transports of a
run that was stopped early do not warn afterwards.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from asyncio import unix_events
from types import FrameType
from typing import Any

from handfast._code_owner import first_program_frame, in_package, is_machinery
from handfast._explore.simulation.processes import os_patches
from handfast._explore.simulation.processes.pipe_transports import ReadEnd, WriteEnd
from handfast._explore.simulation.processes.pipes import InputPipe, OutputPipe
from handfast._explore.simulation.processes.popen import ScriptedPopen, ScriptedTransport
from handfast._explore.simulation.processes.process_table import ProcessTable
from handfast._explore.simulation.processes.script import Step, command_line
from handfast._origin import Origin

Targets = tuple[Any, Any, Any]


class Launcher:
    """All children of one run."""

    def __init__(self, loop: Any) -> None:
        self._loop = loop
        self.table = ProcessTable(loop, _report_to(loop))
        self._transports: list[ScriptedTransport | ReadEnd | WriteEnd] = []
        os_patches.enter(self.table)

    def launch(
        self,
        protocol: Any,
        args: Any,
        targets: Targets,
        steps: tuple[Step, ...],
        waiter: asyncio.Future[None],
        extra: Any,
        options: dict[str, Any],
    ) -> ScriptedTransport:
        loop = self._loop
        name = os.path.basename(command_line(args, shell=not isinstance(args, tuple))[0])
        # Checked before the child exists, as `Popen` does.
        for target in targets:
            if target not in (None, subprocess.PIPE, subprocess.DEVNULL, subprocess.STDOUT):
                loop.refuse(
                    f"a child {name!r} with {target!r} as a standard stream",
                    "a scripted child has pipes, DEVNULL and STDOUT, no files",
                )
        stdin, stdout, stderr = self._pipes(f"{name} {self.table.next_pid}", targets)
        child = self.table.start(
            name,
            stdin,
            stdout,
            # One pipe with two names: it ends when both are closed.
            stdout if targets[2] == subprocess.STDOUT else stderr,
            own_group=bool(options.get("start_new_session")) or options.get("process_group") == 0,
            origin=_started_at(),
        )
        transport = ScriptedTransport(
            loop,
            protocol,
            args,
            isinstance(args, str | bytes),
            *targets,
            0,
            waiter=waiter,
            extra=extra,
            popen=ScriptedPopen(child, args, stdin, stdout, stderr),
        )
        child.transport = transport
        self._transports.append(transport)
        # Last: the first steps may post events, which need the transport.
        child.process.begin(steps)
        return transport

    def _pipes(
        self, whose: str, targets: Targets
    ) -> tuple[InputPipe | None, OutputPipe | None, OutputPipe | None]:
        stdin, stdout, stderr = (target == subprocess.PIPE for target in targets)
        return (
            InputPipe(self._loop, f"stdin of {whose}") if stdin else None,
            OutputPipe(self._loop, f"stdout of {whose}") if stdout else None,
            OutputPipe(self._loop, f"stderr of {whose}") if stderr else None,
        )

    def read_end(self, pipe: OutputPipe, protocol: Any, waiter: Any, extra: Any) -> ReadEnd:
        end = ReadEnd(self._loop, pipe, protocol, waiter, extra)
        self._transports.append(end)
        return end

    def write_end(self, pipe: InputPipe, protocol: Any, waiter: Any, extra: Any) -> WriteEnd:
        end = WriteEnd(self._loop, pipe, protocol, waiter, extra)
        self._transports.append(end)
        return end

    def close(self) -> None:
        """End the run: remove the patches, and silence the transports."""
        os_patches.leave(self.table)
        for transport in self._transports:
            transport.silence()


def _report_to(loop: Any) -> Any:
    """The callback with which the stock loop of this Python learns of an exit."""
    stock: Any = unix_events._UnixSelectorEventLoop
    return stock._child_watcher_callback.__get__(loop)


def _started_at() -> Origin | None:
    """The line of the program that started the child, if it is on the stack."""
    caller = sys._getframe(1)
    frame = first_program_frame(caller, end=_is_explorer) or _outermost(caller)
    return Origin(frame.f_code, frame.f_lasti) if frame is not None else None


def _outermost(frame: FrameType | None) -> FrameType | None:
    """The outermost frame of this step: that of a library which starts children in its own task,
    as `Process` does."""
    found = None
    while frame is not None and not _is_explorer(frame.f_code.co_filename):
        if not is_machinery(frame.f_code.co_filename, "explore.processes"):
            found = frame
        frame = frame.f_back
    return found


def _is_explorer(filename: str) -> bool:
    """The one that runs the program; further out nothing is the program's."""
    return in_package(filename, "explore") and not in_package(filename, "explore.processes")
