"""A send that is cancelled while it compresses spoils every message that comes after it."""

import asyncio
import zlib

from aiohttp import WSMsgType
from aiohttp._websocket.writer import WebSocketWriter
from aiohttp.base_protocol import BaseProtocol

from handfast.explore import victim

PACKAGE = "aiohttp"
BAD = "3.13.1"
GOOD = "3.13.2"
ISSUE = "https://github.com/aio-libs/aiohttp/pull/11725"
FINDING = "HF441"
OPTIONS = {"cancel": True}


class Wire(asyncio.Transport):
    def __init__(self):
        super().__init__()
        self.sent = bytearray()

    def write(self, data):
        self.sent += data

    def is_closing(self):
        return False


def messages(wire):
    """What the other side reads."""
    inflate = zlib.decompressobj(wbits=-15)
    while wire:
        size, start = wire[1], 2
        if size == 126:
            size, start = int.from_bytes(wire[2:4], "big"), 4
        yield inflate.decompress(wire[start : start + size] + b"\x00\x00\xff\xff")
        wire = wire[start + size :]


async def program():
    wire = Wire()
    writer = WebSocketWriter(BaseProtocol(asyncio.get_running_loop()), wire, compress=15)
    await victim(writer.send_frame(b"one" * 10_000, WSMsgType.BINARY))
    await writer.send_frame(b"two" * 10_000, WSMsgType.BINARY)
    assert list(messages(bytes(wire.sent)))[-1] == b"two" * 10_000
