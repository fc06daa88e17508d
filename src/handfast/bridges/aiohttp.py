"""aiohttp: a scope for each application, and one for each request.

The application's scope is opened and closed by `cleanup_ctx`, that of a request by a middleware. A
handler starts its tasks in one or the other, and no task outlives its scope.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from handfast import Scope
from handfast._missing_extra import missing_for_bridge

try:
    from aiohttp import web
    from aiohttp.typedefs import Handler
except ModuleNotFoundError as error:
    raise missing_for_bridge("aiohttp") from error

__all__ = ["app_scope", "request_scope", "setup"]

_APP = web.AppKey("handfast", Scope)
# Older releases have no keys for requests, only strings.
_REQUEST: Any = getattr(web, "RequestKey", lambda name, kind: name)("handfast", Scope)


def setup(
    app: web.Application,
    *,
    name: str = "app",
    grace: float = 0.0,
    timeout: float | None = None,
    request_grace: float = 0.0,
) -> None:
    """Give `app` a scope, and each of its requests one. Call it before the application starts.

    The scope of a request is closed when its handler ends, or when the client disconnects, if the
    server cancels handlers then: `web.run_app(app, handler_cancellation=True)`. A failure in it
    cancels the handler and is raised from it. The scope of the application is closed when the
    application is cleaned up, after the last handler has ended.

    >>> import asyncio
    >>> from aiohttp.test_utils import TestClient, TestServer
    >>> async def hello(request):
    ...     task = request_scope(request).spawn(asyncio.sleep(0, "hello"))
    ...     return web.Response(text=await task)
    >>> async def main():
    ...     app = web.Application()
    ...     setup(app)
    ...     app.router.add_get("/", hello)
    ...     async with TestClient(TestServer(app)) as client, client.get("/") as response:
    ...         return await response.text()
    >>> asyncio.run(main())
    'hello'

    Parameters:
        name: the name of the application's scope in reports and errors.
        grace: seconds that its tasks get to finish before they are cancelled.
        timeout: seconds that its close may take. None: ten more than its grace.
        request_grace: the grace of the scope of a request.
    """

    async def of_app(app: web.Application) -> AsyncIterator[None]:
        scope = app[_APP] = Scope(name, on_failure="report", grace=grace, timeout=timeout)
        yield
        (await scope.close()).raise_if_unclean()

    @web.middleware
    async def of_request(request: web.Request, handler: Handler) -> web.StreamResponse:
        return await _in_scope(request, handler, request_grace)

    app.cleanup_ctx.append(of_app)
    app.middlewares.append(of_request)


def app_scope(where: web.Application | web.Request) -> Scope:
    """Return the scope of the application, for what outlives a request. It closes in reverse
    order: a session or a pool that it holds is closed after its tasks."""
    # `config_dict` also has the keys of the application around a sub-application.
    return where.config_dict[_APP] if isinstance(where, web.Request) else where[_APP]


def request_scope(request: web.Request) -> Scope:
    """Return the scope of this request."""
    scope: Scope = request[_REQUEST]
    return scope


async def _in_scope(request: web.Request, handler: Handler, grace: float) -> web.StreamResponse:
    own: Exception | None = None
    try:
        async with Scope(f"{request.method} {request.path}", grace=grace) as scope:
            request[_REQUEST] = scope
            try:
                return await handler(request)
            except Exception as error:
                own = error
                raise
    except ExceptionGroup as group:
        if own is None or group.exceptions != (own,):
            raise
    # A redirect or a 404 is an exception, too. If it is the only one, it is raised without a group.
    try:
        raise own
    finally:
        del own  # its traceback refers to this frame
