"""The pipes between a program and its scripted child, as a kernel keeps them: bytes in order, a
limited room, EOF when the last writer has gone, a broken pipe when the reader has.

Only the state is here, and who is told of it. The asyncio side is in `ends`, the child in `process`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.explore.twins.children.pending import Pending
    from holdfast.explore.twins.children.process import ScriptedProcess

__all__ = ["CAPACITY", "InputPipe", "OutputPipe", "Pipe"]

# What a pipe of Linux holds.
CAPACITY = 65_536

Callback = Callable[[], object]


class Pipe:
    """What both directions share: somebody of the program who wants to be told."""

    __slots__ = (
        "_channel",
        "_handles",
        "_told",
        "buffer",
        "closed",
        "loop",
        "name",
        "told",
        "waiting",
    )

    def __init__(self, loop: Any, name: str) -> None:
        self.loop = loop
        self.name = name
        self.buffer: bytearray = bytearray()
        self.closed = False
        # The callback of the program's end, while it is registered as a reader. (The end that
        # writes is a reader too: that is how it learns that the pipe is broken.)
        self.told: Callback | None = None
        # Counts registrations: removing one takes back the handle that is already in the queue.
        self._told = 0
        self._handles = 0
        self._channel = loop.channel(name)
        # What is on its way in this pipe. While nobody looks, it cannot be seen to arrive, so it is
        # not a choice when it does.
        self.waiting: list[Pending] = []

    def fileno(self) -> int:
        """There is no descriptor; nothing of the system may be asked for one."""
        return -1

    def watch(self, callback: Callback) -> None:
        """The program's end wants to be told, from the next poll on."""
        self.told = callback
        for pending in self.waiting:
            pending.post()
        self._look()

    def unwatch(self) -> None:
        if self.told is not None:
            self.told = None
            self._told += 1
            self._handles = 0
            self._channel.clear()
            for pending in self.waiting:
                pending.unpost()

    def tell(self) -> None:
        """What a selector does at a poll: queue the callback, once."""
        if self.told is not None and not self._handles:
            self._handles = 1
            self.loop.enqueue(self._call, self._told)

    def _call(self, told: int) -> None:
        callback = self.told
        if callback is not None and told == self._told:
            self._handles = 0
            callback()
            self._look()

    def _look(self) -> None:
        """A selector reports as long as there is something."""
        if self.told is not None and self._something() and not self._channel.queue:
            self._channel.post(self.tell, label=f"{self.name} is still ready")

    def _something(self) -> bool:
        """Whether a selector would report it."""
        raise NotImplementedError

    def _shut(self) -> None:
        """The program's end is closed: what was on its way is lost, and nobody can tell."""
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
        # Who holds the end that writes, in the order in which they got it.
        self.writers: dict[ScriptedProcess, None] = {}
        self.ended = False
        # Those who wait for room.
        self.blocked: list[ScriptedProcess] = []

    def room(self) -> int:
        return CAPACITY - len(self.buffer) - self.promised

    def arrive(self, data: bytes) -> None:
        """Bytes of a child are there."""
        self.promised -= len(data)
        self.buffer += data
        self.tell()

    def end(self) -> None:
        """The last writer has gone."""
        for pending in tuple(self.waiting):  # what others wrote before is in the pipe
            pending.make()
        self.ended = True
        self.tell()

    def read(self, most: int) -> bytes | None:
        """As `os.read`; None if it would block."""
        if not self.buffer:
            return b"" if self.ended else None
        data = bytes(self.buffer[:most])
        del self.buffer[:most]
        self._wake_writers()
        return data

    def close(self) -> None:
        """The program has closed its end: whoever writes now dies of it."""
        self._shut()
        self.buffer.clear()
        self._wake_writers()

    def _wake_writers(self) -> None:
        blocked, self.blocked = self.blocked, []
        for process in blocked:
            process.resume(self)

    def _something(self) -> bool:
        return bool(self.buffer or self.ended)


class InputPipe(Pipe):
    """From the program to the child."""

    __slots__ = ("_room", "broken", "reader", "wants_room")

    def __init__(self, loop: Any, name: str) -> None:
        super().__init__(loop, name)
        self.reader: ScriptedProcess | None = None
        self.broken = False
        # The callback of the program's end while it waits for room.
        self.wants_room: Callback | None = None
        self._room = loop.channel(f"room in {name}")

    # The program's side.

    def write(self, data: Any) -> int:
        """As `os.write` on a pipe that does not block."""
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
        """The child is about to close its end: whether this write comes before or after."""
        answer = self.loop.choose(
            "pipe", 2, lambda: ("", self.name), lambda n: f"{self.name} is broken already"
        )
        if answer:
            self.waiting[0].settle()
        return bool(answer)

    def close(self) -> None:
        """The program has closed its end: the child reads EOF."""
        self._shut()
        self.unwatch_room()
        if self.reader is not None:
            self.reader.resume(self)

    def watch_room(self, callback: Callback) -> None:
        self.wants_room = callback
        self._look_for_room()

    def unwatch_room(self) -> None:
        self.wants_room = None
        self._room.clear()

    # The child's side.

    def take(self) -> bytes:
        """All that is there."""
        data = bytes(self.buffer)
        self.buffer.clear()
        self._look_for_room()
        return data

    def break_off(self) -> None:
        """Nobody can read it any more."""
        self.broken = True
        self.tell()

    def _look_for_room(self) -> None:
        wanted = self.wants_room is not None and len(self.buffer) < CAPACITY
        if wanted and not self._room.queue:
            self._room.post(self._tell_room, label=f"room in {self.name}")

    def _tell_room(self) -> None:
        self.loop.enqueue(self._call_room)

    def _call_room(self) -> None:
        callback = self.wants_room
        if callback is not None:
            callback()
            self._look_for_room()

    def _something(self) -> bool:
        return self.broken
