"""A request cancelled at the wrong moment takes the pool's only slot with it."""

import asyncio

import httpcore2 as httpcore

from handfast.explore import victim

PACKAGE = "httpcore2"
BAD = "2.2.0"
GOOD = "2.3.0"
NEEDS = ["anyio==4.12.1"]
ISSUE = "https://github.com/pydantic/httpx2/pull/983"
FINDING = "HF441"
OPTIONS = {"cancel": True}

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"


class Stream(httpcore.AsyncNetworkStream):
    """A server in memory: it answers whatever is written."""

    async def write(self, buffer, timeout=None):
        await asyncio.sleep(0)

    async def read(self, max_bytes, timeout=None):
        await asyncio.sleep(0.01)
        return ANSWER

    async def aclose(self):
        await asyncio.sleep(0)

    def get_extra_info(self, info):
        return None


class Network(httpcore.AsyncNetworkBackend):
    async def connect_tcp(self, *_args, **_options):
        await asyncio.sleep(0.01)
        return Stream()


async def program():
    async with httpcore.AsyncConnectionPool(max_connections=1, network_backend=Network()) as pool:
        await victim(pool.request("GET", "http://example.com/"))
        response = await pool.request(
            "GET", "http://example.com/", extensions={"timeout": {"pool": 5}}
        )
        assert response.content == b"hello"
