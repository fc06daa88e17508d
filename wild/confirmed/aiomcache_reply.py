"""aiomcache: the reply to a command that was cancelled is taken for the reply to the next one."""

import asyncio

import aiomcache
from script import Bug, main

from handfast.explore import victim

PACKAGE, VERSION = "aiomcache", "0.8.2"


async def serve(reader, writer):
    """As much of memcached as `get` needs: the value of a key is the key."""
    while line := await reader.readline():
        key = line.split()[1]
        await asyncio.sleep(0.01)
        writer.write(b"VALUE %s 0 %d\r\n%s\r\nEND\r\n" % (key, len(key), key))
    writer.close()


async def program():
    server = await asyncio.start_server(serve, "127.0.0.1", 11211)
    client = aiomcache.Client("127.0.0.1", 11211, pool_size=1)
    await client.get(b"first")
    await victim(client.get(b"second"))
    assert await client.get(b"third") == b"third"
    await client.close()
    server.close()


async def reproduce():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    client = aiomcache.Client(*server.sockets[0].getsockname(), pool_size=1)
    await client.get(b"first")
    task = asyncio.create_task(client.get(b"second"))
    await asyncio.sleep(0.005)  # the command is sent, the reply is not here
    task.cancel()
    await asyncio.wait([task])
    try:
        answer = await client.get(b"third")
    except Exception as error:
        raise Bug(f"get(b'third') takes the reply for another key: {error!r}") from error
    finally:
        await client.close()
        server.close()
    if answer != b"third":
        raise Bug(f"get(b'third') returns {answer!r}")


if __name__ == "__main__":
    main(program, reproduce)
