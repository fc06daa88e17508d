"""The bytes on their way to one socket: in order, with the marks where each write ended.

How much of them one read sees is a choice. This knows where a cut is worth trying, and sees to it
that no piece is cut twice, so that there are few schedules and each says something.
"""

from __future__ import annotations

from collections import deque

__all__ = ["Inbox"]


class Inbox:
    """What was sent and not yet received. `ended`: nothing follows."""

    __slots__ = ("_pieces", "ended", "size")

    def __init__(self) -> None:
        # Each piece with whether it may still be cut: one write is cut in two, never in three.
        self._pieces: deque[tuple[bytes, bool]] = deque()
        self.size = 0
        self.ended = False

    def add(self, data: bytes) -> None:
        """One write. What comes after the end is lost on the way."""
        if not self.ended:
            self._pieces.append((data, True))
            self.size += len(data)

    def lose(self) -> None:
        """Whatever is on its way does not come, its end included."""
        self._pieces.clear()
        self.size = 0
        self.ended = False

    def cuts(self, limit: int) -> list[int]:
        """How many bytes one read of at most `limit` may see: everything, the first write, all but
        the last one, the first byte, all but the last."""
        whole = min(self.size, limit)
        first, first_fresh = self._pieces[0]
        last, last_fresh = self._pieces[-1]
        cuts = [len(first), self.size - len(last)]
        if first_fresh:
            cuts.append(1)
        if last_fresh:
            cuts.append(self.size - 1)
        return list(dict.fromkeys([whole, *(cut for cut in cuts if 0 < cut < whole)]))

    def take(self, count: int) -> bytes:
        """The first `count` bytes."""
        self.size -= count
        taken = []
        while count:
            data, _ = self._pieces.popleft()
            if len(data) > count:
                self._pieces.appendleft((data[count:], False))
                data = data[:count]
            taken.append(data)
            count -= len(data)
        return b"".join(taken)
