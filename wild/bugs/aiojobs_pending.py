"""Once as many jobs wait as may wait, the one who spawns the next is never let go."""

import asyncio
import warnings

import aiojobs

PACKAGE = "aiojobs"
BAD = "1.0.0"
GOOD = "1.1.0"
ISSUE = "https://github.com/aio-libs/aiojobs/pull/135"
FINDING = "HF431"
OPTIONS = {}


async def program():
    done = []

    async def job(number):
        await asyncio.sleep(0.5)
        done.append(number)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        scheduler = await aiojobs.create_scheduler(limit=1, pending_limit=1)
    for number in range(4):
        await scheduler.spawn(job(number))
    await asyncio.sleep(10)
    await scheduler.close()
    assert done == [0, 1, 2, 3]
