"""broadcaster: of two first subscribers at the same time, one gets no event and a KeyError."""

import asyncio

from broadcaster import Broadcast
from broadcaster._backends.memory import MemoryBackend
from script import Bug, main

PACKAGE, VERSION = "broadcaster", "0.3.1"


class Remote(MemoryBackend):
    """As with Redis or PostgreSQL, subscribing takes a moment."""

    async def subscribe(self, channel):
        await asyncio.sleep(0.001)
        await super().subscribe(channel)


async def program():
    async with Broadcast(backend=Remote("memory://")) as broadcast:

        async def listen():
            async with broadcast.subscribe("news") as subscriber:
                return (await asyncio.wait_for(subscriber.get(), 0.5)).message

        tasks = [asyncio.create_task(listen()) for _ in range(2)]
        await asyncio.sleep(0.1)
        await broadcast.publish("news", "hello")
        assert await asyncio.gather(*tasks) == ["hello", "hello"]


async def reproduce():
    try:
        await program()
    except (KeyError, TimeoutError, AssertionError) as error:
        raise Bug(f"one subscriber is forgotten: {error!r}") from error


if __name__ == "__main__":
    main(program, reproduce)
