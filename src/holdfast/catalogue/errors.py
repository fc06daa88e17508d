"""HF6xx, masked errors: what failed is seen by somebody, as what it is.

60x is about errors that nobody looks at, 61x about errors that are taken for something else, 62x
about exception groups, 63x about clean-up that fails too, 64x about one failure among many.
"""

from __future__ import annotations

from holdfast.catalogue.bugkind import BugKind

__all__ = ["FAMILY", "KINDS"]

FAMILY = "masked errors"

KINDS: tuple[BugKind, ...] = (
    BugKind(
        code="HF601",
        name="error-never-retrieved",
        family=FAMILY,
        summary="A task fails and nobody asks for its exception.",
        why=(
            "The error is kept in the task, and the program goes on as if the work were being done. "
            "A line in the log, `Task exception was never retrieved`, comes when the task is "
            "collected; as long as something still holds the task, which may be as long as the "
            "process lives, there is not even that. Whoever closes the owner has to look."
        ),
        wrong="""\
import asyncio


class Refresher:
    def __init__(self, refresh):
        self._refresh = refresh
        self._task = asyncio.create_task(self._run())

    async def _run(self):
        while True:
            await self._refresh()

    async def close(self):
        if not self._task.done():
            self._task.cancel()
            await asyncio.wait({self._task})
""",
        right="""\
import asyncio


class Refresher:
    def __init__(self, refresh):
        self._refresh = refresh
        self._task = asyncio.create_task(self._run())

    async def _run(self):
        while True:
            await self._refresh()

    async def close(self):
        if not self._task.done():
            self._task.cancel()
            await asyncio.wait({self._task})
        if not self._task.cancelled():
            self._task.result()
""",
    ),
    BugKind(
        code="HF602",
        name="cancel-hides-error",
        family=FAMILY,
        summary="`cancel()` is called on a task that has already failed, and nobody looks at its "
        "exception.",
        why=(
            "`cancel()` on a task that is done does nothing, except that it switches the message "
            "`Task exception was never retrieved` off (CPython #74693). So a close method that cancels "
            "all its tasks to be on the safe side removes the last trace of those that had failed. "
            "Look at each task after the join."
        ),
        wrong="""\
import asyncio


class Jobs:
    def __init__(self, jobs):
        self._tasks = [asyncio.create_task(job()) for job in jobs]

    async def close(self):
        for task in self._tasks:
            task.cancel()
        await asyncio.wait(self._tasks)
""",
        right="""\
import asyncio


class Jobs:
    def __init__(self, jobs):
        self._tasks = [asyncio.create_task(job()) for job in jobs]

    async def close(self):
        for task in self._tasks:
            task.cancel()
        await asyncio.wait(self._tasks)
        ended = [task for task in self._tasks if not task.cancelled()]
        errors = [task.exception() for task in ended if task.exception()]
        if errors:
            raise BaseExceptionGroup("jobs failed", errors)
""",
        fine="The error is of no interest once the task is being cancelled.",
    ),
    BugKind(
        code="HF603",
        name="gather-results-unread",
        family=FAMILY,
        summary="`gather(return_exceptions=True)` is awaited and nobody reads what it returns.",
        why=(
            "With `return_exceptions=True` an error is an ordinary value in the list of results. "
            "Whoever drops the list drops the errors: ten jobs of which nine failed look like ten "
            "that succeeded, and asyncio counts every one of them as retrieved, so the log is empty "
            "too. A task group runs them side by side and raises what they raise."
        ),
        wrong="""\
import asyncio


async def save_all(save, documents):
    await asyncio.gather(*map(save, documents), return_exceptions=True)
""",
        right="""\
import asyncio


async def save_all(save, documents):
    results = await asyncio.gather(*map(save, documents), return_exceptions=True)
    errors = [result for result in results if isinstance(result, BaseException)]
    if errors:
        raise BaseExceptionGroup(f"{len(errors)} of {len(results)} not saved", errors)
""",
        fine=(
            "The tasks have just been cancelled, and what they still have to say is of no interest."
        ),
    ),
    BugKind(
        code="HF604",
        name="callback-raises",
        family=FAMILY,
        summary="A callback of the loop raises: a done callback, a timer or a `call_soon`.",
        why=(
            "A callback has no caller. Its exception goes to the loop's exception handler, which "
            "writes a line into the log, and the program goes on without the rest of the callback: "
            "a count that is never lowered, a waiter that is never woken. Bookkeeping must not raise, "
            "so it uses `discard` and `pop(key, None)`; an error of the work belongs into its task."
        ),
        wrong="""\
import asyncio


class Jobs:
    def __init__(self, group):
        self._group = group
        self._live = set()
        self.idle = asyncio.Event()

    def start(self, job):
        self.idle.clear()
        task = self._group.create_task(job())
        self._live.add(task)
        task.add_done_callback(self._ended)

    def forget_all(self):
        self._live.clear()

    def _ended(self, task):
        self._live.remove(task)
        if not self._live:
            self.idle.set()
""",
        right="""\
import asyncio


class Jobs:
    def __init__(self, group):
        self._group = group
        self._live = set()
        self.idle = asyncio.Event()

    def start(self, job):
        self.idle.clear()
        task = self._group.create_task(job())
        self._live.add(task)
        task.add_done_callback(self._ended)

    def forget_all(self):
        self._live.clear()

    def _ended(self, task):
        self._live.discard(task)
        if not self._live:
            self.idle.set()
""",
        fine="The callback cannot raise what it seems to raise.",
    ),
    BugKind(
        code="HF611",
        name="judged-by-text",
        family=FAMILY,
        summary="What to do with an exception is decided by the words in its message.",
        why=(
            "Messages are written for people: they change between versions, hold the names of files "
            "and users, and two errors that have nothing in common share a word. A real failure whose "
            "text happens to match is waved through as noise, and the noise comes back when a library "
            "rewords it. Decide by the type, or by where the error was raised."
        ),
        wrong="""\
class CleanupFailed(Exception):
    pass


async def run(phase, report):
    try:
        await phase()
    except Exception as error:
        if "cleanup" not in str(error).lower():
            raise
        report(error)
""",
        right="""\
class CleanupFailed(Exception):
    pass


async def run(phase, report):
    try:
        await phase()
    except CleanupFailed as error:
        report(error)
""",
        fine=(
            "The library gives no other sign, the words are part of its interface, and everything"
            " else is raised again."
        ),
    ),
    BugKind(
        code="HF612",
        name="success-made-up",
        family=FAMILY,
        summary="The handler of a broad exception returns or yields a success.",
        why=(
            "The caller is told that it worked, and stores, bills or deletes accordingly. The error "
            "surfaces later as missing data, far from its cause and with nothing in the log that "
            "leads back. A failure may be an outcome, but then the outcome has to say so."
        ),
        wrong="""\
async def run(phase):
    try:
        value = await phase()
    except Exception:
        return {"status": "success", "value": None}
    return {"status": "success", "value": value}
""",
        right="""\
async def run(phase):
    try:
        value = await phase()
    except Exception as error:
        return {"status": "failed", "error": error}
    return {"status": "success", "value": value}
""",
        fine=(
            "The value is the documented answer for exactly this failure, and the failure is told"
            " elsewhere."
        ),
    ),
    BugKind(
        code="HF621",
        name="group-dropped",
        family=FAMILY,
        summary="An exception group is caught and dropped as a whole.",
        why=(
            "A group holds every error of every child, of any kind: the time-out that was expected "
            "and the bug that was not. Whoever drops it to get rid of the first drops the second too. "
            "`except*` takes out of a group what it names and lets the rest go on."
        ),
        wrong="""\
import asyncio


async def refresh(loads, report):
    try:
        async with asyncio.TaskGroup() as group:
            for load in loads:
                group.create_task(load())
    except ExceptionGroup:
        report("refresh timed out")
""",
        right="""\
import asyncio


async def refresh(loads, report):
    try:
        async with asyncio.TaskGroup() as group:
            for load in loads:
                group.create_task(load())
    except* TimeoutError:
        report("refresh timed out")
""",
        fine="Each of the errors in the group has been told elsewhere.",
    ),
    BugKind(
        code="HF622",
        name="first-of-group",
        family=FAMILY,
        summary="Of an exception group only `group.exceptions[0]` is used.",
        why=(
            "The first is the one that was added first, not the one that matters: often a follow-up "
            "error of a sibling, while the cause stands second. In nested groups it is not even an "
            "error but another group. The others are lost. Go through all leaves."
        ),
        wrong="""\
import asyncio


async def run(jobs, report):
    try:
        async with asyncio.TaskGroup() as group:
            for job in jobs:
                group.create_task(job())
    except BaseExceptionGroup as failures:
        report(failures.exceptions[0])
""",
        right="""\
import asyncio


async def run(jobs, report):
    try:
        async with asyncio.TaskGroup() as group:
            for job in jobs:
                group.create_task(job())
    except BaseExceptionGroup as failures:
        for error in leaves(failures):
            report(error)


def leaves(error):
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from leaves(inner)
    else:
        yield error
""",
        fine="The group is known to have one member, because only one task can fail.",
    ),
    BugKind(
        code="HF631",
        name="cleanup-hides-cause",
        family=FAMILY,
        summary="An error in the clean-up takes the place of the error that made it necessary.",
        why=(
            "An exception raised in `finally` replaces the one that was on its way. The caller "
            "catches `OSError: already closed` and retries, while the cause was a `ValueError` that no "
            "retry can help. The cause survives only as `__context__`, which no handler looks at. "
            "Raise the cause, and attach the other one to it."
        ),
        wrong="""\
async def use(connection, work):
    try:
        return await work(connection)
    finally:
        await connection.close()
""",
        right="""\
async def use(connection, work):
    try:
        result = await work(connection)
    except BaseException as cause:
        try:
            await connection.close()
        except Exception as error:
            cause.add_note(f"the clean-up failed too: {error!r}")
        raise
    await connection.close()
    return result
""",
    ),
    BugKind(
        code="HF641",
        name="one-failure-ends-all",
        family=FAMILY,
        summary="The failure of one message ends the loop, stream or worker that serves all of them.",
        why=(
            "One message that cannot be handled stops the consumer. Those behind it are never "
            "looked at, the queue grows, and from outside the service looks alive. A failed or "
            "cancelled run is the outcome of its own message and of no other."
        ),
        wrong="""\
async def serve(messages, handle, report):
    async for message in messages:
        await handle(message)
""",
        right="""\
async def serve(messages, handle, report):
    async for message in messages:
        try:
            await handle(message)
        except Exception as error:
            report(message, error)
""",
    ),
)
