"""What the guide says about frameworks beside its examples, with the real frameworks."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

import handfast
from handfast.bridges.aiohttp import app_scope, setup

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "frameworks.md"
WORKS = "        await asyncio.Event().wait()\n"
FAILS = "        raise ValueError('in the background')\n"


def fixture_of_the_guide() -> str:
    return GUIDE.read_text().partition('```python title="test_shop.py"\n')[2].partition("```")[0]


@pytest.mark.parametrize(
    ("worker", "expected"),
    [(WORKS, "1 passed"), (FAILS, "1 passed, 1 error")],
    ids=["waits", "fails"],
)
def test_a_scope_in_a_fixture(tmp_path: Path, worker: str, expected: str) -> None:
    program = fixture_of_the_guide()
    assert WORKS in program
    (tmp_path / "test_shop.py").write_text(program.replace(WORKS, worker))
    ended = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:langsmith_plugin",
            "-p",
            "no:cacheprovider",
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert f"{expected} in" in ended.stdout
    assert ("in the background" in ended.stdout) == (worker is FAILS)


async def fails() -> None:
    raise ValueError("in the background")


def test_the_failure_that_closed_an_entered_scope_is_not_lost() -> None:
    """A20: a lifespan that yields inside `async with Scope()`. The server gets the cause at once, and
    every later request raises it."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with handfast.Scope("app") as app.state.scope:
            yield

    async def start(request: Any) -> Response:
        request.app.state.scope.spawn(fails())
        return PlainTextResponse("started")

    app = Starlette(routes=[Route("/", start)], lifespan=lifespan)
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def main() -> BaseException | None:
        messages: asyncio.Queue[Any] = asyncio.Queue()
        messages.put_nowait({"type": "lifespan.startup"})
        served = asyncio.ensure_future(app({"type": "lifespan", "app": app}, messages.get, send))
        while not sent:
            await asyncio.sleep(0)
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(app), base_url="http://shop"
        ) as client:
            assert (await client.get("/")).text == "started"
            with pytest.raises(ExceptionGroup):
                await served
            with pytest.raises(handfast.errors.ScopeClosed) as refused:
                await client.get("/")
        return refused.value.__cause__

    assert isinstance(asyncio.run(main()), ValueError)
    assert [message["type"] for message in sent] == [
        "lifespan.startup.complete",
        "lifespan.shutdown.failed",
    ]
    assert "ValueError: in the background" in sent[1]["message"]


def test_a_sub_application_with_a_scope_of_its_own_closes_after_the_outer_one() -> None:
    ended: list[str] = []

    async def wait_in(name: str) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(name)

    async def start(request: web.Request) -> web.Response:
        scope = app_scope(request)
        scope.spawn(wait_in(scope.name))
        return web.Response(text=scope.name)

    async def main() -> list[str]:
        outer, inner = web.Application(), web.Application()
        for app, name in ((outer, "outer"), (inner, "inner")):
            setup(app, name=name)
            app.router.add_get("/start", start)
        outer.add_subapp("/inner", inner)
        async with TestClient(TestServer(outer)) as client:
            return [await (await client.get(path)).text() for path in ("/start", "/inner/start")]

    assert asyncio.run(main()) == ["outer", "inner"]
    assert ended == ["outer", "inner"]


SCOPE = web.AppKey("SCOPE", handfast.Scope)


async def entered(app: web.Application) -> AsyncIterator[None]:
    async with handfast.Scope("app") as app[SCOPE]:
        yield


async def kept(app: web.Application) -> AsyncIterator[None]:
    app[SCOPE] = handfast.Scope("app")
    yield
    (await app[SCOPE].close()).raise_if_unclean()


def graceful_exit() -> None:
    raise web.GracefulExit


def log_and_exit(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    loop.default_exception_handler(context)
    loop.call_soon(graceful_exit)


def run_aiohttp(context: Any) -> None:
    """Run a server in which a task fails; it exits when that is reported to the loop."""

    async def start(app: web.Application) -> None:
        asyncio.get_running_loop().set_exception_handler(log_and_exit)
        app[SCOPE].spawn(fails())

    app = web.Application()
    app.cleanup_ctx.append(context)
    app.on_startup.append(start)
    web.run_app(app, host="127.0.0.1", port=0, print=None, handle_signals=False)


def test_a_failure_in_a_scope_that_a_cleanup_context_enters_stops_the_server() -> None:
    with pytest.raises(ExceptionGroup, match="errors in scope 'app'") as caught:
        run_aiohttp(entered)
    assert caught.group_contains(ValueError, match="in the background")


def test_a_failure_in_a_scope_that_a_cleanup_context_keeps_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    run_aiohttp(kept)
    assert "ValueError: in the background" in caplog.text
