"""anyio: a notified waiter that task.cancel() cancels raises RuntimeError; its notification is lost."""

import asyncio

import anyio
from script import Bug, main

from handfast.explore import victim

PACKAGE, VERSION = "anyio", "4.16.0"


async def take(condition, items):
    async with condition:
        while not items:
            await condition.wait()
        return items.pop()


async def program():
    condition, items = anyio.Condition(), []
    one = victim(take(condition, items))
    await asyncio.sleep(0.01)
    async with condition:
        items.append(1)
        condition.notify()
    outcome = await one
    assert outcome.error is None


async def reproduce():
    condition, items = anyio.Condition(), []
    tasks = [asyncio.create_task(take(condition, items)) for _ in range(2)]
    await asyncio.sleep(0.01)
    async with condition:
        items.append(1)
        condition.notify()
    await asyncio.sleep(0)  # the first one is notified, and acquires the lock again
    tasks[0].cancel()
    done, waiting = await asyncio.wait(tasks, timeout=0.5)
    if tasks[0] in done and not tasks[0].cancelled() and waiting:
        error = tasks[0].exception()
        tasks[1].cancel()
        raise Bug(f"{error!r} in place of CancelledError, and the other waiter sleeps on")


if __name__ == "__main__":
    main(program, reproduce)
