"""A command that is cancelled between its send and its reply hands the reply to the next one."""

import asyncio
import contextlib

from redis.asyncio import Redis

from handfast.explore import victim

PACKAGE = "redis"
BAD = "4.5.1"
GOOD = "5.0.1"
ISSUE = "https://github.com/redis/redis-py/issues/2624"
FINDING = "HF441"
OPTIONS = {"cancel": True}


async def serve(reader, writer):
    """Each GET answers with the name of its key."""
    with contextlib.suppress(ConnectionError):
        while head := await reader.readline():
            words = []
            for _ in range(int(head[1:])):
                await reader.readline()
                words.append((await reader.readline()).strip())
            key = words[1] if words[0] == b"GET" else b"OK"
            writer.write(b"$%d\r\n%s\r\n" % (len(key), key))
    writer.close()


async def program():
    server = await asyncio.start_server(serve, "127.0.0.1", 6379)
    async with Redis(host="127.0.0.1", port=6379, single_connection_client=True) as redis:
        await redis.get("first")
        await victim(redis.get("one"))
        assert await redis.get("two") == b"two"
    server.close()
