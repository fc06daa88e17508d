"""HF303: a close method that cancels and does not wait."""

from __future__ import annotations

import pytest

from handfast._check.finding import Finding
from handfast._check.model.syntax.module import Module
from handfast._check.rules.hf303_close_without_join import RULE
from handfast._check.source import parse
from handfast.catalogue import kind


def findings(source: str) -> list[Finding]:
    return list(RULE.check(Module(parse("x.py", source.encode()), "x")))


def lines(source: str) -> list[int]:
    """The lines of the findings that are shown by default."""
    return [each.place.line for each in findings(source) if not each.pedantic]


def pedantic(source: str) -> list[int]:
    return [each.place.line for each in findings(source) if each.pedantic]


def test_the_wrong_example_is_found_and_the_right_one_is_not() -> None:
    assert RULE.code == kind("HF303").code
    assert lines(kind("HF303").wrong) == [17]
    assert not findings(kind("HF303").right)


AGENT = """\
import asyncio

class Agent:
    async def start(self):
        self._proc = await asyncio.create_subprocess_exec("agent")
        self._drain_task = asyncio.create_task(self._drain())

    async def _drain(self):
        try:
            while self._proc:
                await self._proc.stderr.readline()
        finally:
            self._over.set()

    async def kill(self):
        {kill}

    def _cancel_drain(self):
        if self._drain_task:
            self._drain_task.cancel()
            self._drain_task = None
"""
END = "self._proc.terminate(); await self._proc.wait(); self._proc = None"


def agent(*kill: str) -> str:
    return AGENT.format(kill="\n        ".join(kill))


def test_the_second_report_as_reported_and_as_it_would_be_fixed() -> None:
    reported = findings(agent(END, "self._cancel_drain()"))
    assert [each.place.line for each in reported] == [21]
    assert "`Agent.kill`" in reported[0].message
    assert "line 6" in reported[0].message
    assert lines(agent("self._cancel_drain()", END)) == [21]


def test_the_cancel_loop_of_the_fifth_report_is_found() -> None:
    assert lines("""\
import asyncio

class Automator:
    def __init__(self):
        self.background_tasks = set()

    def prefetch(self, tasks):
        task = asyncio.create_task(asyncio.gather(*tasks, return_exceptions=True))
        self.background_tasks.add(task)
        task.add_done_callback(self.background_tasks.discard)

    async def cleanup(self):
        for task in self.background_tasks:
            if not task.done():
                task.cancel()
""") == [15]


JOINS = [
    "task = self._drain_task; task.cancel(); await task",
    "task, self._drain_task = self._drain_task, None; task.cancel(); await asyncio.wait({task})",
    "self._drain_task.cancel(); await asyncio.gather(self._drain_task, return_exceptions=True)",
    "self._drain_task.cancel(); await self.ended(self._drain_task)",
    "self._drain_task.cancel(); await self._over.wait()",
    "self._drain_task.cancel(); left.append(self._drain_task); await asyncio.wait(left)",
    "self._drain_task.cancel(); return self._drain_task",
]


def test_a_join_has_many_faces() -> None:
    for join in JOINS:
        assert not findings(agent(join)), join


def test_a_close_method_that_is_no_coroutine_is_pedantic() -> None:
    source = agent("self._cancel_drain()").replace("async def kill", "def kill")
    assert not lines(source)
    assert pedantic(source) == [20]


def test_silent_where_a_base_class_is_not_known() -> None:
    source = agent("self._cancel_drain()").replace("class Agent", "class Agent(Elsewhere)")
    assert not findings(source)


def test_silent_where_a_part_is_ended_by_its_key() -> None:
    assert not findings("""\
import asyncio

class Timers:
    def start(self, key):
        self._tasks[key] = asyncio.create_task(work())

    async def stop(self, key):
        self._tasks[key].cancel()
""")


TIMER = """
import asyncio

class Link:
    def start(self):
        self._ping_task = asyncio.create_task(self._run())

    async def _run(self):
        while True:
            await asyncio.sleep(10)

    async def close(self):
        self._ping_task.cancel()
"""


def test_a_keep_alive_without_clean_up_is_pedantic() -> None:
    assert [each.pedantic for each in findings(TIMER)] == [True]
    # Whatever its name, without clean-up it ends in the step in which the cancel arrives.
    reader = TIMER.replace("_ping", "_read")
    assert [each.pedantic for each in findings(reader)] == [True]
    item = reader.replace("asyncio.sleep(10)", "self.queue.get()")
    assert [each.pedantic for each in findings(item)] == [True]
    work = reader.replace("asyncio.sleep(10)", "self.handle(await self.queue.get())")
    assert [each.pedantic for each in findings(work)] == [True]
    lock = TIMER.replace("await asyncio.sleep(10)", "async with lock:\n                pass")
    assert [each.pedantic for each in findings(lock)] == [True]


def test_a_clean_up_that_suspends_is_reported_by_default() -> None:
    for clean_up, pedantic in (("await self.flush()", False), ("self.count = 0", True)):
        tried = f"try: await asyncio.sleep(10)\n            finally: {clean_up}"
        careful = TIMER.replace("await asyncio.sleep(10)", tried)
        assert [each.pedantic for each in findings(careful)] == [pedantic]


ONCE = """\
import asyncio

class Poller:
    def start(self):
        self._read_task = asyncio.create_task(self._run())

    async def _run(self):
        await self._link.read()

    async def close(self):
        self._read_task.cancel()
        await {close}
"""


LATE = "await asyncio.sleep(1)\n        await self._link.read()"


@pytest.mark.parametrize(
    ("close", "old", "new", "expected"),
    [
        ("self._link.close()", "", "", [False]),
        ("other.close()", "", "", [True]),
        ("self._link.close()", "_read_task", "_keepalive", [True]),
        ("self._link.close()", "await self._link.read()", LATE, [True]),
        ("other.close()", "await self._link.read()", "raise NotImplementedError", [False]),
        ("other.close()", "self._run()", "elsewhere()", [True]),
    ],
)
def test_what_is_done_after_one_wait_is_pedantic_unless_it_uses_what_is_closed(
    close: str, old: str, new: str, expected: list[bool]
) -> None:
    source = ONCE.format(close=close).replace(old, new)
    assert [each.pedantic for each in findings(source)] == expected


TWO_LOOPS = """
import asyncio

class Pool:
    def start(self, jobs, timers):
        for job in jobs:
            self._jobs.append(asyncio.create_task(job()))
        for timer in timers:
            self._timers.append(timer.call())

    async def close(self):
        for each in self._jobs:
            await each
        for each in self._timers:
            each.cancel()
"""


def test_one_loop_variable_of_two_loops_stands_for_one_container_at_a_time() -> None:
    assert findings(TWO_LOOPS) == []
    cancelled = TWO_LOOPS.replace("await each", "each.cancel()").replace("Pool", "Jobs")
    assert len(findings(cancelled)) == 1


KEYED = """
import asyncio

class Jobs:
    def __init__(self):
        self._jobs = {}

    def start(self, key, job):
        self._jobs[key] = asyncio.create_task(job())

    async def result(self, key):
        JOIN

    async def close(self):
        for task in self._jobs.values():
            task.cancel()
"""


@pytest.mark.parametrize(
    ("join", "found"),
    [
        ("return await self._jobs[key]", 1),
        ("return await self._jobs.pop(key)", 1),
        ("await asyncio.wait_for(self._jobs.get(key), 1)", 0),
        ("task = self._jobs[key]\n        await task", 1),
        ("for key in list(self._jobs):\n            await self._jobs[key]", 0),
        ("await asyncio.gather(*self._jobs.values())", 0),
        ("await self._other.pop(key).wait(self._jobs)", 0),
    ],
)
def test_one_element_is_not_all(join: str, found: int) -> None:
    assert len(findings(KEYED.replace("JOIN", join))) == found


def test_a_task_that_is_taken_out_by_its_key_and_awaited_is_joined() -> None:
    source = """\
import asyncio

class Client:
    def start(self, name, work):
        self._tasks[name] = asyncio.create_task(work())

    async def stop_task(self, name):
        task = self._tasks.pop(name)
        task.cancel()
        await task

    async def close(self):
        await self.stop_task("beat")
"""
    assert findings(source) == []
    assert findings(source.replace("        await task\n", ""))


def test_the_advice_is_right_for_a_task_that_runs_the_close_method_itself() -> None:
    source = ONCE.format(close="self._link.close()")
    itself = source.replace("read()", "read()\n        await self.close()")
    advice = "await it before returning, unless it is `asyncio.current_task()`"
    assert [advice in each.message for each in findings(itself)] == [True]
    assert [advice in each.message for each in findings(source)] == [False]


# --- the `finally` of a method that creates the task -----------------------------------------------

RUN = """\
import asyncio
class Server:
    async def run(self):
        self._beat = asyncio.create_task(self._beats())
        try:
            await self.serve()
        finally:
            {end}
    async def _beats(self):
        try:
            while True:
                await self.ping()
        finally:
            await self.flush()
"""


@pytest.mark.parametrize(
    "end",
    [
        "self._beat.cancel()",
        "if self._beat:\n                self._beat.cancel()",
        "self._end()\n    def _end(self):\n        self._beat.cancel()",
    ],
)
def test_the_end_of_a_method_that_starts_the_task_is_a_close(end: str) -> None:
    shown = [each for each in findings(RUN.format(end=end)) if not each.pedantic]
    assert len(shown) == 1
    assert "`Server.run` cancels the task in `self._beat`" in shown[0].message


@pytest.mark.parametrize(
    "end",
    [
        "self._beat.cancel()\n            await asyncio.wait([self._beat])",
        "self._beat.cancel()\n    async def wait(self):\n        await self._beat",
        "self._beat.cancel()\n            await self._ended.wait()\n"
        "    def on_end(self):\n        self._ended.set()",
        "task = self._beat\n            task.cancel()\n            await task",
        "await self._beat",
        "pass\n        self._beat.cancel()",
    ],
)
def test_the_end_of_a_method_that_joins_the_task_is_not_reported(end: str) -> None:
    assert findings(RUN.format(end=end)) == []


def test_a_method_that_ends_the_task_of_another_one_is_no_close() -> None:
    other = "        self.on = True\n    async def watch(self):\n        try:"
    source = RUN.format(end="self._beat.cancel()").replace("        try:", other, 1)
    assert findings(source) == []


@pytest.mark.parametrize("wait", ["asyncio.sleep(0)", "asyncio.sleep(0.1)"])
def test_a_loop_until_the_task_is_done_joins_it(wait: str) -> None:
    polled = f"self._task.cancel()\n        while not self._task.done():\n            await {wait}"
    source = """\
import asyncio

class Poller:
    def start(self):
        self._task = asyncio.create_task(self._run())

    async def _run(self):
        try:
            await asyncio.sleep(1)
        finally:
            await self._leave()

    async def close(self):
        STOP
"""
    assert findings(source.replace("STOP", polled)) == []
    assert findings(source.replace("STOP", "self._task.cancel()"))
    assert findings(source.replace("STOP", polled.replace("_task.done", "_other.done")))
    assert findings(source.replace("STOP", polled.replace("_task.done", "_task.get_name")))
