"""Socket objects that a program creates itself: each gets a fake socket, which is closed with it."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from handfast._explore.loop.unsupported import Uncontrolled
from handfast._explore.search.plan import Plan, Settings
from handfast._explore.search.run import run
from tests.explore.simulation.network.test_servers import hang_up, reaches
from tests.explore.simulation.network.test_transports import Noting, check


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(100):
        writer.write(data)
        await writer.drain()
    writer.close()


def own_socket(family: int = socket.AF_INET) -> socket.socket:
    sock = socket.socket(family)
    sock.setblocking(False)
    return sock


def test_a_socket_connected_through_the_loop_can_become_a_connection() -> None:
    async def program() -> None:
        loop = asyncio.get_running_loop()
        server = await asyncio.start_server(echo, "127.0.0.1", 80)
        sock = own_socket()
        await loop.sock_connect(sock, ("127.0.0.1", 80))
        reader, writer = await asyncio.open_connection(sock=sock)
        assert writer.get_extra_info("peername") == ("127.0.0.1", 80)
        writer.write(b"a")
        assert await reader.read(1) == b"a"
        writer.close()
        await writer.wait_closed()
        assert sock.fileno() == -1
        server.close()

    check(program())


def test_a_socket_closed_by_the_program_is_closed_for_the_other_side() -> None:
    async def program() -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            ended.set_result(await reader.read())
            writer.close()

        loop = asyncio.get_running_loop()
        ended = loop.create_future()
        server = await asyncio.start_server(serve, "127.0.0.1", 80)
        with own_socket() as sock:
            await loop.sock_connect(sock, ("127.0.0.1", 80))
        assert await ended == b""
        server.close()

    check(program())


def test_a_connected_socket_can_be_used_without_a_transport() -> None:
    async def program() -> None:
        loop = asyncio.get_running_loop()
        server = await asyncio.start_unix_server(echo, "/test.sock")
        with own_socket(socket.AF_UNIX) as sock:
            await loop.sock_connect(sock, "/test.sock")
            requests = asyncio.ensure_future(loop.sock_recv(sock, 2))
            await asyncio.sleep(0)
            await loop.sock_sendall(sock, b"a")
            assert await requests == b"a"
            await loop.sock_sendall(sock, bytes(70_000))
            buffer, count = bytearray(1_000), 0
            while count < 70_000:
                count += await loop.sock_recv_into(sock, buffer)
            readable, writable = asyncio.Event(), asyncio.Event()
            loop.add_reader(sock, readable.set)
            loop.add_writer(sock, writable.set)
            await writable.wait()
            assert loop.remove_writer(sock)
            assert not readable.is_set()
            await loop.sock_sendall(sock, b"b")
            await readable.wait()
            assert loop.remove_reader(sock)
            assert await loop.sock_recv(sock, 1) == b"b"
        server.close()

    check(program())


def test_a_socket_that_a_program_leaves_open_is_closed_after_the_run() -> None:
    kept: list[socket.socket] = []

    async def program() -> None:
        server = await asyncio.start_unix_server(hang_up, "/test.sock")
        kept.append(own_socket(socket.AF_UNIX))
        await asyncio.get_running_loop().sock_connect(kept[0], "/test.sock")
        server.close()

    check(program())
    assert kept[0].fileno() == -1


def test_a_socket_may_be_closed_while_a_task_waits_for_it() -> None:
    async def program() -> None:
        loop = asyncio.get_running_loop()
        server = await asyncio.start_unix_server(echo, "/test.sock")
        with own_socket(socket.AF_UNIX) as sock:
            await loop.sock_connect(sock, "/test.sock")
            requests = asyncio.ensure_future(loop.sock_recv(sock, 1))
            await asyncio.sleep(0)
        requests.cancel()
        await asyncio.wait([requests])
        server.close()

    check(program())


def test_a_bound_socket_can_become_a_server() -> None:
    async def program() -> None:
        sock = own_socket()
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
        assert await reaches("127.0.0.1", port) == "ECONNREFUSED"
        server = await asyncio.start_server(hang_up, sock=sock)
        assert server.sockets[0].getsockname() == ("127.0.0.1", port)
        assert await reaches("127.0.0.1", port) == "reached"
        server.close()
        assert sock.fileno() == -1
        assert await reaches("127.0.0.1", port) == "ECONNREFUSED"

    check(program())


def test_who_listens_without_the_loop_is_found_and_can_accept_by_hand() -> None:
    async def program() -> None:
        loop = asyncio.get_running_loop()
        with socket.create_server(("127.0.0.1", 0)) as listener:
            listener.setblocking(False)
            near = Noting()
            await loop.create_connection(lambda: near, *listener.getsockname())
            sock, where = await loop.sock_accept(listener)
            assert where == near.transport.get_extra_info("sockname")
            transport, _ = await loop.connect_accepted_socket(Noting, sock)
            transport.write(b"by hand")
            transport.close()
            await asyncio.sleep(1)
            assert (near.data, near.notes) == (b"by hand", ["eof"])
            near.transport.close()

    check(program())


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("loop.create_connection", lambda loop, s: loop.create_connection(Noting, sock=s)),
        (
            "loop.create_unix_connection",
            lambda loop, s: loop.create_unix_connection(Noting, sock=s),
        ),
        ("loop.connect_accepted_socket", lambda loop, s: loop.connect_accepted_socket(Noting, s)),
        ("loop.sock_recv", lambda loop, s: loop.sock_recv(s, 1)),
        ("loop.sock_recv_into", lambda loop, s: loop.sock_recv_into(s, bytearray(1))),
        ("loop.sock_sendall", lambda loop, s: loop.sock_sendall(s, b"a")),
        ("loop.add_reader", lambda loop, s: loop.add_reader(s, print)),
        ("loop.remove_reader", lambda loop, s: loop.remove_reader(s.fileno())),
        ("loop.add_writer", lambda loop, s: loop.add_writer(s, print)),
        ("loop.remove_writer", lambda loop, s: loop.remove_writer(s)),
    ],
)
def test_a_socket_that_the_loop_has_not_connected_is_refused_by_name(name: str, call: Any) -> None:
    async def program() -> None:
        near, far = socket.socketpair()
        with near, far:
            await call(asyncio.get_running_loop(), near)

    with pytest.raises(Uncontrolled, match=name):
        run(program, Plan(), Settings())


def test_datagrams_are_refused_by_name() -> None:
    async def program() -> None:
        with socket.socket(type=socket.SOCK_DGRAM) as sock:
            await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", 80))

    with pytest.raises(Uncontrolled, match=r"loop.sock_connect"):
        run(program, Plan(), Settings())
