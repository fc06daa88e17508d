"""Scopes beside TaskGroup, anyio and aiohttp: inside them, and around them."""

from __future__ import annotations

import asyncio

import aiohttp
import anyio
import pytest
from aiohttp import web

import handfast
from tests.support.stepping import Stepping, cancel_everywhere, run_on, run_stepping


async def fail() -> None:
    await asyncio.sleep(0)
    raise ValueError("boom")


def test_a_task_group_inside_a_scope() -> None:
    async def program(_: Stepping) -> handfast.types.Failure:
        async def child() -> None:
            async with asyncio.TaskGroup() as group:
                group.create_task(fail())
                group.create_task(asyncio.sleep(100))

        try:
            async with handfast.Scope("s") as scope:
                scope.spawn(child())
                scope.spawn(asyncio.sleep(100))
        except ExceptionGroup as error:
            return handfast.split_errors(error)
        raise AssertionError

    assert [repr(e) for e in run_stepping(program).operational] == ["ValueError('boom')"]


def test_a_scope_inside_a_task_group_cancelled_everywhere() -> None:
    async def program(stepping: Stepping) -> tuple[bool, int]:
        alive = 0

        async def child() -> None:
            nonlocal alive
            alive += 1
            try:
                await asyncio.sleep(1)
            finally:
                alive -= 1

        async def inside() -> None:
            async with handfast.Scope("s") as scope:
                scope.spawn(child())
                scope.spawn(child())

        async def host() -> None:
            async with asyncio.TaskGroup() as group:
                group.create_task(inside())
                group.create_task(asyncio.sleep(2))

        task = stepping.victim(asyncio.create_task(host()))
        await asyncio.wait({task})
        return task.cancelled(), alive

    outcomes = list(cancel_everywhere(program))
    assert len(outcomes) > 5
    assert all(outcome == (True, 0) for outcome in outcomes[:-1])
    assert outcomes[-1] == (False, 0)


def test_a_scope_inside_a_cancelled_anyio_scope_ends_and_passes_the_cancel_on(kind: str) -> None:
    """anyio cancels again and again until its scope has been left."""

    async def main() -> list[str]:
        log: list[str] = []

        async def child() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                for _ in range(5):
                    await asyncio.sleep(0)
                log.append("child ended")

        async with anyio.create_task_group() as group:

            async def inside() -> None:
                async with handfast.Scope("s") as scope:
                    scope.spawn(child())
                log.append("not reached")

            group.start_soon(inside)
            await anyio.wait_all_tasks_blocked()
            group.cancel_scope.cancel()
        log.append("left")
        return log

    assert run_on(kind, main()) == ["child ended", "left"]


def test_an_anyio_task_group_and_time_out_inside_a_scope(kind: str) -> None:
    async def main() -> str:
        async def child() -> str:
            with anyio.move_on_after(0) as timed:
                await anyio.sleep(3600)
            assert timed.cancelled_caught
            async with anyio.create_task_group() as group:
                group.start_soon(anyio.sleep, 0)
            return "done"

        async with handfast.Scope("s") as scope:
            task = scope.spawn(child())
        return task.result()

    assert run_on(kind, main()) == "done"


def test_a_failing_child_inside_an_anyio_group_inside_a_scope_surfaces(kind: str) -> None:
    async def main() -> handfast.types.Failure:
        async def child() -> None:
            async with anyio.create_task_group() as group:
                group.start_soon(fail)
                await anyio.sleep_forever()

        try:
            async with handfast.Scope("s") as scope:
                scope.spawn(child())
        except ExceptionGroup as error:
            return handfast.split_errors(error)
        raise AssertionError

    failure = run_on(kind, main())
    assert [repr(error) for error in failure.operational] == ["ValueError('boom')"]
    assert failure.cleanup == ()


def test_an_aiohttp_session_and_server_are_held_and_closed_in_order(kind: str) -> None:
    """S4.3: the requests end before the session, and that before the server."""

    async def main() -> list[str]:
        log: list[str] = []
        requested = asyncio.Event()

        async def slow(request: web.Request) -> web.Response:
            requested.set()
            await asyncio.Event().wait()
            raise AssertionError

        async def quick(request: web.Request) -> web.Response:
            return web.Response(text="hello")

        app = web.Application()
        app.router.add_get("/slow", slow)
        app.router.add_get("/quick", quick)
        runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]

        scope = handfast.Scope("client")
        session = await scope.hold(aiohttp.ClientSession(f"http://127.0.0.1:{port}"))

        async def fetch(path: str) -> str:
            try:
                async with session.get(path) as response:
                    return await response.text()
            finally:
                log.append(f"{path} ended, session {'closed' if session.closed else 'open'}")

        assert await scope.spawn(fetch("/quick")) == "hello"
        scope.spawn(fetch("/slow"))
        await requested.wait()
        report = await scope.close()
        assert report.clean
        assert session.closed
        await runner.cleanup()
        return log

    assert run_on(kind, main()) == [
        "/quick ended, session open",
        "/slow ended, session open",
    ]


def test_a_scope_held_by_a_scope_is_closed_with_it() -> None:
    async def program(_: Stepping) -> tuple[bool, bool]:
        outer = handfast.Scope("outer")
        inner = await outer.hold(handfast.Scope("inner", grace=0))
        task = inner.spawn(asyncio.sleep(3600))
        await asyncio.sleep(0)
        assert (await outer.close()).clean
        return inner.closed, task.cancelled()

    assert run_stepping(program) == (True, True)


def test_a_failure_in_a_held_scope_is_a_failure_of_its_holder() -> None:
    async def program(_: Stepping) -> list[str]:
        with pytest.raises(ExceptionGroup) as caught:
            async with handfast.Scope("outer") as outer:
                inner = await outer.hold(handfast.Scope("inner", grace=0))
                inner.spawn(fail())
                await asyncio.sleep(100)
        return [repr(error) for error in handfast.split_errors(caught.value).operational]

    assert run_stepping(program) == ["ValueError('boom')"]
