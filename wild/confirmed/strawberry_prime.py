"""strawberry-graphql: prime fails if a load of its key was cancelled before it is dispatched."""

import asyncio

from script import Bug, main
from strawberry.dataloader import DataLoader
from strawberry_shared import load, squares

from handfast.explore import victim

PACKAGE, VERSION = "strawberry-graphql", "0.341.2"


async def program():
    loader = DataLoader(squares)
    one = victim(load(loader))
    await asyncio.sleep(0)
    loader.prime(3, 9)
    await one


async def reproduce():
    loader = DataLoader(squares)
    future = loader.load(3)
    future.cancel()
    try:
        loader.prime(3, 9)
    except asyncio.InvalidStateError as error:
        raise Bug("prime raises InvalidStateError") from error


if __name__ == "__main__":
    main(program, reproduce)
