"""Probes for HF5xx: a cancellation at the worst moment."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import weakref
from collections.abc import AsyncIterator, Callable
from typing import Any

from tests.catalogue.probe import Bench, others, probe, steps
from tests.catalogue.probe_loop import Stuck


@probe("HF501")
async def cancel_swallowed(bench: Bench, snippet: Any) -> str | None:
    reports = []

    async def handle(job: str) -> None:
        if job == "bad":
            raise ValueError(job)
        await asyncio.Event().wait()

    queue: asyncio.Queue[str] = asyncio.Queue()
    queue.put_nowait("bad")
    queue.put_nowait("long")
    working = asyncio.create_task(
        snippet.worker(queue, handle, lambda job, error: reports.append(job))
    )
    await steps()
    assert reports == ["bad"], "an ordinary error must not end the worker"
    working.cancel()
    await steps()
    return None if working.cancelled() else "cancelled, and still at work"


@probe("HF511")
async def cleanup_cut_short(bench: Bench, snippet: Any) -> str | None:
    class Connection:
        closed = False

        async def rollback(self) -> None:
            await asyncio.sleep(1)

        async def close(self) -> None:
            await asyncio.sleep(1)
            self.closed = True

    async def work(connection: Connection) -> None:
        await asyncio.Event().wait()

    connection = Connection()
    using = asyncio.create_task(snippet.use(connection, work))
    await steps()
    using.cancel()
    await steps()
    using.cancel()
    await asyncio.wait({using})
    assert using.cancelled()
    return None if connection.closed else "the connection stays open"


@probe("HF512")
async def shield_unheld(bench: Bench, snippet: Any) -> str | None:
    waits: list[weakref.ref[asyncio.Future[None]]] = []
    written = []

    async def write(entry: str) -> None:
        wait = asyncio.get_running_loop().create_future()
        waits.append(weakref.ref(wait))
        await wait
        written.append(entry)

    ledger = snippet.Ledger(write)
    booking = asyncio.create_task(ledger.book("entry"))
    await steps()
    booking.cancel()
    await asyncio.wait({booking})
    del booking
    gc.collect()
    wait = waits[0]()
    if wait is None:
        return "the write was collected while it waited"
    wait.set_result(None)
    del wait
    await ledger.close()
    return None if written else "close did not wait for the write"


@probe("HF521")
async def join_under_timeout(bench: Bench, snippet: Any) -> str | None:
    released = asyncio.Event()

    async def serve(stop: asyncio.Event) -> None:
        while not released.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await released.wait()

    service = snippet.Service(serve)
    await steps()
    closing = asyncio.create_task(service.close())
    await asyncio.sleep(600)
    in_time = closing.done()
    released.set()
    await asyncio.wait({closing, *others()})
    assert in_time is False or isinstance(closing.exception(), TimeoutError)
    if not closing.cancelled():
        closing.exception()
    return None if in_time else "ten minutes later it still waits"


@probe("HF522")
async def join_cancels_task(bench: Bench, snippet: Any) -> str | None:
    async def fetch() -> int:
        await asyncio.sleep(1)
        return 7

    async with asyncio.TaskGroup() as group:
        rates = snippet.Rates(group, fetch)
        hangs_up = asyncio.create_task(rates.get())
        stays = asyncio.create_task(rates.get())
        await steps()
        hangs_up.cancel()
        await asyncio.wait({hangs_up, stays})
    assert hangs_up.cancelled()
    return "the other waiter was cancelled too" if stays.cancelled() else None


@probe("HF531")
async def acquired_before_try(bench: Bench, snippet: Any) -> str | None:
    class Connection:
        async def ping(self) -> None:
            await asyncio.sleep(1)

        async def run(self, statement: str) -> str:
            return statement

    class Pool:
        lent = 0

        async def acquire(self) -> Connection:
            self.lent += 1
            return Connection()

        def release(self, connection: Connection) -> None:
            self.lent -= 1

    pool = Pool()
    assert await snippet.query(pool, "select") == "select"
    querying = asyncio.create_task(snippet.query(pool, "select"))
    await steps()
    querying.cancel()
    await asyncio.wait({querying})
    return f"{pool.lent} connection never returned" if pool.lent else None


@probe("HF532")
def handover_lost(bench: Bench, snippet: Any) -> str | None:
    async def cancel_at_handover() -> None:
        pool = snippet.Pool(["connection"])
        item = await pool.acquire()
        waiting = asyncio.create_task(pool.acquire())
        await steps()
        pool.release(item)
        waiting.cancel()
        await asyncio.wait({waiting})
        assert waiting.cancelled()
        assert await pool.acquire() == "connection"

    try:
        bench.run(cancel_at_handover())
    except Stuck:
        return "the connection is in nobody's hands"
    return None


@probe("HF541")
async def yield_inside_scope(bench: Bench, snippet: Any) -> str | None:
    fail = asyncio.Event()

    async def steady(items: asyncio.Queue[str]) -> None:
        await items.put("item")
        await asyncio.Event().wait()

    async def failing(items: asyncio.Queue[str]) -> None:
        await fail.wait()
        raise OSError("source lost")

    async def handle(item: str) -> None:
        await asyncio.Event().wait()

    consuming = asyncio.create_task(snippet.consume([steady, failing], handle))
    await steps()
    fail.set()
    await asyncio.wait({consuming})
    if consuming.cancelled():
        return "the consumer was cancelled, and nobody had cancelled it"
    error = consuming.exception()
    assert isinstance(error, ExceptionGroup)
    assert error.subgroup(OSError)
    return None


@probe("HF542")
async def left_in_another_task(bench: Bench, snippet: Any) -> str | None:
    @contextlib.asynccontextmanager
    async def connect() -> AsyncIterator[str]:
        entered = asyncio.current_task()
        yield "connection"
        if asyncio.current_task() is not entered:
            raise RuntimeError("left in a different task than it was entered in")
        closed.append(True)

    closed: list[bool] = []

    async def in_a_task(method: Callable[[], Any]) -> None:
        await asyncio.create_task(method())

    session = snippet.Session(connect)
    await in_a_task(session.open)
    assert session.connection == "connection"
    try:
        await in_a_task(session.close)
    except RuntimeError as error:
        return str(error)
    return None if closed else "never left"


@probe("HF502")
async def jump_in_finally(bench: Bench, snippet: Any) -> str | None:
    counted = []
    fetching = asyncio.create_task(
        snippet.fetch(asyncio.Event().wait, lambda: counted.append(True))
    )
    await steps()
    fetching.cancel()
    await asyncio.wait([fetching])
    assert counted
    return None if fetching.cancelled() else "cancelled, and returned a result"


@probe("HF503")
async def join_swallows_cancel(bench: Bench, snippet: Any) -> str | None:
    client = snippet.Client(asyncio.Event().wait)
    waiting = asyncio.create_task(client.reply())
    await steps()
    waiting.cancel()
    await asyncio.wait([waiting])
    client.close()
    await steps()
    return None if waiting.cancelled() else "cancelled, and returned a result"


@probe("HF513")
async def cancel_skips_cleanup(bench: Bench, snippet: Any) -> str | None:
    class Connection:
        closed = False

        def close(self) -> None:
            self.closed = True

    async def open_connection() -> Connection:
        return connection

    async def login(connection: Connection) -> None:
        await asyncio.Event().wait()

    connection = Connection()
    connecting = asyncio.create_task(snippet.connect(open_connection, login))
    await steps()
    connecting.cancel()
    await asyncio.wait([connecting])
    return None if connection.closed else "the connection stays open"


@probe("HF533")
async def result_after_cancel(bench: Bench, snippet: Any) -> str | None:
    sent = []
    requests = snippet.Requests(lambda number, data: sent.append(number))
    asking = asyncio.create_task(requests.request(1, "data"))
    await steps()
    assert sent == [1]
    asking.cancel()
    await asyncio.wait([asking])
    try:
        requests.received(1, "late")
    except asyncio.InvalidStateError as error:
        return repr(error)
    return None


@probe("HF504")
async def join_raises_cancel(bench: Bench, snippet: Any) -> str | None:
    class Connection:
        closed = False

        async def close(self) -> None:
            self.closed = True

    connection = Connection()
    client = snippet.Client(connection)
    await steps()
    closing = asyncio.create_task(client.close())
    await asyncio.wait([closing])
    return None if connection.closed else "the connection stays open"
