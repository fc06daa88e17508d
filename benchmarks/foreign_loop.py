"""An event loop in another thread, for work that is submitted from outside."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def foreign_loop() -> Iterator[asyncio.AbstractEventLoop]:
    """A running loop; at the end it is stopped, closed, and its thread joined."""
    runner = asyncio.Runner()
    loop = runner.get_loop()
    thread = threading.Thread(target=loop.run_forever, name="foreign loop")
    thread.start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        # Cancel and join the tasks of an interrupted lap, in this thread: the loop is stopped.
        runner.close()
