"""strawberry-graphql: of two loads of the same key, a cancel of one cancels the other."""

import asyncio

from script import Bug, cancel, main
from strawberry.dataloader import DataLoader

from handfast.explore import victim

PACKAGE, VERSION = "strawberry-graphql", "0.341.2"


async def squares(keys):
    await asyncio.sleep(0.01)
    return [key * key for key in keys]


async def load(loader):
    return await loader.load(3)


async def program():
    loader = DataLoader(squares)
    one = victim(load(loader))
    other = asyncio.create_task(load(loader))
    await asyncio.wait([other])
    assert not other.cancelled()
    await one


async def reproduce():
    loader = DataLoader(squares)
    one, other = (asyncio.create_task(load(loader)) for _ in range(2))
    await cancel(one)
    await asyncio.wait([other])
    if other.cancelled():
        raise Bug("the other load was not cancelled, and gets CancelledError")


if __name__ == "__main__":
    main(program, reproduce)
