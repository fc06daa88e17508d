"""HF7xx, resources left behind: what was opened, started or armed is gone when its user is.

70x is about child processes, 71x about threads, 72x about timers, 73x about async generators, 74x
about servers, transports and sessions, 75x about descriptors, 76x about memory.
"""

from __future__ import annotations

from holdfast.catalogue.bugkind import BugKind

__all__ = ["FAMILY", "KINDS"]

FAMILY = "resources left behind"

KINDS: tuple[BugKind, ...] = (
    BugKind(
        code="HF701",
        name="process-left-running",
        family=FAMILY,
        summary="A child process lives on after the code that started it has ended.",
        why=(
            "asyncio does not end a child because the task that waits for it is cancelled: after a "
            "time-out around `communicate()` the program still runs, and holds its files, ports and "
            "memory, also past the end of the service. A cancellation while the child is being "
            "started leaves one too, without even a handle on it (CPython #103847)."
        ),
        wrong="""\
import asyncio
from asyncio.subprocess import PIPE


async def output_of(*command):
    process = await asyncio.create_subprocess_exec(*command, stdout=PIPE)
    output, _ = await process.communicate()
    return output
""",
        right="""\
import holdfast


async def output_of(*command):
    async with holdfast.Process(*command) as process:
        return b"".join([chunk async for chunk in process.stdout.chunks()])
""",
    ),
    BugKind(
        code="HF702",
        name="process-not-reaped",
        family=FAMILY,
        summary="A child process has ended and nobody has asked for its exit status.",
        why=(
            "It stays in the table of processes as a zombie. A service that starts and kills children "
            "without waiting for them fills the table until `fork` fails for everybody on the machine; "
            "in a container, where process 1 often does not reap, for good. The exit status, which "
            "would have said why it ended, is lost as well."
        ),
        wrong="""\
import subprocess


class Player:
    def __init__(self, *command):
        self.process = subprocess.Popen(command)

    def stop(self):
        self.process.terminate()
""",
        right="""\
import subprocess


class Player:
    def __init__(self, *command):
        self.process = subprocess.Popen(command)

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
""",
    ),
    BugKind(
        code="HF703",
        name="grandchild-left-running",
        family=FAMILY,
        summary="A child is killed and the processes that it had started live on.",
        why=(
            "`kill()` reaches one process. What a shell, a test runner or a browser has started is "
            "given to process 1 and goes on (CPython #127874). If it inherited a pipe, the pipe stays "
            "open and `wait()` or `communicate()` hangs although the child is dead (CPython #119710). "
            "Start the child in a session of its own, and signal the whole group."
        ),
        wrong="""\
import asyncio


class Shell:
    async def start(self, script):
        self._process = await asyncio.create_subprocess_shell(script)

    async def stop(self):
        self._process.kill()
        await self._process.wait()
""",
        right="""\
import asyncio
import contextlib
import os
import signal


class Shell:
    async def start(self, script):
        self._process = await asyncio.create_subprocess_shell(
            script, start_new_session=True
        )

    async def stop(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        await self._process.wait()
""",
    ),
    BugKind(
        code="HF704",
        name="pipe-not-drained",
        family=FAMILY,
        summary="A pipe of a child process is opened and not read while the child runs.",
        why=(
            "A pipe holds 64 KiB on Linux. When it is full the child blocks in its next write: it "
            "makes no more progress, does not exit, and the parent waits for it for ever. Since "
            "stderr is usually quiet, this happens on the day when something goes wrong and the child "
            "has a lot to say. A reader that dies of a line too long or of bytes that are not UTF-8 "
            "comes to the same."
        ),
        wrong="""\
import asyncio
from asyncio.subprocess import PIPE


async def run(*command):
    process = await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=PIPE)
    lines = [line async for line in process.stdout]
    errors = await process.stderr.read()
    await process.wait()
    return lines, errors
""",
        right="""\
import holdfast


async def run(*command):
    async with holdfast.Process(*command) as process:
        # Both pipes are drained from the first moment, in bounded memory.
        lines = [line async for line in process.stdout.lines()]
        await process.wait()
    return lines, process.stderr.head + process.stderr.tail
""",
    ),
    BugKind(
        code="HF711",
        name="thread-left-running",
        family=FAMILY,
        summary="A thread, daemon or not, still runs after its owner has been closed.",
        why=(
            "It goes on calling into an object that believes itself closed. A thread that is no "
            "daemon keeps the process from ending; a daemon is stopped at exit wherever it stands, in "
            "the middle of a write or while it holds a lock. Tell it to stop, and join it."
        ),
        wrong="""\
import threading


class Sampler:
    def __init__(self, sample):
        self._sample = sample
        self._stop = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        while not self._stop.is_set():
            self._sample()

    def close(self):
        self._stop.set()
""",
        right="""\
import threading


class Sampler:
    def __init__(self, sample):
        self._sample = sample
        self._stop = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        while not self._stop.is_set():
            self._sample()

    def close(self):
        self._stop.set()
        self.thread.join()
""",
    ),
    BugKind(
        code="HF712",
        name="executor-left-open",
        family=FAMILY,
        summary="An executor of one's own is never shut down.",
        why=(
            "Its threads wait for work until the interpreter ends, and their number grows with each "
            "object that brings an executor. Work that is still queued runs after the close, against "
            "things that are gone. Shut it down off the loop: `shutdown()` blocks until the last job "
            "is done."
        ),
        wrong="""\
import asyncio
from concurrent.futures import ThreadPoolExecutor


class Images:
    def __init__(self, resize):
        self._resize = resize
        self._pool = ThreadPoolExecutor(thread_name_prefix="images")

    async def resize(self, image):
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, self._resize, image)

    async def close(self):
        self._resize = None
""",
        right="""\
import asyncio
from concurrent.futures import ThreadPoolExecutor


class Images:
    def __init__(self, resize):
        self._resize = resize
        self._pool = ThreadPoolExecutor(thread_name_prefix="images")

    async def resize(self, image):
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, self._resize, image)

    async def close(self):
        await asyncio.to_thread(self._pool.shutdown)
""",
    ),
    BugKind(
        code="HF713",
        name="thread-outlives-cancel",
        family=FAMILY,
        summary="Work in a thread goes on after the task that waited for it was cancelled.",
        why=(
            "A thread cannot be cancelled. `to_thread` and `run_in_executor` give up waiting, and the "
            "function runs to its end: it writes results that nobody wants any more, after the close "
            "and next to its own replacement. `asyncio.run` then waits for it at the end. Give the "
            "work something to look at, and set it when you leave."
        ),
        wrong="""\
import asyncio


async def export(rows, write):
    def work():
        for row in rows:
            write(row)

    await asyncio.to_thread(work)
""",
        right="""\
import asyncio
import threading


async def export(rows, write):
    stop = threading.Event()

    def work():
        for row in rows:
            if stop.is_set():
                return
            write(row)

    try:
        await asyncio.to_thread(work)
    finally:
        stop.set()
""",
    ),
    BugKind(
        code="HF721",
        name="timer-left-over",
        family=FAMILY,
        summary="A timer set with `call_later` or `call_at` is still armed when its owner is closed.",
        why=(
            "It fires later, on an object that is closed: it expires a session that has been replaced "
            "under the same name, or fails in a callback, where the error goes to the loop's handler "
            "and to nobody else. Until then the timer keeps the object alive. Keep the handle, and "
            "cancel it on close."
        ),
        wrong="""\
import asyncio


class Session:
    def __init__(self, expire):
        asyncio.get_running_loop().call_later(60, expire)
        self.closed = False

    def close(self):
        self.closed = True
""",
        right="""\
import asyncio


class Session:
    def __init__(self, expire):
        self._timer = asyncio.get_running_loop().call_later(60, expire)
        self.closed = False

    def close(self):
        self._timer.cancel()
        self.closed = True
""",
    ),
    BugKind(
        code="HF731",
        name="generator-left-open",
        family=FAMILY,
        summary="An async generator is left before its end and not closed.",
        why=(
            "`break`, `return` or an exception leaves it suspended at its `yield`, with its cursor and "
            "its connection open. Its `finally` runs when it is collected, in another task and some "
            "steps later (CPython #88684, #118944), or never if the loop ends first; an error in it "
            "goes to the loop's handler. `contextlib.aclosing` closes it where you leave it. For one "
            "that holds a task group inside, use `holdfast.stream`."
        ),
        wrong="""\
async def find(rows, wanted):
    async for row in rows():
        if row == wanted:
            return row
    return None
""",
        right="""\
import contextlib


async def find(rows, wanted):
    async with contextlib.aclosing(rows()) as found:
        async for row in found:
            if row == wanted:
                return row
    return None
""",
        fine="The generator holds nothing: no resource, no lock, no clean-up after a `yield`.",
    ),
    BugKind(
        code="HF741",
        name="server-left-open",
        family=FAMILY,
        summary="A server still listens after its owner has been closed.",
        why=(
            "The loop holds a listening socket by itself, so dropping the server object closes "
            "nothing. Clients still connect and reach handlers whose owner is gone, and a restart "
            "fails with `Address already in use`."
        ),
        wrong="""\
import asyncio


class App:
    async def start(self, handle):
        self._server = await asyncio.start_server(handle, "127.0.0.1", 0)
        self.address = self._server.sockets[0].getsockname()

    async def stop(self):
        self._server = None
""",
        right="""\
import asyncio


class App:
    async def start(self, handle):
        self._server = await asyncio.start_server(handle, "127.0.0.1", 0)
        self.address = self._server.sockets[0].getsockname()

    async def stop(self):
        self._server.close()
        await self._server.wait_closed()
""",
    ),
    BugKind(
        code="HF742",
        name="transport-left-open",
        family=FAMILY,
        summary="A connection is left without closing its writer or transport.",
        why=(
            "The other side keeps its end open and waits for more. The descriptor is freed when the "
            "garbage collector comes by, with a `ResourceWarning` that nobody reads; after a few "
            "thousand of them `accept` and `open` fail with `Too many open files`. Close on every way "
            "out, and wait for the end of the close where the answer matters."
        ),
        wrong="""\
import asyncio


async def ask(host, port, question):
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(question)
    return await reader.readline()
""",
        right="""\
import asyncio
import contextlib


async def ask(host, port, question):
    reader, writer = await asyncio.open_connection(host, port)
    with contextlib.closing(writer):
        writer.write(question)
        answer = await reader.readline()
    await writer.wait_closed()
    return answer
""",
    ),
    BugKind(
        code="HF743",
        name="session-left-open",
        family=FAMILY,
        summary="A session or client of a library is opened and not closed.",
        why=(
            "Such an object owns more than its memory: a pool of connections, timers that keep them "
            "alive, sometimes a task. One session for each request leaves all of that behind each "
            "time (aiohttp says `Unclosed client session`, and only once it is collected). Open one, "
            "share it, and close it on every way out."
        ),
        wrong="""\
async def fetch(open_session, url):
    session = open_session()
    response = await session.get(url)
    await session.close()
    return response
""",
        right="""\
async def fetch(open_session, url):
    async with open_session() as session:
        return await session.get(url)
""",
    ),
    BugKind(
        code="HF751",
        name="descriptor-left-open",
        family=FAMILY,
        summary="A file descriptor or socket stays open on some way out.",
        why=(
            "A raw descriptor has no owner: nothing closes it, not even the garbage collector. Each "
            "error on the way leaves one more, until `Too many open files` hits some other part of "
            "the program that did nothing wrong. A lock or a deleted file that it refers to stays "
            "held as well."
        ),
        wrong="""\
import os


def checksum(path, digest):
    descriptor = os.open(path, os.O_RDONLY)
    result = digest(os.read(descriptor, 1 << 20))
    os.close(descriptor)
    return result
""",
        right="""\
def checksum(path, digest):
    with open(path, "rb") as file:
        return digest(file.read(1 << 20))
""",
    ),
    BugKind(
        code="HF761",
        name="memory-grows",
        family=FAMILY,
        summary="Something is kept for each piece of work and not removed on every way out.",
        why=(
            "The entry goes when the work succeeds, and stays when it times out, fails or is "
            "cancelled. Memory then grows with the number of errors, so slowly that it is restarted "
            "away for months. Under the same key a late answer may even meet the wrong question. "
            "Remove in `finally`, right where it was added."
        ),
        wrong="""\
import asyncio


class Calls:
    def __init__(self, send):
        self._send = send
        self.waiting = {}

    async def call(self, number, question):
        self.waiting[number] = asyncio.get_running_loop().create_future()
        self._send(number, question)
        async with asyncio.timeout(5):
            return await self.waiting[number]

    def on_answer(self, number, answer):
        self.waiting.pop(number).set_result(answer)
""",
        right="""\
import asyncio


class Calls:
    def __init__(self, send):
        self._send = send
        self.waiting = {}

    async def call(self, number, question):
        self.waiting[number] = asyncio.get_running_loop().create_future()
        try:
            self._send(number, question)
            async with asyncio.timeout(5):
                return await self.waiting[number]
        finally:
            del self.waiting[number]

    def on_answer(self, number, answer):
        if number in self.waiting:
            self.waiting[number].set_result(answer)
""",
    ),
)
