"""The bridge to Starlette and FastAPI, with the real libraries: a scope for each application."""

from __future__ import annotations

import asyncio
import logging
import traceback
from typing import Any

import pytest
from fastapi import FastAPI, Request
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.testclient import TestClient

import handfast
from handfast.bridges.starlette import app_scope, lifespan
from tests.support.failures import errors_into


async def forever() -> None:
    await asyncio.get_running_loop().create_future()


async def spawn_one(request: Any) -> Response:
    app_scope(request).spawn(forever(), name="outlives the request")
    return PlainTextResponse(str(len(app_scope(request))))


def test_tasks_outlive_requests_and_end_before_what_the_scope_holds() -> None:
    """S4.3: with the server's own shutdown."""
    order: list[str] = []

    class Session:
        async def __aenter__(self) -> Session:
            order.append("session opens")
            return self

        async def __aexit__(self, *_: object) -> None:
            order.append("session closes")

    async def poll() -> None:
        try:
            await forever()
        finally:
            order.append("poller ends")

    async def start(app: Starlette, scope: handfast.Scope) -> None:
        app.state.session = await scope.hold(Session())
        scope.spawn(poll())

    app = Starlette(routes=[Route("/", spawn_one)], lifespan=lifespan(start, name="shop"))
    with TestClient(app) as client:
        assert [client.get("/").text for _ in range(2)] == ["3", "4"]
    assert order == ["session opens", "poller ends", "session closes"]
    assert repr(app_scope(app)) == "<Scope 'shop' closed, 0 tasks>"


def test_a_failure_in_the_background_is_logged_and_the_server_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def fails() -> None:
        raise ValueError("in the background")

    async def fail(request: Any) -> Response:
        app_scope(request).spawn(fails())
        return PlainTextResponse("started")

    app = Starlette(routes=[Route("/", spawn_one), Route("/fail", fail)], lifespan=lifespan())
    with TestClient(app) as client, caplog.at_level(logging.ERROR, "asyncio"):
        assert client.get("/fail").text == "started"
        assert client.get("/").text == "1"
        assert "a task of scope 'app'" in caplog.text
        assert "ValueError: in the background" in caplog.text


def test_a_failure_that_would_close_the_scope_for_every_later_request_is_refused() -> None:
    with pytest.raises(ValueError, match="every later request"):
        lifespan(on_failure="cancel")  # type: ignore[arg-type]


def test_a_function_gets_the_failures() -> None:
    failures: list[Any] = []

    async def fails() -> None:
        raise ValueError("in the background")

    async def start(app: Starlette, scope: handfast.Scope) -> None:
        scope.spawn(fails())

    with TestClient(Starlette(lifespan=lifespan(start, on_failure=errors_into(failures)))):
        pass
    assert [repr(error) for error in failures] == ["ValueError('in the background')"]


def test_a_start_that_fails_closes_the_scope() -> None:
    ended: list[str] = []
    apps: list[Starlette] = []

    async def poll() -> None:
        try:
            await forever()
        finally:
            ended.append("poller")

    async def start(app: Starlette, scope: handfast.Scope) -> None:
        apps.append(app)
        scope.spawn(poll())
        await asyncio.sleep(0)
        raise ConnectionError("no database")

    with (
        pytest.raises(ConnectionError, match="no database"),
        TestClient(Starlette(lifespan=lifespan(start))),
    ):
        pass
    assert ended == ["poller"]
    assert app_scope(apps[0]).closed


@pytest.mark.parametrize("start_fails", [False, True])
def test_a_task_that_does_not_end_is_named(start_fails: bool) -> None:
    over: list[asyncio.Event] = []

    async def stubborn() -> None:
        over.append(asyncio.Event())
        while not over[0].is_set():
            try:
                await over[0].wait()
            except asyncio.CancelledError:
                asyncio.get_running_loop().call_later(0.05, over[0].set)

    async def start(app: Starlette, scope: handfast.Scope) -> None:
        scope.spawn(stubborn(), name="stubborn")
        await asyncio.sleep(0)
        if start_fails:
            raise ConnectionError("no database")

    expected: Any = ConnectionError if start_fails else ExceptionGroup
    with (
        pytest.raises(expected) as caught,
        TestClient(Starlette(lifespan=lifespan(start, timeout=0.01))),
    ):
        pass
    assert "stubborn (" in "".join(traceback.format_exception(caught.value))


def test_a_mounted_application_uses_the_scope_of_the_outer_one() -> None:
    """Starlette runs only the lifespan of the outer one."""
    inner = Starlette(routes=[Route("/", spawn_one)])
    with TestClient(Starlette(routes=[Mount("/inner", inner)], lifespan=lifespan())) as client:
        assert client.get("/inner/").text == "1"


def test_a_websocket_has_the_scope() -> None:
    async def endpoint(websocket: Any) -> None:
        await websocket.accept()
        await websocket.send_text(app_scope(websocket).name)
        await websocket.close()

    app = Starlette(routes=[WebSocketRoute("/", endpoint)], lifespan=lifespan(name="chat"))
    with TestClient(app) as client, client.websocket_connect("/") as websocket:
        assert websocket.receive_text() == "chat"


def test_a_server_that_runs_no_lifespan_is_named() -> None:
    app = Starlette(routes=[Route("/", spawn_one)], lifespan=lifespan())
    with pytest.raises(RuntimeError, match="runs the lifespan"):
        TestClient(app).get("/")


def test_fastapi_with_its_own_requests() -> None:
    app = FastAPI(lifespan=lifespan(name="api"))

    @app.get("/")
    async def root(request: Request) -> dict[str, str]:
        task = app_scope(request).spawn(asyncio.sleep(0, "from the scope"))
        return {"said": await task}

    with TestClient(app) as client:
        assert client.get("/").json() == {"said": "from the scope"}
    assert app_scope(app).closed
