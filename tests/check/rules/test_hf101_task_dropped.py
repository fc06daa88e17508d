"""HF101: what holds a task, and what only seems to."""

from __future__ import annotations

import pytest

from handfast._check.finding import Finding
from handfast._check.model.syntax.module import Module
from handfast._check.model.syntax.project import Project, count_ended
from handfast._check.rules.hf101_task_dropped import RULE
from handfast._check.source import parse
from handfast.catalogue import kind


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
def test_a_task_that_is_dropped_is_found_for_each_way_to_create_it(call: str) -> None:
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
def test_a_task_that_other_code_holds_is_not_reported(call: str) -> None:
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
def test_a_local_name_that_is_used_again_is_not_reported(use: str) -> None:
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


def test_a_program_that_runs_its_loop_right_there_is_not_reported() -> None:
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
    project = Project({}, count_ended([helper.encode()]))
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


def test_a_task_that_another_file_returns_is_dropped_here() -> None:
    assert in_project(STARTED.format(use="start(work())"), HELPER) == [3]
    dotted = "import helping\nasync def go():\n    helping.start(work())\n"
    assert in_project(dotted, HELPER) == [3]


@pytest.mark.parametrize(
    "use", ["await start(work())", "self.task = start(work())", "begin(work())"]
)
def test_a_task_of_another_file_that_is_kept_is_not_reported(use: str) -> None:
    assert in_project(STARTED.format(use=use), HELPER) == []


def test_a_task_that_another_file_keeps_is_not_reported() -> None:
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
    coroutines = unnamed.replace("asyncio.ensure_future", "")
    assert lines(coroutines) == [6]  # `wait` creates the tasks (up to Python 3.10)


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
def test_a_wait_whose_pending_tasks_are_used_is_not_reported(change: tuple[str, str]) -> None:
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


def test_a_task_that_is_created_once_for_a_loop_of_waits_is_not_reported() -> None:
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
def test_a_task_that_other_code_holds_as_well_is_not_reported(old: str, new: str) -> None:
    assert lines(WEAKLY.replace(old, new)) == []


def test_a_coroutine_function_that_is_called_run_starts_no_loop() -> None:
    source = """import asyncio
async def run():
    await asyncio.sleep(1)
async def main():
    asyncio.create_task(run())
"""
    assert lines(source) == [5]


def defaults(source: str) -> list[bool]:
    """Whether each finding is reported by default."""
    return [not each.pedantic for each in findings(f"import asyncio\n{source}")]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("def f():\n    asyncio.create_task(client.send_progress(1))\n", [False]),
        ("def f():\n    asyncio.create_task(self._client.close())\n", [False]),
        ("def f():\n    asyncio.create_task(closet())\n", [True]),
        ("def f(coro):\n    asyncio.create_task(coro)\n", [True]),
        (
            "async def report_metrics():\n    while True:\n        await send()\n\n"
            "def f():\n    asyncio.create_task(report_metrics())\n",
            [True],
        ),
        (
            'async def expire(delay):\n    """Later."""\n    await asyncio.sleep(delay)\n    end()\n\n'
            "def f():\n    asyncio.create_task(expire(1))\n",
            [False],
        ),
        (
            "async def expire():\n    await asyncio.sleep(1)\n    end()\n\n"
            "def f():\n    asyncio.create_task(expire())\n",
            [True],
        ),
    ],
)
def test_a_task_that_is_best_effort_is_pedantic(source: str, expected: list[bool]) -> None:
    assert defaults(source) == expected


@pytest.mark.parametrize("code", ["RUF006", "ASYNC300", "E501, RUF006", ""])
def test_a_noqa_for_the_same_finding_of_another_tool_counts(code: str) -> None:
    noqa = f"  # noqa: {code}" if code else ""
    assert defaults(f"def f():\n    asyncio.create_task(work()){noqa}\n") == (
        [] if code else [True]
    )


def test_a_task_that_an_executor_holds_is_not_reported() -> None:
    assert defaults("def f():\n    asyncio.create_task(asyncio.to_thread(work))\n") == []


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("loop.call_soon(asyncio.create_task, work())", [True]),
        ("loop.call_soon(functools.partial(asyncio.create_task, work()))", [True]),
        ("loop.call_later(1, loop.create_task, work())", [True]),
        ("loop.call_later(1)", []),
        ("loop.call_soon(begin)", [True]),
        ("loop.call_soon(print)", []),
        ("loop.call_soon(keep(begin))", []),
        ("loop.call_soon(group.create_task, work())", []),
        ("loop.call_soon(asyncio.create_task, work()); loop.run_forever()", []),
    ],
)
def test_create_task_given_as_a_callback(call: str, expected: list[bool]) -> None:
    begin = "import functools\n\ndef begin():\n    return asyncio.create_task(work())\n\n"
    assert defaults(f"{begin}def f(loop, group):\n    {call}\n") == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("    count()", [False]),
        ("    await queue.put(1)", [False]),
        ("    async with asyncio.Lock():\n        count()", [False]),
        ("    async with lock:\n        count()", [True]),
        ("    [each async for each in rows]", [True]),
        ("    [each for each in rows]", [False]),
        ("    async for each in rows:\n        count()", [True]),
    ],
)
def test_a_task_that_never_suspends_is_pedantic(body: str, expected: list[bool]) -> None:
    work = f"async def work():\n{body}\n\n"
    assert defaults(f"{work}def f():\n    asyncio.create_task(work())\n") == expected
    assert (
        defaults(f"{work}def f(loop):\n    loop.call_soon(asyncio.create_task, work())\n")
        == expected
    )
    callback = "lambda: asyncio.create_task(work())"
    assert defaults(f"{work}def f(loop):\n    loop.call_soon({callback})\n") == expected


def test_a_function_in_place_of_its_coroutine_is_a_type_error_and_no_task() -> None:
    work = "async def work():\n    await sleep()\n\n"
    assert defaults(f"{work}def f():\n    asyncio.ensure_future(work)\n") == []
    assert defaults(f"{work}def f(coro):\n    asyncio.ensure_future(coro)\n") == [True]


def test_the_message_names_the_coroutine_and_all_of_a_package_have_one_cause() -> None:
    source = "def f():\n    asyncio.create_task(work(1))\n    asyncio.create_task(self.other())\n"
    one, other = findings(f"import asyncio\n{source}")
    assert one.message.startswith(
        "No reference is kept to the task of `work`: the garbage collector "
    )
    assert "`self.other`" in other.message
    assert one.cause == other.cause


# --- functions of the project that return a task --------------------------------------------------

MAKERS = """\
import asyncio
def start(coroutine):
    return asyncio.create_task(coroutine)
async def open_and_start(coroutine):
    await opened()
    return asyncio.create_task(coroutine)
class Runner:
    def spawn(self, coroutine):
        return asyncio.create_task(coroutine)
    @staticmethod
    def begin(coroutine):
        return asyncio.create_task(coroutine)
    def keep(self, coroutine):
        self.tasks.append(asyncio.create_task(coroutine))
        return self.tasks[-1]
    def many(self, coroutine):
        yield asyncio.create_task(coroutine)
class App:
    def __init__(self, given):
        self.runner = Runner()
        self.later: Runner | None = None
        self.given = given
        self.either = Runner()
    def connect(self):
        self.later = Runner()
        self.either = given
    async def go(self, other):
        mine = Runner()
        {use}
"""


@pytest.mark.parametrize(
    "use",
    [
        "start(work())",
        "task = start(work())",
        "task = start(work()); task.add_done_callback(print)",
        "await open_and_start(work())",
        "task = await open_and_start(work())",
        "self.runner.spawn(work())",
        "self.later.spawn(work())",
        "mine.spawn(work())",
        "Runner.begin(work())",
        "Runner().spawn(work())",
    ],
)
def test_a_task_that_a_function_returns_is_dropped_by_its_caller(use: str) -> None:
    assert lines(MAKERS.format(use=use)) == [29]


@pytest.mark.parametrize(
    "use",
    [
        "return start(work())",
        "await start(work())",
        "self.task = start(work())",
        "task = start(work()); await task",
        "task = start(work()); self.tasks.add(task)",
        "task = await open_and_start(work()); return task",
        "return await open_and_start(work())",
        # Without an `await` there is no task yet.
        "open_and_start(work())",
        "self.runner.keep(work())",
        "self.runner.many(work())",
        "self.given.spawn(work())",
        "self.either.spawn(work())",
        "other.spawn(work())",
        "self.runner.other.spawn(work())",
        "unknown.spawn(work())",
    ],
)
def test_a_task_that_a_function_returns_and_the_caller_keeps_is_not_reported(use: str) -> None:
    assert lines(MAKERS.format(use=use)) == []


def test_a_maker_that_creates_a_task_of_its_own_work_is_named_by_it() -> None:
    source = """\
import asyncio
class Poller:
    def _make(self):
        return asyncio.create_task(self._poll())
    async def _poll(self):
        await asyncio.sleep(self.time)
        await self.send()
    def start(self):
        task = self._make()
"""
    (finding,) = findings(source)
    assert finding.place.line == 9
    assert "`self._poll`" in finding.message


# --- calls that use up tasks, and one element of several --------------------------------------------


@pytest.mark.parametrize(
    "use",
    [
        "any(asyncio.create_task(work(i)) for i in items)",
        "all([asyncio.create_task(work(i)) for i in items])",
        "print(asyncio.create_task(work(1)))",
        "count = len([asyncio.create_task(work(i)) for i in items])",
        "list(map(asyncio.create_task, items))",
        "any(map(asyncio.ensure_future, items))",
        "deque(map(loop.create_task, items), maxlen=0)",
        "list(map(start, items))",
    ],
)
def test_a_task_that_a_call_uses_up_is_found(use: str) -> None:
    source = (
        "import asyncio\nfrom collections import deque\n"
        "def start(item):\n    return asyncio.create_task(work(item))\n"
        f"async def go(items, loop):\n    {use}\n"
    )
    assert len(lines(source)) == 1


@pytest.mark.parametrize(
    "use",
    [
        "tasks = list(map(asyncio.create_task, items)); await asyncio.wait(tasks)",
        "await asyncio.gather(*map(asyncio.create_task, items))",
        "return tuple(map(asyncio.create_task, items))",
        "self.tasks.update(map(asyncio.create_task, items))",
        "map(asyncio.create_task, items)",
        "list(map(group.create_task, items))",
        "list(map(work, items))",
        "task = asyncio.create_task(work(1)); print(task); await task",
        "first = max(asyncio.create_task(work(i)) for i in items)",
    ],
)
def test_a_task_that_a_call_passes_on_is_not_reported(use: str) -> None:
    assert lines(f"import asyncio\nasync def go(self, items, group):\n    {use}\n") == []


@pytest.mark.parametrize(
    ("made", "use", "found"),
    [
        ("[TASK(a()), TASK(b())]", "await tasks[0]", 1),
        ("(TASK(a()), TASK(b()))", "return await tasks[-1]", 1),
        ("[TASK(a()), TASK(b()), TASK(c())]", "await tasks[1]", 2),
        ("[TASK(a(x)) for x in xs]", "return await tasks[0]", 1),
        ("{'a': TASK(a()), 'b': TASK(b())}", "return await tasks['a']", 1),
        ("[TASK(a()), TASK(b())]", "await tasks[0]; await tasks[1]", 0),
        ("[TASK(a()), TASK(b())]", "await tasks[0]; tasks[1].cancel()", 0),
        ("[TASK(a()), TASK(b())]", "await tasks[index]", 0),
        ("[TASK(a()), TASK(b())]", "await tasks[0]; await asyncio.wait(tasks)", 0),
        ("[TASK(a()), TASK(b())]", "await tasks[0]; return tasks", 0),
        ("[*old, TASK(a()), TASK(b())]", "await tasks[1]", 0),
        ("{key: TASK(a()), 'b': TASK(b())}", "await tasks['b']", 0),
        ("{x: TASK(a(x)) for x in xs}", "await tasks[0]", 0),
        ("[TASK(a(x)) for x in xs]", "await tasks[index]", 0),
        ("[TASK(a(x)) for x in xs]", "await tasks.pop()", 0),
        ("[TASK(a()), TASK(b())]", "await asyncio.gather(*tasks[1:], tasks[0])", 0),
    ],
)
def test_one_element_that_is_awaited_is_no_use_of_the_others(
    made: str, use: str, found: int
) -> None:
    made = made.replace("TASK", "asyncio.create_task")
    source = f"import asyncio\nasync def go(xs, index, key, old):\n    tasks = {made}\n    {use}\n"
    shown = [each for each in findings(source) if not each.pedantic]
    assert len(shown) == found


@pytest.mark.parametrize(
    ("name", "pedantic"),
    [
        ("_unwatch_async", True),
        ("unregister", True),
        ("_drop_stream", True),
        ("detach_session", True),
        ("_watch", False),
        ("register", False),
        ("_droplets", False),
    ],
)
def test_a_task_that_only_ends_a_part_is_best_effort(name: str, pedantic: bool) -> None:
    source = f"""\
import asyncio

class Display:
    def stop(self):
        asyncio.create_task(self.{name}())
    async def {name}(self):
        await self.link.send()
"""
    assert [each.pedantic for each in findings(source)] == [pedantic]


def test_a_function_that_may_return_a_tracked_task() -> None:
    source = """\
import asyncio

def spawn(owner, work):
    return owner.start(work) if owner else asyncio.create_task(work)

async def run(owner):
    spawn(owner, work())
"""
    assert findings(source) == []
    always = source.replace("owner.start(work) if owner else ", "")
    assert [each.place.line for each in findings(always)] == [7]


@pytest.mark.parametrize(
    ("callback", "expected"),
    [
        ("task.add_done_callback(lambda task: print(task))", 1),
        ("def done(task): print(task)\n    task.add_done_callback(done)", 1),
        (
            "def done(x):\n        task = x\n        print(task)\n    task.add_done_callback(done)",
            1,
        ),
        ("def done(x): print(task)\n    task.add_done_callback(done)", 0),  # the real one
        ("keep(lambda task=task: print(task))", 0),
        ("def done(*, task=task): print(task)\n    keep(done)", 0),
        (
            "def done():\n        nonlocal task\n        print(task)\n        task = 1\n    keep(done)",
            0,
        ),
    ],
)
def test_a_callback_with_a_parameter_of_the_same_name_keeps_no_reference(
    callback: str, expected: int
) -> None:
    source = f"import asyncio\ndef f(job):\n    task = asyncio.create_task(job())\n    {callback}\n"
    assert len(findings(source)) == expected


def local(use: str) -> list[Finding]:
    head = "import asyncio\nfrom collections import deque\ndef go(self, items, given, key):\n    "
    found = findings(head + use.replace("TASK", "asyncio.create_task(work(1))") + "\n")
    return [each for each in found if not each.pedantic]


@pytest.mark.parametrize(
    "use",
    [
        "tasks = []\n    for item in items:\n        tasks.append(TASK)",
        "tasks = set()\n    tasks.add(TASK)",
        "tasks = {}\n    tasks[key] = TASK",
        "tasks = deque()\n    task = TASK\n    tasks.append(task)",
    ],
)
def test_a_task_in_a_local_list_that_nothing_uses_is_found(use: str) -> None:
    (finding,) = local(use)
    assert "the local name `tasks`" in finding.message


@pytest.mark.parametrize(
    "use",
    [
        "tasks = []\n    tasks.append(TASK)\n    return tasks",
        "tasks = []\n    tasks.append(TASK)\n    self.tasks = tasks",
        "tasks = []\n    tasks.append(TASK)\n    print(len(tasks))",
        "tasks = self.tasks\n    tasks.append(TASK)",
        "tasks = given or []\n    tasks.append(TASK)",
        "given.append(TASK)",
        "tasks = Tasks()\n    tasks.add(TASK)",
        "with Tasks() as tasks:\n        tasks.add(TASK)",
        "tasks = []\n    task = TASK\n    tasks.append(task)\n    self.tasks.add(task)",
        "tasks = []\n    tasks.append(TASK)\n    def later():\n        return tasks",
        "tasks = []\n    kept = tasks.append(TASK)",
    ],
)
def test_a_list_of_tasks_that_is_used_is_not_reported(use: str) -> None:
    assert local(use) == []


def test_a_list_at_the_top_of_a_module_lives_as_long_as_it() -> None:
    assert (
        findings("import asyncio\ntasks = []\ntasks.append(asyncio.create_task(work(1)))\n") == []
    )


@pytest.mark.parametrize(
    ("use", "found"),
    [
        ("asyncio.gather(a(), b())", [3]),
        ("asyncio.gather(*tasks, return_exceptions=True)", [3]),
        ("await asyncio.gather(a(), b())", []),
        ("both = asyncio.gather(a(), b()); await both", []),
        ("return asyncio.gather(a(), b())", []),
        ("asyncio.gather()", []),
        ("curio.gather(a(), b())", []),
        ("self.all = asyncio.gather(a(), b())", []),
    ],
)
def test_a_gather_that_a_coroutine_function_does_not_await_is_found(
    use: str, found: list[int]
) -> None:
    assert lines(f"import asyncio\nasync def go(self, tasks):\n    {use}\n") == found


def test_a_gather_in_a_plain_function_may_be_dead_code() -> None:
    assert (
        lines("import asyncio\ndef go():\n    if ASYNC:\n        asyncio.gather(a(), b())\n") == []
    )


@pytest.mark.parametrize(
    ("decorator", "found"),
    [("@override", [6]), ("@kept", []), ("@kept(3)", []), ("@contextmanager", [])],
)
def test_a_decorator_may_keep_the_task_that_a_function_returns(
    decorator: str, found: list[int]
) -> None:
    source = f"import asyncio\n{decorator}\ndef start():\n    return asyncio.create_task(work())\n"
    assert lines(f"{source}def go():\n    start()\n") == found
