"""The same programs on the stock loop over real loopback sockets: whatever comes out of them there
is among the outcomes that the explorer lists."""

from __future__ import annotations

import asyncio
import socket
import struct
from functools import partial

import pytest

from handfast._explore.search.plan import Plan, Settings
from handfast._explore.search.run import run
from tests.explore.all_schedules import Logging

Reader = asyncio.StreamReader
Writer = asyncio.StreamWriter


async def echo(log: list[str]) -> None:
    async def serve(reader: Reader, writer: Writer) -> None:
        while chunk := await reader.read(100):
            log.append(f"{chunk.decode()} ")
            writer.write(chunk.upper())
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    writer.write(b"a")
    await asyncio.sleep(0)
    writer.write(b"b")
    writer.write_eof()
    log.append((await reader.read()).decode())
    writer.close()
    server.close()
    await server.wait_closed()


async def two_clients(log: list[str]) -> None:
    async def serve(reader: Reader, writer: Writer) -> None:
        log.append((await reader.readline()).decode().strip())
        writer.write(b"k")
        await writer.drain()
        writer.close()

    async def ask(name: bytes) -> None:
        reader, writer = await asyncio.open_connection(*where)
        writer.write(name + b"\n")
        log.append((name + await reader.read()).decode().upper())
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    where = server.sockets[0].getsockname()
    await asyncio.gather(ask(b"x"), ask(b"y"))
    server.close()


async def nobody_reads(log: list[str]) -> None:
    """The server closes without reading, so the client is reset."""

    async def serve(_: Reader, writer: Writer) -> None:
        await sent.wait()
        writer.close()

    sent = asyncio.Event()
    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=1)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    writer.write(b"abc")
    sent.set()
    try:
        log.append(repr(await reader.read()))
        await asyncio.sleep(0)
        writer.write(b"d")
        await writer.drain()
        log.append("drained")
    except OSError as error:
        log.append(type(error).__name__)
    writer.close()
    server.close()


async def peer_gone(log: list[str]) -> None:
    """Who writes to a closed peer hears of it with the next write."""

    async def serve(_: Reader, writer: Writer) -> None:
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    log.append(repr(await reader.read()))
    for _ in range(3):
        try:
            writer.write(b"a")
            await writer.drain()
            log.append("+")
        except OSError as error:
            log.append(type(error).__name__)
    writer.close()
    server.close()


async def hung_up(log: list[str]) -> None:
    """A reset, made by hand."""

    async def serve(_: Reader, writer: Writer) -> None:
        sock = writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        try:
            log.append(repr(await reader.read()))
        finally:
            writer.close()
    except OSError as error:
        log.append(type(error).__name__)
    server.close()


async def refused(log: list[str]) -> None:
    server = await asyncio.start_server(lambda r, w: None, "127.0.0.1", 0)
    where = server.sockets[0].getsockname()
    server.close()
    try:
        await asyncio.open_connection(*where)
    except OSError as error:
        log.append(type(error).__name__ + str(error).replace(str(where[1]), "PORT"))


def seen(program: Logging) -> set[str]:
    """Outcomes of some hundred schedules: some programs have too many to walk them all."""
    found = set()
    for seed in range(200):
        log: list[str] = []
        record = run(partial(program, log), Plan(tail="random", seed=seed), Settings(stall=0.0))
        assert record.verdict is None
        found.add("".join(log))
    return found


@pytest.mark.parametrize("program", [echo, two_clients, nobody_reads, peer_gone, hung_up, refused])
def test_what_the_stock_loop_shows_is_listed(program: Logging) -> None:
    listed = seen(program)
    for _ in range(10):
        log: list[str] = []
        asyncio.run(program(log))
        assert "".join(log) in listed
