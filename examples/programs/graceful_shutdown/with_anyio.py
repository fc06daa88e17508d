import logging
import signal
import sys

import anyio

from examples.programs.graceful_shutdown import handle, requests


async def attempt(request: str) -> None:
    try:
        await handle(request)
    except Exception:
        logging.exception("a request failed")


async def cancel_on_signal(scope: anyio.CancelScope) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM) as signals:
        async for _ in signals:
            scope.cancel()


async def main() -> None:
    async with anyio.create_task_group() as group:
        async with anyio.create_task_group() as server:
            server.start_soon(cancel_on_signal, server.cancel_scope)
            async for request in requests():
                group.start_soon(attempt, request)
        group.cancel_scope.deadline = anyio.current_time() + 1
    print("closed")
    sys.exit(128 + signal.SIGTERM)


if __name__ == "__main__":
    anyio.run(main)
