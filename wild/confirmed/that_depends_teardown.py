"""that-depends: a teardown that is cancelled leaves the closed resource in its provider."""

import asyncio

from script import Bug, cancel, main
from that_depends.providers import Resource

from handfast.explore import victim

PACKAGE, VERSION = "that-depends", "4.2.1"


class Thing:
    open = True


async def create():
    thing = Thing()
    yield thing
    thing.open = False
    await asyncio.sleep(0.01)


async def program():
    provider = Resource(create)
    await provider.resolve()
    await victim(provider.tear_down())
    assert (await provider.resolve()).open
    await provider.tear_down()


async def reproduce():
    provider = Resource(create)
    await provider.resolve()
    await cancel(asyncio.create_task(provider.tear_down()))
    if not (await provider.resolve()).open:
        raise Bug("resolve returns the resource that is closed")


if __name__ == "__main__":
    main(program, reproduce)
