"""A cancel that comes together with the deadline is taken for the time-out, and swallowed."""

import asyncio

import async_timeout

from handfast.explore import victim

PACKAGE = "async-timeout"
BAD = "4.0.2"
GOOD = "5.0.1"
ISSUE = "https://github.com/aio-libs/async-timeout/issues/229"
FINDING = "HF501"
OPTIONS = {"cancel": True}


async def program():
    polls = []

    async def poll():
        for number in range(3):
            try:
                async with async_timeout.timeout(1):
                    await asyncio.sleep(10)
            except TimeoutError:
                polls.append(number)

    outcome = await victim(poll())
    assert outcome.cancelled or polls == [0, 1, 2]
