"""HF4xx, threads and loops: whose thread it is, whose loop it is, and what interleaving does.

40x is about code on a foreign thread, 41x about the registry of live tasks, 42x about more than
one loop or thread, 43x about programs that stand still, 44x about an order that nobody tried.
"""

from __future__ import annotations

from holdfast.catalogue.bugkind import BugKind

__all__ = ["FAMILY", "KINDS"]

FAMILY = "threads and loops"

KINDS: tuple[BugKind, ...] = (
    BugKind(
        code="HF401",
        name="foreign-thread-schedule",
        family=FAMILY,
        summary="`create_task`, `ensure_future` or `call_soon` is called on a thread that is not the "
        "loop's.",
        why=(
            "The work is queued, but the loop is not woken: it sleeps in its poll until something "
            "else happens, for milliseconds or for minutes. The queue and the task are changed by two "
            "threads at once, which nothing in asyncio guards. Debug mode raises `Non-thread-safe "
            "operation`; without it there is only the delay."
        ),
        wrong="""\
import asyncio


class Bridge:
    \"\"\"Messages come in on the thread of a broker's client.\"\"\"

    def __init__(self, handle):
        self._handle = handle
        self._loop = asyncio.get_running_loop()
        self._tasks = set()

    def on_message(self, message):
        task = asyncio.ensure_future(self._handle(message), loop=self._loop)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self):
        while self._tasks:
            await asyncio.wait(self._tasks)
""",
        right="""\
import holdfast


class Bridge:
    \"\"\"Messages come in on the thread of a broker's client.\"\"\"

    def __init__(self, handle):
        self._handle = handle
        self._scope = holdfast.Scope("bridge", on_failure="report")

    def on_message(self, message):
        self._scope.submit(self._handle, message)

    async def close(self):
        report = await self._scope.close()
        report.raise_if_unclean()
""",
        fine=(
            "The code runs on the thread of the loop after all: the callback is handed over by "
            "something that is not in this file."
        ),
    ),
    BugKind(
        code="HF402",
        name="foreign-thread-set",
        family=FAMILY,
        summary="A future, event or queue of asyncio is set or filled on a thread that is not the "
        "loop's.",
        why=(
            "`Future.set_result`, `Event.set` and `Queue.put_nowait` schedule their waiters on the "
            "loop without waking it: the value is there and the waiter sleeps on. Two threads change "
            "the same list of waiters, so a wake-up can also be lost for good. "
            "`loop.call_soon_threadsafe` is the one door into a loop."
        ),
        wrong="""\
import asyncio
import threading


class Download:
    def __init__(self, fetch):
        self._done = asyncio.Event()
        self._fetch = fetch
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        self._fetch()
        self._done.set()

    async def wait(self):
        await self._done.wait()
        self._thread.join()
""",
        right="""\
import asyncio
import threading


class Download:
    def __init__(self, fetch):
        self._done = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._fetch = fetch
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        self._fetch()
        self._loop.call_soon_threadsafe(self._done.set)

    async def wait(self):
        await self._done.wait()
        self._thread.join()
""",
        fine="The code runs on the thread of the loop after all, or nobody waits on the object.",
    ),
    BugKind(
        code="HF403",
        name="loop-asked-in-thread",
        family=FAMILY,
        summary="`get_event_loop()` is called in code that runs on a thread without a loop.",
        why=(
            "On any thread but the main one it raises `RuntimeError: There is no current event loop`; "
            "where somebody has set one for that thread, it is not the loop that runs your tasks, "
            "and what is given to it never starts. In a callback of a library that brings its own "
            "threads this shows only in production. Ask for the loop where it runs and hand it over."
        ),
        wrong="""\
import asyncio


class Watcher:
    \"\"\"File events come in on the observer's thread.\"\"\"

    def __init__(self, changed):
        self._changed = changed

    def on_modified(self, path):
        loop = asyncio.get_event_loop()
        return asyncio.run_coroutine_threadsafe(self._changed(path), loop)
""",
        right="""\
import asyncio


class Watcher:
    \"\"\"File events come in on the observer's thread.\"\"\"

    def __init__(self, changed):
        self._changed = changed
        self._loop = asyncio.get_running_loop()

    def on_modified(self, path):
        return asyncio.run_coroutine_threadsafe(self._changed(path), self._loop)
""",
        fine="The thread has a loop of its own, set by code that is not in this file.",
    ),
    BugKind(
        code="HF411",
        name="live-set-iterated",
        family=FAMILY,
        summary="A set of live tasks is iterated with an `await` inside, while done callbacks "
        "discard from it.",
        why=(
            "The first task that ends changes the set, and the loop over it raises `RuntimeError: "
            "Set changed size during iteration`. That happens in the close method, so the tasks "
            "after it are neither cancelled nor joined. The lock that one reaches for first does not "
            "help: it is one thread, and the callback runs at the `await`."
        ),
        wrong="""\
import asyncio


class Jobs:
    def __init__(self):
        self._tasks = set()

    def start(self, job):
        task = asyncio.create_task(job())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self):
        for task in self._tasks:
            task.cancel()
            await asyncio.wait({task})
""",
        right="""\
import asyncio


class Jobs:
    def __init__(self):
        self._tasks = set()

    def start(self, job):
        task = asyncio.create_task(job())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self):
        while self._tasks:
            for task in list(self._tasks):
                task.cancel()
            await asyncio.wait(self._tasks)
""",
        fine=(
            "Nothing is added to or taken from the set while the loop waits, which the code "
            "elsewhere sees to."
        ),
    ),
    BugKind(
        code="HF412",
        name="snapshot-misses-latecomers",
        family=FAMILY,
        summary="A close method works on a snapshot of the live tasks, waits, and then clears the "
        "registry.",
        why=(
            "A task that arrives while the close waits is in the registry but not in the snapshot. "
            "It is neither cancelled nor joined, and the clearing removes the last trace of it. "
            "Subtracting the snapshot afterwards leaves the same gap one `await` later. Close has to "
            "refuse new work first, and then join until nothing is left."
        ),
        wrong="""\
import asyncio


class Jobs:
    def __init__(self):
        self._tasks = set()

    def start(self, job):
        task = asyncio.create_task(job())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self):
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        self._tasks.clear()
""",
        right="""\
import holdfast


class Jobs:
    def __init__(self):
        self._scope = holdfast.Scope("jobs", on_failure="report")

    def start(self, job):
        self._scope.spawn(job())

    async def close(self):
        # Refuses new work from here on, and joins until nothing is left.
        report = await self._scope.close()
        report.raise_if_unclean()
""",
        fine="No task can be added any more when the snapshot is taken.",
    ),
    BugKind(
        code="HF421",
        name="primitive-across-loops",
        family=FAMILY,
        summary="One lock, event or queue of asyncio is used by more than one event loop.",
        why=(
            "A primitive binds itself to the loop in which somebody first had to wait for it. On "
            "another loop it works as long as nobody waits, and raises `RuntimeError: ... is bound to "
            "a different event loop` under load. Module-level locks get there through a second "
            "`asyncio.run`, through tests with a loop each, or through a second thread, which is then "
            "not even kept out."
        ),
        wrong="""\
import asyncio


class Api:
    lock = asyncio.Lock()

    def __init__(self, send):
        self._send = send

    async def call(self, request):
        async with self.lock:
            return await self._send(request)
""",
        right="""\
import asyncio
import weakref


class Api:
    \"\"\"One request at a time on each loop.\"\"\"

    def __init__(self, send):
        self._send = send
        self._locks = weakref.WeakKeyDictionary()

    async def call(self, request):
        loop = asyncio.get_running_loop()
        async with self._locks.setdefault(loop, asyncio.Lock()):
            return await self._send(request)
""",
        fine=(
            "Only one of the loops uses the object while the other does not run, and nobody waits"
            " on it in between."
        ),
    ),
    BugKind(
        code="HF422",
        name="submit-to-stopped-loop",
        family=FAMILY,
        summary="Work is handed over to a loop that has stopped, and the caller waits for an answer.",
        why=(
            "`run_coroutine_threadsafe` accepts work for a loop that has stopped and is not yet "
            "closed. Nobody will ever run it, so `result()` blocks the calling thread for ever and "
            "the process does not end. Asking `is_running()` first only narrows the gap. The hand-over "
            "must fail at once, and what is pending must be answered when the loop goes."
        ),
        wrong="""\
import asyncio


class Bridge:
    def __init__(self):
        self._loop = asyncio.get_running_loop()

    def submit(self, job):
        return asyncio.run_coroutine_threadsafe(job(), self._loop)

    async def close(self):
        pass
""",
        right="""\
import holdfast


class Bridge:
    def __init__(self):
        self._scope = holdfast.Scope("bridge", on_failure="report")

    def submit(self, job):
        # Raises at once if nobody would run it.
        return self._scope.submit(job)

    async def close(self):
        report = await self._scope.close()
        report.raise_if_unclean()
""",
    ),
    BugKind(
        code="HF423",
        name="loop-waits-for-itself",
        family=FAMILY,
        summary="The blocking form of an asynchronous call is used on the loop's own thread.",
        why=(
            "`future.result()` blocks the thread that would have to run the work it waits for: the "
            "whole loop stands still, without an error and without a line in the log. It happens when "
            "a callback, a `__del__` or a synchronous wrapper is reached from a coroutine after all. "
            "The blocking form has to notice where it is called and refuse."
        ),
        wrong="""\
import asyncio


class Store:
    def __init__(self, load):
        self._load = load
        self._loop = asyncio.get_running_loop()

    def get(self, key):
        future = asyncio.run_coroutine_threadsafe(self._load(key), self._loop)
        return future.result()
""",
        right="""\
import asyncio


class Store:
    def __init__(self, load):
        self._load = load
        self._loop = asyncio.get_running_loop()

    def get(self, key):
        if running_loop() is self._loop:
            raise RuntimeError("get() would block its own loop")
        future = asyncio.run_coroutine_threadsafe(self._load(key), self._loop)
        return future.result()


def running_loop():
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
""",
    ),
    BugKind(
        code="HF424",
        name="loop-thread-left-running",
        family=FAMILY,
        summary="A loop in a thread of its own is stopped without ending its tasks, or never stopped.",
        why=(
            "`loop.stop()` leaves every task of that loop where it stands: no `finally` runs, "
            "connections stay open, and whoever waits for an answer waits for ever. The thread may "
            "still be in the middle of a step when `close()` returns, and the loop keeps its selector "
            "and its pipe. The order is: cancel and join the tasks, stop the loop, join the thread, "
            "close the loop."
        ),
        wrong="""\
import asyncio
import threading


class Background:
    def __init__(self):
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()

    def submit(self, job):
        return asyncio.run_coroutine_threadsafe(job(), self.loop)

    def close(self):
        self.loop.call_soon_threadsafe(self.loop.stop)
""",
        right="""\
import asyncio
import threading


class Background:
    def __init__(self):
        self._up = threading.Event()
        self.thread = threading.Thread(target=lambda: asyncio.run(self._serve()))
        self.thread.start()
        self._up.wait()

    async def _serve(self):
        self.loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        self._up.set()
        await self._stop.wait()  # then asyncio.run cancels and joins the tasks

    def submit(self, job):
        return asyncio.run_coroutine_threadsafe(job(), self.loop)

    def close(self):
        self.loop.call_soon_threadsafe(self._stop.set)
        self.thread.join()
""",
    ),
    BugKind(
        code="HF431",
        name="deadlock",
        family=FAMILY,
        summary="Every task waits for another one, and nothing from outside is to come.",
        why=(
            "The program stands still without an error and without using the processor. Two locks "
            "taken in two orders, a task that waits for its own parent, a queue that is joined after "
            "its worker died: it needs the right timing, so it comes once a week, and a restart makes "
            "it go away. Take locks in one order that everybody keeps to."
        ),
        wrong="""\
import asyncio


class Account:
    def __init__(self, number, balance):
        self.number = number
        self.balance = balance
        self.lock = asyncio.Lock()


async def transfer(source, target, amount, record):
    async with source.lock:
        await record(source, -amount)
        async with target.lock:
            await record(target, amount)
            source.balance -= amount
            target.balance += amount
""",
        right="""\
import asyncio


class Account:
    def __init__(self, number, balance):
        self.number = number
        self.balance = balance
        self.lock = asyncio.Lock()


async def transfer(source, target, amount, record):
    first, second = sorted((source, target), key=lambda account: account.number)
    async with first.lock, second.lock:
        await record(source, -amount)
        await record(target, amount)
        source.balance -= amount
        target.balance += amount
""",
    ),
    BugKind(
        code="HF432",
        name="livelock",
        family=FAMILY,
        summary="Tasks take step after step and nothing moves forward.",
        why=(
            "A wait made of `sleep(0)` is always ready, so the loop never rests: one processor is at "
            "100 %, timers and sockets get their turn late, and the thing that is waited for comes "
            "later because of the waiting. Wait for an event that somebody sets, or back off."
        ),
        wrong="""\
import asyncio


async def connect(dial):
    while True:
        try:
            return await dial()
        except ConnectionError:
            await asyncio.sleep(0)
""",
        right="""\
import asyncio


async def connect(dial):
    pause = 0.1
    while True:
        try:
            return await dial()
        except ConnectionError:
            await asyncio.sleep(pause)
            pause = min(2 * pause, 30)
""",
    ),
    BugKind(
        code="HF441",
        name="race-across-await",
        family=FAMILY,
        summary="The result depends on the order in which tasks get their turn: an error or a failed "
        "assertion shows in some orders only.",
        why=(
            "A value is read, something is awaited, and a value computed from what was read is "
            "written back: whatever others wrote meanwhile is lost. One thread does not make it safe, "
            "since every `await` is a place where others run. Tests pass because their stubs answer "
            "at once and always in the same order."
        ),
        wrong="""\
class Counter:
    def __init__(self, save):
        self._save = save
        self.total = 0

    async def add(self, amount):
        total = self.total + amount
        await self._save(total)
        self.total = total
""",
        right="""\
class Counter:
    def __init__(self, save):
        self._save = save
        self.total = 0

    async def add(self, amount):
        self.total += amount
        await self._save(self.total)
""",
    ),
    BugKind(
        code="HF442",
        name="invariant-broken",
        family=FAMILY,
        summary="Something that must always hold does not hold at a point where other tasks run.",
        why=(
            "A change in two parts has an `await` between them, so everybody else can see the first "
            "part without the second; and a cancellation at that `await` makes it permanent. The "
            "error shows far away, in the code that relied on it. Change both parts with no `await` "
            "in between."
        ),
        wrong="""\
class Room:
    \"\"\"Every member has a seat, and every seat taken belongs to a member.\"\"\"

    def __init__(self, announce):
        self._announce = announce
        self.members = set()
        self.seats = {}

    async def join(self, name):
        self.members.add(name)
        await self._announce(name)
        self.seats[name] = len(self.seats)

    def holds(self):
        return self.members == set(self.seats)
""",
        right="""\
class Room:
    \"\"\"Every member has a seat, and every seat taken belongs to a member.\"\"\"

    def __init__(self, announce):
        self._announce = announce
        self.members = set()
        self.seats = {}

    async def join(self, name):
        self.members.add(name)
        self.seats[name] = len(self.seats)
        await self._announce(name)

    def holds(self):
        return self.members == set(self.seats)
""",
    ),
)
