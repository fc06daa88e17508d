"""Probes for HF3xx: what happens while, and right after, something is closed."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.catalogue.probe import Bench, others, probe, steps


@probe("HF301")
async def cleared_before_join(bench: Bench, snippet: Any) -> str | None:
    class Connection:
        async def receive(self) -> str:
            await asyncio.sleep(1)
            return "message"

        async def say_goodbye(self) -> None:
            await asyncio.sleep(5)

    handled: list[str] = []
    client = snippet.Client(Connection(), handled.append)
    await asyncio.sleep(2.5)
    assert len(handled) == 2
    try:
        await client.close()
    except AttributeError as error:
        return str(error)
    return None


@probe("HF302")
async def closed_before_users(bench: Bench, snippet: Any) -> str | None:
    class Session:
        closed = False
        used_late = 0

        async def get(self, url: str) -> None:
            self.used_late += self.closed
            await asyncio.sleep(1)

        async def close(self) -> None:
            self.closed = True
            await asyncio.sleep(5)

    session = Session()
    crawler = snippet.Crawler(session, ["a", "b"])
    await asyncio.sleep(2.5)
    await crawler.close()
    assert session.closed
    return f"used {session.used_late} times after its close" if session.used_late else None


@probe("HF303")
async def close_without_join(bench: Bench, snippet: Any) -> str | None:
    put_away = False

    async def beat() -> None:
        nonlocal put_away
        try:
            await asyncio.sleep(60)
        finally:
            await steps(3)
            put_away = True

    heartbeat = snippet.Heartbeat(beat)
    await steps()
    await heartbeat.close()
    return None if put_away and not others() else "close returned before the task had ended"


@probe("HF311")
async def guard_made_stale(bench: Bench, snippet: Any) -> str | None:
    class Writer:
        def write(self, data: bytes) -> None:
            raise AssertionError("written after close")

    channel = snippet.Channel(Writer())
    async with channel.turn:
        sending = asyncio.create_task(channel.send(b"data"))
        await steps()
        channel.close()
    await asyncio.wait({sending})
    error = sending.exception()
    return None if isinstance(error, ConnectionError) else repr(error)


@probe("HF312")
async def restart_refills_teardown(bench: Bench, snippet: Any) -> str | None:
    alive: set[Child] = set()

    class Child:
        def __init__(self) -> None:
            alive.add(self)
            self._ended = asyncio.Event()

        def terminate(self) -> None:
            alive.discard(self)
            asyncio.get_running_loop().call_later(1, self._ended.set)

        async def wait(self) -> None:
            await self._ended.wait()

    async def launch() -> Child:
        return Child()

    service = snippet.Service(launch)
    await service.start()
    stopping = asyncio.create_task(service.stop())
    await steps()
    await service.start()
    await stopping
    tracked = {service.child} if service.child is not None else set()
    untracked = alive - tracked
    await service.stop()
    return f"{len(untracked)} live child that nobody tracks" if untracked else None


@probe("HF321")
async def drain_cancelled_first(bench: Bench, snippet: Any) -> str | None:
    class Child:
        def __init__(self) -> None:
            self.stderr = asyncio.StreamReader()
            self.stderr.feed_data(b"started\n")

        def terminate(self) -> None:
            self.stderr.feed_data(b"reason\n")
            self.stderr.feed_eof()

        async def wait(self) -> int:
            await asyncio.sleep(1)
            return 0

    worker = snippet.Worker(Child())
    await steps()
    await worker.close()
    return None if worker.log == [b"started\n", b"reason\n"] else f"captured only {worker.log}"


@probe("HF322")
async def task_done_skipped(bench: Bench, snippet: Any) -> str | None:
    async def handle(item: str) -> None:
        raise ValueError(item)

    run = asyncio.create_task(snippet.Workers(handle).run(["a"]))
    _, waiting = await asyncio.wait([run], timeout=60)
    for each in waiting:
        each.cancel()
        await asyncio.wait([each])
    return "the queue is never joined" if waiting else None


@probe("HF331")
async def closed_twice(bench: Bench, snippet: Any) -> str | None:
    releases = 0
    gone = False

    async def release() -> None:
        nonlocal releases, gone
        releases += 1
        await asyncio.sleep(1)
        gone = True

    lease = snippet.Lease(release)

    async def close() -> bool:
        await lease.close()
        return gone

    assert all(await asyncio.gather(close(), close())), "a closer returned too early"
    return f"released {releases} times" if releases > 1 else None


@probe("HF304")
async def close_joins_itself(bench: Bench, snippet: Any) -> str | None:
    class Transport:
        closed = False

        def close(self) -> None:
            self.closed = True

    class Lines:
        def __init__(self) -> None:
            self.left = ["bye", "hello"]

        def __aiter__(self) -> Lines:
            return self

        async def __anext__(self) -> str:
            if not self.left:
                raise StopAsyncIteration
            return self.left.pop()

    transport = Transport()
    connection = snippet.Connection(Lines(), transport)
    await steps()
    await asyncio.wait([connection._task])
    return None if transport.closed else "the transport is still open"
