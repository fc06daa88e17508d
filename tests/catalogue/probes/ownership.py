"""Probes for HF1xx: who still runs, and who holds it."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import weakref
from typing import Any

from tests.catalogue.probe import Bench, others, probe, steps


@probe("HF101")
async def task_dropped(bench: Bench, snippet: Any) -> str | None:
    waits: list[weakref.ref[asyncio.Future[None]]] = []
    sent = []

    async def send(message: str) -> None:
        wait = asyncio.get_running_loop().create_future()
        waits.append(weakref.ref(wait))
        await wait
        sent.append(message)

    notifier = snippet.Notifier(send)
    notifier.notify("hello")
    await steps()
    gc.collect()
    wait = waits[0]()
    if wait is None:
        return "collected while it waited"
    wait.set_result(None)
    del wait
    await notifier.close()
    return None if sent else "not sent"


@probe("HF102")
async def task_left_over(bench: Bench, snippet: Any) -> str | None:
    allowed = asyncio.Event()

    async def respond(request: str) -> str:
        return f"answer to {request}"

    async def audit(request: str) -> None:
        await allowed.wait()

    handling = asyncio.create_task(snippet.handle("request", respond, audit))
    await steps()
    if handling.done():
        return f"{len(others())} pending after the end" if others() else None
    allowed.set()
    assert await handling == "answer to request"
    return "still pending" if others() else None


@probe("HF103")
async def cancel_without_join(bench: Bench, snippet: Any) -> str | None:
    put_away = []

    async def ask(server: str) -> str:
        if server == "fast":
            return "answer"
        try:
            await asyncio.Event().wait()
        finally:
            await steps(3)
            put_away.append(server)
        raise AssertionError

    assert await snippet.first_answer(ask, ["slow", "fast", "slower"]) == "answer"
    return None if len(put_away) == 2 else f"clean-up of {len(others())} tasks is still to come"


@probe("HF111")
async def task_never_closed(bench: Bench, snippet: Any) -> str | None:
    polls = []

    async def poll() -> int:
        await asyncio.sleep(1)
        polls.append(1)
        return len(polls)

    poller = snippet.Poller(poll)
    await asyncio.sleep(3.5)
    await poller.close()
    before = len(polls)
    await asyncio.sleep(10)
    assert before == 3
    return f"{len(polls) - before} polls after close" if len(polls) > before else None


@probe("HF112")
async def no_way_to_close(bench: Bench, snippet: Any) -> str | None:
    async def flush() -> None:
        pass

    metrics = snippet.Metrics(flush)
    await asyncio.sleep(30)
    close = getattr(metrics, "close", None)
    if close is not None:
        await close()
    return "it cannot be ended" if others() else None


@probe("HF113")
async def owner_dropped(bench: Bench, snippet: Any) -> str | None:
    async def listen(items: asyncio.Queue[str]) -> None:
        while True:
            await items.put("not a number")
            await asyncio.sleep(1)

    with contextlib.suppress(ValueError):
        await snippet.first(listen, int)
    return "its task lives on after an error" if others() else None


@probe("HF121")
async def gather_as_task(bench: Bench, snippet: Any) -> str | None:
    fetched = []

    async def fetch(key: str) -> None:
        await asyncio.sleep(1)
        fetched.append(key)

    prefetch = snippet.Prefetch(fetch)
    try:
        prefetch.start(["a", "b"])
    except TypeError:
        await steps()
        return f"TypeError, and {len(others())} untracked tasks"
    await prefetch.close()
    return None if fetched == ["a", "b"] else "close did not wait for the children"


@probe("HF131")
async def done_tasks_kept(bench: Bench, snippet: Any) -> str | None:
    created: weakref.WeakSet[asyncio.Task[Any]] = weakref.WeakSet()

    async def job() -> None:
        task = asyncio.current_task()
        assert task is not None
        created.add(task)

    jobs = snippet.Jobs()
    for _ in range(100):
        jobs.start(job)
        await steps(3)
    gc.collect()
    kept = len(created)
    await jobs.close()
    return f"{kept} of 100 done tasks are kept" if kept > 1 else None


@probe("HF114")
async def siblings_run_on(bench: Bench, snippet: Any) -> str | None:
    class Connection:
        closed = used_late = False

        async def close(self) -> None:
            self.closed = True

    async def connect() -> Connection:
        return connection

    async def pull(connection: Connection) -> None:
        raise OSError("lost")

    async def push(connection: Connection) -> None:
        await asyncio.sleep(1)
        connection.used_late = connection.closed

    connection = Connection()
    copying = asyncio.create_task(snippet.copy(connect, pull, push))
    await asyncio.sleep(2)
    assert connection.closed
    assert copying.exception() is not None
    return "used after its close" if connection.used_late else None


@probe("HF115")
async def task_outlives_error(bench: Bench, snippet: Any) -> str | None:
    queue: asyncio.Queue[str] = asyncio.Queue()
    closed = asyncio.get_running_loop().create_future()
    waiting = asyncio.create_task(snippet.next_or_closed(queue, closed))
    await steps()
    waiting.cancel()
    await asyncio.wait([waiting])
    queue.put_nowait("item")
    await steps()
    return "a task without a reference has taken the item" if queue.empty() else None


@probe("HF122")
async def coroutine_not_awaited(bench: Bench, snippet: Any) -> str | None:
    written: list[str] = []

    async def write(items: list[str]) -> None:
        written.extend(items)

    store = snippet.Store(write)
    store.add("item")
    await store.close()
    return None if written else "closed, and not written"


@probe("HF141")
async def task_can_never_wake(bench: Bench, snippet: Any) -> str | None:
    client = snippet.Client()
    answered = asyncio.create_task(client.request(1))
    lost = asyncio.create_task(client.request(2))
    await steps()
    client.received(1, "answer")
    client.reconnect()
    await steps()
    assert await answered == "answer"
    if not lost.done():
        return "still waiting after the connection was lost"
    return None if isinstance(lost.exception(), ConnectionError) else "no error"
