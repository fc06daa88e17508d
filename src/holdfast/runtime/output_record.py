"""The first and the last bytes of an output of any length, in bounded memory.

Nothing here waits or is waited for; who reads the output, and when, is in `pipes.py`.
"""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["GAP", "Record"]

# Stands where bytes are missing, so that the halves of two lines are not glued together.
GAP = b""


class Record:
    """The first and the last bytes of an output of any length, and how many lie between."""

    __slots__ = ("head", "head_room", "tail", "tail_room", "total")

    def __init__(self, keep: int) -> None:
        self.head = bytearray()
        self.tail = bytearray()
        self.head_room = keep // 2
        self.tail_room = keep - self.head_room
        self.total = 0

    def add(self, data: bytes) -> None:
        self.total += len(data)
        room = self.head_room - len(self.head)
        if room > 0:
            self.head += data[:room]
            data = data[room:]
        if len(data) >= self.tail_room:
            self.tail[:] = data[len(data) - self.tail_room :]
        else:
            self.tail += data
            # Cheap: a bytearray gives up its front by moving where it starts.
            del self.tail[: max(0, len(self.tail) - self.tail_room)]

    @property
    def dropped(self) -> int:
        return self.total - len(self.head) - len(self.tail)

    def since(self, offset: int) -> Iterator[bytes]:
        """What is kept of the output from this byte on, in order; GAP stands for what is not."""
        if offset < len(self.head):
            yield bytes(self.head[offset:])
            offset = len(self.head)
        tail_start = self.total - len(self.tail)
        if offset < tail_start:
            yield GAP
            offset = tail_start
        if offset < self.total:
            yield bytes(self.tail[offset - tail_start :])
