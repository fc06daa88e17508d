"""The pipes between a program and its scripted child, as a kernel keeps them: bytes in order, a
limited capacity, EOF when the last writer has closed, a broken pipe when the reader has.

This is only the state and the callbacks. `pipe_transports` is the side of asyncio,
`scripted_process` the child.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from handfast._explore.simulation.processes.pending import Pending
    from handfast._explore.simulation.processes.scripted_process import ScriptedProcess


# What a pipe of Linux holds.
CAPACITY = 65_536

Callback = Callable[[], object]


class Pipe:
    """What both directions share: the callback of the program's end, and when it runs."""

    __slots__ = (
        "_channel", "_queued", "_registration", "buffer", "callback", "closed", "loop", "name",
        "waiting",
    )  # fmt: skip

    def __init__(self, loop: Any, name: str) -> None:
        self.loop = loop
        self.name = name
        self.buffer: bytearray = bytearray()
        self.closed = False
        # The callback of the program's end, while it is registered as a reader. (The writing end
        # is registered too: that is how it notices that the pipe is broken.)
        self.callback: Callback | None = None
        # Counts registrations: removing one invalidates the handle that is already in the queue.
        self._registration = 0
        self._queued = 0
        self._channel = loop.channel(name)
        # What is on its way in this pipe. Without a reader its arrival is invisible, so the time of
        # arrival is not a choice.
        self.waiting: list[Pending] = []

    def fileno(self) -> int:
        """There is no descriptor that a system call could use."""
        return -1

    def watch(self, callback: Callback) -> None:
        """Register the callback of the program's end, from the next poll on."""
        self.callback = callback
        for pending in self.waiting:
            pending.post()
        self._repost()

    def unwatch(self) -> None:
        if self.callback is not None:
            self.callback = None
            self._registration += 1
            self._queued = 0
            self._channel.clear()
            for pending in self.waiting:
                pending.unpost()

    def notify(self) -> None:
        """Queue the callback once, as a selector does at a poll."""
        if self.callback is not None and not self._queued:
            self._queued = 1
            self.loop.enqueue(self._call, self._registration)

    def _call(self, registration: int) -> None:
        callback = self.callback
        if callback is not None and registration == self._registration:
            self._queued = 0
            callback()
            self._repost()

    def _repost(self) -> None:
        """Post the event again while the pipe is ready, as a level-triggered selector does."""
        if self.callback is not None and self._is_ready() and not self._channel.queue:
            self._channel.post(self.notify, label=f"{self.name} is still ready")

    def _is_ready(self) -> bool:
        """Whether a selector would report the pipe."""
        raise NotImplementedError

    def _shut(self) -> None:
        """Close the program's end: what was on its way is lost."""
        self.unwatch()
        self.closed = True
        for pending in tuple(self.waiting):
            pending.lose()


class OutputPipe(Pipe):
    """From the child to the program."""

    __slots__ = ("blocked", "ended", "promised", "writers")

    def __init__(self, loop: Any, name: str) -> None:
        super().__init__(loop, name)
        # Bytes that were written and have not arrived yet.
        self.promised = 0
        # The processes that have the writing end open, in the order in which they got it.
        self.writers: dict[ScriptedProcess, None] = {}
        self.ended = False
        # The processes that wait for free capacity.
        self.blocked: list[ScriptedProcess] = []

    def free(self) -> int:
        return CAPACITY - len(self.buffer) - self.promised

    def arrive(self, data: bytes) -> None:
        """Bytes of a child have arrived."""
        self.promised -= len(data)
        self.buffer += data
        self.notify()

    def end(self) -> None:
        """The last writer has closed its end."""
        for pending in tuple(self.waiting):  # what others wrote before is in the pipe
            pending.make()
        self.ended = True
        self.notify()

    def read(self, most: int) -> bytes | None:
        """As `os.read`; None if it would block."""
        if not self.buffer:
            return b"" if self.ended else None
        data = bytes(self.buffer[:most])
        del self.buffer[:most]
        self._wake_writers()
        return data

    def close(self) -> None:
        """The program has closed its end: a process that writes now gets SIGPIPE."""
        self._shut()
        self.buffer.clear()
        self._wake_writers()

    def _wake_writers(self) -> None:
        blocked, self.blocked = self.blocked, []
        for process in blocked:
            process.resume(self)

    def _is_ready(self) -> bool:
        return bool(self.buffer or self.ended)


class InputPipe(Pipe):
    """From the program to the child."""

    __slots__ = ("_space", "broken", "reader", "space_callback")

    def __init__(self, loop: Any, name: str) -> None:
        super().__init__(loop, name)
        self.reader: ScriptedProcess | None = None
        self.broken = False
        # The callback of the program's end while it waits for free capacity.
        self.space_callback: Callback | None = None
        self._space = loop.channel(f"space in {name}")

    # The program's side.

    def write(self, data: Any) -> int:
        """As `os.write` on a pipe that does not block."""
        # An event on its way to this pipe is the child closing its end.
        if not self.broken and self.waiting and self._broken_already():
            self.broken = True
        if self.broken:
            raise BrokenPipeError(32, "Broken pipe")
        count = min(len(data), CAPACITY - len(self.buffer))
        if not count:
            raise BlockingIOError
        self.buffer += data[:count]
        if self.reader is not None:
            self.reader.resume(self)
        return count

    def _broken_already(self) -> bool:
        """Whether this write comes after the child closes its end, which it is about to do."""
        answer = self.loop.choose(
            "pipe", 2, lambda: ("", self.name), lambda n: f"{self.name} is broken already"
        )
        if answer:
            self.waiting[0].settle()
        return bool(answer)

    def close(self) -> None:
        """The program has closed its end: the child reads EOF."""
        self._shut()
        self.unwatch_space()
        if self.reader is not None:
            self.reader.resume(self)

    def watch_space(self, callback: Callback) -> None:
        self.space_callback = callback
        self._post_space()

    def unwatch_space(self) -> None:
        self.space_callback = None
        self._space.clear()

    # The child's side.

    def take(self) -> bytes:
        """Read everything in the pipe."""
        data = bytes(self.buffer)
        self.buffer.clear()
        self._post_space()
        return data

    def break_off(self) -> None:
        """Close the reading end."""
        self.broken = True
        self.notify()

    def _post_space(self) -> None:
        wanted = self.space_callback is not None and len(self.buffer) < CAPACITY
        if wanted and not self._space.queue:
            self._space.post(self._notify_space, label=f"free space in {self.name}")

    def _notify_space(self) -> None:
        self.loop.enqueue(self._call_space)

    def _call_space(self) -> None:
        callback = self.space_callback
        if callback is not None:
            callback()
            self._post_space()

    def _is_ready(self) -> bool:
        return self.broken
