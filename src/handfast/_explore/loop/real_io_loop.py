"""The loop for `real_io=True`: a real selector, the real clock, real children and sockets.

Steps, instants and cancels are those of `stepping`. When an event arrives is decided by the machine,
so a run cannot be replayed. The loop never waits for ever, and it ends what the program has left
outside before the next run begins.
"""

from __future__ import annotations

import asyncio
import heapq
from asyncio import base_subprocess
from collections.abc import Callable, Coroutine, Generator
from typing import Any, TypeVar, cast

from handfast._explore.loop.stepped_loop import LeftOver, SteppedLoop
from handfast._explore.loop.stepping import Deadlocked
from handfast._explore.loop.unsupported import Uncontrolled

T = TypeVar("T")
_CONNECT_PIPES: Any = getattr(base_subprocess.BaseSubprocessTransport, "_connect_pipes").__code__  # noqa: B009
# Real seconds to wait: for a descriptor that is registered, for a thread that the loop does not know
# of, and, once the program has ended, for data on its way to a task that still waits.
_REGISTERED = 10.0
_UNKNOWN = 0.5
_SETTLE = 0.05


class RealLoop(SteppedLoop, asyncio.SelectorEventLoop):
    """asyncio's own selector loop, one handle per step."""

    virtual = False

    _selector: Any
    _scheduled: list[Any]
    _transports: Any

    grace = 0.2  # seconds that really pass

    def __init__(self) -> None:
        super().__init__()
        self._servers: list[Any] = []
        self._children: list[Any] = []
        self._processes: list[Any] = []
        self._work: list[asyncio.Future[Any]] = []

    # --- the poll --------------------------------------------------------------------------

    def _run_once(self) -> None:
        if not (self._ready or self._stopping):
            self.stepper.pass_instant()
        self._forget_cancelled_timers()
        self._process_events(self._wait())
        if self.stepper.firing:
            self._fire()
        self.stepper.run_batch(self._ready)

    def _process_events(self, event_list: Any) -> None:
        super()._process_events(event_list)  # type: ignore[misc]

    def _forget_cancelled_timers(self) -> None:
        scheduled = self._scheduled
        while scheduled and scheduled[0]._cancelled:
            heapq.heappop(scheduled)._scheduled = False

    def _wait(self) -> Any:
        """The events that have arrived; waits for one if there is nothing to do."""
        if self._ready or self._stopping:
            return self._selector.select(0)
        # A thread may call `call_soon_threadsafe` although nothing is registered, so even then the
        # loop waits a little before it is called a deadlock.
        bound = _REGISTERED if self._something_outside() else _UNKNOWN
        if self._scheduled:
            timeout = max(0.0, self._scheduled[0]._when - self.time())
            return self._selector.select(timeout)
        events = self._selector.select(bound)
        if events or self._ready:
            return events
        if bound == _UNKNOWN:
            raise Deadlocked
        self.uncontrolled = Uncontrolled(
            "real I/O",
            f"nothing has arrived for {bound:.0f} s, and something is still registered",
            "let the other side answer or close, or script it (handfast.scripted)",
        )
        raise self.uncontrolled

    def _fire(self) -> None:
        end = self.time() + getattr(self, "_clock_resolution")  # noqa: B009
        while self._scheduled and self._scheduled[0]._when < end:
            handle = heapq.heappop(self._scheduled)
            handle._scheduled = False
            self._ready.append(handle)

    def timers(self) -> list[asyncio.TimerHandle]:
        return [timer for timer in self._scheduled if not timer._cancelled]

    # --- what is outside -------------------------------------------------------------------

    def _something_outside(self) -> bool:
        """Whether anything is registered that could still wake the loop, beside its own pipe."""
        self._work = [future for future in self._work if not future.done()]
        registered = len(self._selector.get_map()) > 1
        return bool(registered or self._work or self._running_children())

    def _running_children(self) -> list[Any]:
        return [child for child in self._children if child.get_returncode() is None]

    def _open_servers(self) -> list[Any]:
        return [server for server in self._servers if server.sockets]

    def _open_transports(self) -> list[Any]:
        return [each for each in self._transports.values() if not each.is_closing()]

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        future = super().run_in_executor(executor, func, *args)
        self._work.append(future)
        return future

    def _start_serving(self, protocol_factory: Any, sock: Any, *args: Any, **options: Any) -> None:
        # Not in `create_server`: a cancel in there loses a server that is listening already.
        server = options.get("server", args[1] if len(args) > 1 else None)
        if server is not None and server not in self._servers:
            self._servers.append(server)
        super()._start_serving(protocol_factory, sock, *args, **options)  # type: ignore[misc]

    def create_task(
        self, coro: Generator[Any, None, T] | Coroutine[Any, Any, T], **options: Any
    ) -> asyncio.Task[T]:
        # A child process exists before the caller has its transport, and the caller may be cancelled.
        if getattr(coro, "cr_code", None) is _CONNECT_PIPES:
            transport = cast("Any", coro).cr_frame.f_locals["self"]
            self._children.append(transport)
            self._processes.append(transport.get_extra_info("subprocess"))
        return super().create_task(coro, **options)

    # --- the end ---------------------------------------------------------------------------

    def _something_ready(self) -> bool:
        """Whether there is something left to run.

        Data on its way to a task that still waits gets a moment of real time to arrive.
        """
        if self._ready:
            return True
        waiting = any(not task.done() for task in self.tasks)
        timeout = _SETTLE if waiting else 0.0
        coming = (
            self.stepper.firing
            and self.timers()
            and self._scheduled[0]._when <= self.stepper.horizon
        )
        if coming:
            timeout = min(_REGISTERED, max(0.0, self._scheduled[0]._when - self.time()))
        self._process_events(self._selector.select(timeout))
        return bool(self._ready or coming)

    def left_outside(self) -> LeftOver | None:
        """The code, the message and the lines of what the program has left outside, if anything."""
        children = self._running_children()
        if children:
            lines = tuple(f"process {child.get_pid()}" for child in children)
            return "HF701", f"{len(children)} child process(es) still running", lines
        servers = self._open_servers()
        if servers:
            lines = tuple(f"listening on {_address(server)}" for server in servers)
            return "HF741", f"{len(servers)} server(s) still listening", lines
        transports = self._open_transports()
        if transports:
            lines = tuple(f"to {each.get_extra_info('peername')}" for each in transports)
            return "HF742", f"{len(transports)} connection(s) still open", lines
        return None

    def close(self) -> None:
        if not (self.is_closed() or self.is_running()):
            self._end_outside()
        super().close()

    def _end_outside(self) -> None:
        """Kill and reap child processes and close sockets, so that the next run starts clean."""
        for server in self._open_servers():
            server.close()
        for transport in self._open_transports():
            transport.abort()
        for child in self._children:
            child.close()  # kills it, too
        for process in self._processes:
            for pipe in (process.stdin, process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()
        self.stepper.settling = True
        self.call_soon(self.stop)
        self.run_forever()
        for child in self._running_children():
            self._reap(child)

    def _reap(self, child: Any) -> None:
        """Run until the child process has been waited for, so that no zombie is left."""
        ended = self.create_task(child._wait())
        timer = self.call_later(_REGISTERED, self.stop)
        ended.add_done_callback(lambda _: self.stop())
        self.stepper.firing = True
        self.run_forever()
        timer.cancel()


def _address(server: Any) -> str:
    return ", ".join(str(sock.getsockname()) for sock in server.sockets)
