"""aiohttp: a scope for each application, and one for each request.

The first belongs to the application's start-up and clean-up, the second lives in a middleware. A
handler that starts tasks gives them to one or the other, and none outlives its owner.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from holdfast import Scope
from holdfast.bridges.absent import absent

try:
    from aiohttp import web
    from aiohttp.typedefs import Handler
except ModuleNotFoundError as error:
    raise absent("aiohttp", "aiohttp") from error

__all__ = ["app_scope", "request_scope", "setup"]

_APP = web.AppKey("holdfast", Scope)
# Older releases have no keys for requests, and want a string.
_REQUEST: Any = getattr(web, "RequestKey", lambda name, kind: name)("holdfast", Scope)


def setup(
    app: web.Application,
    *,
    name: str = "app",
    grace: float = 0.0,
    deadline: float | None = None,
    request_grace: float = 0.0,
) -> None:
    """Give `app` a scope, and each of its requests one. Call it before the application starts.

    The scope of a request is closed when its handler ends, and when the client has gone away, if
    the server was told to cancel handlers then: `web.run_app(app, handler_cancellation=True)`. A
    failure in it cancels the handler, and is its failure. The scope of the application is closed
    when the application is cleaned up, after the last handler has ended.

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
        name: what reports and errors call the application's scope.
        grace: seconds in which its tasks may finish by themselves at the end.
        deadline: seconds that its close may take. None: ten more than its grace.
        request_grace: seconds in which tasks of a request may finish once its handler has ended.
    """

    async def of_app(app: web.Application) -> AsyncIterator[None]:
        scope = app[_APP] = Scope(name, on_failure="report", grace=grace, deadline=deadline)
        yield
        (await scope.close()).raise_if_unclean()

    @web.middleware
    async def of_request(request: web.Request, handler: Handler) -> web.StreamResponse:
        return await _in_scope(request, handler, request_grace)

    app.cleanup_ctx.append(of_app)
    app.middlewares.append(of_request)


def app_scope(where: web.Application | web.Request) -> Scope:
    """The scope of the application, for what outlives a request. Later things close first: what
    it holds (a session, a pool) is left after the tasks that were started since."""
    # A request may be for an application inside another one: both are asked.
    return where.config_dict[_APP] if isinstance(where, web.Request) else where[_APP]


def request_scope(request: web.Request) -> Scope:
    """The scope of this request."""
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
    # A redirect or a 404 is an exception, too: alone, it goes out as it is.
    try:
        raise own
    finally:
        del own  # it refers to this frame
