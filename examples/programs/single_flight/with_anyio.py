from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio

Fetch = Callable[[str], Coroutine[None, None, str]]


@dataclass
class Flight:
    """One fetch, for all who wait for it."""

    ended: anyio.Event = field(default_factory=anyio.Event)
    value: str = ""
    error: Exception | None = None


@asynccontextmanager
async def cached(fetch: Fetch) -> AsyncIterator[Fetch]:
    flights: dict[str, Flight] = {}

    async def load(key: str, flight: Flight) -> None:
        try:
            flight.value = await fetch(key)
        except Exception as error:
            flight.error = error
            del flights[key]
        flight.ended.set()

    async def get(key: str) -> str:
        if key not in flights:
            flights[key] = Flight()
            group.start_soon(load, key, flights[key])
        flight = flights[key]
        await flight.ended.wait()
        if flight.error is not None:
            raise flight.error
        return flight.value

    async with anyio.create_task_group() as group:
        yield get
        group.cancel_scope.cancel()
