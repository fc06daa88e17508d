"""python -m benchmarks.watched MEASURE N: what a watch costs a program, each time in a new process.

hello-off, hello-on    CPU seconds of a server for N requests; "on": watched, and read twice a second
hold-up                the longest time for which a loop with N tasks is held up by a snapshot of it
bytes-off, bytes-on    bytes of one of N live tasks
imported               how many modules a program imports because handfast is installed
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Callable

from benchmarks.fresh_process import ROOT, run_python
from benchmarks.live import Bare
from benchmarks.weighing import weigh
from benchmarks.work import wait_forever

CONNECTIONS = 8
REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
READ = "from handfast import watch; watch.connect({pid}).{what}"
LISTED = 1000


def measured(measure: str, n: int) -> float:
    """Run a measurement in a new process."""
    return float(run_python("-m", "benchmarks.watched", measure, str(n)).stdout)


# --- a server under load -------------------------------------------------------------------------


async def serve_hello(n: int, watched: bool) -> float:
    from aiohttp import web

    from handfast import watch

    async def hello(request: web.Request) -> web.Response:
        return web.Response(text="hello")

    app = web.Application()
    app.add_routes([web.get("/", hello)])
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    served = watch.serve() if watched else None
    reader = _read_twice_a_second() if watched else None
    # The clients and the reader are other processes: their time is not the server's.
    clients = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.watched", "clients", str(n), str(port)], cwd=ROOT
    )
    before = time.process_time()
    await asyncio.to_thread(clients.wait)
    seconds = time.process_time() - before
    if reader is not None and served is not None:
        reader.terminate()
        await asyncio.to_thread(reader.wait)
        served.stop()
    await runner.cleanup()
    if clients.returncode:
        raise RuntimeError(f"the clients ended with {clients.returncode}")
    return seconds


def _read_twice_a_second() -> subprocess.Popen[bytes]:
    source = (
        f"import time; from handfast import watch; c = watch.connect({os.getpid()})\n"
        "while True: c.summary(); time.sleep(0.5)"
    )
    return subprocess.Popen([sys.executable, "-c", source], cwd=ROOT)


async def request_hello(n: int, port: int) -> None:
    async def client() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(max(1, n // CONNECTIONS)):
            writer.write(REQUEST)
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
            if await reader.readexactly(length) != b"hello":
                raise RuntimeError("not what the server should answer")
        writer.close()

    await asyncio.gather(*(client() for _ in range(CONNECTIONS)))


# --- a snapshot of many tasks --------------------------------------------------------------------


async def hold_up(n: int) -> float:
    """How late the loop is at most, while another process reads a snapshot: the CPU time of all
    threads between two of its steps, as only one of them runs at a time."""
    from handfast import watch

    with watch.serve():
        tasks = [asyncio.create_task(wait_forever()) for _ in range(n)]
        await asyncio.sleep(0)
        source = READ.format(pid=os.getpid(), what=f"snapshot({LISTED})")
        reading = subprocess.Popen([sys.executable, "-c", source], cwd=ROOT)
        longest = 0.0
        while reading.poll() is None:
            before = time.process_time()
            await asyncio.sleep(0.001)
            longest = max(longest, time.process_time() - before)
        for task in tasks:
            task.cancel()
        if reading.returncode:
            raise RuntimeError(f"the reader ended with {reading.returncode}")
    return longest


# --- memory, imports -----------------------------------------------------------------------------


async def weigh_bare(n: int, watched: bool) -> float:
    from handfast._watch.recording import task_creation

    if watched:
        task_creation.switch_on()
    return await weigh(Bare, n)


def imported() -> float:
    """With the .pth file that the package installs, and without HANDFAST_WATCH."""
    source = (
        "import site, sys; before = set(sys.modules); site.addsitedir('src'); "
        "print(len(set(sys.modules) - before))"
    )
    environment = {k: v for k, v in os.environ.items() if k != "HANDFAST_WATCH"}
    command = [sys.executable, "-c", source]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    return float(done.stdout)


MEASURES: dict[str, Callable[[int], float]] = {
    "hello-off": lambda n: asyncio.run(serve_hello(n, False)),
    "hello-on": lambda n: asyncio.run(serve_hello(n, True)),
    "hold-up": lambda n: asyncio.run(hold_up(n)),
    "bytes-off": lambda n: asyncio.run(weigh_bare(n, False)),
    "bytes-on": lambda n: asyncio.run(weigh_bare(n, True)),
    "imported": lambda n: imported(),
}


def main(measure: str, n: str, *port: str) -> None:
    if port:
        asyncio.run(request_hello(int(n), int(port[0])))
    else:
        print(MEASURES[measure](int(n)))


if __name__ == "__main__":
    main(*sys.argv[1:])
