"""HF2xx, keyed slots: a dict of tasks, at most one live task for each key, no entry left behind.

20x is about replacing what runs under a key, 21x about joining it.
"""

from __future__ import annotations

from holdfast.catalogue.bugkind import BugKind

__all__ = ["FAMILY", "KINDS"]

FAMILY = "keyed slots"

KINDS: tuple[BugKind, ...] = (
    BugKind(
        code="HF201",
        name="slot-evicts-successor",
        family=FAMILY,
        summary="A task removes the entry of its key at its end, although the entry may by now be "
        "its successor's.",
        why=(
            "The key was given to a newer task while the older one was still ending. The older one "
            "then pops the newer one's entry, and a live task is no longer tracked: the next start "
            "does not find it, nobody cancels it, and two of them work on the same thing. Remove an "
            "entry only if it is your own."
        ),
        wrong="""\
class Saves:
    \"\"\"The newest save of each document; the group holds the older ones to their end.\"\"\"

    def __init__(self, group):
        self._group = group
        self.newest = {}

    def start(self, document, save):
        self.newest[document] = self._group.create_task(self._run(document, save))

    async def _run(self, document, save):
        try:
            await save()
        finally:
            self.newest.pop(document, None)
""",
        right="""\
import functools


class Saves:
    \"\"\"The newest save of each document; the group holds the older ones to their end.\"\"\"

    def __init__(self, group):
        self._group = group
        self.newest = {}

    def start(self, document, save):
        task = self.newest[document] = self._group.create_task(save())
        task.add_done_callback(functools.partial(self._forget, document))

    def _forget(self, document, task):
        if self.newest.get(document) is task:
            del self.newest[document]
""",
        fine=(
            "A key is never used twice, or a lock is held from before the old task is looked for "
            "until the new one is stored."
        ),
    ),
    BugKind(
        code="HF202",
        name="slot-entry-stranded",
        family=FAMILY,
        summary="Only the task's own body removes its entry, and there is an end on which the body "
        "never runs.",
        why=(
            "A task that is cancelled before its first step never enters its coroutine, so no "
            '`finally` in it runs and the entry stays for ever. Where the entry means "busy", the '
            "key is blocked until the process ends; in any case the dict grows. A done callback runs "
            "on every end of the task."
        ),
        wrong="""\
class Captures:
    def __init__(self, group):
        self._group = group
        self.running = {}

    def start(self, key, capture):
        if key in self.running:
            raise RuntimeError(f"{key} is busy")
        self.running[key] = self._group.create_task(self._run(key, capture))

    def stop(self, key):
        self.running[key].cancel()

    async def _run(self, key, capture):
        try:
            await capture()
        finally:
            del self.running[key]
""",
        right="""\
class Captures:
    def __init__(self, group):
        self._group = group
        self.running = {}

    def start(self, key, capture):
        if key in self.running:
            raise RuntimeError(f"{key} is busy")
        task = self.running[key] = self._group.create_task(capture())
        # Keys are never replaced while busy, so the entry is this task's own.
        task.add_done_callback(lambda _: self.running.pop(key, None))

    def stop(self, key):
        self.running[key].cancel()
""",
        fine=(
            "Nobody cancels these tasks, or an entry that is left does no harm and is looked at "
            "before it is used."
        ),
    ),
    BugKind(
        code="HF203",
        name="slot-replaced-without-join",
        family=FAMILY,
        summary="The task of a key is cancelled, and its successor starts before it has ended.",
        why=(
            "The superseded task still has its clean-up to run, and a task that is busy elsewhere "
            "gets the cancellation only at its next step. Until then both work on the same thing: the "
            "old one edits the message, releases the lock or deletes the file that is the new one's "
            "by now. Join the old one first."
        ),
        wrong="""\
import asyncio


class Captures:
    def __init__(self):
        self._tasks = {}

    async def replace(self, key, capture):
        old = self._tasks.get(key)
        if old is not None:
            old.cancel()
        self._tasks[key] = asyncio.create_task(capture())

    async def close(self):
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        self._tasks.clear()
""",
        right="""\
import holdfast


class Captures:
    def __init__(self):
        self._scope = holdfast.Scope("captures", on_failure="report")
        self._slots = holdfast.Slots(self._scope)

    async def replace(self, key, capture):
        # Returns when the old task has ended and the new one is in its place.
        await self._slots.replace(key, capture)

    async def close(self):
        report = await self._scope.close()
        report.raise_if_unclean()
""",
        fine=(
            "Old and new may overlap without harm: the task has no effect but its result, and "
            "that of the old one is dropped."
        ),
    ),
    BugKind(
        code="HF204",
        name="slot-await-before-store",
        family=FAMILY,
        summary="An `await` stands between taking the old task of a key out and storing the new one.",
        why=(
            "While the first caller waits for the old task to end, a second caller finds the key free "
            "and stores its own task. Then the first one resumes and stores over it: one live task "
            "that nobody tracks. Two messages that arrive close together are enough. Hold a lock over "
            "the whole exchange, or let `holdfast.Slots` do it."
        ),
        wrong="""\
import asyncio


class Captures:
    def __init__(self, group):
        self._group = group
        self._tasks = {}

    async def replace(self, key, capture):
        old = self._tasks.pop(key, None)
        if old is not None:
            old.cancel()
            await asyncio.wait({old})
        self._tasks[key] = self._group.create_task(capture())
""",
        right="""\
import asyncio


class Captures:
    def __init__(self, group):
        self._group = group
        self._tasks = {}
        self._exchange = asyncio.Lock()

    async def replace(self, key, capture):
        async with self._exchange:
            if old := self._tasks.get(key):
                old.cancel()
                await asyncio.wait({old})
            task = self._tasks[key] = self._group.create_task(capture())
            task.add_done_callback(lambda task: self._forget(key, task))

    def _forget(self, key, task):
        if self._tasks.get(key) is task:
            del self._tasks[key]
""",
        fine="Only one caller can be in this method at a time, which the code elsewhere sees to.",
    ),
    BugKind(
        code="HF211",
        name="slot-work-doubled",
        family=FAMILY,
        summary="Whether a key's work has been done is asked before an `await` and recorded after "
        "it.",
        why=(
            "Everybody who asks while the first fetch is under way finds nothing and starts a fetch "
            "of their own. When a popular entry expires, a hundred requests hit the slow system "
            "behind the cache at once, and the last answer wins, which may be the oldest. Who comes "
            "second should join what is under way."
        ),
        wrong="""\
class Cache:
    def __init__(self, fetch):
        self._fetch = fetch
        self._values = {}

    async def get(self, key):
        if key not in self._values:
            self._values[key] = await self._fetch(key)
        return self._values[key]

    async def close(self):
        self._values.clear()
""",
        right="""\
import holdfast


class Cache:
    def __init__(self, fetch):
        self._fetch = fetch
        self._values = {}
        self._scope = holdfast.Scope("cache", on_failure="report")
        self._fetches = holdfast.Slots(self._scope)

    async def get(self, key):
        if key in self._values:
            return self._values[key]
        return await self._fetches.keep(key, self._load, key)

    async def _load(self, key):
        value = self._values[key] = await self._fetch(key)
        return value

    async def close(self):
        report = await self._scope.close()
        report.raise_if_unclean()
        self._values.clear()
""",
    ),
)
