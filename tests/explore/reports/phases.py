"""An agent reads a stream that its SDK yields inside a task group, breaks out early, and must not
mistake a real error for noise."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import holdfast


class Child:
    """What the stream keeps alive: a stand-in for the SDK's process."""

    alive = 0

    async def __aenter__(self) -> Child:
        Child.alive += 1
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.sleep(0.01)
        Child.alive -= 1


async def sdk_stream() -> AsyncGenerator[int, None]:
    """As SDKs do it: the messages are yielded from inside the group that reads them."""
    messages: asyncio.Queue[int] = asyncio.Queue()

    async def read() -> None:
        for number in range(3):
            await asyncio.sleep(0.01)
            messages.put_nowait(number)

    async with Child(), asyncio.TaskGroup() as group:
        group.create_task(read())
        for _ in range(3):
            yield await messages.get()


kept: list[object] = []


async def phase_as_reported() -> int:
    """Breaks out of the stream and leaves it to the collector."""
    messages = sdk_stream()
    kept.append(messages)
    async for number in messages:
        return number
    return -1


async def phase_as_the_report_would_fix_it() -> int:
    """Shields the clean-up: a second cancel abandons it, and nobody waits for it any more."""
    messages = sdk_stream()
    kept.append(messages)
    try:
        async for number in messages:
            return number
        return -1
    finally:
        await asyncio.shield(messages.aclose())


async def phase_as_it_should_be() -> int:
    """The stream lives in an owner task."""
    async with holdfast.stream(sdk_stream()) as messages:
        async for number in messages:
            return number
    return -1


async def as_reported() -> None:
    kept.clear()
    Child.alive = 0
    assert await phase_as_reported() == 0
    assert not Child.alive, "the SDK's process is still there"


async def as_the_report_would_fix_it() -> None:
    from holdfast.explore import victim

    kept.clear()
    Child.alive = 0
    await victim(phase_as_the_report_would_fix_it())
    assert not Child.alive, "the SDK's process is still there"


async def as_it_should_be() -> None:
    from holdfast.explore import victim

    Child.alive = 0
    await victim(phase_as_it_should_be())
    assert not Child.alive, "the SDK's process is still there"
