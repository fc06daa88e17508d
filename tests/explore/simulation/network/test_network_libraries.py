"""Unmodified libraries on the simulated network: aiohttp, anyio, TLS, and the handfast runtime."""

from __future__ import annotations

import asyncio
import gc
import ssl
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import aiohttp
import anyio
import anyio.abc
import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from handfast import Scope
from handfast._explore.search.plan import Plan, Settings
from handfast._explore.search.run import run
from tests.explore.simulation.network.test_real_sockets import echo
from tests.explore.simulation.network.test_transports import Noting

Program = Callable[[], Coroutine[Any, Any, None]]

# Made for this test and good for nothing else: localhost, until 2126.
_CERTIFICATE = """\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgaQAWkiFqcLKvf7sS
yPlgiGaw3andebV8m+5+b7kpjp2hRANCAAQF7zf3/7CBhrviGTxZDLAgIz5e8942
HCIuTbr/+DztuuO2gRKFI21X6jR2e0+FvDi8o3ndhTj7nO4HpAWD11nb
-----END PRIVATE KEY-----
-----BEGIN CERTIFICATE-----
MIIBmzCCAUCgAwIBAgITLS2kQ4k+7H4aRob4h8wwgyzF/zAKBggqhkjOPQQDAjAU
MRIwEAYDVQQDDAlsb2NhbGhvc3QwIBcNMjYxMTE2MDYxODEwWhgPMjEyNjEwMjMw
NjE4MTBaMBQxEjAQBgNVBAMMCWxvY2FsaG9zdDBZMBMGByqGSM49AgEGCCqGSM49
AwEHA0IABAXvN/f/sIGGu+IZPFkMsCAjPl7z3jYcIi5Nuv/4PO2647aBEoUjbVfq
NHZ7T4W8OLyjed2FOPuc7gekBYPXWdujbzBtMB0GA1UdDgQWBBRJOPDTAmzgZMCP
rqlp3Btu133zhzAfBgNVHSMEGDAWgBRJOPDTAmzgZMCPrqlp3Btu133zhzAPBgNV
HRMBAf8EBTADAQH/MBoGA1UdEQQTMBGCCWxvY2FsaG9zdIcEfwAAATAKBggqhkjO
PQQDAgNJADBGAiEAi60prFZLztyGivq7uT0hfflYoDFBGoUzkGiV9MKYGH0CIQCL
7nqHjJtXvY6tLtnWr8kIKPKJeNWP34RvTD26jppgaA==
-----END CERTIFICATE-----
"""


def contexts(where: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """For the server, and for a client that trusts it."""
    path = where / "certificate.pem"
    path.write_text(_CERTIFICATE)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return context, ssl.create_default_context(cafile=str(path))


def application() -> web.Application:
    async def greet(request: web.Request) -> web.Response:
        return web.Response(text=f"hello {await request.text()}")

    app = web.Application()
    app.router.add_post("/", greet)
    return app


async def aiohttp_on_a_port() -> None:
    runner = web.AppRunner(application())
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 8080).start()
    session = aiohttp.ClientSession("http://127.0.0.1:8080")
    async with session, session.post("/", data="you") as answer:
        assert await answer.text() == "hello you"
    await runner.cleanup()


async def aiohttp_test_server() -> None:
    client = TestClient(TestServer(application()))
    async with client, client.post("/", data="you") as answer:
        assert await answer.text() == "hello you"


async def anyio_both_sides() -> None:
    async def serve(stream: anyio.abc.SocketStream) -> None:
        async with stream:
            try:
                while True:
                    await stream.send((await stream.receive()).upper())
            except anyio.EndOfStream:
                pass

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(anyio.abc.SocketAttribute.local_port)
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, serve)
        async with await anyio.connect_tcp("127.0.0.1", port) as stream:
            await stream.send(b"ab")
            answer = await stream.receive()
            while len(answer) < 2:
                answer += await stream.receive()
            assert answer == b"AB"
        tasks.cancel_scope.cancel()


async def owned_by_a_scope() -> None:
    async with Scope("server") as scope:
        server = await asyncio.start_server(echo, "localhost", 80)
        async with asyncio.timeout(1):
            reader, writer = await asyncio.open_connection("localhost", 80)
            task = scope.spawn(reader.readexactly(2))
            writer.write(b"ok")
            assert await task == b"ok"
        writer.close()
        server.close()


@pytest.mark.parametrize(
    "program", [aiohttp_on_a_port, aiohttp_test_server, anyio_both_sides, owned_by_a_scope]
)
def test_libraries_work_under_any_schedule(program: Program) -> None:
    for seed in range(40):
        plan = Plan(tail="random", seed=seed)
        record = run(program, plan, Settings())
        assert record.verdict is None, seed
        if seed % 20 == 0:
            assert run(program, plan, Settings()).taken == record.taken


def test_tls_has_the_same_choices_in_every_run(tmp_path: Path) -> None:
    context, trusting = contexts(tmp_path)

    async def program() -> None:
        server = await asyncio.start_server(echo, "localhost", 443, ssl=context)
        reader, writer = await asyncio.open_connection("localhost", 443, ssl=trusting)
        writer.write(b"secret")
        assert await reader.readexactly(6) == b"secret"
        assert writer.get_extra_info("cipher") is not None
        writer.close()
        await writer.wait_closed()
        server.close()

    for seed in range(20):
        plan = Plan(tail="random", seed=seed)
        record = run(program, plan, Settings())
        assert record.verdict is None, seed
        assert run(program, plan, Settings()).taken == record.taken


def test_leftover_tls_transports_are_found_and_give_no_warning(tmp_path: Path) -> None:
    context, trusting = contexts(tmp_path)

    async def program() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(Noting, "localhost", 443, ssl=context)
        await loop.create_connection(Noting, "localhost", 443, ssl=trusting)
        server.close()

    found = run(program, Plan(), Settings()).verdict
    assert found is not None
    assert found.message == "2 transports are still open after the program ended"
    gc.collect()
