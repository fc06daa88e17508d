"""aiohttp: a scope for each application and one for each request, on a real server and client."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

import handfast
from handfast.bridges.aiohttp import app_scope, request_scope, setup

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


async def for_ever(log: list[str], name: str, begun: asyncio.Event | None = None) -> None:
    if begun is not None:
        begun.set()
    try:
        await asyncio.Event().wait()
    finally:
        await asyncio.sleep(0)
        log.append(f"{name} ended")


def app_with(handler: Handler, **options: Any) -> web.Application:
    app = web.Application()
    setup(app, **options)
    app.router.add_get("/", handler)
    return app


async def get(app: web.Application, path: str = "/") -> tuple[int, str]:
    async with TestClient(TestServer(app)) as client, client.get(path) as response:
        return response.status, await response.text()


def test_the_tasks_of_a_request_end_with_its_handler() -> None:
    async def main() -> list[str]:
        log: list[str] = []

        async def handler(request: web.Request) -> web.Response:
            begun = asyncio.Event()
            request_scope(request).spawn(for_ever(log, "task", begun))
            await begun.wait()
            return web.Response(text=request_scope(request).name)

        log.append(str(await get(app_with(handler))))
        return log

    assert asyncio.run(main()) == ["task ended", "(200, 'GET /')"]


def test_a_request_may_give_its_tasks_time_to_finish() -> None:
    async def main() -> list[str]:
        log: list[str] = []

        async def write() -> None:
            await asyncio.sleep(0)
            log.append("written")

        async def handler(request: web.Request) -> web.Response:
            request_scope(request).spawn(write())
            return web.Response()

        await get(app_with(handler, request_grace=10))
        return log

    assert asyncio.run(main()) == ["written"]


def test_the_scope_of_a_request_closes_when_the_client_disconnects() -> None:
    async def main() -> list[str]:
        log: list[str] = []
        begun, ended = asyncio.Event(), asyncio.Event()

        async def handler(request: web.Request) -> web.Response:
            request_scope(request).spawn(for_ever(log, "task", begun))
            try:
                await asyncio.Event().wait()
            finally:
                log.append("handler cancelled")
                ended.set()
            return web.Response()

        async with TestServer(app_with(handler)) as server:
            _, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")
            await begun.wait()
            writer.close()
            await writer.wait_closed()
            await ended.wait()
            while len(log) < 2:
                await asyncio.sleep(0)
        return log

    assert asyncio.run(main()) == ["handler cancelled", "task ended"]


def test_a_failing_task_of_a_request_cancels_its_handler_and_is_a_500(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> tuple[list[str], int]:
        log: list[str] = []

        async def fail() -> None:
            raise ValueError("boom")

        async def handler(request: web.Request) -> web.Response:
            request_scope(request).spawn(for_ever(log, "sibling"))
            request_scope(request).spawn(fail())
            await for_ever(log, "handler")
            return web.Response()

        status, _ = await get(app_with(handler))
        return sorted(log), status

    with caplog.at_level(logging.ERROR, logger="aiohttp.server"):
        assert asyncio.run(main()) == (["handler ended", "sibling ended"], 500)
    assert "ValueError: boom" in caplog.text
    assert "in task 'test_a_failing_task" in caplog.text


@pytest.mark.parametrize("error", [web.HTTPNotFound(text="gone"), web.HTTPConflict(text="taken")])
def test_an_http_exception_of_a_handler_is_the_response(error: web.HTTPException) -> None:
    async def main() -> tuple[int, str]:
        async def handler(request: web.Request) -> web.Response:
            request_scope(request).spawn(for_ever([], "task"))
            raise error

        return await get(app_with(handler))

    assert asyncio.run(main()) == (error.status, error.text)


def test_an_error_of_the_handler_does_not_hide_one_of_its_tasks(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> int:
        async def fail_late() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                raise OSError("disk full")

        async def handler(request: web.Request) -> web.Response:
            request_scope(request).spawn(fail_late())
            await asyncio.sleep(0)
            raise web.HTTPNotFound

        return (await get(app_with(handler)))[0]

    with caplog.at_level(logging.ERROR, logger="aiohttp.server"):
        assert asyncio.run(main()) == 500
    assert "OSError: disk full" in caplog.text


# --- the application -------------------------------------------------------------------------------


def test_a_task_of_the_application_outlives_the_request_and_ends_at_shutdown() -> None:
    async def main() -> list[str]:
        log: list[str] = []

        async def handler(request: web.Request) -> web.Response:
            begun = asyncio.Event()
            app_scope(request).spawn(for_ever(log, "task", begun))
            await begun.wait()
            return web.Response()

        app = app_with(handler, name="shop")
        async with TestClient(TestServer(app)) as client:
            async with client.get("/") as response:
                log.append(f"answered {response.status}")
            log.append(repr(app_scope(app)))
        log.append(repr(app_scope(app)))
        return log

    assert asyncio.run(main()) == [
        "answered 200",
        "<Scope 'shop' open, 1 tasks>",
        "task ended",
        "<Scope 'shop' closed, 0 tasks>",
    ]


def test_the_application_closes_its_tasks_before_the_session_that_they_use() -> None:
    """S4.3: a session that the scope holds, and one that the application opened before."""

    async def main() -> list[str]:
        log: list[str] = []
        older: list[aiohttp.ClientSession] = []

        async def open_older(app: web.Application) -> AsyncIterator[None]:
            async with aiohttp.ClientSession() as session:
                older.append(session)
                yield
            log.append("older session closed")

        async def handler(request: web.Request) -> web.Response:
            scope = app_scope(request)
            session = await scope.hold(aiohttp.ClientSession())
            begun = asyncio.Event()

            async def use() -> None:
                try:
                    await for_ever(log, "task", begun)
                finally:
                    log.append(f"sessions closed: {session.closed}, {older[0].closed}")

            scope.spawn(use())
            await begun.wait()
            return web.Response()

        app = web.Application()
        app.cleanup_ctx.append(open_older)
        setup(app)
        app.router.add_get("/", handler)
        await get(app)
        assert older[0].closed
        return log

    assert asyncio.run(main()) == [
        "task ended",
        "sessions closed: False, False",
        "older session closed",
    ]


def test_a_shutdown_keeps_to_its_deadline_and_names_the_stragglers() -> None:
    async def main() -> BaseException:
        gate, begun = asyncio.Event(), asyncio.Event()

        async def stubborn() -> None:
            begun.set()
            while not gate.is_set():
                try:
                    await gate.wait()
                except asyncio.CancelledError:
                    pass

        async def handler(request: web.Request) -> web.Response:
            app_scope(request).spawn(stubborn())
            await begun.wait()
            return web.Response()

        opening = asyncio.get_running_loop().call_later(5, gate.set)  # too late
        with pytest.raises(ExceptionGroup) as caught:
            await get(app_with(handler, timeout=0.05))
        opening.cancel()
        gate.set()
        await asyncio.sleep(0)
        return handfast.split_errors(caught.value).cleanup[0]

    error = asyncio.run(main())
    assert isinstance(error, handfast.errors.StragglersLeft)
    assert "stubborn" in str(error)


def test_an_application_inside_another_one_shares_its_scope() -> None:
    async def main() -> tuple[int, str]:
        async def handler(request: web.Request) -> web.Response:
            return web.Response(text=f"{app_scope(request).name}, {request_scope(request).name}")

        outer, inner = web.Application(), web.Application()
        setup(outer, name="outer")
        inner.router.add_get("/page", handler)
        outer.add_subapp("/inner/", inner)
        return await get(outer, "/inner/page")

    assert asyncio.run(main()) == (200, "outer, GET /inner/page")
