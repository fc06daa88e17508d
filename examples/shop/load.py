"""Sends orders to the shop: `python -m examples.shop.load [SECONDS]`."""

from __future__ import annotations

import asyncio
import itertools
import os
import sys
import time

import aiohttp

CLIENTS = 10
_numbers = itertools.count(1)


async def send_orders(session: aiohttp.ClientSession, url: str, until: float) -> int:
    """Send one order after the other; the number of answers."""
    answers = 0
    while time.monotonic() < until:
        async with session.post(f"{url}/order/{next(_numbers)}") as answer:
            await answer.read()
        answers += 1
        await asyncio.sleep(0.03)
    return answers


async def load(port: int, seconds: float) -> int:
    """Send orders from several clients at once; the number of answers."""
    until = time.monotonic() + seconds
    url = f"http://127.0.0.1:{port}"
    async with aiohttp.ClientSession() as session, asyncio.TaskGroup() as group:
        clients = [group.create_task(send_orders(session, url, until)) for _ in range(CLIENTS)]
    return sum(client.result() for client in clients)


if __name__ == "__main__":
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    answers = asyncio.run(load(int(os.environ.get("PORT", "8080")), seconds))
    sys.stdout.write(f"{answers} answers\n")
