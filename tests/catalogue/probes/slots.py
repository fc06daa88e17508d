"""Probes for HF2xx: one live task for each key, and no entry left."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.catalogue.probe import Bench, probe, steps


@probe("HF201")
async def slot_evicts_successor(bench: Bench, snippet: Any) -> str | None:
    gates = [asyncio.Event(), asyncio.Event()]
    async with asyncio.TaskGroup() as group:
        saves = snippet.Saves(group)
        saves.start("document", gates[0].wait)
        await steps()
        saves.start("document", gates[1].wait)
        await steps()
        gates[0].set()
        await steps()
        evicted = "document" not in saves.newest
        gates[1].set()
    await steps()
    if evicted:
        return "the older save removed the entry of the newer"
    return "the entry stayed" if saves.newest else None


@probe("HF202")
async def slot_entry_stranded(bench: Bench, snippet: Any) -> str | None:
    async def capture() -> None:
        await asyncio.sleep(60)

    async with asyncio.TaskGroup() as group:
        captures = snippet.Captures(group)
        captures.start("midway", capture)
        await steps()
        captures.stop("midway")
        captures.start("before the first step", capture)
        captures.stop("before the first step")
        await steps()
        stranded = ", ".join(captures.running)
    return f"entry stays: {stranded}" if stranded else None


@probe("HF203")
async def slot_replaced_without_join(bench: Bench, snippet: Any) -> str | None:
    effects = []

    async def capture(name: str) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await steps(3)
            effects.append(f"{name} edits")

    captures = snippet.Captures()
    await captures.replace("key", lambda: capture("old"))
    await steps()
    await captures.replace("key", lambda: capture("new"))
    before = len(effects)
    await steps()
    late = effects[before:]
    await captures.close()
    return f"after the replacement: {late[0]}" if late else None


@probe("HF204")
async def slot_await_before_store(bench: Bench, snippet: Any) -> str | None:
    live: set[int] = set()
    most = 0

    async def capture(number: int) -> None:
        nonlocal most
        live.add(number)
        most = max(most, len(live))
        try:
            await asyncio.sleep(60)
        finally:
            await steps(3)
            live.discard(number)

    async with asyncio.TaskGroup() as group:
        captures = snippet.Captures(group)
        await captures.replace("key", lambda: capture(0))
        await steps()
        await asyncio.gather(
            *(captures.replace("key", lambda number=n: capture(number)) for n in (1, 2))
        )
        await steps()
    return f"{most} live tasks under one key" if most > 1 else None


@probe("HF211")
async def slot_work_doubled(bench: Bench, snippet: Any) -> str | None:
    fetches = []

    async def fetch(key: str) -> str:
        fetches.append(key)
        await asyncio.sleep(1)
        return key.upper()

    cache = snippet.Cache(fetch)
    assert await asyncio.gather(*(cache.get("key") for _ in range(5))) == ["KEY"] * 5
    assert await cache.get("key") == "KEY"
    await cache.close()
    return f"fetched {len(fetches)} times" if len(fetches) > 1 else None


@probe("HF205")
async def task_overwritten(bench: Bench, snippet: Any) -> str | None:
    sent = []

    async def send() -> None:
        sent.append("beat")

    heartbeat = snippet.Heartbeat(send)
    heartbeat.on_connect()
    heartbeat.on_connect()
    await asyncio.sleep(15)
    await heartbeat.close()
    return f"{len(sent)} beats at once" if len(sent) > 1 else None
