"""A shop on aiohttp. It answers all requests as it should, and grows.

`python -m examples.shop.server` serves at port 8080; `python -m examples.shop.load` sends orders.
"""

from __future__ import annotations

import asyncio
import os
import sys

from aiohttp import web

RECEIPTS: web.AppKey[set[asyncio.Task[None]]] = web.AppKey("receipts")


async def charge(number: int) -> bool:
    """Ask the bank for the money; it declines one card in a hundred."""
    await asyncio.sleep(0.005)
    return number % 100 != 0


async def send_receipt(paid: asyncio.Future[int]) -> None:
    """Send the receipt once the order is paid."""
    await paid
    await asyncio.sleep(0.02)


# --8<-- [start:order]
async def order(request: web.Request) -> web.Response:
    """Take an order, and charge for it."""
    number = int(request.match_info["number"])
    paid: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    receipt = asyncio.create_task(send_receipt(paid))
    request.app[RECEIPTS].add(receipt)
    receipt.add_done_callback(request.app[RECEIPTS].discard)
    if not await charge(number):
        # The bug: the task still waits for `paid`, and always will.
        raise web.HTTPPaymentRequired(text="the card was declined\n")
    paid.set_result(number)
    return web.Response(text="thank you\n")


# --8<-- [end:order]
def application() -> web.Application:
    """The shop."""
    app = web.Application()
    app[RECEIPTS] = set()
    app.router.add_post("/order/{number}", order)
    return app


async def serve(port: int) -> None:
    """Serve until the process ends; the port is printed, since 0 means any."""
    runner = web.AppRunner(application(), access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", port)
    await site.start()
    sys.stdout.write(f"port {runner.addresses[0][1]}\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(int(os.environ.get("PORT", "8080"))))
