"""HF5xx, cancellation and clean-up: a cancellation arrives, and what was begun is put away.

50x is about cancellations that are lost, 51x about clean-up, 52x about waiting for a task, 53x
about what is in one's hands when the cancellation comes, 54x about whose task it is.
"""

from __future__ import annotations

from holdfast.catalogue.bugkind import BugKind

__all__ = ["FAMILY", "KINDS"]

FAMILY = "cancellation and clean-up"

KINDS: tuple[BugKind, ...] = (
    BugKind(
        code="HF501",
        name="cancel-swallowed",
        family=FAMILY,
        summary="A task catches its own cancellation and goes on.",
        why=(
            "`except BaseException`, a bare `except` or `suppress(CancelledError)` takes the "
            "`CancelledError` for an error of the work. Whoever cancelled the task waits for an end "
            "that does not come: close hangs, a time-out does not fire, `asyncio.run` does not return. "
            "It is right to catch it only from a task that one has cancelled oneself and now joins. "
            "A task that really means to go on has to call `uncancel()`, or the next `timeout` and "
            "`TaskGroup` count wrongly (CPython #95289)."
        ),
        wrong="""\
async def worker(queue, handle, report):
    while True:
        job = await queue.get()
        try:
            await handle(job)
        except BaseException as error:
            report(job, error)
""",
        right="""\
async def worker(queue, handle, report):
    while True:
        job = await queue.get()
        try:
            await handle(job)
        except Exception as error:
            report(job, error)
""",
        fine=(
            "The function is the outermost of a program that is about to end, and nobody waits to"
            " see it cancelled."
        ),
    ),
    BugKind(
        code="HF511",
        name="cleanup-cut-short",
        family=FAMILY,
        summary="Clean-up awaits, and a second cancellation ends it half-way.",
        why=(
            "A task can be cancelled again while it is in its `finally` or `__aexit__`: by a time-out "
            "around it, by a group, by somebody who cancels until it works, by Ctrl-C. The `await` "
            "there raises, and the rest of the clean-up is skipped: the connection stays open, the "
            "lock stays taken. `asyncio.shield` does not do it: the second cancellation abandons the "
            "clean-up, and the end of the loop cuts it short."
        ),
        wrong="""\
async def use(connection, work):
    try:
        await work(connection)
    finally:
        await connection.rollback()
        await connection.close()
""",
        right="""\
import holdfast


async def use(connection, work):
    try:
        await work(connection)
    finally:
        await holdfast.shielded(put_away(connection), deadline=10)


async def put_away(connection):
    await connection.rollback()
    await connection.close()
""",
        fine=(
            "The clean-up is complete before its first `await`, or what the second cancel leaves "
            "undone is undone by somebody else."
        ),
    ),
    BugKind(
        code="HF512",
        name="shield-unheld",
        family=FAMILY,
        summary="`shield` is given a coroutine, and nobody holds the task inside.",
        why=(
            "When the waiter is cancelled, `shield` lets go of the inner task. It runs on without an "
            "owner: it may be collected half-way like any dropped task, the end of the loop cuts it, "
            "and its error is lost or logged as nobody's (CPython #86802). Hold the task, and wait for "
            "it with `asyncio.wait`, which does not pass the cancellation on."
        ),
        wrong="""\
import asyncio


class Ledger:
    def __init__(self, write):
        self._write = write

    async def book(self, entry):
        await asyncio.shield(self._write(entry))

    async def close(self):
        pass
""",
        right="""\
import asyncio


class Ledger:
    def __init__(self, write):
        self._write = write
        self._writes = set()

    async def book(self, entry):
        task = asyncio.create_task(self._write(entry))
        self._writes.add(task)
        task.add_done_callback(self._writes.discard)
        await asyncio.wait({task})
        task.result()

    async def close(self):
        while self._writes:
            await asyncio.wait(self._writes)
""",
        fine="The work may be lost, and whoever reads the code knows it.",
    ),
    BugKind(
        code="HF521",
        name="join-under-timeout",
        family=FAMILY,
        summary="`wait_for` or `timeout` around the bare wait for a task is meant to bound it.",
        why=(
            "At the time-out both cancel the task and then go on waiting for its end. A task that "
            "swallows the cancellation, or whose clean-up hangs, is waited for without any bound, and "
            "a close that promised five seconds never returns. On 3.11 `wait_for` can also swallow a "
            "cancellation of its own (CPython #86296). `asyncio.wait(timeout=...)` returns on time and "
            "says who is left."
        ),
        wrong="""\
import asyncio


class Service:
    def __init__(self, serve):
        self._stop = asyncio.Event()
        self._task = asyncio.create_task(serve(self._stop))

    async def close(self):
        self._stop.set()
        await asyncio.wait_for(self._task, timeout=5)
""",
        right="""\
import asyncio


class Service:
    def __init__(self, serve):
        self._stop = asyncio.Event()
        self._task = asyncio.create_task(serve(self._stop))

    async def close(self):
        self._stop.set()
        done, pending = await asyncio.wait({self._task}, timeout=5)
        if pending:
            self._task.cancel()
            done, pending = await asyncio.wait({self._task}, timeout=5)
        if pending:
            raise TimeoutError(f"still running: {self._task!r}")
        if not self._task.cancelled():
            self._task.result()
""",
        fine="The task is made for this one wait, and is to be cancelled with it.",
    ),
    BugKind(
        code="HF522",
        name="join-cancels-task",
        family=FAMILY,
        summary="A shared task is awaited directly, so the cancellation of one waiter cancels it for "
        "all.",
        why=(
            "`await task` passes the waiter's cancellation into the task. One client that hangs up "
            "cancels the fetch that ten others wait for, and they all get a `CancelledError` that "
            "nobody sent them. In a close method the same `await` cuts the clean-up of the task that "
            "is being closed. `asyncio.wait({task})` waits without touching it."
        ),
        wrong="""\
class Rates:
    def __init__(self, group, fetch):
        self._group = group
        self._fetch = fetch
        self._task = None

    async def get(self):
        if self._task is None:
            self._task = self._group.create_task(self._fetch())
        return await self._task
""",
        right="""\
import asyncio


class Rates:
    def __init__(self, group, fetch):
        self._group = group
        self._fetch = fetch
        self._task = None

    async def get(self):
        if self._task is None:
            self._task = self._group.create_task(self._fetch())
        await asyncio.wait({self._task})
        return self._task.result()
""",
        fine="The task is to be cancelled together with whoever waits for it.",
    ),
    BugKind(
        code="HF531",
        name="acquired-before-try",
        family=FAMILY,
        summary="Something is acquired, something else is awaited, and only then the `try` begins.",
        why=(
            "A cancellation or an error at the `await` in between leaves what was acquired in "
            "nobody's hands: a connection that never returns to its pool, a semaphore that is short "
            "by one, a child that was started and is never killed. After as many of them as the pool "
            "has places everything stands still."
        ),
        wrong="""\
async def query(pool, statement):
    connection = await pool.acquire()
    await connection.ping()
    try:
        return await connection.run(statement)
    finally:
        pool.release(connection)
""",
        right="""\
async def query(pool, statement):
    connection = await pool.acquire()
    try:
        await connection.ping()
        return await connection.run(statement)
    finally:
        pool.release(connection)
""",
        fine="Nothing can fail and nobody can cancel between the two lines.",
    ),
    BugKind(
        code="HF532",
        name="handover-lost",
        family=FAMILY,
        summary="A value is handed to a waiter that is cancelled before it resumes, and the value is "
        "lost.",
        why=(
            "Between `set_result` and the waiter's next step a cancellation still wins: the waiter "
            "gets `CancelledError`, and what was put into its future is dropped with it. If that was "
            "a connection, a permit or a job, it is gone for good. Hand-written pools, semaphores and "
            "queues are full of it, and asyncio's own semaphore has had it (CPython #90155)."
        ),
        wrong="""\
import asyncio
import collections


class Pool:
    def __init__(self, items):
        self._free = collections.deque(items)
        self._waiters = collections.deque()

    async def acquire(self):
        if self._free:
            return self._free.popleft()
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        return await waiter

    def release(self, item):
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                return waiter.set_result(item)
        self._free.append(item)
""",
        right="""\
import asyncio
import collections


class Pool:
    def __init__(self, items):
        self._free = collections.deque(items)
        self._waiters = collections.deque()

    async def acquire(self):
        if self._free:
            return self._free.popleft()
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        try:
            return await waiter
        except asyncio.CancelledError:
            if not waiter.cancelled():
                self.release(waiter.result())
            raise

    def release(self, item):
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                return waiter.set_result(item)
        self._free.append(item)
""",
    ),
    BugKind(
        code="HF541",
        name="yield-inside-scope",
        family=FAMILY,
        summary="An async generator yields inside a task group, a cancel scope or a time-out.",
        why=(
            "While the generator rests at its `yield`, the group around it belongs to a task that is "
            "doing something else. A child that fails, or the time-out, cancels that task in the "
            "middle of foreign code, with a `CancelledError` that nobody sent. A consumer that breaks "
            "out leaves the group to be closed in another task (PEP 789; CPython #88684). Give the "
            "group a context manager of its own; a generator that you cannot change is hosted by "
            "`holdfast.stream`."
        ),
        wrong="""\
import asyncio


async def merged(sources):
    items = asyncio.Queue()
    async with asyncio.TaskGroup() as group:
        for source in sources:
            group.create_task(source(items))
        while True:
            yield await items.get()


async def consume(sources, handle):
    async for item in merged(sources):
        await handle(item)
""",
        right="""\
import asyncio
import contextlib


@contextlib.asynccontextmanager
async def merged(sources):
    items = asyncio.Queue()
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(source(items)) for source in sources]
        yield items
        for task in tasks:
            task.cancel()


async def consume(sources, handle):
    async with merged(sources) as items:
        while True:
            await handle(await items.get())
""",
        fine=(
            "The generator is a context manager (`@asynccontextmanager`) or a fixture, which is "
            "left in the task that entered it."
        ),
    ),
    BugKind(
        code="HF542",
        name="left-in-another-task",
        family=FAMILY,
        summary="A resource is entered in one task and left in another.",
        why=(
            "Cancel scopes, task groups and time-outs belong to the task that entered them. Left in "
            "another one they raise `Attempted to exit cancel scope in a different task than it was "
            "entered in`, cancel an innocent task, or leave what is inside alive. A pair of `open()` "
            "and `close()` methods around `__aenter__` and `__aexit__` comes to this as soon as two "
            "tasks share the object. Let one owner task enter and leave it."
        ),
        wrong="""\
class Session:
    def __init__(self, connect):
        self._manager = connect()
        self.connection = None

    async def open(self):
        self.connection = await self._manager.__aenter__()

    async def close(self):
        self.connection = None
        await self._manager.__aexit__(None, None, None)
""",
        right="""\
import holdfast


class Session:
    def __init__(self, connect):
        self._manager = connect()
        self._scope = holdfast.Scope("session", on_failure="report")
        self.connection = None

    async def open(self):
        self.connection = await self._scope.hold(self._manager)

    async def close(self):
        self.connection = None
        report = await self._scope.close()
        report.raise_if_unclean()
""",
        fine="Both methods are always called from one and the same task.",
    ),
)
