"""One child as the event loop reports it: its output, its exit, its EOFs, room for input; and its end.

Exit and EOF are two events (#119710): either may come without the other. The public face is
`process.py`. Nothing here refers to the Process, so that one that is dropped can be collected.
It keeps S1.2, S1.4, S1.5 and S1.7.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from typing import cast
from weakref import WeakSet

from holdfast.runtime.errors import ProcessGone, StragglersLeft
from holdfast.runtime.exit_status import ExitStatus
from holdfast.runtime.pipes import Pipe
from holdfast.runtime.process_group import ProcessGroup

__all__ = ["Child", "kill_what_runs_on"]

# How long the kernel may take to carry out a KILL. A process in uninterruptible sleep takes longer.
KILL_PATIENCE = 5.0
# How long EOF may be missing once nobody of the group runs. Then an outsider holds the pipe.
EOF_PATIENCE = 1.0
EOF_TURNS = 10
# There is no event for the end of a grandchild: look again after so long, then twice as long.
FIRST_LOOK = 0.001
LAST_LOOK = 0.05

INPUT_PIECE = 64 * 1024
INPUT_CLOSED = "it has closed its standard input"
ENDED = "it has ended"


class Child(asyncio.SubprocessProtocol):
    """The protocol of one started program, and the order in which it is taken down."""

    def __init__(self, loop: asyncio.AbstractEventLoop, label: str, out: Pipe, err: Pipe) -> None:
        self.loop = loop
        self.label = label
        self.stdout = out
        self.stderr = err
        self.pid = 0
        self.returncode: int | None = None
        self.exited = asyncio.Event()
        self.transport: asyncio.SubprocessTransport | None = None
        self.group: ProcessGroup | None = None
        # Nobody will ever close it: it goes as soon as it shows up.
        self.forsaken = False
        self._deadline = 0.0
        self._killed = False
        self._news: asyncio.Future[None] | None = None
        self._stdin: asyncio.WriteTransport | None = None
        self._stdin_over = ""
        self._stdin_full = False
        self._stdin_change = asyncio.Event()
        # A message goes out whole before the next: pieces of two would mix.
        self._sending = asyncio.Lock()

    # Events from the loop. None of them may raise.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.SubprocessTransport, transport)
        self.pid = self.transport.get_pid()
        self.group = ProcessGroup(self.pid)
        with _children_lock:
            _children.add(self)
        self._stdin = cast(asyncio.WriteTransport, self.transport.get_pipe_transport(0))
        for fd, pipe in ((1, self.stdout), (2, self.stderr)):
            pipe.open(cast(asyncio.ReadTransport, self.transport.get_pipe_transport(fd)), self.loop)
        if self.forsaken:
            self.forsake()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        (self.stdout if fd == 1 else self.stderr).feed(data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd == 0:
            self._end_input(INPUT_CLOSED)
        else:
            (self.stdout if fd == 1 else self.stderr).end(eof=exc is None)
        self._stir()

    def process_exited(self) -> None:
        if self.transport is not None and self.group is not None and self.returncode is None:
            self.returncode = self.transport.get_returncode()
            self.group.leader_reaped = True
            self.exited.set()
            self._end_input(ENDED)
            if self.forsaken:
                self._let_go()
            self._stir()

    def connection_lost(self, exc: Exception | None) -> None:
        # Its descriptors are closed, and no more than that: for a child that was gone before it was
        # connected, uvloop calls this ahead of the exit, of the data and of the EOFs.
        self.process_exited()
        if self.transport is not None:
            self.transport.close()  # or it would warn that nobody did
            self.transport = None
        self._stir()

    def pause_writing(self) -> None:
        self._stdin_full = True

    def resume_writing(self) -> None:
        self._stdin_full = False
        self._stdin_change.set()

    # Input.

    async def send(self, data: memoryview) -> None:
        async with self._sending:
            self._require_input()
            for start in range(0, len(data), INPUT_PIECE):
                self._require_input()
                assert self._stdin is not None
                # A copy: uvloop would keep the view, and its owner may change what it shows.
                self._stdin.write(bytes(data[start : start + INPUT_PIECE]))
                while self._stdin_full:
                    self._require_input()
                    self._stdin_change.clear()
                    await self._stdin_change.wait()

    async def send_eof(self) -> None:
        async with self._sending:
            if not self._stdin_over:
                assert self._stdin is not None
                self._end_input("send_eof() has ended its input")
                self._stdin.close()

    def _require_input(self) -> None:
        assert self._stdin is not None
        if not self._stdin_over and self._stdin.is_closing():
            self._end_input(INPUT_CLOSED)  # pipe_connection_lost is on its way
        if self._stdin_over:
            why = self._stdin_over
            if self.returncode is not None:  # the cause of the other reasons, whichever came first
                why = f"{ENDED} ({ExitStatus.of(self.returncode)})"
            raise ProcessGone(f"cannot send to {self.label}: {why}")

    def _end_input(self, why: str) -> None:
        self._stdin_over = self._stdin_over or why
        self._stdin_change.set()

    def _discard_input(self) -> None:
        """Close stdin at once, with what is still waiting there: a full one would never empty."""
        assert self._stdin is not None
        # Aborting what is closed already calls connection_lost twice on the stock loop.
        if not self._stdin.is_closing() or self._stdin.get_write_buffer_size():
            self._stdin.abort()

    # The end.

    def hurry(self, grace: float) -> None:
        """Shorten the grace of a teardown under way."""
        if not self._killed:
            self._deadline = min(self._deadline, self.loop.time() + grace)
            self._stir()

    async def teardown(self, grace: float) -> None:
        """TERM, drain to EOF within the grace, KILL, reap, let go of the pipes. Always bounded.

        It runs once, in a task of its own, and a cancel of that task does not cut it.
        """
        assert self.group is not None
        self._deadline = self.loop.time() + grace
        self._end_input("it is being closed")
        if self._running():
            self.group.signal(signal.SIGTERM)
        self._discard_input()
        # Only now, after the signal, may output be dropped; it is still read to its end.
        self.stdout.release()
        self.stderr.release()
        left = await self._end_of_group()
        await self._end_of_pipes()
        if left:
            raise StragglersLeft(
                f"{self.label} does not go, {KILL_PATIENCE:g} seconds after SIGKILL. Still there: "
                f"{left}. It may wait for a device, or run as another user"
            )

    def _running(self) -> str:
        """Who of the group still runs, in words; empty when nobody does."""
        assert self.group is not None
        if self.returncode is None:
            return f"pid {self.pid}"
        return ", ".join(f"pid {pid}" for pid in self.group.survivors())

    async def _end_of_group(self) -> str:
        """Wait for exit, for the rest of the group and for EOF; say who is left."""
        assert self.group is not None
        look = FIRST_LOOK
        while running := self._running():
            if self.loop.time() >= self._deadline:
                if self._killed:
                    return running
                self._killed = True
                self._deadline = self.loop.time() + KILL_PATIENCE
            if self._killed:
                # Again at each look: somebody of the session may have joined the group since.
                self.group.signal(signal.SIGKILL)
            pause = self._deadline - self.loop.time()
            if self.returncode is not None:
                pause, look = min(pause, look), min(look * 2, LAST_LOOK)
            await self._pause(pause)
        return ""

    async def _end_of_pipes(self) -> None:
        # What the group wrote is in the pipes by now. If EOF does not follow, an outsider has them.
        # A loop that was late gets some turns in any case: what is there must be read.
        deadline = self.loop.time() + EOF_PATIENCE
        turns = 0
        while not (self.stdout.ended and self.stderr.ended):
            if self.loop.time() >= deadline and turns >= EOF_TURNS:
                break
            turns += 1
            await self._pause(deadline - self.loop.time())
        self._let_go()
        # The descriptors are closed by callbacks, and this returns after them.
        deadline = self.loop.time() + EOF_PATIENCE
        while self.transport and self.returncode is not None and self.loop.time() < deadline:
            await self._pause(deadline - self.loop.time())

    def _let_go(self) -> None:
        self.stdout.end(eof=False)
        self.stderr.end(eof=False)
        if self.transport is not None:
            # Not before the exit is known: this would take it away from the child watcher (#87744).
            self.transport.close()

    def forsake(self) -> None:
        """Kill it without waiting: nobody is there who could. On the loop's thread."""
        self.forsaken = True
        if self.group is None:
            return  # connection_made comes back to it
        self.group.signal(signal.SIGKILL)
        self._end_input("it was dropped without close")
        self._discard_input()
        self.stdout.release()
        self.stderr.release()
        if self.returncode is not None:
            self._let_go()

    async def _pause(self, seconds: float) -> None:
        """Until something happens, or for so long."""
        self._news = self.loop.create_future()
        timer = self.loop.call_later(max(0.0, seconds), self._stir)
        try:
            await self._news
        except asyncio.CancelledError:
            # From the shutdown of the loop, which cancels all it finds. Whoever waits for the
            # teardown is cancelled too and says so; the teardown itself is bounded and goes on.
            pass
        finally:
            timer.cancel()

    def _stir(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)


# Those that were started, for the end of a loop that goes down under them. Several loops, in
# several threads, may add to it.
_children: WeakSet[Child] = WeakSet()
_children_lock = threading.Lock()


def kill_what_runs_on(loop: asyncio.AbstractEventLoop) -> list[str]:
    """Before a loop is closed for good: kill every group that nobody could end any more, and say
    whose it was."""
    killed: list[str] = []
    with _children_lock:
        children = list(_children)
    for child in children:
        if child.loop is loop and child.group is not None and (running := child._running()):
            child.group.signal(signal.SIGKILL)
            killed.append(f"{child.label} ({running})")
    return killed
