"""Programs that leak: one for each kind, the same text under each runner.

A program is an `async def body()`. `# created` marks the line that creates the leaked object,
`# created HF424` that of one object among several, and `# waits` the line where it waits.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass

__all__ = ["CORE", "HEAD", "PROGRAMS", "Expected", "Program", "marked"]

HEAD = """\
import asyncio
import gc
import os
import socket
import subprocess
import sys
import threading
import unittest
from concurrent.futures import ThreadPoolExecutor

import pytest

import ending

HELD = []
QUIET = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
"""


@dataclass(frozen=True)
class Program:
    """A body, the expected codes, and the checks that must be enabled to see it."""

    name: str
    codes: tuple[str, ...]
    source: str
    check: str = "tasks"
    on_request: bool = False
    since: tuple[int, int] = (3, 11)

    @property
    def head(self) -> str:
        """The lines at the top of its file."""
        marker = (
            f"pytestmark = pytest.mark.leaks(check=[{self.check!r}])\n" if self.on_request else ""
        )
        return HEAD + marker


@dataclass(frozen=True, order=True)
class Expected:
    """One finding as it must be: its code, the line that created it, the line where it waits."""

    code: str
    created_at: int
    waiting_at: int | None


def marked(program: Program, text: str) -> list[Expected]:
    """What must be found in `text`, the file that the program was written to."""
    lines = list(enumerate(text.splitlines(), 1))
    created = {
        found[1]: number
        for number, line in lines
        if (found := re.search(r"# created ?(\w*)", line))
    }
    waiting = {
        found[1]: number for number, line in lines if (found := re.search(r"# waits ?(\w*)", line))
    }
    return sorted(
        Expected(code, created.get(code) or created[""], waiting.get(code, waiting.get("")))
        for code in program.codes
    )


POLL = """
async def poll():
    while True:
        await asyncio.sleep(3600)  # waits
"""

_ALL = [
    # --- tasks ---------------------------------------------------------------------------------
    Program(
        "task_not_held",
        ("HF102",),
        POLL
        + """
async def body():
    asyncio.create_task(poll())  # created
""",
    ),
    Program(
        "task_held",
        ("HF102",),
        POLL
        + """
async def body():
    HELD.append(asyncio.create_task(poll(), name="held"))  # created
    await asyncio.sleep(0)
""",
    ),
    Program(
        "task_waiting_for_a_future",
        ("HF102",),
        """
async def wait(future):
    await future  # waits

async def body():
    future = asyncio.get_running_loop().create_future()
    HELD.append(asyncio.create_task(wait(future)))  # created
""",
    ),
    Program(
        "task_collected",
        ("HF101",),
        """
async def wait():
    await asyncio.get_running_loop().create_future()

async def body():
    asyncio.create_task(wait())  # created
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    gc.collect()
""",
        check="errors",
    ),
    Program(
        "task_by_ensure_future",
        ("HF102",),
        POLL
        + """
async def body():
    asyncio.ensure_future(poll())  # created
""",
    ),
    Program(
        "task_by_the_loop",
        ("HF102",),
        POLL
        + """
async def body():
    loop = asyncio.get_running_loop()
    HELD.append(
        loop.create_task(poll())  # created
    )
""",
    ),
    Program(
        "task_by_gather",
        ("HF102",),
        POLL
        + """
async def body():
    HELD.append(asyncio.gather(poll()))  # created
""",
    ),
    Program(
        "task_behind_a_shield",
        ("HF102",),
        POLL
        + """
async def body():
    try:
        async with asyncio.timeout(0.01):
            await asyncio.shield(poll())  # created
    except TimeoutError:
        pass
""",
    ),
    Program(
        "task_deep_inside",
        ("HF102",),
        """
class Service:
    async def start(self):
        self.task = asyncio.create_task(self.serve())  # created
        await asyncio.sleep(0)

    async def serve(self):
        await self.next()

    async def next(self):
        await asyncio.Event().wait()  # waits

async def begin():
    service = Service()
    await service.start()
    return service

async def body():
    HELD.append(await asyncio.create_task(begin()))
""",
    ),
    Program(
        "task_of_a_task",
        ("HF102",),
        POLL
        + """
async def parent():
    asyncio.create_task(poll())  # created

async def body():
    await asyncio.create_task(parent())
""",
    ),
    Program(
        "task_from_a_callback",
        ("HF102",),
        POLL
        + """
def begin():
    HELD.append(asyncio.ensure_future(poll()))  # created

async def body():
    asyncio.get_running_loop().call_soon(begin)
    await asyncio.sleep(0.01)
""",
    ),
    Program(
        "task_from_a_thread",
        ("HF102",),
        POLL
        + """
def begin(loop):
    HELD.append(asyncio.run_coroutine_threadsafe(poll(), loop))  # created

async def body():
    await asyncio.to_thread(begin, asyncio.get_running_loop())
    await asyncio.sleep(0.01)
""",
    ),
    Program(
        "task_in_an_empty_context",
        ("HF102",),
        POLL
        + """
import contextvars

async def parent():
    asyncio.create_task(poll())  # created

async def body():
    await asyncio.create_task(parent(), context=contextvars.Context())
""",
    ),
    Program(
        "task_at_a_queue",
        ("HF102",),
        """
async def work(queue):
    while True:
        job = await queue.get()  # waits
        queue.task_done()

async def body():
    queue = asyncio.Queue()
    worker = asyncio.create_task(work(queue))  # created
    queue.put_nowait("job")
    await queue.join()
    HELD.append(worker)
""",
    ),
    Program(
        # Its timer is a part of it.
        "task_under_a_timeout",
        ("HF102",),
        """
async def wait():
    async with asyncio.timeout(3600):
        await asyncio.Event().wait()  # waits

async def body():
    HELD.append(asyncio.create_task(wait()))  # created
    await asyncio.sleep(0)
""",
    ),
    Program(
        # The generator is a part of it.
        "task_in_a_generator",
        ("HF102",),
        """
async def ticks():
    while True:
        yield 1
        await asyncio.sleep(3600)  # waits

async def consume():
    async for _ in ticks():
        pass

async def body():
    HELD.append(asyncio.create_task(consume()))  # created
    await asyncio.sleep(0)
""",
    ),
    Program(
        "task_of_a_group",
        ("HF102",),
        POLL
        + """
async def body():
    group = asyncio.TaskGroup()
    await group.__aenter__()
    group.create_task(poll())  # created
    HELD.append(group)
""",
    ),
    Program(
        "task_of_a_scope",
        ("HF102",),
        POLL
        + """
import handfast

async def body():
    scope = handfast.Scope("left")
    HELD.append(scope)
    scope.spawn(poll())  # created
    await asyncio.sleep(0)
""",
    ),
    Program(
        "swallower",
        ("HF501",),
        """
async def stubborn():
    while True:
        try:
            await asyncio.sleep(3600)  # waits
        except asyncio.CancelledError:
            pass

async def body():
    HELD.append(asyncio.create_task(stubborn()))  # created
    await asyncio.sleep(0)
""",
    ),
    Program(
        "swallower_that_suppresses",
        ("HF501",),
        """
from contextlib import suppress

async def stubborn():
    while True:
        with suppress(asyncio.CancelledError):
            await asyncio.get_running_loop().create_future()  # waits

async def body():
    asyncio.create_task(stubborn())  # created
    await asyncio.sleep(0)
""",
    ),
    # --- errors --------------------------------------------------------------------------------
    Program(
        "error_collected",
        ("HF601",),
        """
async def boom():
    raise RuntimeError("boom")  # waits

async def body():
    asyncio.create_task(boom())  # created
    await asyncio.sleep(0.01)
    gc.collect()
""",
        check="errors",
    ),
    Program(
        "error_not_collected",
        ("HF601",),
        """
async def boom():
    raise RuntimeError("boom")  # waits

async def body():
    asyncio.create_task(boom())  # created
""",
        check="errors",
    ),
    Program(
        "error_held",
        ("HF601",),
        """
async def boom():
    raise ValueError("boom")  # waits

async def body():
    HELD.append(asyncio.create_task(boom()))  # created
    await asyncio.sleep(0.01)
""",
        check="errors",
    ),
    Program(
        "error_in_a_local",
        ("HF601",),
        """
async def boom():
    await asyncio.sleep(0)
    raise KeyError("boom")  # waits

async def body():
    task = asyncio.create_task(boom())  # created
    await asyncio.wait([task])
""",
        check="errors",
    ),
    # --- children ------------------------------------------------------------------------------
    Program(
        "child_of_asyncio",
        ("HF701",),
        """
async def body():
    process = await asyncio.create_subprocess_exec("sleep", "30", **QUIET)  # created
    ending.PIDS.append(process.pid)
    HELD.append(process)
""",
        check="children",
    ),
    Program(
        "child_of_asyncio_with_pipes",
        ("HF701",),
        """
async def body():
    pipe = subprocess.PIPE
    process = await asyncio.create_subprocess_exec("cat", stdin=pipe, stdout=pipe)  # created
    ending.PIDS.append(process.pid)
    HELD.append(process)
""",
        check="children",
    ),
    Program(
        "child_of_a_shell",
        ("HF701",),
        """
async def body():
    process = await asyncio.create_subprocess_shell("exec sleep 30", **QUIET)  # created
    ending.PIDS.append(process.pid)
    HELD.append(process)
""",
        check="children",
    ),
    Program(
        "child_of_popen",
        ("HF701",),
        """
async def body():
    process = subprocess.Popen(["sleep", "30"], **QUIET)  # created
    ending.PIDS.append(process.pid)
    HELD.append(process)
""",
        check="children",
    ),
    Program(
        "child_not_held",
        ("HF701",),
        """
async def body():
    ending.PIDS.append(subprocess.Popen(["sleep", "30"], **QUIET).pid)  # created
    gc.collect()
""",
        check="children",
    ),
    Program(
        "child_of_multiprocessing",
        ("HF701",),
        """
import multiprocessing
import time

async def body():
    process = multiprocessing.get_context("fork").Process(target=time.sleep, args=(30,), daemon=True)
    process.start()  # created
    ending.PIDS.append(process.pid)
    HELD.append(process)
""",
        check="children",
    ),
    Program(
        "child_and_its_task",
        ("HF102", "HF701"),
        """
async def drive():
    process = await asyncio.create_subprocess_exec("sleep", "30", **QUIET)  # created HF701
    ending.PIDS.append(process.pid)
    await process.wait()  # waits HF102

async def body():
    before = len(ending.PIDS)
    HELD.append(asyncio.create_task(drive()))  # created HF102
    while len(ending.PIDS) == before:
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.01)
""",
        check="children",
    ),
    Program(
        "zombie",
        ("HF702",),
        """
async def body():
    process = subprocess.Popen(["true"])  # created
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    HELD.append(process)
""",
        check="children",
    ),
    Program(
        "zombie_after_terminate",
        ("HF702",),
        """
async def body():
    process = subprocess.Popen(["sleep", "30"], **QUIET)  # created
    process.terminate()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    HELD.append(process)
""",
        check="children",
    ),
    # --- threads -------------------------------------------------------------------------------
    Program(
        "thread",
        ("HF711",),
        """
def work():
    ending.STOP.wait(60)  # waits

async def body():
    threading.Thread(target=work).start()  # created
""",
        check="threads",
    ),
    Program(
        "thread_daemon",
        ("HF711",),
        """
def work():
    ending.STOP.wait(60)  # waits

async def body():
    HELD.append(threading.Thread(target=work, name="daemon", daemon=True))
    HELD[-1].start()  # created
""",
        check="threads",
    ),
    Program(
        "thread_by_hand",
        ("HF711",),
        """
class Worker(threading.Thread):
    def run(self):
        ending.STOP.wait(60)  # waits

async def body():
    Worker(daemon=True).start()  # created
""",
        check="threads",
    ),
    Program(
        "thread_timer",
        ("HF711",),
        """
async def body():
    timer = threading.Timer(60, int)
    timer.daemon = True
    timer.start()  # created
""",
        check="threads",
    ),
    Program(
        "thread_of_a_thread",
        ("HF711",),
        """
def work():
    ending.STOP.wait(60)  # waits

def parent():
    threading.Thread(target=work, daemon=True).start()  # created

async def body():
    await asyncio.to_thread(parent)
""",
        check="threads",
    ),
    Program(
        "executor",
        ("HF712",),
        """
async def body():
    pool = ThreadPoolExecutor(1)  # created
    HELD.append(pool)
    await asyncio.get_running_loop().run_in_executor(pool, int)
""",
        check="threads",
    ),
    Program(
        "executor_at_work",
        ("HF712",),
        """
async def body():
    pool = ThreadPoolExecutor(2)  # created
    HELD.append(pool)
    HELD.append(pool.submit(ending.STOP.wait, 60))
""",
        check="threads",
    ),
    Program(
        "loop_in_a_thread",
        ("HF102", "HF424"),
        """
def spin(loop):
    asyncio.set_event_loop(loop)
    loop.run_forever()

async def poll(started):
    asyncio.get_running_loop().call_soon(started.set)
    while True:
        await asyncio.sleep(3600)  # waits HF102

async def body():
    loop = asyncio.new_event_loop()
    started = threading.Event()
    threading.Thread(target=spin, args=(loop,), daemon=True).start()  # created HF424
    HELD.append(asyncio.run_coroutine_threadsafe(poll(started), loop))  # created HF102
    assert started.wait(10)
""",
        check="threads",
    ),
    Program(
        "loop_in_a_thread_idle",
        ("HF424",),
        """
async def body():
    loop = asyncio.new_event_loop()
    started = threading.Event()
    loop.call_soon(started.set)
    threading.Thread(target=loop.run_forever, daemon=True).start()  # created
    assert started.wait(10)
""",
        check="threads",
    ),
    # --- timers and generators -----------------------------------------------------------------
    Program(
        "timer",
        ("HF721",),
        """
async def body():
    asyncio.get_running_loop().call_later(3600, int)  # created
""",
        check="timers",
    ),
    Program(
        "timer_held",
        ("HF721",),
        """
async def body():
    loop = asyncio.get_running_loop()
    HELD.append(loop.call_at(loop.time() + 3600, int))  # created
""",
        check="timers",
    ),
    Program(
        "timer_set_again",
        ("HF721",),
        """
def tick(loop, left):
    loop.call_later(0.001 if left else 3600, tick, loop, left - 1)  # created

async def body():
    tick(asyncio.get_running_loop(), 3)
    await asyncio.sleep(0.05)
""",
        check="timers",
    ),
    Program(
        "generator",
        ("HF731",),
        """
async def ticks():
    while True:
        yield 1  # waits

async def body():
    HELD.append(generator := ticks()); await anext(generator)  # created
""",
        check="generators",
    ),
    Program(
        "generator_after_a_break",
        ("HF731",),
        """
async def ticks():
    try:
        while True:
            yield 1  # waits
    finally:
        await asyncio.sleep(0)

class Feed:
    def __init__(self):
        self.ticks = ticks()

async def body():
    HELD.append(feed := Feed())
    async for _ in feed.ticks:  # created
        break
""",
        check="generators",
    ),
    # --- connections ---------------------------------------------------------------------------
    Program(
        "server",
        ("HF741",),
        """
async def body():
    HELD.append(await asyncio.start_server(print, "127.0.0.1", 0))  # created
""",
        check="connections",
    ),
    Program(
        "server_not_held",
        ("HF741",),
        """
async def body():
    loop = asyncio.get_running_loop()
    await loop.create_server(asyncio.Protocol, "127.0.0.1", 0)  # created
""",
        check="connections",
    ),
    Program(
        "server_unix",
        ("HF741",),
        """
import tempfile

async def body():
    path = os.path.join(tempfile.mkdtemp(dir=os.environ["ENDING"]), "s")
    HELD.append(await asyncio.start_unix_server(print, path))  # created
""",
        check="connections",
    ),
    Program(
        "transport",
        ("HF742",),
        """
async def body():
    near, far = socket.socketpair()
    HELD.append(far)
    HELD.append(await asyncio.open_connection(sock=near))  # created
""",
        check="connections",
    ),
    Program(
        "transport_datagram",
        ("HF742",),
        """
async def body():
    loop = asyncio.get_running_loop()
    address = ("127.0.0.1", 0)
    HELD.append(
        await loop.create_datagram_endpoint(asyncio.DatagramProtocol, local_addr=address)  # created
    )
""",
        check="connections",
    ),
    Program(
        "transport_of_a_client",
        ("HF742",),
        """
async def body():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        HELD.append(await asyncio.open_connection(*listener.getsockname()))  # created
        HELD.append(listener.accept())
""",
        check="connections",
    ),
    # --- resources -----------------------------------------------------------------------------
    Program(
        "session_held",
        ("HF743",),
        """
import aiohttp

async def body():
    HELD.append(aiohttp.ClientSession())  # created
""",
        check="resources",
    ),
    Program(
        "session_collected",
        ("HF743",),
        """
async def body():
    import aiohttp

    aiohttp.ClientSession()  # created
    gc.collect()
""",
        check="resources",
    ),
    Program(
        "session_used",
        ("HF743",),
        """
import aiohttp
from aiohttp import web
from aiohttp.test_utils import TestServer

TestServer.__test__ = False

async def hello(request):
    return web.Response(text="hello")

async def body():
    app = web.Application()
    app.router.add_get("/", hello)
    async with TestServer(app) as server:
        session = aiohttp.ClientSession()  # created
        HELD.append(session)
        async with session.get(server.make_url("/")) as response:
            assert await response.text() == "hello"
""",
        check="resources",
    ),
    # --- on request ----------------------------------------------------------------------------
    Program(
        "descriptor",
        ("HF751",),
        """
async def body():
    HELD.append(open(__file__))  # created
""",
        check="descriptors",
        on_request=True,
    ),
    Program(
        "descriptor_raw",
        ("HF751",),
        """
async def body():
    HELD.append(os.open(__file__, os.O_RDONLY))  # created
""",
        check="descriptors",
        on_request=True,
    ),
    Program(
        "descriptor_socket",
        ("HF751",),
        """
async def body():
    HELD.append(socket.socket())  # created
""",
        check="descriptors",
        on_request=True,
    ),
    Program(
        "done_tasks_kept",
        ("HF131",),
        """
async def job():
    pass

async def body():
    for _ in range(20):
        HELD.append(asyncio.create_task(job()))  # created
    await asyncio.wait(HELD)
""",
        check="retained",
        on_request=True,
    ),
    Program(
        "done_tasks_kept_in_a_dict",
        ("HF131",),
        """
class Jobs:
    def __init__(self):
        self.tasks = {}

    async def start(self, number):
        self.tasks[number] = asyncio.create_task(asyncio.sleep(0))  # created
        await self.tasks[number]

JOBS = Jobs()

async def body():
    for number in range(20):
        await JOBS.start(number)
""",
        check="retained",
        on_request=True,
    ),
]

CORE = {
    "task_not_held",
    "task_held",
    "task_from_a_callback",
    "task_from_a_thread",
    "task_in_an_empty_context",
    "task_in_a_generator",
    "swallower",
    "error_collected",
    "error_held",
    "child_of_asyncio",
    "child_of_popen",
    "zombie",
    "thread",
    "thread_daemon",
    "executor",
    "loop_in_a_thread",
    "timer",
    "generator",
    "server",
    "transport",
    "session_held",
    "session_collected",
}
"""One of each kind, and those that a runner could trip over."""

PROGRAMS = {program.name: program for program in _ALL if sys.version_info >= program.since}
