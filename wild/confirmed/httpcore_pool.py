"""httpcore: a request that is cancelled at the wrong moment never gives its slot back."""

import asyncio

import httpcore
from script import Bug, main

from handfast.explore import victim

PACKAGE, VERSION = "httpcore", "1.0.9"
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"


class Stream(httpcore.AsyncNetworkStream):
    """A server in memory: it answers whatever is written."""

    async def write(self, buffer, timeout=None):
        await asyncio.sleep(0)

    async def read(self, max_bytes, timeout=None):
        await asyncio.sleep(0)
        return ANSWER

    async def aclose(self):
        await asyncio.sleep(0)

    def get_extra_info(self, info):
        return None


class Network(httpcore.AsyncNetworkBackend):
    async def connect_tcp(self, *_args, **_options):
        await asyncio.sleep(0)
        return Stream()


def opened():
    return httpcore.AsyncConnectionPool(max_connections=1, network_backend=Network())


async def request(pool):
    return await pool.request("GET", "http://a.test/", extensions={"timeout": {"pool": 0.5}})


async def program():
    async with opened() as pool:
        await victim(request(pool))
        assert (await request(pool)).content == b"hello"


async def reproduce():
    for steps in range(40):
        async with opened() as pool:
            task = asyncio.create_task(request(pool))
            for _ in range(steps):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
            try:
                await request(pool)
            except httpcore.PoolTimeout:
                raise Bug(f"cancelled in iteration {steps}, the only slot is lost") from None


if __name__ == "__main__":
    main(program, reproduce)
