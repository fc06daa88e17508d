"""Send mails in the background, three at a time; a failure is logged and stops no other mail.

At the end the pool has a minute to send the rest. What is not sent by then is cancelled.
"""

import asyncio
from typing import Any


async def demo(version: Any) -> object:
    sent: list[str] = []
    running = most = 0

    async def deliver(mail: str) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        try:
            await asyncio.sleep(3600 if mail == "stuck" else 1)
            if mail == "bad":
                raise OSError("no such address")
            sent.append(mail)
        finally:
            running -= 1

    async with version.mailer(deliver) as send:
        for mail in ("a", "bad", "b", "c", "stuck", "d"):
            send(mail)
    return sent, most, running
