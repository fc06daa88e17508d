"""The part of the explored loop that starts child processes, which are always scripted.

asyncio's own `subprocess_exec` and `subprocess_shell` check the arguments and call this. Nothing is
patched before the first child starts, and the patches are removed when the loop is closed.
"""

from __future__ import annotations

import asyncio
import os
from asyncio import base_events
from typing import TYPE_CHECKING, Any, NoReturn

from handfast._explore.simulation.processes.pipes import Pipe
from handfast._explore.simulation.processes.script import (
    Fails,
    Script,
    Scripts,
    Step,
    Which,
    command_line,
)
from handfast._explore.verdict.leftovers import processes_left
from handfast._explorer_internals import subprocess_start_is_shielded

if TYPE_CHECKING:
    from handfast._explore.simulation.processes.launch import Launcher


_Stock: Any = base_events.BaseEventLoop
_SHIELDED = subprocess_start_is_shielded()


class Children:
    """A mixin for the explored loop."""

    # Created with the first script, and with the first child.
    _scripts: Scripts | None = None
    _launcher: Launcher | None = None

    if TYPE_CHECKING:

        def refuse(self, name: str, why: str) -> NoReturn: ...
        def create_future(self) -> Any: ...

    def script_child(self, which: Which, script: tuple[Step | Script, ...]) -> None:
        """Register a script; see `child`."""
        if self._scripts is None:
            self._scripts = Scripts()
        self._scripts.add(which, script)

    async def _make_subprocess_transport(
        self,
        protocol: Any,
        args: Any,
        shell: bool,
        stdin: Any,
        stdout: Any,
        stderr: Any,
        bufsize: int,
        extra: Any = None,
        **options: Any,
    ) -> Any:
        """As in the stock loop, the child exists before the first await."""
        steps = self._steps_for(args, shell=shell)
        waiter = self.create_future()
        transport = self._launching().launch(
            protocol, args, (stdin, stdout, stderr), steps, waiter, extra, options
        )
        try:
            await waiter
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException:
            transport.close()
            # As in the stock loop of this Python: since 3.14 a second cancel does not end the wait.
            await (asyncio.shield(transport._wait()) if _SHIELDED else transport._wait())
            raise
        return transport

    def _steps_for(self, args: Any, *, shell: bool) -> tuple[Step, ...]:
        argv = command_line(args, shell=shell)
        steps = self._scripts.find(argv) if self._scripts is not None else None
        if steps is None:
            name = os.path.basename(argv[0])
            self.refuse(
                f"asyncio.create_subprocess_{'shell' if shell else 'exec'} of {name!r}",
                f"this run has no script for it; add one with handfast.scripted.child({name!r}, ...)",
            )
        if len(steps) == 1 and isinstance(steps[0], Fails):
            raise steps[0].error
        return steps

    def _launching(self) -> Launcher:
        if self._launcher is None:
            # Imported late: on Windows asyncio has no such pipes.
            from handfast._explore.simulation.processes.launch import Launcher

            self._launcher = Launcher(self)
        return self._launcher

    # --- calls from asyncio's subprocess transport --------------------------------------------

    def connect_read_pipe(self, protocol_factory: Any, pipe: Any) -> Any:
        if not isinstance(pipe, Pipe):
            self.refuse("loop.connect_read_pipe", "the explorer has no real descriptors")
        return _Stock.connect_read_pipe(self, protocol_factory, pipe)

    def connect_write_pipe(self, protocol_factory: Any, pipe: Any) -> Any:
        if not isinstance(pipe, Pipe):
            self.refuse("loop.connect_write_pipe", "the explorer has no real descriptors")
        return _Stock.connect_write_pipe(self, protocol_factory, pipe)

    def _make_read_pipe_transport(
        self, pipe: Any, protocol: Any, waiter: Any = None, extra: Any = None
    ) -> Any:
        return self._launching().read_end(pipe, protocol, waiter, extra)

    def _make_write_pipe_transport(
        self, pipe: Any, protocol: Any, waiter: Any = None, extra: Any = None
    ) -> Any:
        return self._launching().write_end(pipe, protocol, waiter, extra)

    # --- the end -----------------------------------------------------------------------------

    def _left_over_children(self) -> tuple[str, str, tuple[str, ...]] | None:
        """A child process that the program left."""
        return None if self._launcher is None else processes_left(self._launcher.table)

    def close(self) -> None:
        if self._launcher is not None:
            self._launcher.close()
        super().close()  # type: ignore[misc]
