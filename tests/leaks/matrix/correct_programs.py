"""Programs that are right, or whose things are on their way out: nothing may be said of them.

As with the leaky ones, a program is an `async def body()`; what it takes are fixtures. A `whole` one
brings tests of its own, for the one runner that it names.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

from tests.leaks.matrix.leaking_programs import HEAD

__all__ = ["CORE", "INNOCENTS", "Innocent"]


@dataclass(frozen=True)
class Innocent:
    """A body, the fixtures that it asks for, and who can run it."""

    name: str
    source: str
    arguments: str = ""
    async_fixtures: bool = False
    whole: str = ""
    """The runner whose tests the source brings."""
    head: str = HEAD
    since: tuple[int, int] = (3, 11)


_TASKS = {
    "nothing": """
async def body():
    pass
""",
    "awaits": """
async def body():
    await asyncio.sleep(0.001)
""",
    "gather": """
async def body():
    await asyncio.gather(*(asyncio.sleep(0.001) for _ in range(10)))
""",
    "gather_with_errors": """
async def boom():
    raise ValueError

async def body():
    results = await asyncio.gather(boom(), boom(), return_exceptions=True)
    assert len(results) == 2
""",
    "gather_that_raises": """
async def boom():
    raise ValueError

async def body():
    with pytest.raises(ValueError):
        await asyncio.gather(boom(), asyncio.sleep(0.01))
    await asyncio.sleep(0.02)
""",
    "task_group": """
async def body():
    async with asyncio.TaskGroup() as group:
        for _ in range(5):
            group.create_task(asyncio.sleep(0.001))
""",
    "task_group_that_raises": """
async def boom():
    raise ValueError

async def body():
    with pytest.raises(ExceptionGroup):
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.sleep(60))
            group.create_task(boom())
""",
    "timeout": """
async def body():
    async with asyncio.timeout(60):
        await asyncio.sleep(0)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.001):
            await asyncio.sleep(60)
""",
    "wait_for": """
async def body():
    await asyncio.wait_for(asyncio.sleep(0), 60)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(asyncio.sleep(60), 0.001)
""",
    "first_completed": """
async def body():
    tasks = [asyncio.create_task(asyncio.sleep(delay)) for delay in (0.001, 60, 60)]
    done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in pending:
        task.cancel()
    await asyncio.wait(pending)
""",
    "as_completed": """
async def body():
    for each in asyncio.as_completed([asyncio.sleep(0.001), asyncio.sleep(0.002)], timeout=60):
        await each
""",
    "shield_awaited": """
async def body():
    await asyncio.shield(asyncio.sleep(0.001))
""",
    "cancelled_and_awaited": """
async def body():
    task = asyncio.create_task(asyncio.sleep(60))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
""",
    "cancelled_and_held": """
async def body():
    HELD.append(asyncio.create_task(asyncio.sleep(60)))
    await asyncio.sleep(0)
    HELD[-1].cancel()
    await asyncio.wait(HELD)
""",
    "cancelled_on_its_way": """
async def body():
    task = asyncio.create_task(asyncio.sleep(60))
    await asyncio.sleep(0)
    task.cancel()
""",
    "ends_within_the_grace": """
async def body():
    asyncio.create_task(asyncio.sleep(0.01))
""",
    "ends_after_some_turns": """
async def turns():
    for _ in range(5):
        await asyncio.sleep(0)

async def body():
    asyncio.create_task(turns())
""",
    "result_not_read": """
async def answer():
    return 42

async def body():
    HELD.append(asyncio.create_task(answer()))
    await asyncio.sleep(0.001)
""",
    "error_read_by_await": """
async def boom():
    raise ValueError

async def body():
    task = asyncio.create_task(boom())
    HELD.append(task)
    with pytest.raises(ValueError):
        await task
""",
    "error_read_by_asking": """
async def boom():
    raise ValueError

async def body():
    task = asyncio.create_task(boom())
    HELD.append(task)
    await asyncio.wait([task])
    assert task.exception()
""",
    "error_read_by_a_callback": """
async def boom():
    raise ValueError

async def body():
    task = asyncio.create_task(boom())
    task.add_done_callback(lambda done: HELD.append(done.exception()))
    await asyncio.sleep(0.001)
""",
    "done_tasks_kept_but_not_requested": """
async def body():
    for _ in range(20):
        HELD.append(asyncio.create_task(asyncio.sleep(0)))
    await asyncio.wait(HELD)
""",
    "descriptor_open_but_not_requested": """
async def body():
    HELD.append(open(__file__))
    HELD.append(socket.socket())
""",
    "eager_tasks": """
async def answer():
    return 42

async def body():
    loop = asyncio.get_running_loop()
    before = loop.get_task_factory()
    loop.set_task_factory(asyncio.eager_task_factory)
    try:
        assert await asyncio.create_task(answer()) == 42
        await asyncio.create_task(asyncio.sleep(0.001))
    finally:
        loop.set_task_factory(before)
""",
    "context_variables": """
import contextvars

NAME = contextvars.ContextVar("NAME", default="")

async def name():
    await asyncio.sleep(0)
    return NAME.get()

async def body():
    NAME.set("outer")
    context = contextvars.copy_context()
    assert await asyncio.create_task(name(), context=context) == "outer"
    assert await asyncio.create_task(name(), context=contextvars.Context()) == ""
""",
    "queue_workers": """
async def work(queue):
    while True:
        await queue.get()
        queue.task_done()

async def body():
    queue = asyncio.Queue()
    workers = [asyncio.create_task(work(queue)) for _ in range(3)]
    for job in range(10):
        queue.put_nowait(job)
    await queue.join()
    for worker in workers:
        worker.cancel()
    await asyncio.gather(*workers, return_exceptions=True)
""",
    "locks": """
async def body():
    lock, event, condition = asyncio.Lock(), asyncio.Event(), asyncio.Condition()
    semaphore, barrier = asyncio.Semaphore(1), asyncio.Barrier(2)
    async def other():
        async with lock, semaphore:
            event.set()
        async with condition:
            condition.notify_all()
        await barrier.wait()
    task = asyncio.create_task(other())
    await event.wait()
    await barrier.wait()
    await task
""",
    "service_closed": """
class Service:
    async def __aenter__(self):
        self.task = asyncio.create_task(asyncio.Event().wait())
        return self

    async def __aexit__(self, *_):
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)

async def body():
    from contextlib import AsyncExitStack
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(Service())
        await stack.enter_async_context(Service())
""",
    "callback_soon": """
async def body():
    asyncio.get_running_loop().call_soon(int)
""",
    "futures": """
async def body():
    future = asyncio.get_running_loop().create_future()
    HELD.append(future)
    HELD.append(asyncio.get_running_loop().create_future())
    future.set_result(1)
    await future
""",
}

_TIMERS_AND_GENERATORS = {
    "timer_cancelled": """
async def body():
    handle = asyncio.get_running_loop().call_later(3600, int)
    HELD.append(handle)
    handle.cancel()
""",
    "timer_fired": """
async def body():
    HELD.append(asyncio.get_running_loop().call_later(0.001, int))
    await asyncio.sleep(0.01)
""",
    "timer_within_the_grace": """
async def body():
    asyncio.get_running_loop().call_later(0.01, int)
""",
    "generator_exhausted": """
async def ticks():
    for tick in range(3):
        yield tick

async def body():
    generator = ticks()
    HELD.append(generator)
    assert [tick async for tick in generator] == [0, 1, 2]
""",
    "generator_never_begun": """
async def ticks():
    yield 1

async def body():
    HELD.append(ticks())
""",
    "generator_under_aclosing": """
from contextlib import aclosing

async def ticks():
    try:
        while True:
            yield 1
    finally:
        await asyncio.sleep(0)

async def body():
    async with aclosing(ticks()) as generator:
        HELD.append(generator)
        async for _ in generator:
            break
""",
    "generator_finalizer_on_its_way": """
async def ticks():
    try:
        while True:
            yield 1
    finally:
        await asyncio.sleep(0.001)

async def body():
    async for _ in ticks():
        break
""",
    "generator_collected": """
async def ticks():
    while True:
        yield 1

async def body():
    generator = ticks()
    await anext(generator)
    del generator
    gc.collect()
    await asyncio.sleep(0)
""",
    "generator_as_context_manager": """
from contextlib import asynccontextmanager

@asynccontextmanager
async def opened():
    task = asyncio.create_task(asyncio.sleep(60))
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait([task])

async def body():
    async with opened(), opened():
        await asyncio.sleep(0)
""",
}

_THREADS = {
    "to_thread": """
async def body():
    assert await asyncio.to_thread(int, "7") == 7
""",
    "default_executor": """
async def body():
    loop = asyncio.get_running_loop()
    await asyncio.gather(*(loop.run_in_executor(None, int) for _ in range(4)))
""",
    "default_executor_of_ones_own": """
async def body():
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(1))
    await asyncio.to_thread(int)
""",
    "names_looked_up": """
async def body():
    await asyncio.get_running_loop().getaddrinfo("127.0.0.1", 80)
""",
    "thread_joined": """
async def body():
    thread = threading.Thread(target=int)
    thread.start()
    thread.join()
    HELD.append(thread)
""",
    "thread_that_ends_soon": """
import time

async def body():
    threading.Thread(target=time.sleep, args=(0.01,)).start()
""",
    "thread_timer_cancelled": """
async def body():
    timer = threading.Timer(60, int)
    timer.start()
    timer.cancel()
""",
    "thread_never_started": """
async def body():
    HELD.append(threading.Thread(target=int))
""",
    "executor_as_context_manager": """
async def body():
    with ThreadPoolExecutor(2) as pool:
        HELD.append(pool)
        await asyncio.get_running_loop().run_in_executor(pool, int)
        assert list(pool.map(int, ["1", "2"])) == [1, 2]
""",
    "executor_shut_down_without_waiting": """
async def body():
    pool = ThreadPoolExecutor(2)
    await asyncio.get_running_loop().run_in_executor(pool, int)
    pool.shutdown(wait=False)
    HELD.append(pool)
""",
    # As in asgiref: made at import, for the whole process; its thread begins with the first test.
    "executor_made_at_import": """
POOL = ThreadPoolExecutor(1)

async def body():
    await asyncio.get_running_loop().run_in_executor(POOL, int)
""",
    "executor_never_used": """
async def body():
    with ThreadPoolExecutor(2):
        pass
""",
    "executor_collected": """
async def body():
    pool = ThreadPoolExecutor(1)
    pool.submit(int).result()
    del pool
    gc.collect()
""",
    "loop_in_a_thread_ended": """
def other():
    loop = asyncio.new_event_loop()
    try:
        loop.run_until_complete(asyncio.sleep(0.001))
    finally:
        loop.close()

async def body():
    await asyncio.to_thread(other)
    await asyncio.to_thread(asyncio.run, asyncio.sleep(0.001))
""",
    "loop_in_a_thread_stopped": """
async def body():
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    asyncio.run_coroutine_threadsafe(asyncio.sleep(0), loop).result(10)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()
""",
    "queue_listener_stopped": """
import logging
import logging.handlers
import queue

async def body():
    records = queue.SimpleQueue()
    listener = logging.handlers.QueueListener(records, logging.NullHandler())
    listener.start()
    records.put(logging.makeLogRecord({"msg": "hello"}))
    listener.stop()
    HELD.append(listener)
""",
}

_CHILDREN = {
    "child_communicates": """
async def body():
    pipe = subprocess.PIPE
    process = await asyncio.create_subprocess_exec("cat", stdin=pipe, stdout=pipe)
    assert await process.communicate(b"hello") == (b"hello", None)
    HELD.append(process)
""",
    "child_waited_for": """
async def body():
    process = await asyncio.create_subprocess_shell("exit 3")
    assert await process.wait() == 3
""",
    "child_killed_and_waited_for": """
async def body():
    process = await asyncio.create_subprocess_exec("sleep", "30", **QUIET)
    process.kill()
    await process.wait()
""",
    "child_of_popen_waited_for": """
async def body():
    subprocess.run(["true"], check=True)
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.communicate(b"")
    HELD.append(process)
""",
    "child_of_multiprocessing_joined": """
import multiprocessing

async def body():
    process = multiprocessing.get_context("fork").Process(target=int)
    process.start()
    process.join()
    process.close()
""",
    "pool_of_processes_closed": """
import multiprocessing

async def body():
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.map(int, ["1"]) == [1]
        pool.close()
        pool.join()
""",
    # Its resource tracker is a process that stays, by design.
    "shared_memory": """
from multiprocessing import shared_memory

async def body():
    memory = shared_memory.SharedMemory(create=True, size=16)
    memory.close()
    memory.unlink()
""",
}

_CONNECTIONS = {
    "server_closed": """
async def answer(reader, writer):
    writer.write(await reader.readline())
    await writer.drain()
    writer.close()
    await writer.wait_closed()

async def body():
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    writer.write(b"hello\\n")
    assert await reader.readline() == b"hello\\n"
    writer.close()
    await writer.wait_closed()
    server.close()
    await server.wait_closed()
    HELD.extend([server, reader, writer])
""",
    "server_as_context_manager": """
async def body():
    async with await asyncio.start_server(print, "127.0.0.1", 0) as server:
        await server.start_serving()
""",
    "transport_closing": """
async def body():
    near, far = socket.socketpair()
    with far:
        reader, writer = await asyncio.open_connection(sock=near)
        HELD.append(writer)
        writer.close()
""",
    "transport_aborted": """
async def body():
    near, far = socket.socketpair()
    with far:
        reader, writer = await asyncio.open_connection(sock=near)
        HELD.append(writer)
        writer.transport.abort()
""",
    "datagrams_closed": """
async def body():
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(
        asyncio.DatagramProtocol, local_addr=("127.0.0.1", 0)
    )
    transport.close()
    HELD.append(transport)
""",
    "pipe_closed": """
async def body():
    reading, writing = os.pipe()
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(asyncio.Protocol, os.fdopen(reading, "rb"))
    os.close(writing)
    transport.close()
""",
    "session_closed": """
import aiohttp

async def body():
    async with aiohttp.ClientSession() as session:
        HELD.append(session)
""",
    "session_with_a_test_server": """
from aiohttp import ClientSession, web
from aiohttp.test_utils import TestClient, TestServer

TestClient.__test__ = TestServer.__test__ = False

async def hello(request):
    return web.Response(text="hello")

async def body():
    app = web.Application()
    app.router.add_get("/", hello)
    async with TestServer(app) as server, TestClient(server) as client:
        response = await client.get("/")
        assert await response.text() == "hello"
        async with ClientSession() as session, session.get(server.make_url("/")) as response:
            assert response.status == 200
""",
    "signal_handler_removed": """
import signal

async def body():
    if threading.current_thread() is threading.main_thread():
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGUSR1, int)
        loop.remove_signal_handler(signal.SIGUSR1)
""",
}

_LIBRARIES = {
    "anyio_task_group": """
import anyio

async def body():
    async with anyio.create_task_group() as group:
        group.start_soon(anyio.sleep, 0.001)
        group.start_soon(anyio.sleep, 60)
        await anyio.sleep(0.002)
        group.cancel_scope.cancel()
    with anyio.move_on_after(0.001):
        await anyio.sleep(60)
""",
    # anyio keeps its idle threads until the task at the root ends.
    "anyio_threads": """
import anyio.to_thread

async def body():
    assert await anyio.to_thread.run_sync(int, "7") == 7
""",
    "anyio_streams": """
import anyio

async def body():
    send, receive = anyio.create_memory_object_stream(1)
    async with send, receive:
        await send.send(1)
        assert await receive.receive() == 1
""",
    "aiojobs_closed": """
import aiojobs

async def body():
    scheduler = aiojobs.Scheduler()
    await scheduler.spawn(asyncio.sleep(60))
    await asyncio.sleep(0)
    await scheduler.close()
""",
    "scope_closed": """
import handfast

async def body():
    async with handfast.Scope("job") as scope:
        scope.spawn(asyncio.sleep(0.001))
    owner = handfast.Scope("service")
    HELD.append(owner)
    owner.spawn(asyncio.sleep(60))
    await owner.close(grace=0)
""",
    "scope_with_keyed_tasks": """
import handfast

async def body():
    async with handfast.Scope("job") as scope:
        tasks = handfast.KeyedTasks(scope)
        await tasks.replace("key", asyncio.sleep, 60)
        await tasks.replace("key", asyncio.sleep, 60)
        await tasks.cancel("key")
""",
    "handfast_process": """
import handfast

async def body():
    async with handfast.Process("cat") as process:
        await process.send(b"hello")
        await process.send_eof()
        await process.wait()
    async with handfast.Process("sleep", "30"):
        pass
""",
    "background_loop": """
import handfast

async def body():
    with handfast.BackgroundLoop("job") as background:
        HELD.append(background)
        background.submit(asyncio.sleep, 0.001).result(10)
""",
    "handfast_stream": """
import handfast

async def ticks():
    while True:
        yield 1

async def body():
    async with handfast.stream(ticks()) as stream:
        async for _ in stream:
            break
""",
}

_WITH_FIXTURES = [
    Innocent(
        "what_pytest_lends",
        """
import logging

async def body(caplog, monkeypatch, tmp_path, capfd):
    monkeypatch.setenv("NAME", "value")
    logging.getLogger("asyncio").warning("hello")
    (tmp_path / "file").write_text("hello")
    print("hello")
    await asyncio.sleep(0)
""",
        arguments="caplog, monkeypatch, tmp_path, capfd",
    ),
    Innocent(
        "fixture_with_a_thread",
        """
@pytest.fixture
def worker():
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    yield thread
    stop.set()
    thread.join()

async def body(worker):
    assert worker.is_alive()
""",
        arguments="worker",
    ),
    Innocent(
        "fixture_with_a_child",
        """
@pytest.fixture
def child(request):
    process = subprocess.Popen(["sleep", "30"], **QUIET)

    def end():
        process.kill()
        process.wait()

    request.addfinalizer(end)
    return process

async def body(child):
    assert child.poll() is None
""",
        arguments="child",
    ),
    # The threads of the pool are started in the test, and end with the fixture.
    Innocent(
        "pool_of_a_session_fixture",
        """
@pytest.fixture(scope="session")
def pool():
    with ThreadPoolExecutor(2) as pool:
        yield pool

async def body(pool):
    await asyncio.get_running_loop().run_in_executor(pool, int)
""",
        arguments="pool",
    ),
    Innocent(
        "background_loop_of_a_module_fixture",
        """
import handfast

@pytest.fixture(scope="module")
def background():
    with handfast.BackgroundLoop("fixture") as background:
        yield background

async def body(background):
    background.submit(asyncio.sleep, 0.001).result(10)
""",
        arguments="background",
    ),
    Innocent(
        "loop_in_a_thread_of_a_module_fixture",
        """
@pytest.fixture(scope="module")
def loop_elsewhere():
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    yield loop
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()

async def body(loop_elsewhere):
    asyncio.run_coroutine_threadsafe(asyncio.sleep(0), loop_elsewhere).result(10)
""",
        arguments="loop_elsewhere",
    ),
    Innocent(
        "autouse_fixture_with_a_thread",
        """
@pytest.fixture(autouse=True)
def worker():
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    yield
    stop.set()
    thread.join()

async def body():
    await asyncio.sleep(0)
""",
    ),
]

_SERVICE = """
async def serve(served):
    while True:
        served.append(1)
        await asyncio.sleep(0.001)
"""
_WITH_ASYNC_FIXTURES = [
    Innocent(
        "fixture_with_a_task",
        _SERVICE
        + """
@async_fixture(OPTIONS)
async def service():
    task = asyncio.create_task(serve([]))
    yield task
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

async def body(service):
    await asyncio.sleep(0.002)
    assert not service.done()
""",
        arguments="service",
        async_fixtures=True,
    ),
    Innocent(
        "fixture_that_only_cancels",
        _SERVICE
        + """
@async_fixture(OPTIONS)
async def service():
    task = asyncio.create_task(serve([]))
    yield task
    task.cancel()

async def body(service):
    assert not service.done()
""",
        arguments="service",
        async_fixtures=True,
    ),
    Innocent(
        "fixture_on_a_fixture",
        """
import aiohttp

@async_fixture(OPTIONS)
async def session():
    async with aiohttp.ClientSession() as session:
        yield session

@async_fixture(OPTIONS)
async def client(session):
    task = asyncio.create_task(asyncio.Event().wait())
    yield session
    task.cancel()
    await asyncio.wait([task])

async def body(client, session):
    assert client is session
""",
        arguments="client, session",
        async_fixtures=True,
    ),
    Innocent(
        "fixture_autouse",
        """
@async_fixture(autouse=True, OPTIONS)
async def service():
    task = asyncio.create_task(asyncio.sleep(60))
    yield
    task.cancel()

async def body():
    await asyncio.sleep(0)
""",
        async_fixtures=True,
    ),
    # The task that answers is created while the test runs, and belongs to the server.
    Innocent(
        "fixture_with_a_server",
        """
async def answer(reader, writer):
    try:
        while line := await reader.readline():
            writer.write(line)
            await writer.drain()
    finally:
        writer.close()

@async_fixture(OPTIONS)
async def server():
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    yield server
    server.close()
    await server.wait_closed()

async def body(server):
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    writer.write(b"hello\\n")
    await reader.readline()
    writer.close()
    await writer.wait_closed()
""",
        arguments="server",
        async_fixtures=True,
    ),
    # The connection is opened in the test, and belongs to the session.
    Innocent(
        "fixture_with_a_session",
        """
import aiohttp
from aiohttp import web
from aiohttp.test_utils import TestServer

TestServer.__test__ = False

async def hello(request):
    return web.Response(text="hello")

@async_fixture(OPTIONS)
async def server():
    app = web.Application()
    app.router.add_get("/", hello)
    async with TestServer(app) as server:
        yield server

@async_fixture(OPTIONS)
async def session(server):
    async with aiohttp.ClientSession() as session:
        yield session

async def body(server, session):
    async with session.get(server.make_url("/")) as response:
        assert await response.text() == "hello"
""",
        arguments="server, session",
        async_fixtures=True,
    ),
    Innocent(
        "fixture_that_returns",
        """
@async_fixture(OPTIONS)
async def number():
    await asyncio.sleep(0)
    return 42

async def body(number):
    assert number == 42
""",
        arguments="number",
        async_fixtures=True,
    ),
]

_UNITTEST = """
class TestIt(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.task = asyncio.create_task(asyncio.sleep(60))
        self.server = await asyncio.start_server(print, "127.0.0.1", 0)
        self.addAsyncCleanup(self.stop)

    async def stop(self):
        self.server.close()
        await self.server.wait_closed()

    async def asyncTearDown(self):
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)

    def setUp(self):
        self.thread = threading.Thread(target=int)
        self.thread.start()
        self.addCleanup(self.thread.join)

    async def test_one(self):
        await asyncio.sleep(0)

    async def test_two(self):
        for number in range(2):
            with self.subTest(number):
                await asyncio.to_thread(int)

    def test_sync(self):
        pass

class TestSync(unittest.TestCase):
    def test_it(self):
        asyncio.run(asyncio.sleep(0))
"""
_CLASSES = """
class TestIt:
    @pytest_asyncio.fixture(scope="class", loop_scope="class")
    async def service(self):
        task = asyncio.create_task(asyncio.sleep(60))
        yield task
        task.cancel()
        await asyncio.wait([task])

    @pytest.mark.asyncio(loop_scope="class")
    async def test_one(self, service):
        assert not service.done()

    @pytest.mark.asyncio(loop_scope="class")
    @pytest.mark.parametrize("number", [1, 2])
    async def test_two(self, service, number):
        assert not service.done()

    @pytest.mark.asyncio
    async def test_three(self, service):
        assert not service.done()
"""
_WIDER = """
@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def session_task():
    task = asyncio.create_task(asyncio.sleep(60))
    yield task
    task.cancel()
    await asyncio.wait([task])

@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def module_task(session_task):
    task = asyncio.create_task(asyncio.sleep(60))
    yield task
    task.cancel()
    await asyncio.wait([task])

@pytest.mark.asyncio
async def test_elsewhere(module_task):
    assert not module_task.done()

@pytest.mark.asyncio(loop_scope="session")
async def test_there(module_task, session_task):
    await asyncio.sleep(0)
    assert not session_task.done()

@pytest.mark.asyncio(loop_scope="module")
async def test_between(module_task, session_task):
    await asyncio.sleep(0)

def test_sync(module_task):
    assert not module_task.done()
"""
_HYPOTHESIS = """
from hypothesis import given, settings, strategies

@pytest.mark.asyncio
@settings(max_examples=10, deadline=None, database=None)
@given(strategies.integers())
async def test_async(number):
    assert await asyncio.create_task(asyncio.sleep(0, number)) == number

@settings(max_examples=5, deadline=None, database=None)
@given(strategies.integers())
def test_sync(number):
    asyncio.run(asyncio.sleep(0))
"""
_LOOPS = """
def test_new_event_loop():
    loop = asyncio.new_event_loop()
    try:
        task = loop.create_task(asyncio.sleep(0))
        loop.run_until_complete(task)
    finally:
        loop.close()

def test_runner():
    with asyncio.Runner() as runner:
        runner.run(asyncio.sleep(0))
        runner.run(asyncio.sleep(0))

def test_handfast_run():
    import handfast
    handfast.run(asyncio.sleep(0))

def test_twice():
    asyncio.run(asyncio.sleep(0))
    asyncio.run(asyncio.sleep(0))

def test_anyio():
    import anyio
    anyio.run(anyio.sleep, 0)

def test_portal():
    from anyio.from_thread import start_blocking_portal
    with start_blocking_portal() as portal:
        portal.call(asyncio.sleep, 0)

@pytest.fixture
def loop():
    loop = asyncio.new_event_loop()
    yield loop
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()

def test_loop_of_a_fixture(loop):
    task = loop.create_task(asyncio.sleep(60))
    loop.run_until_complete(asyncio.sleep(0))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        loop.run_until_complete(task)

@pytest.fixture
def started(loop):
    task = loop.create_task(asyncio.sleep(60))
    yield task
    task.cancel()
    loop.run_until_complete(asyncio.wait([task]))

def test_task_of_a_sync_fixture(loop, started):
    loop.run_until_complete(asyncio.sleep(0))
"""
_OUTCOMES = """
@pytest.mark.skip
def test_skipped():
    raise AssertionError

def test_skips():
    pytest.skip("not here")

@pytest.mark.xfail
def test_xfailed():
    raise AssertionError

async def boom():
    raise AssertionError

@pytest.mark.xfail(strict=True)
def test_xfailed_in_a_loop():
    asyncio.run(boom())

def test_raises():
    with pytest.raises(AssertionError):
        asyncio.run(boom())
"""
_ANYIO = """
import anyio

@pytest.fixture(scope="module")
async def service():
    async with anyio.create_task_group() as group:
        group.start_soon(anyio.sleep, 60)
        yield group
        group.cancel_scope.cancel()

@pytest.fixture
async def task():
    task = asyncio.create_task(asyncio.sleep(60))
    yield task
    task.cancel()

@pytest.mark.anyio
async def test_one(service):
    await anyio.sleep(0)

@pytest.mark.anyio
@pytest.mark.parametrize("number", [1, 2])
async def test_two(service, task, number):
    await anyio.sleep(0)

@pytest.mark.anyio
async def test_three(task):
    assert not task.done()
"""
_WHOLE = [
    Innocent("unittest_cleanups", _UNITTEST, whole="unittest_"),
    Innocent("classes", _CLASSES, whole="function"),
    Innocent("wider_fixtures", _WIDER, whole="function"),
    Innocent("hypothesis", _HYPOTHESIS, whole="function"),
    Innocent("loops", _LOOPS, whole="run"),
    Innocent("skipped_and_xfailed", _OUTCOMES, whole="run"),
    Innocent("anyio_fixtures", _ANYIO, whole="anyio_"),
]

_BODIES = {
    **_TASKS,
    **_TIMERS_AND_GENERATORS,
    **_THREADS,
    **_CHILDREN,
    **_CONNECTIONS,
    **_LIBRARIES,
}
_ALL = [
    *(
        Innocent(name, text, since=(3, 12) if name == "eager_tasks" else (3, 11))
        for name, text in _BODIES.items()
    ),
    *_WITH_FIXTURES,
    *_WITH_ASYNC_FIXTURES,
    *_WHOLE,
]
CORE = {
    *("gather", "task_group_that_raises", "timeout", "cancelled_on_its_way", "queue_workers"),
    *("ends_within_the_grace", "error_read_by_asking", "context_variables", "timer_cancelled"),
    *("generator_finalizer_on_its_way", "generator_under_aclosing", "to_thread", "thread_joined"),
    *("default_executor", "executor_as_context_manager", "loop_in_a_thread_stopped"),
    *("child_communicates", "server_closed", "transport_closing", "session_with_a_test_server"),
    *("anyio_threads", "scope_closed", "handfast_process", "background_loop"),
    *(each.name for each in (*_WITH_FIXTURES, *_WITH_ASYNC_FIXTURES, *_WHOLE)),
}
"""Those that a runner could trip over."""

INNOCENTS = {each.name: each for each in _ALL if sys.version_info >= each.since}
