"""HF101: what holds a task, and what only seems to."""

from __future__ import annotations

import pytest

from holdfast.catalogue import kind
from holdfast.check.finding import Finding
from holdfast.check.model.module import Module
from holdfast.check.rules.task_dropped import RULE
from holdfast.check.source import parse


def findings(source: str) -> list[Finding]:
    return list(RULE.check(Module(parse("x.py", source.encode()), "x")))


def lines(source: str) -> list[int]:
    return [each.place.line for each in findings(source)]


def test_the_wrong_example_is_found_and_the_right_one_is_not() -> None:
    assert RULE.code == kind("HF101").code
    assert not RULE.pedantic
    assert lines(kind("HF101").wrong) == [9]
    assert lines(kind("HF101").right) == []


@pytest.mark.parametrize(
    "call",
    [
        "asyncio.create_task(work())",
        "asyncio.ensure_future(work())",
        "asyncio.get_running_loop().create_task(work())",
        "asyncio.get_event_loop().create_task(work())",
        "self.loop.create_task(work())",
        "self._loop.create_task(work())",
        "self.bot.loop.create_task(work())",
        "loop.create_task(work())",
        "[asyncio.create_task(work()) for _ in range(3)]",
        "asyncio.ensure_future(asyncio.gather(work(), work()))",
        "asyncio.ensure_future(coro)",
    ],
)
def test_a_task_that_is_dropped_is_found_whoever_makes_it(call: str) -> None:
    source = f"import asyncio\nclass A:\n    def go(self, loop, coro):\n        {call}\n"
    assert lines(source) == [4]


@pytest.mark.parametrize(
    "call",
    [
        "group.create_task(work())",
        "self.create_task(work())",
        "hass.async_create_task(work())",
        "self.scope.spawn(work())",
        "nursery.start_soon(work)",
        "asyncio.ensure_future(self.future)",
        "asyncio.ensure_future(task)",
        "asyncio.ensure_future(loop.run_in_executor(None, work))",
        "await asyncio.create_task(work())",
        "return asyncio.create_task(work())",
        "self.keep(asyncio.create_task(work()))",
        "self.tasks.add(asyncio.create_task(work()))",
        "self.task = other = asyncio.create_task(work())",
        "await asyncio.gather(asyncio.create_task(work()))",
    ],
)
def test_a_task_that_somebody_holds_is_left_alone(call: str) -> None:
    source = (
        "import asyncio\nclass A:\n"
        f"    async def go(self, loop, group, hass, task, nursery):\n        {call}\n"
    )
    assert lines(source) == []


LOCAL = """\
import asyncio
class A:
    def go(self):
        task = asyncio.create_task(work())
        {use}
"""


@pytest.mark.parametrize(
    "use",
    [
        "pass",
        "task.add_done_callback(self.done)",
        "task.add_done_callback(self.tasks.discard)",
        "task.set_name('x')",
        "task.add_done_callback(lambda t: t.result())",
    ],
)
def test_a_local_name_that_is_not_used_again_holds_nothing(use: str) -> None:
    (finding,) = findings(LOCAL.format(use=use))
    assert finding.place.line == 4
    assert "`task`" in finding.message
    assert "`go`" in finding.message
    assert finding.related[0].place.line == 3


@pytest.mark.parametrize(
    "use",
    [
        "self.tasks.add(task)",
        "return task",
        "self.keep(task)",
        "def stop():\n            task.cancel()\n        return stop",
        "return lambda: task",
        "return locals()",
        "self.x = [task]",
        "try:\n            x()\n        except E:\n            task.cancel()",
    ],
)
def test_a_local_name_that_is_used_again_is_left_alone(use: str) -> None:
    assert lines(LOCAL.format(use=use)) == []


def test_a_local_name_holds_its_task_while_the_function_waits() -> None:
    source = "import asyncio\nasync def go():\n    task = asyncio.create_task(work())\n    await other()\n"
    assert [each.pedantic for each in findings(source)] == [True]
    assert lines(source.replace("await other()", "while True:\n        await other()")) == []


@pytest.mark.parametrize("word", ["global", "nonlocal"])
def test_a_name_from_outside_lives_longer_than_the_call(word: str) -> None:
    source = (
        "import asyncio\ndef outer():\n    task = None\n    def go():\n"
        f"        {word} task\n        task = asyncio.create_task(work())\n"
    )
    assert lines(source) == []


def test_a_name_at_the_top_of_a_module_lives_as_long_as_the_module() -> None:
    assert lines("import asyncio\ntask = asyncio.ensure_future(work())\n") == []


def test_a_task_that_is_returned_and_then_dropped_is_found_where_it_is_dropped() -> None:
    source = """\
import asyncio
class A:
    def _spawn(self, coro):
        task = self.loop.create_task(coro)
        return task

    def go(self):
        self._spawn(self.work())

    def held(self):
        self.task = self._spawn(self.work())
"""
    (finding,) = findings(source)
    assert finding.place.line == 8
    assert finding.related[0].place.line == 4
    assert "`_spawn`" in finding.message


def test_a_task_that_its_maker_holds_may_be_dropped_by_the_caller() -> None:
    source = """\
import asyncio
class A:
    def _spawn(self, coro):
        task = self.loop.create_task(coro)
        self.tasks.add(task)
        return task

    def go(self):
        self._spawn(self.work())
"""
    assert lines(source) == []


@pytest.mark.parametrize(
    ("taker", "expected"),
    [
        ("loop.add_signal_handler(2, lambda: asyncio.create_task(stop()))", [3]),
        ("loop.call_later(1, lambda: asyncio.create_task(stop()))", [3]),
        ("loop.call_soon(lambda: asyncio.create_task(stop()))", [3]),
        ("register(lambda: asyncio.create_task(stop()))", []),
        ("make = lambda: asyncio.create_task(stop())", []),
    ],
)
def test_a_lambda_gives_its_task_to_who_calls_it(taker: str, expected: list[int]) -> None:
    assert lines(f"import asyncio\ndef go(loop):\n    {taker}\n") == expected


def test_a_program_that_runs_its_loop_right_there_is_left_alone() -> None:
    source = (
        "import asyncio\ndef main(loop):\n    loop.create_task(serve())\n    loop.run_forever()\n"
    )
    assert lines(source) == []


def test_a_task_that_looks_itself_up_holds_itself() -> None:
    source = """\
import asyncio
class A:
    async def work(self):
        self.tasks.add(asyncio.current_task())

    def go(self):
        asyncio.create_task(self.work())
"""
    assert lines(source) == []


REPORTED = """\
import asyncio
class Automator:
    def prefetch(self, rows):
        prefetch_tasks = [self.fetch(row) for row in rows]
        {line}
    def cleanup(self):
        self.pool.shutdown()
"""


def test_seed_004_as_reported_is_found() -> None:
    line = "asyncio.create_task(self._run(prefetch_tasks))"
    assert lines(REPORTED.format(line=line)) == [5]
