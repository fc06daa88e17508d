"""Starlette and FastAPI: a scope that lives as long as the application.

`lifespan` opens it when the server starts and closes it when the server stops. A handler starts in
it what outlives its request; for tasks of one request it needs no bridge, only `async with Scope`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Literal, TypeAlias

from handfast import Scope
from handfast._missing_extra import missing_for_bridge
from handfast.types import TaskEnd

try:
    from starlette.applications import Starlette
    from starlette.requests import HTTPConnection
except ModuleNotFoundError as error:
    raise missing_for_bridge("starlette", "starlette") from error

__all__ = ["app_scope", "lifespan"]

Start: TypeAlias = Callable[[Any, Scope], Awaitable[object]]

_KEY = "handfast_scope"


def lifespan(
    start: Start | None = None,
    *,
    name: str = "app",
    on_failure: Literal["report"] | Callable[[TaskEnd], None] = "report",
    grace: float = 0.0,
    timeout: float | None = None,
) -> Callable[[Any], AbstractAsyncContextManager[dict[str, Any]]]:
    """Return the `lifespan=` of a Starlette or FastAPI application: it owns a scope.

    `await start(app, scope)` is called before the first request. A session or a pool that the scope
    holds is closed after the tasks that use it. When the server stops, the tasks are cancelled and
    joined; a task that does not end is named in the error.

    >>> import asyncio
    >>> from starlette.responses import PlainTextResponse
    >>> from starlette.routing import Route
    >>> from starlette.testclient import TestClient
    >>> async def order(request):
    ...     app_scope(request).spawn(asyncio.sleep(3600), name="send mail")
    ...     return PlainTextResponse("ordered")
    >>> app = Starlette(routes=[Route("/", order)], lifespan=lifespan(name="shop"))
    >>> with TestClient(app) as client:
    ...     client.get("/").text
    'ordered'
    >>> app_scope(app)
    <Scope 'shop' closed, 0 tasks>

    Parameters:
        start: starts the services of the application, and has the scope hold what they use.
        name: the name of the scope in reports and errors.
        on_failure: "report" writes the failure of a task to the log; a function is called with its `TaskEnd`.
        grace: seconds that tasks get to finish before they are cancelled.
        timeout: seconds that the close may take. None: ten more than its grace.
    """
    if on_failure == "cancel":  # type: ignore[comparison-overlap]  # the types do not allow it
        raise ValueError(
            'on_failure="cancel" would close the scope after one failure, and every later request '
            'that uses it would fail; use "report", or a function that stops the server'
        )

    @asynccontextmanager
    async def owning_scope(app: Any) -> AsyncIterator[dict[str, Any]]:
        scope = Scope(name, on_failure=on_failure, grace=grace, timeout=timeout)
        setattr(app.state, _KEY, scope)
        try:
            if start is not None:
                await start(app, scope)
            # Starlette passes this to every request, those of mounted applications too.
            yield {_KEY: scope}
        except BaseException as error:
            report = await scope.close()
            if not report.clean:
                error.add_note(str(report))
            raise
        (await scope.close()).raise_if_unclean()

    return owning_scope


def app_scope(where: Starlette | HTTPConnection) -> Scope:
    """Return the scope of an application, a request or a WebSocket, for what outlives a request."""
    scope = getattr(where.state, _KEY, None)
    if not isinstance(scope, Scope):
        raise RuntimeError(
            "the application has no scope: create it with lifespan=lifespan(), and start it with "
            "a server that runs the lifespan (TestClient: in a `with` block)"
        )
    return scope
