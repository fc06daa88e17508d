"""Starting a scripted child: its pipes, its place in the table of processes, its transport.

One launcher serves one run. It remembers every transport that it made, so that those of a run that
was cut in the middle do not warn afterwards.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from asyncio import unix_events
from typing import Any

from holdfast import runtime
from holdfast.explore.twins.children import reach
from holdfast.explore.twins.children.ends import ReadEnd, WriteEnd
from holdfast.explore.twins.children.pipes import InputPipe, OutputPipe
from holdfast.explore.twins.children.popen import ScriptedPopen, ScriptedTransport
from holdfast.explore.twins.children.scripts import words
from holdfast.explore.twins.children.steps import Step
from holdfast.explore.twins.children.table import Table
from holdfast.origin import Origin

__all__ = ["Launcher"]

_ASYNCIO = os.path.dirname(asyncio.__file__)
_RUNTIME = os.path.dirname(runtime.__file__)
_TWIN = os.path.dirname(__file__)
_EXPLORER = os.path.dirname(os.path.dirname(_TWIN))

Targets = tuple[Any, Any, Any]


class Launcher:
    """All children of one run."""

    def __init__(self, loop: Any) -> None:
        self._loop = loop
        self.table = Table(loop, _report_to(loop))
        self._made: list[ScriptedTransport | ReadEnd | WriteEnd] = []
        reach.enter(self.table)

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
        name = os.path.basename(words(args, shell=not isinstance(args, tuple))[0])
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
        self._made.append(transport)
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
        self._made.append(end)
        return end

    def write_end(self, pipe: InputPipe, protocol: Any, waiter: Any, extra: Any) -> WriteEnd:
        end = WriteEnd(self._loop, pipe, protocol, waiter, extra)
        self._made.append(end)
        return end

    def close(self) -> None:
        """The run is over, whatever became of it."""
        reach.leave(self.table)
        for transport in self._made:
            transport.forget()


def _report_to(loop: Any) -> Any:
    """How the stock loop of this Python takes the news of an exit."""
    stock: Any = unix_events._UnixSelectorEventLoop
    return stock._child_watcher_callback.__get__(loop)


def _started_at() -> Origin | None:
    """The line of the program that started the child, as far as it stands on the stack."""
    frame: Any = sys._getframe(1)
    found: Origin | None = None
    while not _is_explorer(frame.f_code.co_filename):
        if not frame.f_code.co_filename.startswith((_ASYNCIO, _TWIN)):
            found = Origin(frame.f_code, frame.f_lasti)
            if not frame.f_code.co_filename.startswith(_RUNTIME):
                break
        frame = frame.f_back
    return found


def _is_explorer(filename: str) -> bool:
    """The one that runs the program; further out nothing is the program's."""
    return filename.startswith(_EXPLORER) and not filename.startswith(_TWIN)
