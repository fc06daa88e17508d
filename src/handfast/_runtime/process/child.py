"""The protocol of one child process: its output, exit, EOFs and input; and its teardown.

Exit and EOF are two events (#119710): either may come without the other. The public class is in
`process.py`. Nothing here refers to the Process, so that a dropped one can be collected.
It keeps S1.2, S1.4, S1.5 and S1.7.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
import warnings
from collections.abc import Iterator
from typing import cast
from weakref import WeakSet

from handfast._runtime.errors import ProcessGone, StragglersLeft
from handfast._runtime.process.exit_status import ExitStatus
from handfast._runtime.process.group import ProcessGroup
from handfast._runtime.process.live_groups import add_group, remove_group
from handfast._runtime.process.output_pipe import Pipe

# Seconds until a SIGKILL must have worked. A process in uninterruptible sleep takes longer.
KILL_TIMEOUT = 5.0
# Seconds to wait for EOF once the whole group has ended. Then another process has the pipe open.
EOF_TIMEOUT = 1.0
EOF_STEPS = 10
# There is no event for the end of a grandchild: poll, and double the interval each time.
FIRST_POLL = 0.001
LAST_POLL = 0.05

# Seconds after which a call that waits for a child, which waits for a reader, says so.
STALL_NOTICE = 1.0

INPUT_PIECE = 64 * 1024
INPUT_CLOSED = "it has closed its standard input"
ENDED = "it has ended"


class Child(asyncio.SubprocessProtocol):
    """The protocol of one started program, and the order of its teardown."""

    def __init__(self, loop: asyncio.AbstractEventLoop, label: str, out: Pipe, err: Pipe) -> None:
        self.loop = loop
        self.label = label
        self.stdout = out
        self.stderr = err
        self.pid = 0
        self.returncode: int | None = None
        self.exited = asyncio.Event()
        self.drained = asyncio.Event()
        self.transport: asyncio.SubprocessTransport | None = None
        self.group: ProcessGroup | None = None
        # The Process was dropped: no one will close this child, so it is killed at once.
        self.abandoned = False
        self._deadline = 0.0
        self._killed = False
        self._changed: asyncio.Future[None] | None = None
        self._stdin: asyncio.WriteTransport | None = None
        self._stdin_ended = ""  # the reason, once the input has ended
        self._stdin_full = False
        self._stdin_change = asyncio.Event()
        # Calls that wait for the child, and the timer of a notice that it waits for a reader.
        self._held_up: list[str] = []
        self._stall_timer: asyncio.TimerHandle | None = None
        self._stall_reported = False
        # A message is sent whole before the next one: pieces of two would mix.
        self._sending = asyncio.Lock()

    # --- events from the loop; none of them may raise --------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.SubprocessTransport, transport)
        self.pid = self.transport.get_pid()
        self.group = ProcessGroup(self.pid)
        add_group(self.group)
        with _children_lock:
            _children.add(self)
        self._stdin = cast("asyncio.WriteTransport | None", self.transport.get_pipe_transport(0))
        for fd, pipe in ((1, self.stdout), (2, self.stderr)):
            pipe.open(self.transport.get_pipe_transport(fd), self.loop, self._watch_stall)
        if self.abandoned:
            self.abandon()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        (self.stdout if fd == 1 else self.stderr).feed(data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd == 0:
            self._end_input(INPUT_CLOSED)
        else:
            (self.stdout if fd == 1 else self.stderr).end(eof=exc is None)
            if self.stdout.ended and self.stderr.ended:
                self.drained.set()
        self._wake()

    def process_exited(self) -> None:
        if self.transport is not None and self.group is not None and self.returncode is None:
            self.returncode = self.transport.get_returncode()
            self.group.leader_reaped = True
            self.exited.set()
            self._end_input(ENDED)
            self._stop_stall_timer()
            if self.abandoned:
                self._close_pipes()
            self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        # Says only that the descriptors are closed: for a child that ended before it was
        # connected, uvloop calls this before the exit, the data and the EOFs.
        self.process_exited()
        if self.transport is not None:
            self.transport.close()  # otherwise it warns that it was not closed
            self.transport = None
        self._wake()

    def pause_writing(self) -> None:
        self._stdin_full = True

    def resume_writing(self) -> None:
        self._stdin_full = False
        self._stdin_change.set()

    # --- calls that wait for the child -----------------------------------------------------

    async def wait_for_exit(self) -> None:
        with self._notice_stall("wait()"):
            await self.exited.wait()

    @contextlib.contextmanager
    def _notice_stall(self, call: str) -> Iterator[None]:
        """Warn if the call cannot return because the child waits for a reader of its output."""
        self._held_up.append(call)
        self._watch_stall()
        try:
            yield
        finally:
            self._held_up.remove(call)
            if not self._held_up:
                self._stop_stall_timer()

    def _watch_stall(self) -> None:
        if self._held_up and self._stalled() and not (self._stall_timer or self._stall_reported):
            self._stall_timer = self.loop.call_later(STALL_NOTICE, self._report_stall)

    def _stalled(self) -> list[str]:
        return [pipe.name for pipe in (self.stdout, self.stderr) if pipe.stalled]

    def _report_stall(self) -> None:
        self._stall_timer = None
        if names := self._stalled():
            self._stall_reported = True
            warnings.warn(
                f"{self._held_up[-1]} of {self.label} waits for a child that waits for a reader: "
                f"{' and '.join(names)} is full, and no one reads it. Read it with lines() or "
                'chunks(), or create the process with "keep" for it',
                RuntimeWarning,
                stacklevel=2,
            )

    def _stop_stall_timer(self) -> None:
        if self._stall_timer is not None:
            self._stall_timer.cancel()
            self._stall_timer = None

    def send_signal(self, number: int) -> None:
        """Signal the child itself, without its descendants."""
        if self.returncode is None and self.transport is not None:
            with contextlib.suppress(ProcessLookupError):
                self.transport.send_signal(number)
                return
        raise ProcessGone(f"cannot signal {self.label}: {ENDED}{self._how()}")

    def _how(self) -> str:
        return "" if self.returncode is None else f" ({ExitStatus.of(self.returncode)})"

    # --- input -----------------------------------------------------------------------------

    async def send(self, data: memoryview) -> None:
        async with self._sending:
            self._require_input()
            for start in range(0, len(data), INPUT_PIECE):
                self._require_input()
                assert self._stdin is not None
                # A copy: uvloop keeps the view, and the caller may change the bytes behind it.
                self._stdin.write(bytes(data[start : start + INPUT_PIECE]))
                while self._stdin_full:
                    self._require_input()
                    self._stdin_change.clear()
                    with self._notice_stall("send()"):
                        await self._stdin_change.wait()

    async def send_eof(self) -> None:
        async with self._sending:
            if self._stdin is not None and not self._stdin_ended:
                self._end_input("send_eof() has ended its input")
                self._stdin.close()

    def _require_input(self) -> None:
        if self._stdin is None:
            raise RuntimeError(f'cannot send to {self.label}: create it with stdin="pipe"')
        if not self._stdin_ended and self._stdin.is_closing():
            self._end_input(INPUT_CLOSED)  # pipe_connection_lost has not been called yet
        if self._stdin_ended:
            why = self._stdin_ended
            if self.returncode is not None:  # the cause of the other reasons
                why = f"{ENDED}{self._how()}"
            raise ProcessGone(f"cannot send to {self.label}: {why}")

    def _end_input(self, why: str) -> None:
        self._stdin_ended = self._stdin_ended or why
        self._stdin_change.set()

    def _discard_input(self) -> None:
        """Close stdin at once and drop its buffer: a full pipe might never be read."""
        if self._stdin is None:
            return
        # abort() after close() calls connection_lost twice on the stock loop.
        if not self._stdin.is_closing() or self._stdin.get_write_buffer_size():
            self._stdin.abort()

    # --- teardown --------------------------------------------------------------------------

    def shorten_grace(self, grace: float) -> None:
        """Shorten the grace of a teardown that has begun."""
        if not self._killed:
            self._deadline = min(self._deadline, self.loop.time() + grace)
            self._wake()

    async def teardown(self, grace: float) -> None:
        """Send TERM, drain to EOF within the grace, send KILL, reap, close the pipes.

        Always bounded. It runs once, in a task of its own, and ignores a cancel of that task.
        """
        assert self.group is not None
        self._deadline = self.loop.time() + grace
        self._end_input("it is being closed")
        if self._running():
            self.group.signal(signal.SIGTERM)
        self._discard_input()
        # Only after the signal may output be dropped; it is still read to its end.
        self.stdout.release()
        self.stderr.release()
        left = await self._end_group()
        if not left:
            remove_group(self.group)
        await self._end_pipes()
        if left:
            raise StragglersLeft(
                f"{self.label} has not ended {KILL_TIMEOUT:g} seconds after SIGKILL. Still "
                f"running: {left}. It may wait for a device, or run as another user"
            )

    def _running(self) -> str:
        """The members of the group that still run, as text; empty if there are none."""
        assert self.group is not None
        if self.returncode is None:
            return f"pid {self.pid}"
        return ", ".join(f"pid {pid}" for pid in self.group.survivors())

    async def _end_group(self) -> str:
        """Wait until the whole group has ended, with SIGKILL after the deadline; who is left."""
        assert self.group is not None
        interval = FIRST_POLL
        while running := self._running():
            if self.loop.time() >= self._deadline:
                if self._killed:
                    return running
                self._killed = True
                self._deadline = self.loop.time() + KILL_TIMEOUT
            if self._killed:
                # Each time: another process of the session may have joined the group since.
                self.group.signal(signal.SIGKILL)
            pause = self._deadline - self.loop.time()
            if self.returncode is not None:
                pause, interval = min(pause, interval), min(interval * 2, LAST_POLL)
            await self._wait_for_change(pause)
        return ""

    async def _end_pipes(self) -> None:
        # All output of the group is in the pipes by now. If EOF does not follow, a process
        # outside of the group has them open. Even after a delay of the loop there are some steps
        # to read what is there.
        deadline = self.loop.time() + EOF_TIMEOUT
        steps = 0
        while not (self.stdout.ended and self.stderr.ended):
            if self.loop.time() >= deadline and steps >= EOF_STEPS:
                break
            steps += 1
            await self._wait_for_change(deadline - self.loop.time())
        self._close_pipes()
        # Callbacks close the descriptors: return only after them.
        deadline = self.loop.time() + EOF_TIMEOUT
        while self.transport and self.returncode is not None and self.loop.time() < deadline:
            await self._wait_for_change(deadline - self.loop.time())

    def _close_pipes(self) -> None:
        self.stdout.end(eof=False)
        self.stderr.end(eof=False)
        if self.transport is not None:
            # Not before the exit is known: the child watcher would miss it (#87744).
            self.transport.close()

    def abandon(self) -> None:
        """Kill it without waiting, because its Process was dropped. On the loop's thread."""
        self.abandoned = True
        if self.group is None:
            return  # connection_made calls this again
        self.group.signal(signal.SIGKILL)
        remove_group(self.group)
        self._end_input("it was dropped without close")
        self._discard_input()
        self.stdout.release()
        self.stderr.release()
        if self.returncode is not None:
            self._close_pipes()

    async def _wait_for_change(self, seconds: float) -> None:
        """Wait until an event has come, for `seconds` at most."""
        self._changed = self.loop.create_future()
        timer = self.loop.call_later(max(0.0, seconds), self._wake)
        try:
            await self._changed
        except asyncio.CancelledError:
            # From the end of the loop, which cancels all tasks. The task that waits for the
            # teardown is cancelled too and raises; the teardown itself is bounded and continues.
            pass
        finally:
            timer.cancel()

    def _wake(self) -> None:
        if self._changed is not None and not self._changed.done():
            self._changed.set_result(None)


# All started children, for a loop that ends before they do. Several loops, in several threads,
# may add to it.
_children: WeakSet[Child] = WeakSet()
_children_lock = threading.Lock()


def kill_children_of(loop: asyncio.AbstractEventLoop) -> list[str]:
    """Kill every process group that still runs on a loop which is about to be closed; name them."""
    killed: list[str] = []
    with _children_lock:
        children = list(_children)
    for child in children:
        if child.loop is loop and child.group is not None and (running := child._running()):
            child.group.signal(signal.SIGKILL)
            killed.append(f"{child.label} ({running})")
    return killed
