"""cashews: one caller of a protected function is cancelled, and with it all others."""

import asyncio

from cashews import thunder_protection
from script import Bug, cancel, main

from handfast.explore import victim

PACKAGE, VERSION = "cashews", "7.6.0"


def loading():
    @thunder_protection()
    async def load(key):
        await asyncio.sleep(0.01)
        return key

    return load


async def program():
    load = loading()
    first = victim(load(1))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    second = asyncio.create_task(load(1))
    await asyncio.wait([second])
    assert not second.cancelled()
    await first


async def reproduce():
    load = loading()
    first, second = (asyncio.create_task(load(1)) for _ in range(2))
    await cancel(first)
    await asyncio.wait([second])
    if second.cancelled():
        raise Bug("the second caller was not cancelled, and gets CancelledError")


if __name__ == "__main__":
    main(program, reproduce)
