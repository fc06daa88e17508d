"""The first and the last bytes of an output of any length, in bounded memory."""

from __future__ import annotations

from collections import deque

# Smaller pieces are joined: a `bytes` object takes 33 bytes in addition to its content.
JOINED = 4096


class OutputBuffer:
    """The first and the last bytes of an output, and its size. A short output is in both."""

    __slots__ = ("_held", "_pieces", "head", "head_size", "tail_size", "total")

    def __init__(self, keep: int) -> None:
        self.head = bytearray()
        self.head_size = keep // 2
        self.tail_size = keep - self.head_size
        self.total = 0
        # The last pieces, as they came: copying each would halve the throughput. The first one may
        # be longer than needed.
        self._pieces: deque[bytes] = deque()
        self._held = 0

    def add(self, data: bytes) -> None:
        size = len(data)
        self.total += size
        free = self.head_size - len(self.head)
        if free > 0:
            self.head += data[:free]
        pieces = self._pieces
        if size < JOINED and pieces and len(pieces[-1]) < JOINED:
            pieces[-1] += data
        else:
            pieces.append(data)
        self._held += size
        while pieces and self._held - len(pieces[0]) >= self.tail_size:
            self._held -= len(pieces.popleft())

    @property
    def tail(self) -> bytes:
        """The last bytes."""
        return b"".join(self._pieces)[max(0, self._held - self.tail_size) :]

    @property
    def tail_start(self) -> int:
        """The offset in the output at which `tail` begins."""
        return self.total - min(self._held, self.tail_size)

    @property
    def dropped(self) -> int:
        """How many bytes are neither in `head` nor in `tail`."""
        return max(0, self.tail_start - len(self.head))

    @property
    def whole(self) -> bytes:
        """The output, if nothing was dropped."""
        return bytes(self.head) + self.tail[len(self.head) - self.tail_start :]
