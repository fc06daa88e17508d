"""Stop on SIGTERM: no new request, a second for those under way, then cancel them; exit code 143."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]


async def requests() -> AsyncIterator[str]:
    """Three requests; after them the server waits for more."""
    for request in ("short", "bad", "long"):
        yield request
        await asyncio.sleep(0.01)
    print("ready", flush=True)
    await asyncio.Event().wait()


async def handle(request: str) -> None:
    try:
        if request == "bad":
            raise ValueError(request)
        await asyncio.sleep(3600 if request == "long" else 0.2)
        print(request, "answered")
    except asyncio.CancelledError:
        print(request, "cancelled")
        raise


async def demo(version: Any) -> object:
    """Run the version as a program of its own, and send it SIGTERM when it is ready."""
    program = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        version.__name__,
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert program.stdout is not None
    ready = await program.stdout.readline()
    program.send_signal(signal.SIGTERM)
    out, log = await program.communicate()
    return ready + out, b"ValueError: bad" in log, program.returncode
