"""aiojobs: after a close that was cancelled at its start, the next close does nothing and jobs run on."""

import asyncio

import aiojobs
from script import Bug, cancel, main

from handfast.explore import victim

PACKAGE, VERSION = "aiojobs", "1.4.0"


async def job():
    try:
        await asyncio.sleep(10)
    finally:
        await asyncio.sleep(0.01)


async def program():
    scheduler = aiojobs.Scheduler()
    await scheduler.spawn(job())
    await asyncio.sleep(0)
    await victim(scheduler.close())
    await scheduler.close()
    assert scheduler.active_count == 0


async def reproduce():
    scheduler = aiojobs.Scheduler()
    await scheduler.spawn(job())
    await asyncio.sleep(0)
    await cancel(asyncio.create_task(scheduler.close()), steps=1)
    await scheduler.close()
    running = [each for each in asyncio.all_tasks() if each.get_coro().__name__ == "job"]
    if running:
        raise Bug("close has returned, and a job still runs")


if __name__ == "__main__":
    main(program, reproduce)
