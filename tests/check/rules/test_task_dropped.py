"""HF101: what holds a task, and what only seems to."""

from __future__ import annotations

import pytest

from holdfast.catalogue import kind
from holdfast.check.finding import Finding
from holdfast.check.model.module import Module
from holdfast.check.model.project import Project
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


def in_project(source: str, helper: str) -> list[int]:
    project = Project()
    project.add(Module(parse("helping.py", helper.encode()), "helping", project))
    module = Module(parse("x.py", source.encode()), "x", project)
    return [each.place.line for each in RULE.check(module)]


HELPER = """\
import asyncio
def start(coroutine):
    task = asyncio.create_task(coroutine)
    task.add_done_callback(print)
    return task
"""
STARTED = "from helping import start\nasync def go():\n    {use}\n"


def test_a_task_that_another_file_hands_back_is_dropped_here() -> None:
    assert in_project(STARTED.format(use="start(work())"), HELPER) == [3]
    dotted = "import helping\nasync def go():\n    helping.start(work())\n"
    assert in_project(dotted, HELPER) == [3]


@pytest.mark.parametrize(
    "use", ["await start(work())", "self.task = start(work())", "begin(work())"]
)
def test_a_task_of_another_file_that_is_kept_is_left_alone(use: str) -> None:
    assert in_project(STARTED.format(use=use), HELPER) == []


def test_a_task_that_another_file_keeps_is_left_alone() -> None:
    keeping = HELPER.replace("    return", "    TASKS.add(task)\n    return")
    assert in_project(STARTED.format(use="start(work())"), keeping) == []


def test_a_loop_that_a_function_of_the_project_gives_is_a_loop() -> None:
    assert lines("def go(self):\n    helpers.get_running_loop().create_task(self.work())\n") == [2]
    assert lines("def go(self):\n    helpers.get_group().create_task(self.work())\n") == []


@pytest.mark.parametrize(
    ("use", "found"),
    [
        ("self.tasks.add(asyncio.current_task())", []),
        ("self.me = asyncio.current_task()", []),
        ("me = asyncio.current_task()\n        register(me)", []),
        (
            "me = asyncio.current_task()\n        if self.reader is not me: self.reader.cancel()",
            [4],
        ),
        ("asyncio.current_task().set_name('work')", [4]),
        ("loop.call_exception_handler({'task': asyncio.current_task()})", [4]),
    ],
)
def test_only_a_task_that_stores_itself_is_held(use: str, found: list[int]) -> None:
    source = (
        "import asyncio\nclass A:\n    def go(self):\n        asyncio.create_task(self.work())\n"
        f"    async def work(self):\n        {use}\n"
    )
    assert lines(source) == found


RACE = """\
import asyncio
class Stream:
    async def iterate(self):
        while True:
            done, {rest} = await asyncio.wait(
                [asyncio.ensure_future(self.queue.get()), asyncio.ensure_future(self.done.wait())],
                return_when=asyncio.FIRST_COMPLETED,
            )
            {after}
"""


def test_a_task_that_is_not_the_first_is_lost_with_the_pending_ones() -> None:
    (finding,) = findings(RACE.format(rest="_", after="yield done"))
    assert finding.place.line == 6
    assert [each.place.line for each in finding.related] == [5]
    unnamed = RACE.replace("done, {rest} = ", "").format(after="pass")
    assert lines(unnamed) == [6]
    only = RACE.replace("done, {rest} = await", "done = (await").replace(
        "            )", "            ))[0]"
    )
    assert lines(only.format(after="pass")) == [6]


@pytest.mark.parametrize(
    "change",
    [
        ("{after}", "for task in _: task.cancel()"),
        ("asyncio.FIRST_COMPLETED", "asyncio.ALL_COMPLETED"),
        ("iterate", "main"),
        ("asyncio.ensure_future(self.queue.get())", "self.getting"),
        ("asyncio.wait(", "self.wait("),
    ],
)
def test_a_race_whose_others_are_seen_to_is_left_alone(change: tuple[str, str]) -> None:
    source = RACE.replace(*change).replace(
        "asyncio.ensure_future(self.done.wait())", "self.stopping"
    )
    assert lines(source.format(rest="_", after="yield done")) == []


NAMED = """\
import asyncio
async def race(queue, stop):
    getting = asyncio.create_task(queue.get())
    stopping = asyncio.create_task(stop.wait())
    both = {getting, stopping}
    await asyncio.wait(both, return_when="FIRST_COMPLETED")
    if getting.done():
        return getting.result()
    END
"""


def test_a_name_that_only_asks_does_not_hold_a_racer() -> None:
    source = NAMED.replace("    both = {getting, stopping}\n", "").replace(
        "both", "{getting, stopping}"
    )
    assert lines(source.replace("END", "return None")) == [3]
    for end in ("getting.cancel()", "await getting", "keep(getting)"):
        after = source.replace("END", f"{end}; {end.replace('getting', 'stopping')}")
        assert lines(after) == [], end


def test_a_racer_that_is_made_once_for_many_rounds_is_left_alone() -> None:
    source = """\
import asyncio
async def serve(queue, stop):
    getting = asyncio.create_task(queue.get())
    stopping = asyncio.create_task(stop.wait())
    while not stopping.done():
        await asyncio.wait({getting, stopping}, return_when=asyncio.FIRST_COMPLETED)
"""
    assert lines(source) == []


def test_a_program_that_ends_with_the_first_leaves_the_rest_to_its_loop() -> None:
    source = RACE.replace("iterate", "serve").format(rest="_", after="break")
    assert lines(source) == [6]
    plain = source.replace("class Stream:\n    async def serve(self)", "async def serve(self)")
    assert lines(plain.replace("\n    ", "\n") + "asyncio_run(serve(None))\n") == []


def test_coroutines_given_to_wait_become_tasks_too() -> None:
    source = RACE.replace("asyncio.ensure_future(self.queue.get())", "self.queue.get()")
    source = source.replace("asyncio.ensure_future(self.done.wait())", "self.read()")
    own = source + "    async def read(self): await self.socket.read()\n"
    assert lines(own.format(rest="_", after="pass")) == [6]


def test_a_task_that_only_sleeps_is_held_by_the_clock() -> None:
    source = """\
import asyncio
async def beat(stop):
    nap = asyncio.create_task({coro})
    done, _ = await asyncio.wait([nap, stop], return_when=asyncio.FIRST_COMPLETED)
    return stop in done
"""
    assert lines(source.format(coro="asyncio.sleep(1)")) == []
    assert lines(source.format(coro="stop.wait()")) == [3]


WEAKLY = """\
import asyncio, weakref
class App:
    def __init__(self):
        self.tasks = weakref.WeakSet()
    def add(self, work):
        task = asyncio.create_task(work())
        self.tasks.add(task)
"""


def test_a_task_that_only_a_weak_set_holds_is_held_by_nothing() -> None:
    (finding,) = findings(WEAKLY)
    assert (finding.place.line, finding.pedantic) == (6, False)
    assert [each.place.line for each in finding.related] == [7]
    named = WEAKLY.replace("WeakSet", "WeakValueDictionary").replace(".add(task)", "[work] = task")
    assert lines(named) == [6]
    of_all = "import asyncio, weakref\nTASKS = weakref.WeakSet()\n"
    assert lines(of_all + "def go(work):\n    TASKS.add(asyncio.create_task(work()))\n") == [4]
    hidden = "def go(work, TASKS):\n    TASKS.add(asyncio.create_task(work()))\n"
    assert lines(of_all + hidden) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("weakref.WeakSet()", "set()"),
        ("weakref.WeakSet()", "make()"),
        ("self.tasks.add(task)", "self.tasks.add(task); self.last = task"),
        ("self.tasks.add(task)", "self.tasks.add(task); return task"),
    ],
)
def test_a_task_that_somebody_holds_as_well_is_left_alone(old: str, new: str) -> None:
    assert lines(WEAKLY.replace(old, new)) == []


def test_a_coroutine_function_that_is_called_run_starts_no_loop() -> None:
    source = """import asyncio
async def run():
    await asyncio.sleep(1)
async def main():
    asyncio.create_task(run())
"""
    assert lines(source) == [5]
