"""Once the bucket has run empty, the next caller that must wait is never woken."""

import asyncio

import asynciolimiter

PACKAGE = "asynciolimiter"
BAD = "1.1.1"
GOOD = "1.1.2"
ISSUE = "https://github.com/bharel/asynciolimiter/issues/17"
FINDING = "HF431"
OPTIONS = {}


async def program():
    limiter = asynciolimiter.LeakyBucketLimiter(10, capacity=2)
    for _ in range(2):  # two bursts with a rest between them
        await asyncio.gather(*(limiter.wait() for _ in range(3)))
        await asyncio.sleep(1)
    limiter.close()
