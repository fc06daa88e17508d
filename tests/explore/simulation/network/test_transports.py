"""The transports are asyncio's own; each of their promises holds on the simulated network."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from handfast._explore.search.plan import Plan, Settings
from handfast._explore.search.run import run


class Noting(asyncio.Protocol):
    """Records the calls that it gets."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.data = b""
        self.transport: Any = None
        self.lost = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.data += data

    def eof_received(self) -> bool:
        self.notes.append("eof")
        return True

    def pause_writing(self) -> None:
        self.notes.append("pause")

    def resume_writing(self) -> None:
        self.notes.append("resume")

    def connection_lost(self, error: Exception | None) -> None:
        self.notes.append(f"lost {type(error).__name__}")
        self.lost.set_result(error)


class Buffering(asyncio.BufferedProtocol):
    """Three bytes at a time."""

    def __init__(self) -> None:
        self.buffer = bytearray(3)
        self.chunks: list[bytes] = []
        self.lost = asyncio.get_running_loop().create_future()

    def get_buffer(self, sizehint: int) -> bytearray:
        return self.buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.chunks.append(bytes(self.buffer[:nbytes]))

    def connection_lost(self, error: Exception | None) -> None:
        self.lost.set_result(error)


def check(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run a program in the plain order; its assertions have to hold."""
    verdict = run(lambda: coroutine, Plan(), Settings()).verdict
    if verdict is not None:
        raise verdict.error or AssertionError(verdict)


async def connected(client: Any = Noting) -> tuple[Any, Any, asyncio.Server]:
    """The protocols of both sides, once both are connected, and the server."""
    loop = asyncio.get_running_loop()
    far = Noting()
    server = await loop.create_server(lambda: far, port=0)
    _, near = await loop.create_connection(client, "127.0.0.1", port_of(server))
    while far.transport is None:
        await asyncio.sleep(0.01)
    return near, far, server


def port_of(server: asyncio.Server) -> int:
    return int(server.sockets[0].getsockname()[1])


def test_write_eof_ends_one_direction_and_close_both() -> None:
    async def program() -> None:
        near, far, server = await connected()
        near.transport.writelines([b"ab", b"cd"])
        near.transport.write_eof()
        await asyncio.sleep(1)
        assert (far.data, far.notes, near.transport.can_write_eof()) == (b"abcd", ["eof"], True)
        far.transport.write(b"back")
        far.transport.close()
        assert far.transport.is_closing()
        await far.lost
        await asyncio.sleep(1)
        assert (near.data, near.notes) == (b"back", ["eof"])
        near.transport.close()
        assert await near.lost is None
        server.close()

    check(program())


def test_a_writer_is_paused_when_the_other_side_does_not_read_and_resumed_when_it_does() -> None:
    async def program() -> None:
        near, far, server = await connected()
        near.transport.set_write_buffer_limits(high=1000, low=10)
        assert near.transport.get_write_buffer_limits() == (10, 1000)
        far.transport.pause_reading()
        assert not far.transport.is_reading()
        near.transport.write(bytes(66_000))
        assert near.notes == []
        near.transport.write(bytes(34_000))
        assert (near.notes, near.transport.get_write_buffer_size()) == (["pause"], 34_464)
        await asyncio.sleep(1)
        assert far.data == b""
        far.transport.resume_reading()
        near.transport.close()
        assert await near.lost is None
        await asyncio.sleep(1)
        assert (near.notes, len(far.data)) == (["pause", "resume", "lost NoneType"], 100_000)
        far.transport.close()
        server.close()

    check(program())


def test_abort_drops_what_was_not_sent_and_tells_the_other_side() -> None:
    async def program() -> None:
        near, far, server = await connected()
        far.transport.pause_reading()
        near.transport.write(bytes(100_000))
        near.transport.abort()
        assert await near.lost is None
        far.transport.resume_reading()
        await asyncio.sleep(1)
        assert (len(far.data), far.notes) == (65_536, ["eof"])
        far.transport.abort()
        server.close()

    check(program())


def test_a_writer_that_waits_for_space_learns_that_the_other_side_closed() -> None:
    async def program() -> None:
        near, far, server = await connected()
        far.transport.pause_reading()
        near.transport.write(bytes(100_000))
        far.transport.abort()
        assert isinstance(await near.lost, ConnectionResetError)
        server.close()

    check(program())


def test_extra_info_is_that_of_a_connection() -> None:
    async def program() -> None:
        near, far, server = await connected()
        ask = near.transport.get_extra_info
        port = port_of(server)
        assert (ask("peername"), ask("sockname")) == (("127.0.0.1", port), ("127.0.0.1", port + 1))
        assert far.transport.get_extra_info("peername") == ("127.0.0.1", port + 1)
        sock = ask("socket")
        assert (sock.getpeername(), sock.family.name, sock.type.name, sock.proto) == (
            ("127.0.0.1", port),
            "AF_INET",
            "SOCK_STREAM",
            6,
        )
        assert sock.fileno() > 1_000_000
        assert "read=polling" in repr(near.transport)
        near.transport.close()
        far.transport.close()
        server.close()

    check(program())


def test_a_protocol_with_a_buffer_gets_what_fits_until_all_is_there() -> None:
    async def program() -> None:
        near, far, server = await connected(Buffering)
        far.transport.write(b"abcdefg")
        far.transport.close()
        assert await near.lost is None
        assert near.chunks == [b"abc", b"def", b"g"]
        server.close()

    check(program())


def test_a_new_protocol_gets_what_comes_from_then_on() -> None:
    async def program() -> None:
        near, far, server = await connected()
        successor = Noting()
        near.transport.set_protocol(successor)
        assert near.transport.get_protocol() is successor
        far.transport.write(b"for the successor")
        far.transport.close()
        await asyncio.sleep(1)
        assert (near.data, successor.data) == (b"", b"for the successor")
        near.transport.close()
        server.close()

    check(program())
