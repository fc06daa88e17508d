"""asyncio's ends of the pipes: its own transports, on simulated pipes.

The code of asyncio runs, so the order of callbacks is that of this Python; only the calls to the
system and to the selector are replaced.
"""

from __future__ import annotations

import asyncio
from asyncio import constants, unix_events
from asyncio.log import logger
from collections.abc import Callable
from typing import Any

from handfast._explore.simulation.processes.pipes import InputPipe, OutputPipe


class _Selector:
    """The loop as a pipe transport sees it, with a selector that knows this one pipe."""

    __slots__ = ("_loop", "_pipe")

    def __init__(self, loop: Any, pipe: InputPipe | OutputPipe) -> None:
        self._loop = loop
        self._pipe = pipe

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loop, name)

    def _add_reader(self, fd: int, callback: Callable[[], object]) -> None:
        self._pipe.watch(callback)

    def _remove_reader(self, fd: int) -> None:
        self._pipe.unwatch()

    def _add_writer(self, fd: int, callback: Callable[[], object]) -> None:
        assert isinstance(self._pipe, InputPipe)
        self._pipe.watch_space(callback)

    def _remove_writer(self, fd: int) -> None:
        assert isinstance(self._pipe, InputPipe)
        self._pipe.unwatch_space()


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.cancelled():
        waiter.set_result(None)


class ReadEnd(unix_events._UnixReadPipeTransport):  # type: ignore[name-defined,misc]
    """The program's end of stdout or stderr."""

    def __init__(
        self, loop: Any, pipe: OutputPipe, protocol: Any, waiter: asyncio.Future[None], extra: Any
    ) -> None:
        # Not `super().__init__`, which calls `os.fstat` and `os.set_blocking` on the descriptor.
        asyncio.ReadTransport.__init__(self, extra)
        self._extra["pipe"] = pipe
        self._loop: Any = _Selector(loop, pipe)
        self._pipe: Any = pipe
        self._fileno = pipe.fileno()
        self._protocol = protocol
        self._closing = False
        self._paused = False
        loop.call_soon(protocol.connection_made, self)
        loop.call_soon(self._start_reading)
        loop.call_soon(_wake, waiter)

    def _start_reading(self) -> None:
        if self.is_reading():
            self._loop._add_reader(self._fileno, self._read_ready)

    def _read_ready(self) -> None:
        data = self._pipe.read(self.max_size)
        if data:
            self._protocol.data_received(data)
        # None: nothing to read and not the end, as EAGAIN on a real descriptor.
        elif data is not None:
            self._closing = True
            self._loop._remove_reader(self._fileno)
            self._loop.call_soon(self._protocol.eof_received)
            self._loop.call_soon(self._call_connection_lost, None)

    def silence(self) -> None:
        """Do not warn when this is collected after the run."""
        self._pipe = None


class WriteEnd(unix_events._UnixWritePipeTransport):  # type: ignore[name-defined,misc]
    """The program's end of stdin."""

    def __init__(
        self, loop: Any, pipe: InputPipe, protocol: Any, waiter: asyncio.Future[None], extra: Any
    ) -> None:
        # As above: only the parts of the constructor without system calls.
        asyncio.transports._FlowControlMixin.__init__(self, extra, _Selector(loop, pipe))  # type: ignore[arg-type]
        self._extra["pipe"] = pipe
        self._pipe: Any = pipe
        self._fileno = pipe.fileno()
        self._protocol = protocol
        self._buffer = bytearray()
        self._conn_lost = 0
        self._closing = False
        loop.call_soon(protocol.connection_made, self)
        # A writing end is registered as a reader, to notice that the other end was closed.
        loop.call_soon(self._loop._add_reader, self._fileno, self._read_ready)
        loop.call_soon(_wake, waiter)

    def write(self, data: Any) -> None:
        assert isinstance(data, bytes | bytearray | memoryview), repr(data)
        if not data:
            return
        if self._conn_lost or self._closing:
            if self._conn_lost >= constants.LOG_THRESHOLD_FOR_CONNLOST_WRITES:
                logger.warning("pipe closed by peer or os.write(pipe, data) raised exception.")
            self._conn_lost += 1
            return
        data = memoryview(data)
        if not self._buffer:
            try:
                data = data[self._pipe.write(data) :]
            except BlockingIOError:
                pass
            except BrokenPipeError as error:
                self._conn_lost += 1
                self._fatal_error(error, "Fatal write error on pipe transport")
                return
            if not data:
                return
            self._loop._add_writer(self._fileno, self._write_ready)
        self._buffer += data
        self._maybe_pause_protocol()

    def _write_ready(self) -> None:
        try:
            del self._buffer[: self._pipe.write(self._buffer)]
        except BlockingIOError:
            return
        except BrokenPipeError as error:
            self._buffer.clear()
            self._conn_lost += 1
            self._loop._remove_writer(self._fileno)
            self._fatal_error(error, "Fatal write error on pipe transport")
            return
        if not self._buffer:
            self._loop._remove_writer(self._fileno)
            self._maybe_resume_protocol()  # it may write more
            if self._closing:
                self._loop._remove_reader(self._fileno)
                self._call_connection_lost(None)

    def silence(self) -> None:
        """Do not warn when this is collected after the run."""
        self._pipe = None
        self._closing = True
