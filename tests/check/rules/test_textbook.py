"""Textbook bugs, each with its correct counterpart: found by default, and silence."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from handfast._check.model.syntax.module import Module
from handfast._check.rules import RULES
from handfast._check.rules.rule import Words
from handfast._check.source import parse


class Pair(NamedTuple):
    code: str
    wrong: str
    right: str


HEAD = "import asyncio\nimport contextlib\n\n\n"

TEXTBOOK = {
    "a coroutine is called and not awaited": Pair(
        "HF122",
        """
async def save(item):
    await asyncio.sleep(1)

async def handle(item):
    save(item)
    return True
""",
        """
async def save(item):
    await asyncio.sleep(1)

async def handle(item):
    await save(item)
    return True
""",
    ),
    "a coroutine is kept in a name and not awaited": Pair(
        "HF122",
        """
class Store:
    async def flush(self):
        await asyncio.sleep(1)

    async def close(self):
        pending = self.flush()
        self.closed = True
""",
        """
class Store:
    async def flush(self):
        await asyncio.sleep(1)

    async def close(self):
        pending = self.flush()
        self.closed = True
        await pending
""",
    ),
    "a return in finally swallows a cancel": Pair(
        "HF502",
        """
async def fetch(session, url):
    result = None
    try:
        result = await session.get(url)
    finally:
        return result
""",
        """
async def fetch(session, url):
    result = None
    try:
        result = await session.get(url)
    finally:
        session.count += 1
    return result
""",
    ),
    "a continue in finally swallows a cancel": Pair(
        "HF502",
        """
async def worker(queue, handle):
    while True:
        job = await queue.get()
        try:
            await handle(job)
        finally:
            queue.task_done()
            continue
""",
        """
async def worker(queue, handle):
    while True:
        job = await queue.get()
        try:
            await handle(job)
        finally:
            queue.task_done()
""",
    ),
    "a waiter takes its own cancel for that of the task": Pair(
        "HF503",
        """
class Client:
    def __init__(self):
        self._reader = asyncio.create_task(self._read())

    async def _read(self):
        await asyncio.sleep(1)

    async def result(self):
        try:
            return await self._reader
        except asyncio.CancelledError:
            return None
""",
        """
class Client:
    def __init__(self):
        self._reader = asyncio.create_task(self._read())

    async def _read(self):
        await asyncio.sleep(1)

    async def result(self):
        try:
            return await self._reader
        except asyncio.CancelledError:
            if asyncio.current_task().cancelling():
                raise
            return None
""",
    ),
    "a canceller that is itself cancelled goes on": Pair(
        "HF503",
        """
async def supervise(make, changed):
    task = asyncio.create_task(make())
    while True:
        await changed.wait()
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            pass
        task = asyncio.create_task(make())
""",
        """
async def supervise(make, changed):
    task = asyncio.create_task(make())
    while True:
        await changed.wait()
        task.cancel()
        await asyncio.wait([task])
        task = asyncio.create_task(make())
""",
    ),
    "a cancel goes past the clean-up": Pair(
        "HF513",
        """
async def connect(host):
    reader, writer = await asyncio.open_connection(host, 80)
    try:
        await login(reader, writer)
    except Exception:
        writer.close()
        raise
    return reader, writer
""",
        """
async def connect(host):
    reader, writer = await asyncio.open_connection(host, 80)
    try:
        await login(reader, writer)
    except BaseException:
        writer.close()
        raise
    return reader, writer
""",
    ),
    "a task attribute is overwritten": Pair(
        "HF205",
        """
class Heartbeat:
    def on_connect(self):
        self._task = asyncio.create_task(self._beat())

    async def _beat(self):
        while True:
            await asyncio.sleep(1)

    async def close(self):
        self._task.cancel()
        await asyncio.wait([self._task])
""",
        """
class Heartbeat:
    _task = None

    def on_connect(self):
        if self._task is not None:
            self._task.cancel()
        self._task = asyncio.create_task(self._beat())

    async def _beat(self):
        while True:
            await asyncio.sleep(1)

    async def close(self):
        self._task.cancel()
        await asyncio.wait([self._task])
""",
    ),
    "the siblings of a failed gather run on": Pair(
        "HF114",
        """
async def copy(source, target, connect):
    connection = await connect()
    try:
        await asyncio.gather(pull(connection, source), push(connection, target))
    finally:
        await connection.close()

async def pull(connection, source): ...
async def push(connection, target): ...
""",
        """
async def copy(source, target, connect):
    connection = await connect()
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(pull(connection, source))
            group.create_task(push(connection, target))
    finally:
        await connection.close()

async def pull(connection, source): ...
async def push(connection, target): ...
""",
    ),
    "a result is set on a future whose waiter is gone": Pair(
        "HF533",
        """
class Rpc:
    def __init__(self, send):
        self._send = send
        self._waiting = {}

    async def call(self, key, data):
        self._waiting[key] = asyncio.get_running_loop().create_future()
        await self._send(key, data)
        return await asyncio.wait_for(self._waiting[key], 10)

    def on_reply(self, key, data):
        future = self._waiting.pop(key, None)
        if future is not None:
            future.set_result(data)
""",
        """
class Rpc:
    def __init__(self, send):
        self._send = send
        self._waiting = {}

    async def call(self, key, data):
        self._waiting[key] = asyncio.get_running_loop().create_future()
        await self._send(key, data)
        return await asyncio.wait_for(self._waiting[key], 10)

    def on_reply(self, key, data):
        future = self._waiting.pop(key, None)
        if future is not None and not future.done():
            future.set_result(data)
""",
    ),
    "a child process runs on after a timeout": Pair(
        "HF701",
        """
async def convert(path):
    process = await asyncio.create_subprocess_exec("convert", path)
    return await asyncio.wait_for(process.wait(), 10)
""",
        """
async def convert(path):
    process = await asyncio.create_subprocess_exec("convert", path)
    try:
        return await asyncio.wait_for(process.wait(), 10)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
""",
    ),
    "a child process is not waited for": Pair(
        "HF701",
        """
async def open_browser(url):
    process = await asyncio.create_subprocess_exec("browser", url)
    print(process.pid)
""",
        """
async def open_browser(url):
    process = await asyncio.create_subprocess_exec("browser", url)
    try:
        await process.wait()
    except BaseException:
        process.kill()
        raise
""",
    ),
    "create_task is handed over and its task dropped": Pair(
        "HF101",
        """
def later(loop, work):
    loop.call_later(5, asyncio.create_task, work())
""",
        """
def later(loop, work, group):
    loop.call_later(5, group.create_task, work())
""",
    ),
    "a task is dropped in a branch of a loop": Pair(
        "HF101",
        """
async def listen(messages, handle):
    async for message in messages:
        if message.urgent:
            asyncio.create_task(handle(message))
""",
        """
async def listen(messages, handle):
    async with asyncio.TaskGroup() as group:
        async for message in messages:
            if message.urgent:
                group.create_task(handle(message))
""",
    ),
    "a task is dropped in a callback": Pair(
        "HF101",
        """
class Server(asyncio.Protocol):
    def data_received(self, data):
        asyncio.ensure_future(self.handle(data))

    async def handle(self, data):
        await asyncio.sleep(1)
""",
        """
class Server(asyncio.Protocol):
    def data_received(self, data):
        task = asyncio.ensure_future(self.handle(data))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def handle(self, data):
        await asyncio.sleep(1)
""",
    ),
    "a task set is never discarded from": Pair(
        "HF131",
        """
class Bus:
    def __init__(self):
        self._tasks = set()

    def publish(self, event):
        self._tasks.add(asyncio.create_task(self._deliver(event)))

    async def _deliver(self, event):
        await asyncio.sleep(1)
""",
        """
class Bus:
    def __init__(self):
        self._tasks = set()

    def publish(self, event):
        task = asyncio.create_task(self._deliver(event))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _deliver(self, event):
        await asyncio.sleep(1)
""",
    ),
    "two callers both open the connection": Pair(
        "HF211",
        """
class Database:
    def __init__(self, driver):
        self._driver = driver
        self._connection = None

    async def query(self, text):
        if self._connection is None:
            self._connection = await self._driver.connect()
        return await self._connection.run(text)

    async def close(self):
        if self._connection is not None:
            await self._connection.close()
""",
        """
class Database:
    def __init__(self, driver):
        self._driver = driver
        self._connection = None
        self._lock = asyncio.Lock()

    async def query(self, text):
        async with self._lock:
            if self._connection is None:
                self._connection = await self._driver.connect()
        return await self._connection.run(text)

    async def close(self):
        if self._connection is not None:
            await self._connection.close()
""",
    ),
    "except BaseException goes on": Pair(
        "HF501",
        """
async def worker(queue, handle):
    while True:
        try:
            await handle(await queue.get())
        except BaseException:
            print("failed")
""",
        """
async def worker(queue, handle):
    while True:
        try:
            await handle(await queue.get())
        except Exception:
            print("failed")
""",
    ),
    "a task closes its own object and waits for itself": Pair(
        "HF304",
        """
class Connection:
    def __init__(self, stream):
        self._stream = stream
        self._task = asyncio.create_task(self._read())

    async def _read(self):
        async for line in self._stream:
            if not line:
                await self.close()

    async def close(self):
        self._task.cancel()
        await asyncio.wait([self._task])
""",
        """
class Connection:
    def __init__(self, stream):
        self._stream = stream
        self._task = asyncio.create_task(self._read())

    async def _read(self):
        async for line in self._stream:
            if not line:
                await self.close()

    async def close(self):
        if self._task is not asyncio.current_task():
            self._task.cancel()
            await asyncio.wait([self._task])
""",
    ),
    "a close method does not end the task": Pair(
        "HF111",
        """
class Poller:
    def __init__(self, poll):
        self._poll = poll
        self._task = asyncio.create_task(self._run())

    async def _run(self):
        while True:
            await self._poll()

    async def close(self):
        print("closed")
""",
        """
class Poller:
    def __init__(self, poll):
        self._poll = poll
        self._task = asyncio.create_task(self._run())

    async def _run(self):
        while True:
            await self._poll()

    async def close(self):
        self._task.cancel()
        await asyncio.wait([self._task])
""",
    ),
}

pairs = pytest.mark.parametrize("pair", TEXTBOOK.values(), ids=TEXTBOOK)


def default_codes(source: str) -> list[str]:
    """The codes that are reported by default; a rule runs only if its words are there."""
    module = Module(parse("x.py", (HEAD + source).encode()), "x")
    words = Words(HEAD + source)
    return [
        finding.code
        for rule in RULES
        if not rule.pedantic and rule.may_find_in(words)
        for finding in rule.check(module)
        if not finding.pedantic
    ]


@pairs
def test_the_bug_is_found_by_default(pair: Pair) -> None:
    assert default_codes(pair.wrong) == [pair.code]


@pairs
def test_the_correct_counterpart_has_no_finding(pair: Pair) -> None:
    assert default_codes(pair.right) == []
