"""Servers (HF741) and transports (HF742) of asyncio that are open."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import subprocess
import sys
from asyncio import StreamReader, StreamWriter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from handfast._census import LiveObject, owned_by, recording, take
from tests.explore.simulation.network.test_network_libraries import contexts
from tests.support.stepping import run_on

HOST = "127.0.0.1"


@pytest.fixture(autouse=True)
def recorded() -> Iterator[None]:
    with recording():
        yield


async def serve(reader: StreamReader, writer: StreamWriter) -> None:
    """Stays until the other side is gone."""
    with suppress(OSError):
        await reader.read()
    writer.close()


def opened() -> list[LiveObject]:
    return list(take(["connections"], loop=asyncio.get_running_loop()).objects)


def servers() -> list[LiveObject]:
    return [live for live in opened() if live.code == "HF741"]


def transports() -> dict[Any, LiveObject]:
    found = [live for live in opened() if live.code == "HF742"]
    return {live.target: live for live in found}


def port_of(server: asyncio.Server) -> int:
    port: int = server.sockets[0].getsockname()[1]
    return port


async def accepted() -> LiveObject:
    """The server's side of a connection, once it is there."""
    async with asyncio.timeout(30):
        while True:
            for live in transports().values():
                if getattr(live.target, "_server", None) is not None:
                    return live
            await asyncio.sleep(0.001)


def test_a_server_is_listed_with_its_address_its_line_and_its_owner() -> None:
    async def main() -> None:
        server = await asyncio.start_server(serve, HOST, 0)  # made here
        [live] = servers()
        assert (live.check, live.code) == ("connections", "HF741")
        assert live.what == f"server on {HOST}:{port_of(server)}"
        assert live.target is server
        assert live.creation is not None
        assert live.creation.origin.source.endswith("# made here")
        assert live.owner == "the test"
        assert live.part_of() is None
        server.close()
        assert live.ended()
        assert opened() == []

    with owned_by("the test"):
        asyncio.run(main())


def test_a_server_that_does_not_serve_yet_is_listed() -> None:
    async def main() -> None:
        server = await asyncio.start_server(serve, HOST, 0, start_serving=False)
        assert [live.target for live in servers()] == [server]
        server.close()
        assert servers() == []

    asyncio.run(main())


def test_each_end_of_a_connection_is_listed_with_both_addresses() -> None:
    async def main() -> None:
        server = await asyncio.start_server(serve, HOST, 0)
        _, writer = await asyncio.open_connection(HOST, port_of(server))  # opened here
        there = await accepted()
        here = transports()[writer.transport]
        mine, theirs = (writer.get_extra_info(name)[1] for name in ("sockname", "peername"))
        assert here.code == there.code == "HF742"
        assert here.what == f"transport {HOST}:{mine} to {HOST}:{theirs}"
        assert there.what == f"transport {HOST}:{theirs} to {HOST}:{mine}"
        assert here.creation is not None
        assert here.creation.origin.source.endswith("# opened here")
        # Not the line that runs the loop.
        assert there.creation is not None
        assert "start_server" in there.creation.origin.source
        writer.close()
        assert here.ended()
        await writer.wait_closed()
        server.close()
        async with asyncio.timeout(30):
            while not there.ended():
                await asyncio.sleep(0.001)
        assert opened() == []

    asyncio.run(main())


def test_an_accepted_transport_is_part_of_the_server_while_that_serves() -> None:
    """Then of the client's in this process, and of nothing when that is gone as well."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(asyncio.Protocol, HOST, 0)
        client = socket.create_connection((HOST, port_of(server)))
        client.setblocking(False)
        live = await accepted()
        [served] = servers()
        assert live.part_of() == served.key
        server.close()
        assert live.part_of() is None
        transport, _ = await loop.create_connection(asyncio.Protocol, sock=client)
        mine = transports()[transport]
        assert live.part_of() == mine.key
        assert mine.part_of() is None
        transport.close()
        assert live.part_of() is None
        live.target.close()
        assert opened() == []
        await asyncio.sleep(0)

    asyncio.run(main())


@pytest.mark.skipif(sys.platform == "win32", reason="no such sockets there")
def test_a_unix_socket_is_listed_by_its_path(tmp_path: Path) -> None:
    # A path of pytest's may be too long for a socket.
    path = os.path.relpath(tmp_path / "s")
    path = path if len(path) < 100 else str(tmp_path / "s")

    async def main() -> None:
        server = await asyncio.start_unix_server(serve, path)
        _, writer = await asyncio.open_unix_connection(path)
        live = await accepted()
        assert servers()[0].what == f"server on {path}"
        assert transports()[writer.transport].what == f"transport to {path}"
        assert live.what == f"transport on {path}"
        server.close()
        assert live.part_of() == transports()[writer.transport].key
        writer.close()
        live.target.close()
        await writer.wait_closed()

    asyncio.run(main())


def test_a_datagram_transport_is_listed() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        make = asyncio.DatagramProtocol
        transport, _ = await loop.create_datagram_endpoint(make, local_addr=(HOST, 0))
        port = transport.get_extra_info("sockname")[1]
        [live] = opened()
        assert (live.code, live.what) == ("HF742", f"transport on {HOST}:{port}")
        transport.close()
        assert opened() == []
        await asyncio.sleep(0)

    asyncio.run(main())


def test_an_ipv6_address_has_brackets() -> None:
    async def main() -> None:
        try:
            server = await asyncio.start_server(serve, "::1", 0)
        except OSError:
            pytest.skip("no IPv6 here")
        [live] = servers()
        assert live.what == f"server on [::1]:{port_of(server)}"
        server.close()

    asyncio.run(main())


@pytest.mark.skipif(sys.platform == "win32", reason="no such transports there")
@pytest.mark.parametrize("reading", [True, False], ids=["reading", "writing"])
def test_a_pipe_is_listed_also_while_it_is_not_read(reading: bool) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        ends = [os.fdopen(fd, mode, 0) for fd, mode in zip(os.pipe(), ("rb", "wb"), strict=True)]
        mine, other = ends if reading else reversed(ends)
        transport: Any
        if reading:
            transport, _ = await loop.connect_read_pipe(asyncio.Protocol, mine)
            transport.pause_reading()
        else:
            transport, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, mine)
        live = transports()[transport]
        assert live.what == f"transport of a pipe, {'reading' if reading else 'writing'}"
        assert live.creation is not None
        assert "connect_" in live.creation.origin.source
        transport.close()
        assert opened() == []
        other.close()
        await asyncio.sleep(0)

    asyncio.run(main())


@pytest.mark.skipif(sys.platform == "win32", reason="no such transports there")
def test_the_pipes_of_a_child_are_not_listed() -> None:
    async def main() -> None:
        child = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            "input()",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert opened() == []
        await child.communicate(b"\n")

    asyncio.run(main())


def test_the_loops_own_sockets_and_plain_readers_are_not_transports() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        ours, theirs = socket.socketpair()
        loop.add_reader(ours, print)
        assert opened() == []
        loop.remove_reader(ours)
        ours.close()
        theirs.close()

    asyncio.run(main())


def test_what_was_left_open_on_a_closed_loop_is_still_open() -> None:
    loop = asyncio.new_event_loop()
    before = take(["connections"])
    server = loop.run_until_complete(asyncio.start_server(serve, HOST, 0))
    loop.close()
    [live] = take(["connections"]).since(before)
    assert live.code == "HF741"
    assert live.target is server
    for each in server.sockets:
        os.close(each.fileno())
    [live] = take(["connections"]).since(before)
    assert live.what == "server on a closed socket"
    for bare in getattr(server, "_sockets"):  # noqa: B009
        bare.detach()


def test_of_the_two_transports_of_tls_one_is_listed_until_the_upper_is_closed(
    tmp_path: Path,
) -> None:
    serving, trusting = contexts(tmp_path)

    async def main() -> None:
        server = await asyncio.start_server(serve, HOST, 0, ssl=serving)
        _, writer = await asyncio.open_connection(HOST, port_of(server), ssl=trusting)
        there = await accepted()
        assert len(transports()) == 2
        writer.close()
        # The transport below waits for the other side to say goodbye.
        assert list(transports()) == [there.target]
        with suppress(OSError, ssl.SSLError):
            await writer.wait_closed()
        server.close()
        async with asyncio.timeout(30):
            while opened():
                await asyncio.sleep(0.001)

    asyncio.run(main())


class TestWithoutRecording:
    @pytest.fixture(autouse=True)
    def recorded(self) -> None:
        """What was created before the recording is found on its loop."""

    def test_what_the_loop_lists_is_found_and_has_no_creation(self) -> None:
        async def main() -> None:
            server = await asyncio.start_server(serve, HOST, 0)
            _, writer = await asyncio.open_connection(HOST, port_of(server))
            await accepted()
            assert len(servers()) == 1
            assert len(transports()) == 2
            assert {live.creation for live in opened()} == {None}
            writer.close()
            await writer.wait_closed()
            server.close()
            async with asyncio.timeout(30):
                while opened():
                    await asyncio.sleep(0.001)

        asyncio.run(main())

    @pytest.mark.skipif(sys.platform == "win32", reason="no such transports there")
    def test_a_pipe_that_is_read_from_is_found(self) -> None:
        async def main() -> None:
            loop = asyncio.get_running_loop()
            reading, writing = os.pipe()
            pipe = os.fdopen(reading, "rb", 0)
            transport, _ = await loop.connect_read_pipe(asyncio.Protocol, pipe)
            await asyncio.sleep(0)
            assert list(transports()) == [transport]
            transport.close()
            os.close(writing)
            await asyncio.sleep(0)

        asyncio.run(main())


def test_connections_are_not_checked_on_a_loop_that_does_not_list_them(kind: str) -> None:
    async def main() -> tuple[str, ...]:
        census = take(["connections"], loop=asyncio.get_running_loop())
        assert census.objects == ()
        return census.not_checked

    words = "connections (servers, transports) on a uvloop loop cannot be seen"
    assert run_on(kind, main()) == ((words,) if kind == "uvloop" else ())
