"""HF131: tasks that are done are removed from their container."""

from __future__ import annotations

import pytest

from handfast._check.finding import Finding
from handfast._check.model.syntax.module import Module
from handfast._check.model.syntax.project import Project, count_ended
from handfast._check.rules.hf131_done_tasks_kept import RULE
from handfast._check.source import parse
from handfast.catalogue import kind


def findings(source: str, *others: str) -> list[Finding]:
    content = source.encode()
    ended = count_ended([content, *(other.encode() for other in others)])
    return list(RULE.check(Module(parse("x.py", content), "x", Project({}, ended).beside(content))))


def lines(source: str, *others: str) -> list[int]:
    return [each.place.line for each in findings(source, *others)]


def test_the_wrong_example_is_found_and_the_right_one_is_not() -> None:
    assert RULE.code == kind("HF131").code
    assert not RULE.pedantic
    (finding,) = findings(kind("HF131").wrong)
    assert finding.place.line == 9
    assert [each.place.line for each in finding.related] == [9, 6]
    assert lines(kind("HF131").right) == []


JOBS = """\
import asyncio
from collections import defaultdict, deque
from weakref import WeakSet
class Jobs:
    def __init__(self):
        {start}

    def {name}(self, request):
        {keep}

    async def work(self, request):
        await request()

    def other(self):
        {other}
"""


def jobs(
    keep: str = "self._tasks.append(asyncio.create_task(self.work(request)))",
    start: str = "self._tasks = []",
    other: str = "pass",
    name: str = "handle",
) -> str:
    return JOBS.format(keep=keep, start=start, other=other, name=name)


@pytest.mark.parametrize(
    ("start", "keep", "pedantic"),
    [
        ("self._tasks = []", "self._tasks.append(asyncio.create_task(self.work(request)))", False),
        ("self._tasks = set()", "self._tasks.add(self.loop.create_task(request.run()))", False),
        (
            "self._tasks: list = []",
            "t = asyncio.create_task(request()); self._tasks.append(t)",
            False,
        ),
        ("self._tasks = deque()", "self._tasks.append(asyncio.create_task(request()))", False),
        ("self._tasks = {}", "self._tasks[request.id] = asyncio.create_task(request())", True),
        (
            "self._tasks = defaultdict(list)",
            "self._tasks[1 + 1] = asyncio.create_task(request())",
            True,
        ),
    ],
)
def test_a_container_that_only_grows_is_found(start: str, keep: str, pedantic: bool) -> None:
    assert [each.pedantic for each in findings(jobs(keep, start))] == [pedantic]


@pytest.mark.parametrize(
    "other",
    [
        "self._tasks.clear()",
        "self._tasks.pop()",
        "self._tasks.remove(1)",
        "del self._tasks[0]",
        "self._tasks = [t for t in self._tasks if not t.done()]",
        "self._tasks -= self.done",
        "self.prune(self._tasks)",
        "return self._tasks",
        "tasks = self._tasks",
        "jobs._tasks.clear()",
    ],
)
def test_a_container_that_other_code_may_empty_is_not_reported(other: str) -> None:
    assert lines(jobs(other=other)) == []


@pytest.mark.parametrize(
    "other",
    [
        "for t in self._tasks:\n            t.cancel()",
        "return len(self._tasks)",
        "return [t for t in self._tasks if t.done()]",
        "return asyncio.gather(*self._tasks)",
        "if self._tasks:\n            pass",
        "return self._tasks[0].done()",
    ],
)
def test_a_look_at_the_container_takes_nothing_out(other: str) -> None:
    assert lines(jobs(other=other)) == [9]


@pytest.mark.parametrize(
    "start",
    [
        "self._tasks = WeakSet()",
        "self._tasks = make()",
        "self._tasks = [1]",
        "pass",
        "self._tasks = given",
    ],
)
def test_a_container_that_is_not_plainly_empty_at_first_is_not_reported(start: str) -> None:
    assert lines(jobs(start=start)) == []


@pytest.mark.parametrize(
    ("name", "keep"),
    [
        ("start", "self._tasks.append(asyncio.create_task(self.work(request)))"),
        ("__aenter__", "self._tasks.append(asyncio.create_task(self.work(request)))"),
        ("handle", "self._tasks.append(asyncio.create_task(self.work(1)))"),
        ("handle", "self._tasks['a'] = asyncio.create_task(self.work(request))"),
        ("handle", "self._tasks.append(asyncio.create_task())"),
    ],
)
def test_without_evidence_of_many_it_is_not_reported(name: str, keep: str) -> None:
    assert lines(jobs(keep, name=name)) == []


def test_a_start_method_that_is_given_what_it_starts_is_called_many_times() -> None:
    assert lines(jobs("self._tasks.append(asyncio.create_task(request))", name="start")) == [9]


def test_services_are_few() -> None:
    source = jobs().replace(
        "        await request()", "        while True:\n            await request()"
    )
    assert lines(source) == []


def test_an_endless_loop_starts_tasks_without_number() -> None:
    source = """\
import asyncio
class A:
    def __init__(self):
        self.tasks = []
    async def serve(self):
        while True:
            x = await self.accept()
            self.tasks.append(asyncio.create_task(self.handle(x)))
    async def handle(self, x):
        await x()
"""
    assert lines(source) == [8]


def test_a_container_at_the_top_of_a_module_is_found() -> None:
    source = (
        "import asyncio\ntasks = set()\ndef go(job):\n    tasks.add(asyncio.create_task(job()))\n"
    )
    assert lines(source) == [4]
    assert lines(source + "    tasks.pop()\n") == []


def test_a_container_that_is_given_or_local_is_not_reported() -> None:
    assert (
        lines("import asyncio\ndef go(job, tasks):\n    tasks.add(asyncio.create_task(job()))\n")
        == []
    )
    local = "import asyncio\ndef go(job):\n    tasks = []\n    tasks.append(asyncio.create_task(job()))\n"
    assert lines(local) == []


def test_a_container_of_another_object_is_not_reported() -> None:
    assert lines(jobs("self.a.b.append(asyncio.create_task(request()))")) == []


def test_another_file_that_goes_through_it_keeps_it_silent() -> None:
    assert lines(jobs(), "for task in jobs._tasks: pass") == []


def test_seed_004_as_reported_keeps_every_task() -> None:
    source = """\
import asyncio
class Automator:
    def __init__(self, session):
        self.session = session
        self.started = []
    def prefetch(self, rows):
        for row in range(rows):
            self.started.append(asyncio.create_task(self.session.fetch(row)))
    async def close(self):
        self.session.open = False
"""
    assert lines(source) == [8]


def test_an_object_that_waits_for_all_of_them_is_one_piece_of_work() -> None:
    batch = jobs() + "\n    async def {name}(self):\n        await asyncio.gather(*self._tasks)\n"
    assert lines(batch.format(name="complete")) == []
    assert lines(batch.format(name="close")) == [9]
    assert lines(batch.replace("*self._tasks", "*self.tasks").format(name="complete")) == [9]


MESSAGES = """\
import asyncio
class Executor:
    def __init__(self, channel):
        self._tasks = []
        self._channel = channel
    async def monitor(self):
        while True:
            try:
                message = await self._channel.receive()
            except EOFError:
                break
            if message:
                self._tasks.append(asyncio.create_task(self.answer(message)))
    async def answer(self, message):
        await message.send()
    async def close(self):
        await cancel_and_wait(*self._tasks)
"""


def test_a_task_for_each_message_is_one_of_many() -> None:
    assert lines(MESSAGES) == [13]
    came_in = MESSAGES.replace("while True:", "async for message in self._channel:").replace(
        "message = await self._channel.receive()", "pass"
    )
    assert lines(came_in) == [13]


def test_a_task_that_is_not_passed_the_item_is_not_reported() -> None:
    source = MESSAGES.replace("while True:", "async for _ in self._channel:").replace(
        "message = await self._channel.receive()", "pass"
    )
    assert lines(source) == []
    assert lines(MESSAGES.replace("while True:", "for _ in range(2):")) == []


def test_a_private_name_that_two_classes_go_through_is_of_each_its_own() -> None:
    other = "async def close(self):\n    await cancel_and_wait(*self._tasks)\n"
    assert lines(MESSAGES, other) == [13]
    public = MESSAGES.replace("_tasks", "tasks")
    assert lines(public) == [13]
    assert lines(public, other.replace("_tasks", "tasks")) == []


def test_a_task_that_runs_a_function_around_what_is_given_is_one_of_many() -> None:
    source = """\
import asyncio
class App:
    def __init__(self):
        self.tasks = set()
    def add(self, work):
        async def wrapper():
            await work()
        self.tasks.add(asyncio.create_task(wrapper()))
"""
    assert lines(source) == [8]
    assert lines(source.replace("await work()", "await self.work()")) == []


def test_work_that_is_an_argument_may_be_endless_and_is_pedantic() -> None:
    plain = jobs()
    wrapped = plain.replace("self.work(request)", "watched(self.work(request))")
    for source, pedantic in ((plain, False), (wrapped, True)):
        assert [each.pedantic for each in findings(source)] == [pedantic], source


def test_a_method_that_drains_awaits_a_batch() -> None:
    source = """\
import asyncio

class Recorder:
    def __init__(self):
        self._uploads = []
    def record(self, shot):
        self._uploads.append(asyncio.create_task(self.upload(shot)))
    async def upload(self, shot):
        await asyncio.sleep(1)
    async def _drain(self):
        await asyncio.gather(*self._uploads)
"""
    assert not findings(source)
    assert findings(source.replace("_drain", "close"))
    assert findings(source.replace("gather(*self._uploads)", "sleep(len(self._uploads))"))
