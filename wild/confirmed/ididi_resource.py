"""ididi: a resource that is entered in a thread as its caller is cancelled stays open."""

import asyncio
import threading
from collections.abc import Generator

from ididi import Graph, use
from script import Bug, cancel, main

from handfast.explore import victim

PACKAGE, VERSION = "ididi", "1.8.4"


class Resource:
    pass


async def resolve(held, wait=lambda: None):
    def resource() -> Generator[Resource, None, None]:
        wait()
        held.append("open")
        try:
            yield Resource()
        finally:
            held.remove("open")

    graph = Graph()
    graph.node(use(resource, reuse=True))
    async with graph.ascope() as scope:
        await scope.resolve(Resource)


async def program():
    held = []
    await victim(resolve(held))
    await asyncio.sleep(1)
    assert not held


async def reproduce():
    held = []
    connected = threading.Event()
    task = asyncio.create_task(resolve(held, connected.wait))
    await cancel(task, steps=1)
    connected.set()
    await asyncio.sleep(0.1)
    if held:
        raise Bug(f"the resource stays open, and the scope ends with {task.exception()!r}")


if __name__ == "__main__":
    main(program, reproduce, ignore=["HF712"])
