"""Probes for HF1xx: who still runs, and who holds it."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import weakref
from typing import Any

from tests.catalogue.probing import Bench, others, probe, steps


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
    born: weakref.WeakSet[asyncio.Task[Any]] = weakref.WeakSet()

    async def job() -> None:
        task = asyncio.current_task()
        assert task is not None
        born.add(task)

    jobs = snippet.Jobs()
    for _ in range(100):
        jobs.start(job)
        await steps(3)
    gc.collect()
    kept = len(born)
    await jobs.close()
    return f"{kept} of 100 done tasks are kept" if kept > 1 else None
