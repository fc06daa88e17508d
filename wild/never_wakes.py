"""Libraries as published, idle: none of their tasks may be called dead.

    pip install aiohttp httpx starlette uvicorn websockets grpcio redis aiokafka aio-pika langgraph
    pip install asyncpg 'psycopg[binary,pool]'
    python -m wild.never_wakes

Each library waits in every way it has, against a server in this process or on this machine. Then
each pending task is checked, and beside them two that nothing can wake, which must be found. A
library that is not installed, or whose server is not, is "not checked".
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from handfast._watch.never_wakes import find_never_waking

Idle = Callable[[AsyncExitStack], Any]
LIBRARIES: dict[str, Idle] = {}


class NotCheckedError(Exception):
    """What a library needs is not there."""


def library(name: str) -> Callable[[Idle], Idle]:
    def register(idle: Idle) -> Idle:
        LIBRARIES[name] = idle
        return idle

    return register


def start(stack: AsyncExitStack, *coroutines: Any) -> None:
    """Tasks that wait until the check is over."""
    for each in coroutines:
        task = asyncio.create_task(each)
        stack.push_async_callback(_end, task)


async def _end(task: asyncio.Task[Any]) -> None:
    task.cancel()
    await asyncio.wait({task}, timeout=2)  # aio-pika ignores the first cancel and connects again


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
        return port


async def listens(port: int) -> None:
    for _ in range(300):
        with suppress(OSError):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.close()
            return
        await asyncio.sleep(0.1)
    raise NotCheckedError(f"nothing listens on port {port}")


@asynccontextmanager
async def child(*command: str, **options: Any) -> AsyncIterator[None]:
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL, **options
    )
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        await process.wait()


@library("aiohttp")
async def idle_aiohttp(stack: AsyncExitStack) -> None:
    from aiohttp import ClientSession, web

    async def socket_(request: web.Request) -> web.WebSocketResponse:
        response = web.WebSocketResponse(heartbeat=None)
        await response.prepare(request)
        await response.receive()
        return response

    async def never(request: web.Request) -> web.Response:
        await asyncio.sleep(3600)
        return web.Response()

    async def quick(request: web.Request) -> web.Response:
        return web.Response(text="ok")

    app = web.Application()
    app.add_routes([web.get("/ws", socket_), web.get("/never", never), web.get("/", quick)])
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    stack.push_async_callback(runner.cleanup)
    port = free_port()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    session = await stack.enter_async_context(ClientSession(f"http://127.0.0.1:{port}"))
    await (await session.get("/")).text()
    waiting = await stack.enter_async_context(session.ws_connect("/ws"))
    start(stack, waiting.receive(), session.get("/never"))


async def plain_app(scope: Any, receive: Any, send: Any) -> None:
    from starlette.applications import Starlette
    from starlette.responses import PlainTextResponse
    from starlette.routing import Route, WebSocketRoute

    async def never(request: Any) -> Any:
        await asyncio.sleep(3600)

    async def quick(request: Any) -> Any:
        return PlainTextResponse("ok")

    async def talk(websocket: Any) -> None:
        await websocket.accept()
        await websocket.receive_text()

    routes = [Route("/", quick), Route("/never", never), WebSocketRoute("/ws", talk)]
    await Starlette(routes=routes)(scope, receive, send)


@library("httpx, starlette, uvicorn")
async def idle_httpx(stack: AsyncExitStack) -> None:
    import httpx
    import uvicorn

    port = free_port()
    server = uvicorn.Server(uvicorn.Config(plain_app, port=port, log_level="critical"))
    start(stack, server.serve())
    await listens(port)
    client = await stack.enter_async_context(
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=None)
    )
    await client.get("/")
    start(stack, client.get("/never"))


@library("websockets")
async def idle_websockets(stack: AsyncExitStack) -> None:
    from websockets.asyncio.client import connect
    from websockets.asyncio.server import serve

    async def talk(connection: Any) -> None:
        async for _ in connection:
            pass

    port = free_port()

    async def serving() -> None:
        async with serve(talk, "127.0.0.1", port):
            await asyncio.Future()

    start(stack, serving())
    await listens(port)
    first = await stack.enter_async_context(connect(f"ws://127.0.0.1:{port}", ping_interval=None))
    second = await stack.enter_async_context(connect(f"ws://127.0.0.1:{port}"))
    start(stack, first.recv(), second.wait_closed())


@library("grpcio")
async def idle_grpc(stack: AsyncExitStack) -> None:
    import grpc

    async def talk(requests: Any, context: Any) -> AsyncIterator[bytes]:
        async for each in requests:
            yield each
        await asyncio.sleep(3600)

    handler = grpc.stream_stream_rpc_method_handler(talk)
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("s", {"m": handler}),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    stack.push_async_callback(_stop, server)
    channel = await stack.enter_async_context(grpc.aio.insecure_channel(f"127.0.0.1:{port}"))
    call = channel.stream_stream("/s/m")()
    await call.write(b"one")
    await call.read()
    start(stack, call.read(), server.wait_for_termination())


@library("redis")
async def idle_redis(stack: AsyncExitStack) -> None:
    import redis.asyncio

    if not shutil.which("redis-server"):
        raise NotCheckedError("no redis-server")
    port = free_port()
    await stack.enter_async_context(child("redis-server", "--port", str(port), "--save", ""))
    await listens(port)
    client = await stack.enter_async_context(redis.asyncio.Redis(port=port))
    await client.set("key", "value")
    subscribed = await stack.enter_async_context(client.pubsub())
    await subscribed.subscribe("channel")
    start(stack, client.blpop(["list"]), _all(subscribed.listen()))


async def _stop(server: Any) -> None:
    with suppress(asyncio.CancelledError):  # of the calls that it ends
        await server.stop(None)


async def _all(items: AsyncIterator[Any]) -> None:
    async for _ in items:
        pass


async def postgres_server(stack: AsyncExitStack) -> int:
    """The port of a server with the user "me" and the database "postgres"."""
    found = [shutil.which("postgres"), *Path("/usr/lib/postgresql").glob("*/bin/postgres")]
    binaries = [Path(each).resolve().parent for each in found if each]
    binaries = [each for each in binaries if (each / "initdb").exists()]
    if not binaries:
        raise NotCheckedError("no PostgreSQL server")
    folder = stack.enter_context(tempfile.TemporaryDirectory())
    options: dict[str, Any] = {}
    if os.getuid() == 0:  # PostgreSQL does not run as root
        user = pwd.getpwnam("nobody")
        os.chown(folder, user.pw_uid, user.pw_gid)
        options = {"user": user.pw_uid, "group": user.pw_gid, "cwd": folder}
    port, data = free_port(), f"{folder}/data"
    made = await asyncio.create_subprocess_exec(
        str(binaries[0] / "initdb"), "-D", data, "-A", "trust", "-U", "me", stdout=-3, **options
    )
    if await made.wait():
        raise NotCheckedError("initdb failed")
    postgres = str(binaries[0] / "postgres")
    await stack.enter_async_context(
        child(postgres, "-D", data, "-p", str(port), "-k", folder, **options)
    )
    await listens(port)
    await asyncio.sleep(1)
    return port


@library("asyncpg")
async def idle_asyncpg(stack: AsyncExitStack) -> None:
    import asyncpg

    port = await postgres_server(stack)
    where = {"host": "127.0.0.1", "port": port, "user": "me", "database": "postgres"}
    pool = await stack.enter_async_context(asyncpg.create_pool(min_size=2, max_size=2, **where))
    first = await stack.enter_async_context(pool.acquire())
    second = await stack.enter_async_context(pool.acquire())
    await second.add_listener("news", print)
    start(stack, first.fetch("select pg_sleep(3600)"), pool.fetch("select 1"))


@library("psycopg, psycopg-pool")
async def idle_psycopg(stack: AsyncExitStack) -> None:
    from psycopg_pool import AsyncConnectionPool

    port = await postgres_server(stack)
    where = f"host=127.0.0.1 port={port} user=me dbname=postgres"
    pool = AsyncConnectionPool(where, min_size=2, max_size=2, open=False)
    await stack.enter_async_context(pool)
    first = await stack.enter_async_context(pool.connection())
    second = await stack.enter_async_context(pool.connection())
    await second.execute("listen news")
    await second.commit()
    start(stack, first.execute("select pg_sleep(3600)"), _all(second.notifies()))
    start(stack, pool.getconn(timeout=3600))


async def silent_server(stack: AsyncExitStack) -> int:
    """Accepts connections and never answers."""

    async def silent(reader: Any, writer: Any) -> None:
        with suppress(Exception):
            await reader.read()
            await asyncio.sleep(3600)

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    stack.callback(server.close)
    port: int = server.sockets[0].getsockname()[1]
    return port


@library("aiokafka")
async def idle_kafka(stack: AsyncExitStack) -> None:
    """No broker: the first connection is not answered."""
    from aiokafka import AIOKafkaConsumer

    port = await silent_server(stack)
    start(stack, AIOKafkaConsumer("topic", bootstrap_servers=f"127.0.0.1:{port}").start())


@library("aio-pika")
async def idle_pika(stack: AsyncExitStack) -> None:
    """No broker: the first connection is not answered."""
    import aio_pika

    start(stack, aio_pika.connect_robust(f"amqp://127.0.0.1:{await silent_server(stack)}/"))


@library("langgraph")
async def idle_langgraph(stack: AsyncExitStack) -> None:
    from langgraph.graph import END, START, StateGraph

    async def slow(state: dict[str, Any]) -> dict[str, Any]:
        await asyncio.sleep(3600)
        return state

    graph = StateGraph(dict)
    graph.add_node("slow", slow)
    graph.add_edge(START, "slow")
    graph.add_edge("slow", END)
    start(stack, graph.compile().ainvoke({"a": 1}))


async def wait(event: asyncio.Event) -> None:
    await event.wait()


async def row(name: str, idle: Idle) -> str:
    """The pending tasks, those called dead, and whether the two dead ones were found."""
    stack = AsyncExitStack()
    try:
        await idle(stack)
        dead = [asyncio.create_task(wait(asyncio.Event())) for _ in range(2)]
        await asyncio.sleep(2)
        tasks = list(asyncio.all_tasks())
        groups = [(number, task, 1) for number, task in enumerate(tasks)]
        found = await asyncio.to_thread(find_never_waking, groups, 60.0)
        called = [tasks[int(str(number))] for number in found.dead]
        wrong = [task for task in called if task not in dead]
        for task in dead:
            task.cancel()
    except (ImportError, NotCheckedError) as missing:
        return f"| {name} | not checked: {missing} | | |"
    finally:
        await stack.aclose()
    # Not the two, and not the task that checks.
    return " ".join(
        [
            f"| {versions(name)} | {len(tasks) - 3} |",
            f"{', '.join(map(repr, wrong)) or 'none'} |",
            f"{'found' if set(dead) <= set(called) else 'missed'} {' '.join(found.not_checked)}|",
        ]
    )


def versions(name: str) -> str:
    return ", ".join(f"{each} {importlib.metadata.version(each)}" for each in name.split(", "))


def main() -> None:
    if sys.argv[1:]:
        loop = asyncio.new_event_loop()
        sys.stdout.write(loop.run_until_complete(row(sys.argv[1], LIBRARIES[sys.argv[1]])) + "\n")
        sys.stdout.flush()
        os._exit(0)  # some libraries do not let the loop be closed
    sys.stdout.write("| library | its pending tasks | called dead | the two dead ones |\n")
    sys.stdout.write("|---|---|---|---|\n")
    sys.stdout.flush()
    for name in LIBRARIES:
        command = [sys.executable, "-W", "ignore", "-m", "wild.never_wakes", name]
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL, timeout=300)


if __name__ == "__main__":
    main()
