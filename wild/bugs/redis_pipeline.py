"""A pipeline that is cancelled while it gives up its watch keeps its connection for good."""

import asyncio
import contextlib

from redis.asyncio import BlockingConnectionPool, Redis

from handfast.explore import victim

PACKAGE = "redis"
BAD = "8.0.0"
GOOD = "8.0.1"
ISSUE = "https://github.com/redis/redis-py/pull/4123"
FINDING = "HF441"
OPTIONS = {"cancel": True}


async def serve(reader, writer):
    with contextlib.suppress(ConnectionError):
        while head := await reader.readline():
            words = []
            for _ in range(int(head[1:])):
                await reader.readline()
                words.append((await reader.readline()).strip())
            writer.write(b"$3\r\nyes\r\n" if words[0] == b"GET" else b"+OK\r\n")
    writer.close()


async def program():
    server = await asyncio.start_server(serve, "127.0.0.1", 6379)
    pool = BlockingConnectionPool(
        host="127.0.0.1", port=6379, protocol=2, max_connections=1, timeout=5
    )
    redis = Redis(connection_pool=pool)

    async def look():
        async with redis.pipeline() as pipe:
            await pipe.watch("key")
            return await pipe.get("key")

    assert await redis.get("key") == b"yes"
    await victim(look())
    assert await redis.get("key") == b"yes"
    await redis.aclose()
    await pool.aclose()
    server.close()
