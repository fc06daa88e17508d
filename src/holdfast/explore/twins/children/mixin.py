"""The part of the explored loop that starts children: scripted ones only.

asyncio's own `subprocess_exec` and `subprocess_shell` check the call and come here. Nothing is made
before the first child, and everything is put back when the loop is closed.
"""

from __future__ import annotations

import os
from asyncio import base_events
from typing import TYPE_CHECKING, Any, NoReturn

from holdfast.explore.twins.children.pipes import Pipe
from holdfast.explore.twins.children.scripts import Script, Scripts, Which, words
from holdfast.explore.twins.children.steps import Fails, Step

if TYPE_CHECKING:
    from holdfast.explore.twins.children.launching import Launcher

__all__ = ["Children"]

_Stock: Any = base_events.BaseEventLoop


class Children:
    """A mixin for the explored loop."""

    # Made with the first script, and with the first child.
    _scripts: Scripts | None = None
    _launcher: Launcher | None = None

    if TYPE_CHECKING:

        def refuse(self, name: str, why: str) -> NoReturn: ...
        def create_future(self) -> Any: ...

    def script_child(self, which: Which, script: tuple[Step | Script, ...]) -> None:
        """See `child`."""
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
        """In step with the stock loop's: the child is there before the first wait."""
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
            await transport._wait()
            raise
        return transport

    def _steps_for(self, args: Any, *, shell: bool) -> tuple[Step, ...]:
        argv = words(args, shell=shell)
        steps = self._scripts.find(argv) if self._scripts is not None else None
        if steps is None:
            name = os.path.basename(argv[0])
            self.refuse(
                f"asyncio.create_subprocess_{'shell' if shell else 'exec'} of {name!r}",
                f"this run has no script for it; holdfast.explore.child({name!r}, ...) gives it one",
            )
        if len(steps) == 1 and isinstance(steps[0], Fails):
            raise steps[0].error
        return steps

    def _launching(self) -> Launcher:
        if self._launcher is None:
            # Not before: on Windows asyncio has no such pipes.
            from holdfast.explore.twins.children.launching import Launcher

            self._launcher = Launcher(self)
        return self._launcher

    # --- what asyncio's subprocess transport asks of its loop ---------------------------------

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
        """What is still there when the program has ended: code, message, lines."""
        if self._launcher is None:
            return None
        from holdfast.explore.twins.children.left_over import left_over

        return left_over(self._launcher.table)

    def close(self) -> None:
        if self._launcher is not None:
            self._launcher.close()
        super().close()  # type: ignore[misc]
