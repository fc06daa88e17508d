import asyncio
import logging
import signal
import sys

from examples.programs.graceful_shutdown import handle, requests

tasks: set[asyncio.Task[None]] = set()


def on_end(task: asyncio.Task[None]) -> None:
    tasks.discard(task)
    if not task.cancelled() and (error := task.exception()) is not None:
        logging.error("a request failed", exc_info=error)


async def serve() -> None:
    async for request in requests():
        task = asyncio.create_task(handle(request))
        tasks.add(task)
        task.add_done_callback(on_end)


async def main() -> None:
    server = asyncio.create_task(serve())
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, server.cancel)
    await asyncio.wait({server})
    if tasks:
        _, late = await asyncio.wait(tasks, timeout=1)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)
    print("closed")
    if not server.cancelled():
        server.result()  # raises its error
    else:
        sys.exit(128 + signal.SIGTERM)


if __name__ == "__main__":
    asyncio.run(main())
