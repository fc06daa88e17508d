"""The protocol of the socket: a request is one frame, an answer is frames up to an empty one.

A frame is its length in four bytes, big end first, and so many bytes, at most 1 MiB. A request is a
JSON object with a verb:

    {"verb": "hello"}                     which process this is
    {"verb": "summary"}                   a snapshot without tasks
    {"verb": "snapshot", "tasks": 1000}   a snapshot with at most so many tasks, the oldest first

All verbs only read. The answer is `{"result": ...}` or `{"error": "what is wrong"}`.
"""

from __future__ import annotations

import json
import socket
import struct
import time
from collections.abc import Iterable
from typing import Any

MAX_FRAME = 1 << 20
MAX_REQUEST = 4096
MAX_ANSWER = 256 << 20
"""A reader takes no larger answer."""

_LENGTH = struct.Struct(">I")


class ProtocolError(Exception):
    """The other end does not keep to the protocol."""


class Deadline:
    """The time by which something has to be over."""

    __slots__ = ("_until",)

    def __init__(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds

    def left(self) -> float:
        """The seconds left; TimeoutError if there are none."""
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError("the deadline has passed")
        return left


def read_exactly(connected: socket.socket, size: int, deadline: Deadline) -> bytes:
    """So many bytes; EOFError if the other end closes before."""
    parts: list[bytes] = []
    while size:
        connected.settimeout(deadline.left())
        part = connected.recv(min(size, 65536))
        if not part:
            raise EOFError
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def read_frame(connected: socket.socket, deadline: Deadline, limit: int = MAX_FRAME) -> bytes:
    """The next frame, of at most `limit` bytes."""
    (size,) = _LENGTH.unpack(read_exactly(connected, _LENGTH.size, deadline))
    if size > limit:
        raise ProtocolError(f"a frame of {size:,} bytes; at most {limit:,} are allowed")
    return read_exactly(connected, size, deadline)


def write_frame(connected: socket.socket, data: bytes, deadline: Deadline) -> None:
    """Send one frame."""
    connected.settimeout(deadline.left())
    connected.sendall(_LENGTH.pack(len(data)) + data)


def write_answer(connected: socket.socket, parts: Iterable[str], deadline: Deadline) -> None:
    """Send an answer that comes in parts, in frames as large as allowed."""
    waiting = bytearray()
    for part in parts:
        waiting += part.encode()
        while len(waiting) >= MAX_FRAME:
            write_frame(connected, bytes(waiting[:MAX_FRAME]), deadline)
            del waiting[:MAX_FRAME]
    if waiting:
        write_frame(connected, bytes(waiting), deadline)
    write_frame(connected, b"", deadline)


def read_answer(connected: socket.socket, deadline: Deadline) -> bytes:
    """A whole answer."""
    answer = bytearray()
    while part := read_frame(connected, deadline):
        answer += part
        if len(answer) > MAX_ANSWER:
            raise ProtocolError(f"an answer of more than {MAX_ANSWER:,} bytes")
    return bytes(answer)


def request_in(frame: bytes) -> dict[str, Any]:
    """The request that a frame holds."""
    try:
        request = json.loads(frame)
    except (ValueError, RecursionError):
        raise ProtocolError("a request is a JSON object") from None
    if not isinstance(request, dict) or not isinstance(request.get("verb"), str):
        raise ProtocolError("a request is a JSON object with a verb")
    return request
