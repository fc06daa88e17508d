"""Servers, addresses and names: asyncio's own servers, on ports that are the same in every run."""

from __future__ import annotations

import asyncio
import errno
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from handfast._explore.loop.unsupported import Uncontrolled
from handfast._explore.search.plan import Plan, Settings
from handfast._explore.search.run import run
from tests.explore.all_schedules import schedules
from tests.explore.simulation.network.test_transports import Noting, check, connected, port_of


async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.close()


async def reaches(*where: Any) -> str:
    """How a connection to that address comes out."""
    try:
        _, writer = await asyncio.open_connection(*where)
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    writer.close()
    return "reached"


def test_a_closed_server_refuses_and_its_connections_go_on() -> None:
    async def program() -> None:
        near, far, server = await connected()
        server.close()
        assert not server.is_serving()
        assert await reaches("127.0.0.1", port_of_peer(near)) == "ECONNREFUSED"
        near.transport.write(b"still here")
        near.transport.close()
        await asyncio.sleep(1)
        assert far.data == b"still here"
        far.transport.close()
        await server.wait_closed()

    check(program())


def port_of_peer(near: Noting) -> int:
    return int(near.transport.get_extra_info("peername")[1])


@pytest.mark.skipif(sys.version_info < (3, 12, 1), reason="before, wait_closed waits for nobody")
def test_wait_closed_waits_for_the_connections() -> None:
    async def program() -> None:
        near, far, server = await connected()
        server.close()
        waiting = asyncio.ensure_future(server.wait_closed())
        await asyncio.sleep(1)
        assert not waiting.done()
        far.transport.close()
        near.transport.close()
        await waiting

    check(program())


@pytest.mark.skipif(sys.version_info < (3, 13), reason="new in 3.13")
@pytest.mark.parametrize("how", ["close_clients", "abort_clients"])
def test_a_server_can_close_its_clients(how: str) -> None:
    async def program() -> None:
        near, _, server = await connected()
        server.close()
        getattr(server, how)()
        await server.wait_closed()
        await asyncio.sleep(1)
        assert near.notes == ["eof"]
        near.transport.close()

    check(program())


def test_a_server_serves_from_serve_forever_until_it_is_cancelled() -> None:
    async def program() -> None:
        server = await asyncio.start_server(hang_up, "127.0.0.1", 80, start_serving=False)
        assert await reaches("127.0.0.1", 80) == "ECONNREFUSED"
        serving = asyncio.ensure_future(server.serve_forever())
        await asyncio.sleep(0)
        assert await reaches("127.0.0.1", 80) == "reached"
        serving.cancel()
        await asyncio.wait([serving])
        assert server.sockets == ()
        assert await reaches("127.0.0.1", 80) == "ECONNREFUSED"

    check(program())


def test_who_listens_where() -> None:
    async def program() -> None:
        everywhere = await asyncio.start_server(hang_up, None, 80)
        named = await asyncio.start_server(hang_up, "one.test", 81)
        six = await asyncio.start_server(hang_up, "::1", 80)
        both = await asyncio.start_server(hang_up, ["127.0.0.1", "one.test"], 82)
        assert [sock.getsockname()[0] for sock in both.sockets] == ["127.0.0.1", "198.18.0.1"]
        assert await reaches("localhost", 80) == "reached"
        assert await reaches("one.test", 80) == "reached"
        assert await reaches("one.test", 81) == "reached"
        assert await reaches("two.test", 81) == "ECONNREFUSED"
        assert await reaches("127.0.0.1", 81) == "ECONNREFUSED"
        assert await reaches("::1", 80) == "reached"
        assert await reaches("::1", 82) == "ECONNREFUSED"
        assert await reaches("0.0.0.0", 82) == "reached"
        for server in (everywhere, named, six, both):
            server.close()

    check(program())


def test_ports_are_the_same_in_every_run_and_taken_ones_are_refused() -> None:
    async def program() -> None:
        first = await asyncio.start_server(hang_up, "", 0)
        second = await asyncio.start_server(hang_up, "127.0.0.1", 49154)
        third = await asyncio.start_server(hang_up, "127.0.0.1", 0)
        fourth = await asyncio.start_server(hang_up, "127.0.0.1", 0)
        ports = [port_of(server) for server in (first, second, third, fourth)]
        assert ports == [49152, 49154, 49153, 49155]
        with pytest.raises(OSError, match="error while attempting to bind on address") as caught:
            await asyncio.start_server(hang_up, ["one.test", "127.0.0.1"], 49152)
        assert caught.value.errno == errno.EADDRINUSE
        for server in (first, second, third, fourth):
            server.close()

    check(program())


def test_a_client_may_choose_its_own_address() -> None:
    async def program() -> None:
        server = await asyncio.start_server(hang_up, "127.0.0.1", 80)
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", 80, local_addr=("127.0.0.1", 4000)
        )
        assert writer.get_extra_info("sockname") == ("127.0.0.1", 4000)
        with pytest.raises(OSError, match="already in use"):
            await asyncio.open_connection("127.0.0.1", 80, local_addr=("127.0.0.1", 80))
        with pytest.raises(OSError, match="no matching local address"):
            await asyncio.open_connection("127.0.0.1", 80, local_addr=("::1", 4000))
        await reader.read()
        writer.close()
        server.close()

    check(program())


def test_unix_sockets_are_paths_that_outlive_their_server_until_3_13() -> None:
    async def program() -> None:
        with pytest.raises(FileNotFoundError):
            await asyncio.open_unix_connection("/no/such/place")
        old = await asyncio.start_unix_server(hang_up, "/no/such/place")
        new = await asyncio.start_unix_server(hang_up, Path("/no/such/place"))
        old.close()
        reader, writer = await asyncio.open_unix_connection("/no/such/place")
        assert await reader.read() == b""
        writer.close()
        new.close()
        gone = FileNotFoundError if sys.version_info >= (3, 13) else ConnectionRefusedError
        with pytest.raises(gone):
            await asyncio.open_unix_connection("/no/such/place")

    check(program())


def test_wrong_arguments_raise_as_on_the_stock_loop() -> None:
    async def program() -> None:
        loop: Any = asyncio.get_running_loop()
        with pytest.raises(ValueError, match="Neither host/port nor sock"):
            await loop.create_server(Noting)
        with pytest.raises(ValueError, match="no sock specified"):
            await loop.create_connection(Noting)
        with pytest.raises(ValueError, match="path was not specified"):
            await loop.create_unix_server(Noting)
        with pytest.raises(ValueError, match="no path and sock"):
            await loop.create_unix_connection(Noting)
        server = await loop.create_unix_server(Noting, "/test.sock")
        with pytest.raises(ValueError, match="server_hostname is only meaningful with ssl"):
            await loop.create_unix_connection(Noting, "/test.sock", server_hostname="x")
        server.close()
        wrong = socket.socket(type=socket.SOCK_DGRAM)
        with wrong, pytest.raises(ValueError, match="A Stream Socket was expected"):
            await loop.create_server(Noting, sock=wrong)

    check(program())


def test_a_server_that_could_not_be_made_leaves_its_address_free() -> None:
    async def program() -> None:
        loop: Any = asyncio.get_running_loop()
        for _ in range(2):
            with pytest.raises(TypeError, match="ssl argument"):
                await loop.create_server(Noting, "127.0.0.1", 80, ssl=True)
            with pytest.raises(TypeError, match="ssl argument"):
                await loop.create_unix_server(Noting, "/test.sock", ssl=True)

    check(program())


def test_who_is_accepted_while_the_server_closes_is_hung_up_on() -> None:
    """Between the accept and its transport there is a step, and the server may go in it."""
    ends: set[object] = set()

    async def program() -> None:
        server = await asyncio.start_unix_server(hang_up, "/test.sock")
        asyncio.get_running_loop().call_later(0, server.close)
        try:
            reader, writer = await asyncio.open_unix_connection("/test.sock")
            ends.add(await reader.read())
            writer.close()
        except ConnectionError as error:
            ends.add(type(error))

    for record in schedules(program, Settings()):
        assert record.verdict is None
    assert ends == {b"", ConnectionResetError}


def test_a_protocol_that_cannot_be_made_hangs_up() -> None:
    async def program() -> None:
        def fail() -> asyncio.Protocol:
            raise ValueError

        server = await asyncio.get_running_loop().create_server(fail, "127.0.0.1", 80)
        reader, writer = await asyncio.open_connection("127.0.0.1", 80)
        assert await reader.read() == b""
        writer.close()
        server.close()

    check(program())


def test_names_have_the_same_address_in_every_run() -> None:
    async def program() -> None:
        loop = asyncio.get_running_loop()
        stream, six = socket.SOCK_STREAM, socket.AF_INET6
        assert await loop.getaddrinfo("one.test", 80, type=stream) == [
            (socket.AF_INET, stream, socket.IPPROTO_TCP, "", ("198.18.0.1", 80))
        ]
        assert [info[4][0] for info in await loop.getaddrinfo("two.test", None)] == [
            "198.18.0.2"
        ] * 2
        for host, family, address in (
            (b"one.test", 0, "198.18.0.1"),
            ("one.test", six, "fd00::1"),
            ("localhost", 0, "127.0.0.1"),
            ("a.localhost", six, "::1"),
            (None, 0, "127.0.0.1"),
            ("::1", 0, "::1"),
        ):
            infos = await loop.getaddrinfo(host, b"http", family=family, proto=socket.IPPROTO_TCP)
            assert [info[4][:2] for info in infos] == [(address, 80)]
        passive = await loop.getaddrinfo(None, "", family=six, flags=socket.AI_PASSIVE, type=stream)
        assert passive[0][4] == ("::", 0, 0, 0)
        for address, name in (
            ("127.0.0.1", "localhost"),
            ("198.18.0.2", "two.test"),
            ("fd00::1", "one.test"),
            ("10.0.0.1", "10.0.0.1"),
        ):
            assert await loop.getnameinfo((address, 80)) == (name, "80")
        numeric = await loop.getnameinfo(("127.0.0.1", 80), socket.NI_NUMERICHOST)
        assert numeric == ("127.0.0.1", "80")
        with pytest.raises(socket.gaierror):
            await loop.getaddrinfo("one.test", 80, flags=socket.AI_NUMERICHOST)
        with pytest.raises(socket.gaierror):
            await loop.getaddrinfo("127.0.0.1", 80, family=six)

    check(program())


def test_what_only_a_kernel_can_decide_is_refused_by_name() -> None:
    async def shared_port() -> None:
        await asyncio.start_server(hang_up, "127.0.0.1", 80, reuse_port=True)

    with pytest.raises(Uncontrolled, match=r"loop.create_server\(reuse_port=True\)"):
        run(shared_port, Plan(), Settings())
