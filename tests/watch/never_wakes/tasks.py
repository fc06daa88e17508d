"""Tasks that can never wake, and tasks that look like it and can.

Each function starts its tasks, keeps them in `held` where the program would, and returns those that
are examined. `held` is reachable from everywhere; so are the values of `world`.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import functools
import signal
import socket
import sys
import threading
import weakref
from asyncio import AbstractEventLoop, Task
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from contextvars import ContextVar
from typing import Any

Start = Callable[["World"], Awaitable[list[Task[Any]]]]
DEAD: dict[str, Start] = {}
ALIVE: dict[str, Start] = {}


class World:
    """What the program holds while the tasks wait."""

    def __init__(self) -> None:
        self.tasks: set[Task[Any]] = set()
        self.values: list[Any] = []
        self.undo: list[Callable[[], Any]] = []

    def start(self, *coroutines: Any) -> list[Task[Any]]:
        started = [asyncio.ensure_future(each) for each in coroutines]
        self.tasks.update(started)
        return started


def dead(start: Start) -> Start:
    DEAD[start.__name__] = start
    return start


def alive(start: Start) -> Start:
    ALIVE[start.__name__] = start
    return start


async def get(queue: asyncio.Queue[int]) -> int:
    return await queue.get()


async def wait(event: asyncio.Event) -> None:
    await event.wait()


async def await_(awaitable: Awaitable[Any]) -> Any:
    return await awaitable


def future() -> asyncio.Future[Any]:
    return asyncio.get_running_loop().create_future()


# --- dead ----------------------------------------------------------------------------------------


@dead
async def queue_that_no_one_else_has(world: World) -> list[Task[Any]]:
    return world.start(get(asyncio.Queue()), get(asyncio.PriorityQueue()))


@dead
async def full_queue(world: World) -> list[Task[Any]]:
    queue: asyncio.Queue[int] = asyncio.Queue(1)
    queue.put_nowait(1)
    return world.start(queue.put(2))


@dead
async def event_that_no_one_else_has(world: World) -> list[Task[Any]]:
    return world.start(wait(asyncio.Event()))


@dead
async def condition(world: World) -> list[Task[Any]]:
    async def notified(condition: asyncio.Condition) -> None:
        async with condition:
            await condition.wait()

    return world.start(notified(asyncio.Condition()))


@dead
async def lock_of_an_ended_task(world: World) -> list[Task[Any]]:
    async def take(lock: asyncio.Lock) -> None:
        await lock.acquire()

    lock = asyncio.Lock()
    await lock.acquire()
    return world.start(take(lock))


@dead
async def semaphore(world: World) -> list[Task[Any]]:
    async def take(semaphore: asyncio.Semaphore) -> None:
        async with semaphore:
            pass

    return world.start(take(asyncio.Semaphore(0)))


@dead
async def lost_future(world: World) -> list[Task[Any]]:
    return world.start(await_(future()))


@dead
async def barrier(world: World) -> list[Task[Any]]:
    async def meet(barrier: asyncio.Barrier) -> None:
        await barrier.wait()

    return world.start(meet(asyncio.Barrier(2)))


@dead
async def two_that_await_each_other(world: World) -> list[Task[Any]]:
    others: list[Task[Any]] = []

    async def first() -> None:
        await others[1]

    async def second() -> None:
        # Two that await each other directly cannot be cancelled: asyncio fails by recursion.
        await asyncio.wait({others[0]})

    others += world.start(first(), second())
    return others


@dead
async def gather_of_dead_ones(world: World) -> list[Task[Any]]:
    async def both() -> None:
        await asyncio.gather(get(asyncio.Queue()), wait(asyncio.Event()))

    return world.start(both())


@dead
async def waiting_for_dead_ones(world: World) -> list[Task[Any]]:
    async def first(tasks: list[Task[Any]]) -> None:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)

    return world.start(first(world.start(get(asyncio.Queue()))))


@dead
async def event_that_only_dead_tasks_have(world: World) -> list[Task[Any]]:
    async def set_later(event: asyncio.Event) -> None:
        await get(asyncio.Queue())
        event.set()

    event = asyncio.Event()
    return world.start(wait(event), wait(event), set_later(event))


@dead
async def task_group_that_holds_it(world: World) -> list[Task[Any]]:
    async def group() -> None:
        async with asyncio.TaskGroup() as group:
            world.tasks.add(group.create_task(get(asyncio.Queue())))

    started = world.start(group())
    await asyncio.sleep(0)
    return [*started, *world.tasks]


@dead
async def scope_that_holds_it(world: World) -> list[Task[Any]]:
    import handfast

    scope = handfast.Scope()
    world.values.append(scope)
    world.undo.append(scope.close)
    return [scope.spawn(get(asyncio.Queue()))]


@dead
async def shielded(world: World) -> list[Task[Any]]:
    async def shield() -> None:
        await asyncio.shield(get(asyncio.Queue()))

    return world.start(shield())


@dead
async def lock_that_a_dead_task_holds(world: World) -> list[Task[Any]]:
    async def hold(lock: asyncio.Lock) -> None:
        async with lock:
            await get(asyncio.Queue())

    lock = asyncio.Lock()
    return world.start(hold(lock), hold(lock))


@dead
async def async_generator_in_between(world: World) -> list[Task[Any]]:
    async def items(queue: asyncio.Queue[int]) -> AsyncIterator[int]:
        while True:
            yield await queue.get()

    async def consume(queue: asyncio.Queue[int]) -> None:
        async for _ in items(queue):
            pass

    return world.start(consume(asyncio.Queue()))


@dead
async def lost_reply(world: World) -> list[Task[Any]]:
    """A client drops the table of requests when it reconnects."""

    class Client:
        def __init__(self) -> None:
            self.replies: dict[int, asyncio.Future[Any]] = {}

        async def request(self) -> Any:
            reply = asyncio.get_running_loop().create_future()
            self.replies[1] = reply
            return await reply

    client = Client()
    world.values.append(client)
    started = world.start(client.request())
    await asyncio.sleep(0)
    client.replies = {}
    return started


# --- alive: someone has it -----------------------------------------------------------------------

module_level: Any = None


@alive
async def module_variable(world: World) -> list[Task[Any]]:
    global module_level
    module_level = asyncio.Queue()
    return world.start(get(module_level))


@alive
async def class_attribute(world: World) -> list[Task[Any]]:
    class Hub:
        queue: asyncio.Queue[int] = asyncio.Queue()

    return world.start(get(Hub.queue))


@alive
async def slot(world: World) -> list[Task[Any]]:
    class Hub:
        __slots__ = ("queue",)

    hub = Hub()
    hub.queue = asyncio.Queue()  # type: ignore[attr-defined]
    world.values.append(hub)
    return world.start(get(hub.queue))  # type: ignore[attr-defined]


@alive
async def weak_value_dictionary(world: World) -> list[Task[Any]]:
    queues: weakref.WeakValueDictionary[str, asyncio.Queue[int]] = weakref.WeakValueDictionary()
    queue: asyncio.Queue[int] = asyncio.Queue()
    queues["one"] = queue
    world.values.append(queues)
    return world.start(get(queue))


@alive
async def weak_set_of_futures(world: World) -> list[Task[Any]]:
    waiter = future()
    world.values.append(weakref.WeakSet([waiter]))
    return world.start(await_(waiter))


@alive
async def weak_method(world: World) -> list[Task[Any]]:
    event = asyncio.Event()
    world.values.append(weakref.WeakMethod(event.set))
    return world.start(wait(event))


@alive
async def context_variable(world: World) -> list[Task[Any]]:
    variable: ContextVar[Any] = ContextVar("variable")
    variable.set(event := asyncio.Event())
    world.undo.append(lambda: variable.get(None))
    world.start(asyncio.sleep(1000))
    return world.start(wait(event))


@alive
async def partial_and_bound_method(world: World) -> list[Task[Any]]:
    event, waiter = asyncio.Event(), future()
    world.values += [event.set, functools.partial(waiter.set_result, None)]
    return world.start(wait(event), await_(waiter))


@alive
async def suspended_generator(world: World) -> list[Task[Any]]:
    def setter(event: asyncio.Event) -> Generator[None, None, None]:
        yield
        event.set()

    event = asyncio.Event()
    generator = setter(event)
    next(generator)
    world.values.append(generator)
    return world.start(wait(event))


@alive
async def object_in_the_garbage_collectors_frozen_part(world: World) -> list[Task[Any]]:
    import gc

    event = asyncio.Event()
    world.values.append([[event]])
    gc.freeze()
    world.undo.append(gc.unfreeze)
    return world.start(wait(event))


@alive
async def memory_that_python_does_not_see(world: World) -> list[Task[Any]]:
    event = asyncio.Event()
    world.values.append(ctypes.py_object(event))
    return world.start(wait(event))


# --- alive: a live task has it -------------------------------------------------------------------


@alive
async def producer_that_sleeps(world: World) -> list[Task[Any]]:
    async def produce(queue: asyncio.Queue[int]) -> None:
        await asyncio.sleep(1000)
        queue.put_nowait(1)

    queue: asyncio.Queue[int] = asyncio.Queue()
    world.start(produce(queue))
    return world.start(get(queue))


@alive
async def two_tasks_further(world: World) -> list[Task[Any]]:
    async def after(event: asyncio.Event, done: asyncio.Event) -> None:
        await event.wait()
        done.set()

    async def first(event: asyncio.Event) -> None:
        await asyncio.sleep(1000)
        event.set()

    events = [asyncio.Event() for _ in range(3)]
    world.start(after(events[0], events[1]), after(events[1], events[2]), first(events[0]))
    return world.start(wait(events[2]))


@alive
async def lock_that_a_live_task_holds(world: World) -> list[Task[Any]]:
    async def hold(lock: asyncio.Lock) -> None:
        async with lock:
            await asyncio.sleep(1000)

    lock = asyncio.Lock()
    return world.start(hold(lock), hold(lock))


@alive
async def gather_and_wait_of_live_ones(world: World) -> list[Task[Any]]:
    async def both() -> None:
        await asyncio.gather(get(asyncio.Queue()), asyncio.sleep(1000))

    async def either() -> None:
        await asyncio.wait(world.start(asyncio.sleep(1000)))

    return world.start(both(), either(), asyncio.shield(world.start(asyncio.sleep(1000))[0]))[:2]


@alive
async def done_callback(world: World) -> list[Task[Any]]:
    event = asyncio.Event()
    (sleeper,) = world.start(asyncio.sleep(1000))
    sleeper.add_done_callback(lambda _: event.set())
    return world.start(wait(event))


@alive
async def async_generator_of_a_live_task(world: World) -> list[Task[Any]]:
    async def items(event: asyncio.Event) -> AsyncIterator[int]:
        yield 1
        await asyncio.sleep(1000)
        event.set()

    async def consume(event: asyncio.Event) -> None:
        async for _ in items(event):
            pass

    event = asyncio.Event()
    world.start(consume(event))
    return world.start(wait(event))


# --- alive: the loop, a thread or C code has it --------------------------------------------------


@alive
async def timers(world: World) -> list[Task[Any]]:
    event = asyncio.Event()
    asyncio.get_running_loop().call_later(1000, event.set)
    return world.start(asyncio.sleep(1000), wait(event))


@alive
async def timeouts(world: World) -> list[Task[Any]]:
    async def within() -> None:
        async with asyncio.timeout(1000):
            await get(asyncio.Queue())

    async def outer() -> None:
        await within()

    async def grouped() -> None:
        async with asyncio.timeout(1000), asyncio.TaskGroup() as group:
            group.create_task(get(asyncio.Queue()))

    waiting = asyncio.wait_for(wait(asyncio.Event()), 1000)
    some = asyncio.wait(world.start(get(asyncio.Queue())), timeout=1000)
    return world.start(within(), outer(), waiting, some, grouped())


@alive
async def timeouts_of_those_that_wait_for_them(world: World) -> list[Task[Any]]:
    import handfast

    def lost() -> Task[Any]:
        inner.extend(world.start(get(asyncio.Queue())))
        return inner[-1]

    async def grouped() -> None:
        async with asyncio.timeout(1000), asyncio.TaskGroup() as group:
            inner.append(group.create_task(get(asyncio.Queue())))

    async def scoped() -> None:
        async with asyncio.timeout(1000), handfast.Scope("s") as scope:
            inner.append(scope.spawn(get(asyncio.Queue())))

    async def further() -> None:
        await lost()

    inner: list[Task[Any]] = []
    gathered = asyncio.wait_for(asyncio.gather(lost(), lost()), 1000)
    started = world.start(grouped(), scoped(), gathered, asyncio.wait_for(further(), 1000))
    await asyncio.sleep(0.001)
    assert len(inner) == 5
    world.tasks.update(inner)
    return [*started, *inner]


@alive
async def timer_that_cancels(world: World) -> list[Task[Any]]:
    class Watchdog:
        def __init__(self, *tasks: Task[Any]) -> None:
            self.tasks = {"all": list(tasks)}

        def bite(self) -> None:
            for task in self.tasks["all"]:
                task.cancel()

    started = world.start(get(asyncio.Queue()), get(asyncio.Queue()))
    loop = asyncio.get_running_loop()
    loop.call_later(1000, started[0].cancel)
    loop.call_later(1000, Watchdog(started[1]).bite)
    return started


@alive
async def signal_handler(world: World) -> list[Task[Any]]:
    event = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGUSR1, event.set)
    world.undo.append(lambda: loop.remove_signal_handler(signal.SIGUSR1))
    return world.start(wait(event))


@alive
async def signal_handler_of_python(world: World) -> list[Task[Any]]:
    event = asyncio.Event()
    old = signal.signal(signal.SIGUSR2, lambda *_: event.set())
    world.undo.append(lambda: signal.signal(signal.SIGUSR2, old))
    return world.start(wait(event))


@alive
async def socket_and_reader(world: World) -> list[Task[Any]]:
    loop = asyncio.get_running_loop()
    ours, theirs = socket.socketpair()
    more, others = socket.socketpair()
    for each in (ours, theirs, more, others):
        each.setblocking(False)
        world.undo.append(each.close)
    event = asyncio.Event()
    loop.add_reader(more, event.set)
    world.undo.insert(0, lambda: loop.remove_reader(more))
    world.values += [theirs, others]
    return world.start(loop.sock_recv(ours, 1), wait(event))


@alive
async def streams(world: World) -> list[Task[Any]]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer):
            await reader.read(1)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    world.values.append(writer)
    world.undo += [writer.close, server.close]
    found = world.start(reader.read(1), server.serve_forever())
    await asyncio.sleep(0.01)
    return found + [each for each in asyncio.all_tasks() if "serve(" in repr(each)]


@alive
async def thread_and_executor(world: World) -> list[Task[Any]]:
    done = threading.Event()
    loop, event = asyncio.get_running_loop(), asyncio.Event()

    def work(event: asyncio.Event, loop: AbstractEventLoop) -> None:
        done.wait()
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(event.set)

    threading.Thread(target=work, args=(event, loop), daemon=True).start()
    world.undo.append(done.set)
    return world.start(asyncio.to_thread(done.wait), wait(event))


@alive
async def child_process(world: World) -> list[Task[Any]]:
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", "input()", stdin=asyncio.subprocess.PIPE, stdout=-1
    )
    assert child.stdout is not None
    assert child.stdin is not None
    world.undo += [child.stdin.close, child.kill, child.wait]
    return world.start(child.stdout.read(), child.wait())


@alive
async def ctypes_callback(world: World) -> list[Task[Any]]:
    """C code has only the address."""
    event = asyncio.Event()
    callback = ctypes.CFUNCTYPE(None)(event.set)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(callback))
    return world.start(wait(event))


@alive
async def future_of_another_thread(world: World) -> list[Task[Any]]:
    """`run_coroutine_threadsafe` to a loop in another thread."""
    other = asyncio.new_event_loop()
    thread = threading.Thread(target=other.run_forever, daemon=True)
    thread.start()

    async def end() -> None:
        for task in asyncio.all_tasks(other) - {asyncio.current_task(other)}:
            task.cancel()

    def stop() -> None:
        asyncio.run_coroutine_threadsafe(end(), other).result()
        other.call_soon_threadsafe(other.stop)
        thread.join()
        other.close()

    world.undo.append(stop)
    remote = asyncio.run_coroutine_threadsafe(asyncio.sleep(1000), other)
    return world.start(await_(asyncio.wrap_future(remote)))


# --- alive: on purpose ---------------------------------------------------------------------------


@alive
async def parked(world: World) -> list[Task[Any]]:
    async def future_forever() -> None:
        await asyncio.Future()

    async def loops_future() -> None:
        async with contextlib.AsyncExitStack():
            await asyncio.get_running_loop().create_future()

    async def event_forever() -> None:
        await asyncio.Event().wait()

    async def by_variable() -> None:
        stop = asyncio.Event()
        try:
            await stop.wait()
        finally:
            await asyncio.sleep(0)

    async def group() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(future_forever())

    return world.start(future_forever(), loops_future(), event_forever(), by_variable(), group())


@alive
async def main_task(world: World) -> list[Task[Any]]:
    running = asyncio.current_task()
    assert running is not None
    return [running]
