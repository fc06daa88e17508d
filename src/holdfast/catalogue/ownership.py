"""HF1xx, ownership: every task has somebody who holds it, waits for it and can end it.

10x is about tasks started in a function, 11x about owners and how they close, 12x and 13x about
the books that an owner keeps.
"""

from __future__ import annotations

from holdfast.catalogue.bugkind import BugKind

__all__ = ["FAMILY", "KINDS"]

FAMILY = "ownership"

KINDS: tuple[BugKind, ...] = (
    BugKind(
        code="HF101",
        name="task-dropped",
        family=FAMILY,
        summary="A task is started and nothing holds it.",
        why=(
            "The event loop holds its tasks weakly (CPython #88831, #91887). A task that only waits "
            "for something which nobody else holds can be collected in the middle of its work: what "
            "follows the `await` never runs, and all that is left is a line in the log, "
            "`Task was destroyed but it is pending!`. It depends on when the garbage collector "
            "runs, so it shows in production and not in the tests. A local variable does not help: "
            "it is gone when the function returns."
        ),
        wrong="""\
import asyncio


class Notifier:
    def __init__(self, send):
        self._send = send

    def notify(self, message):
        asyncio.create_task(self._send(message))

    async def close(self):
        pass
""",
        right="""\
import asyncio


class Notifier:
    def __init__(self, send):
        self._send = send
        self._tasks = set()

    def notify(self, message):
        task = asyncio.create_task(self._send(message))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self):
        while self._tasks:
            await asyncio.wait(self._tasks)
""",
        fine=(
            "The task ends by itself within a moment, its failure and its loss do not matter to "
            "anybody, and somebody has said so beside it."
        ),
    ),
    BugKind(
        code="HF102",
        name="task-left-over",
        family=FAMILY,
        summary="A task is still pending when the code that started it has ended.",
        why=(
            "Who called the function believes that the work is over, and it is not: it still writes, "
            "still holds its connection, and its error reaches nobody. At the end of the program "
            "`asyncio.run` cancels it wherever it happens to stand; in a test it runs on into the "
            "next one. It makes no difference whether something holds the task."
        ),
        wrong="""\
import asyncio

background = set()


async def handle(request, respond, audit):
    task = asyncio.create_task(audit(request))
    background.add(task)
    task.add_done_callback(background.discard)
    return await respond(request)
""",
        right="""\
import asyncio


async def handle(request, respond, audit):
    async with asyncio.TaskGroup() as group:
        group.create_task(audit(request))
        answer = await respond(request)
    return answer
""",
    ),
    BugKind(
        code="HF103",
        name="cancel-without-join",
        family=FAMILY,
        summary="A function cancels tasks that it started and returns without waiting for their end.",
        why=(
            "`cancel()` is a request: the task gets it at its next step and then runs its clean-up, "
            "which may take any number of further steps. The function has returned by then, so the "
            "clean-up races with whatever comes next, and an error in it is seen by nobody. Where "
            "the function is the close method of an owner, the code is HF303."
        ),
        wrong="""\
import asyncio


async def first_answer(ask, servers):
    tasks = [asyncio.create_task(ask(server)) for server in servers]
    done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in pending:
        task.cancel()
    return done.pop().result()
""",
        right="""\
import asyncio


async def first_answer(ask, servers):
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(ask(server)) for server in servers]
        done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()
    # The group has waited for all of them, and raises what any of them raised.
    return done.pop().result()
""",
        fine=(
            "The cancelled tasks touch nothing that is closed or reused afterwards, and the loop "
            "goes on long enough for them to end."
        ),
    ),
    BugKind(
        code="HF111",
        name="task-never-closed",
        family=FAMILY,
        summary="An owner stores a task, and its close method neither cancels nor joins it.",
        why=(
            "After `close()` the task goes on: it polls, reconnects and writes on behalf of an object "
            "that everybody believes to be gone, and through its reference to `self` it keeps that "
            "object alive. A service that opens and closes such owners gathers one live task for "
            "each of them."
        ),
        wrong="""\
import asyncio


class Poller:
    def __init__(self, poll):
        self._poll = poll
        self._task = asyncio.create_task(self._run())
        self.results = []

    async def _run(self):
        while True:
            self.results.append(await self._poll())

    async def close(self):
        self.results.clear()
""",
        right="""\
import asyncio


class Poller:
    def __init__(self, poll):
        self._poll = poll
        self._task = asyncio.create_task(self._run())
        self.results = []

    async def _run(self):
        while True:
            self.results.append(await self._poll())

    async def close(self):
        self._task.cancel()
        await asyncio.wait({self._task})
        self.results.clear()
        if not self._task.cancelled():
            self._task.result()
""",
        fine=(
            "The object lives as long as the process, and whoever ends the process cancels and "
            "joins every task."
        ),
    ),
    BugKind(
        code="HF112",
        name="no-way-to-close",
        family=FAMILY,
        summary="A class starts background tasks and has no method that ends them.",
        why=(
            "Nobody can end the task at the right moment, so the end of the loop does it at a wrong "
            "one: in the middle of a write, after the connection is gone, or never in a process that "
            "does not stop. Tests cannot clean up after themselves either. Writing the close method "
            "later means finding every place that makes such an object."
        ),
        wrong="""\
import asyncio


class Metrics:
    def __init__(self, flush):
        self._flush = flush
        self._task = asyncio.create_task(self._run())

    async def _run(self):
        while True:
            await asyncio.sleep(10)
            await self._flush()
""",
        right="""\
import asyncio

import holdfast


class Metrics:
    def __init__(self, flush):
        self._flush = flush
        self._scope = holdfast.Scope("metrics", on_failure="report")
        self._scope.spawn(self._run())

    async def _run(self):
        while True:
            await asyncio.sleep(10)
            await self._flush()

    async def close(self):
        report = await self._scope.close()
        report.raise_if_unclean()
""",
        fine=(
            "Somebody else holds the tasks of the class and ends them, in a way that cannot be "
            "seen from here."
        ),
    ),
    BugKind(
        code="HF113",
        name="owner-dropped",
        family=FAMILY,
        summary="An owner of tasks goes out of use on some way out without being closed.",
        why=(
            "The close method is there, but an early return, an exception or a cancellation passes "
            "it by. The tasks live on and keep the owner alive, so not even the garbage collector "
            "ends them. An `async with` closes on every way out."
        ),
        wrong="""\
import asyncio


class Feed:
    def __init__(self, listen):
        self.items = asyncio.Queue()
        self._task = asyncio.create_task(listen(self.items))

    async def aclose(self):
        self._task.cancel()
        await asyncio.wait({self._task})
        if not self._task.cancelled():
            self._task.result()


async def first(listen, parse):
    feed = Feed(listen)
    item = parse(await feed.items.get())
    await feed.aclose()
    return item
""",
        right="""\
import asyncio
import contextlib


class Feed:
    def __init__(self, listen):
        self.items = asyncio.Queue()
        self._task = asyncio.create_task(listen(self.items))

    async def aclose(self):
        self._task.cancel()
        await asyncio.wait({self._task})
        if not self._task.cancelled():
            self._task.result()


async def first(listen, parse):
    async with contextlib.aclosing(Feed(listen)) as feed:
        return parse(await feed.items.get())
""",
        fine="The owner is kept alive on purpose, by something that is not in this file.",
    ),
    BugKind(
        code="HF121",
        name="gather-as-task",
        family=FAMILY,
        summary="`create_task` is given the result of `gather`, which is no coroutine.",
        why=(
            "`gather` returns a future, so `create_task` raises `TypeError`. By then `gather` has "
            "already started every child: they run, and nothing tracks them. One handle for many "
            "tasks would be the wrong thing to track even if it worked, because it does not say "
            "which child is alive, which failed and which is done."
        ),
        wrong="""\
import asyncio


class Prefetch:
    def __init__(self, fetch):
        self._fetch = fetch
        self._tasks = set()

    def start(self, keys):
        fetches = [self._fetch(key) for key in keys]
        task = asyncio.create_task(asyncio.gather(*fetches))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self):
        while self._tasks:
            await asyncio.wait(self._tasks)
""",
        right="""\
import asyncio


class Prefetch:
    def __init__(self, fetch):
        self._fetch = fetch
        self._tasks = set()

    def start(self, keys):
        for key in keys:
            task = asyncio.create_task(self._fetch(key))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def close(self):
        while self._tasks:
            await asyncio.wait(self._tasks)
""",
        fine="Never: it raises as soon as it runs.",
    ),
    BugKind(
        code="HF131",
        name="done-tasks-kept",
        family=FAMILY,
        summary="Tasks that are done stay in a list, dict or set that only grows.",
        why=(
            "A done task holds its result, or its exception with the traceback and every local "
            "variable in it. A server that appends one task for each request therefore keeps every "
            "request it ever served. Close gets slower and slower too, since it goes through all of "
            "them."
        ),
        wrong="""\
import asyncio


class Jobs:
    def __init__(self):
        self._tasks = []

    def start(self, job):
        self._tasks.append(asyncio.create_task(job()))

    async def close(self):
        await asyncio.gather(*self._tasks)
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
            await asyncio.wait(self._tasks)
""",
        fine=(
            "The container is small and has an end, such as the tasks of one request, and goes "
            "away with it."
        ),
    ),
)
