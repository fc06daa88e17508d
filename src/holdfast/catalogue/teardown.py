"""HF3xx, teardown order: what is used ends after who uses it, and close returns when it is over.

30x is about the order inside one close method, 31x about attributes that an `await` changes
under one's hands, 32x about output, 33x about closers that overlap.
"""

from __future__ import annotations

from holdfast.catalogue.bugkind import BugKind

__all__ = ["FAMILY", "KINDS"]

FAMILY = "teardown order"

KINDS: tuple[BugKind, ...] = (
    BugKind(
        code="HF301",
        name="cleared-before-join",
        family=FAMILY,
        summary="A close method clears an attribute that a task of the same object still reads.",
        why=(
            "Between the clearing and the end of the task there is an `await`, so the task runs once "
            "more and finds `None` where its connection was: `AttributeError: 'NoneType' object has "
            "no attribute ...`, at shutdown, in a task whose error nobody looks at. Without an "
            "`await` in between only the task's `except` and `finally` see it, which is no better. "
            "Cancel and join the task first, then clear."
        ),
        wrong="""\
import asyncio


class Client:
    def __init__(self, connection, handle):
        self._connection = connection
        self._handle = handle
        self._reader = asyncio.create_task(self._read())

    async def _read(self):
        while True:
            self._handle(await self._connection.receive())

    async def close(self):
        connection, self._connection = self._connection, None
        await connection.say_goodbye()
        self._reader.cancel()
        await asyncio.wait({self._reader})
        if not self._reader.cancelled():
            self._reader.result()
""",
        right="""\
import asyncio


class Client:
    def __init__(self, connection, handle):
        self._connection = connection
        self._handle = handle
        self._reader = asyncio.create_task(self._read())

    async def _read(self):
        while True:
            self._handle(await self._connection.receive())

    async def close(self):
        self._reader.cancel()
        await asyncio.wait({self._reader})
        connection, self._connection = self._connection, None
        await connection.say_goodbye()
        if not self._reader.cancelled():
            self._reader.result()
""",
        fine="The task is known to have ended before this method is called.",
    ),
    BugKind(
        code="HF302",
        name="closed-before-users",
        family=FAMILY,
        summary="A session, pool or loop is closed before the tasks that use it have ended.",
        why=(
            "While the close waits, the tasks go on and use what is being closed: `Session is "
            "closed`, `cannot schedule new futures after shutdown`, `Event loop is closed`. These "
            "errors hide the real ones and half-written work stays behind. The order is: refuse new "
            "work, cancel the users, join them, then close what they used."
        ),
        wrong="""\
import asyncio


class Crawler:
    def __init__(self, session, urls):
        self._session = session
        self._tasks = [asyncio.create_task(self._crawl(url)) for url in urls]

    async def _crawl(self, url):
        while True:
            await self._session.get(url)

    async def close(self):
        await self._session.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.wait(self._tasks)
        for task in self._tasks:
            if not task.cancelled():
                task.result()
""",
        right="""\
import asyncio


class Crawler:
    def __init__(self, session, urls):
        self._session = session
        self._tasks = [asyncio.create_task(self._crawl(url)) for url in urls]

    async def _crawl(self, url):
        while True:
            await self._session.get(url)

    async def close(self):
        for task in self._tasks:
            task.cancel()
        await asyncio.wait(self._tasks)
        await self._session.close()
        for task in self._tasks:
            if not task.cancelled():
                task.result()
""",
        fine=(
            "What is closed may be used after its close, and says so with an error that the task "
            "expects."
        ),
    ),
    BugKind(
        code="HF303",
        name="close-without-join",
        family=FAMILY,
        summary="A close method cancels its task and returns without waiting for its end.",
        why=(
            "`cancel()` only asks. When `close()` returns the task is still there: its clean-up runs "
            "later, against things that the caller has closed meanwhile, or not at all if the loop "
            "ends first. Setting the attribute to `None` on top drops the last handle on it. For "
            "tasks of a function that is no close method, the code is HF103."
        ),
        wrong="""\
import asyncio


class Heartbeat:
    def __init__(self, beat):
        self._beat = beat
        self._task = asyncio.create_task(self._run())

    async def _run(self):
        while True:
            await self._beat()

    async def close(self):
        self._task.cancel()
        self._task = None
""",
        right="""\
import asyncio


class Heartbeat:
    def __init__(self, beat):
        self._beat = beat
        self._task = asyncio.create_task(self._run())

    async def _run(self):
        while True:
            await self._beat()

    async def close(self):
        self._task.cancel()
        await asyncio.wait({self._task})
        if not self._task.cancelled():
            self._task.result()
""",
        fine=(
            "The close method is followed by a join elsewhere, or it is sync and the loop is run "
            "to an end afterwards."
        ),
    ),
    BugKind(
        code="HF311",
        name="guard-made-stale",
        family=FAMILY,
        summary="`self.x` is checked, then something is awaited, then `self.x` is used.",
        why=(
            "At the `await` everybody else runs, `close()` included, and what was checked is no "
            "longer true: `'NoneType' object has no attribute ...` instead of the clear error that "
            "the check was written for. Look after the last `await`, and use a local name from there "
            "on."
        ),
        wrong="""\
import asyncio


class Channel:
    def __init__(self, writer):
        self._writer = writer
        self.turn = asyncio.Lock()

    async def send(self, data):
        if self._writer is None:
            raise ConnectionError("the channel is closed")
        async with self.turn:
            self._writer.write(data)

    def close(self):
        self._writer = None
""",
        right="""\
import asyncio


class Channel:
    def __init__(self, writer):
        self._writer = writer
        self.turn = asyncio.Lock()

    async def send(self, data):
        async with self.turn:
            writer = self._writer
            if writer is None:
                raise ConnectionError("the channel is closed")
            writer.write(data)

    def close(self):
        self._writer = None
""",
        fine=(
            "No other task can change the attribute while this one waits, which the code "
            "elsewhere sees to."
        ),
    ),
    BugKind(
        code="HF312",
        name="restart-refills-teardown",
        family=FAMILY,
        summary="A teardown reads a shared attribute again after an `await`, and a restart may have "
        "refilled it.",
        why=(
            "While the teardown waits for the old child to end, a restart stores a new one in the "
            "same attribute. The teardown then goes on with what it finds there: it kills the new "
            "child, or drops the only handle on it, and a live process is left that nobody tracks. "
            "Take the handle out first and work on a local name."
        ),
        wrong="""\
class Service:
    def __init__(self, launch):
        self._launch = launch
        self.child = None

    async def start(self):
        self.child = await self._launch()

    async def stop(self):
        if self.child is not None:
            self.child.terminate()
            await self.child.wait()
            self.child = None
""",
        right="""\
class Service:
    def __init__(self, launch):
        self._launch = launch
        self.child = None

    async def start(self):
        self.child = await self._launch()

    async def stop(self):
        child, self.child = self.child, None
        if child is not None:
            child.terminate()
            await child.wait()
""",
        fine="A restart cannot begin before the teardown has returned.",
    ),
    BugKind(
        code="HF321",
        name="drain-cancelled-first",
        family=FAMILY,
        summary="The task that drains a child's output is cancelled before the child has ended.",
        why=(
            "What the child writes on its way out, usually the reason why it goes, is lost. If it "
            "writes more than the pipe holds (64 KiB on Linux) it blocks for ever on a pipe that "
            "nobody reads, never gets to its own clean-up and has to be killed. The order is: signal, "
            "drain to the end of the stream within a bound, then cancel and join the drain."
        ),
        wrong="""\
import asyncio


class Worker:
    def __init__(self, child):
        self._child = child
        self.log = []
        self._drain = asyncio.create_task(self._read())

    async def _read(self):
        async for line in self._child.stderr:
            self.log.append(line)

    async def close(self):
        self._drain.cancel()
        await asyncio.wait({self._drain})
        self._child.terminate()
        await self._child.wait()
        if not self._drain.cancelled():
            self._drain.result()
""",
        right="""\
import asyncio


class Worker:
    def __init__(self, child):
        self._child = child
        self.log = []
        self._drain = asyncio.create_task(self._read())

    async def _read(self):
        async for line in self._child.stderr:
            self.log.append(line)

    async def close(self):
        self._child.terminate()
        await asyncio.wait({self._drain}, timeout=5)
        self._drain.cancel()
        await asyncio.wait({self._drain})
        await self._child.wait()
        if not self._drain.cancelled():
            self._drain.result()
""",
        fine="The last output of the child is of no interest to anybody.",
    ),
    BugKind(
        code="HF331",
        name="closed-twice",
        family=FAMILY,
        summary="Two closers that overlap both run the clean-up.",
        why=(
            "The check and the clearing stand on two sides of an `await`, so both callers pass the "
            "check. A lock is released twice, a connection goes back to its pool twice and is then "
            "given to two users. The second closer has to wait for the first one: if it returns at "
            "once, it returns before the resource is gone."
        ),
        wrong="""\
class Lease:
    def __init__(self, release):
        self._release = release
        self.closed = False

    async def close(self):
        if not self.closed:
            await self._release()
            self.closed = True
""",
        right="""\
import asyncio


class Lease:
    def __init__(self, release):
        self._release = release
        self._closing = asyncio.Lock()
        self.closed = False

    async def close(self):
        async with self._closing:
            if not self.closed:
                await self._release()
                self.closed = True
""",
        fine="Closing twice is harmless for what is closed, and says so in its own documentation.",
    ),
)
