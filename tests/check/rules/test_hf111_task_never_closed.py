"""HF111: what ends a task that runs until cancelled."""

from __future__ import annotations

import pytest

from handfast._check.finding import Finding
from handfast._check.model.syntax.module import Module
from handfast._check.model.syntax.project import Project, count_ended
from handfast._check.rules.hf111_task_never_closed import RULE
from handfast._check.source import parse
from handfast.catalogue import kind


def findings(source: str, *others: str) -> list[Finding]:
    content = source.encode()
    ended = count_ended([content, *(other.encode() for other in others)])
    project = Project({}, ended).beside(content)
    return list(RULE.check(Module(parse("x.py", content), "x", project)))


def lines(source: str, *others: str) -> list[int]:
    return [each.place.line for each in findings(source, *others)]


def test_the_wrong_example_is_found_and_the_right_one_is_not() -> None:
    assert RULE.code == kind("HF111").code
    assert not RULE.pedantic
    assert lines(kind("HF111").wrong) == [7]
    assert lines(kind("HF111").right) == []


POLLER = """\
import asyncio
class Poller{bases}:
    def start(self):
        {keep}

    async def _run(self):
        {loop}

    async def close(self):
        {close}
"""


def poller(
    keep: str = "self._task = asyncio.create_task(self._run())",
    loop: str = "while True:\n            await self.poll()",
    close: str = "self.results = 1",
    bases: str = "",
) -> str:
    return POLLER.format(keep=keep, loop=loop, close=close, bases=bases)


@pytest.mark.parametrize(
    "keep",
    [
        "self._task = asyncio.create_task(self._run())",
        "self._task = self.loop.create_task(self._run())",
        "self._tasks.append(asyncio.create_task(self._run()))",
        "self._tasks['a'] = asyncio.create_task(self._run())",
        "task = asyncio.create_task(self._run()); self._tasks.add(task)",
        "self._task: asyncio.Task = asyncio.ensure_future(self._run())",
    ],
)
def test_a_service_that_close_forgets_is_found_however_it_is_kept(keep: str) -> None:
    (finding,) = findings(poller(keep))
    assert finding.place.line == 4
    assert [each.place.line for each in finding.related] == [10, 7]
    assert "`Poller.close`" in finding.message


@pytest.mark.parametrize(
    "loop",
    [
        "while 1:\n            await self.poll()",
        "try:\n            while True:\n                await self.poll()\n"
        "        except asyncio.CancelledError:\n            return",
        "while True:\n            try:\n                await self.poll()\n"
        "            except asyncio.CancelledError:\n                break",
        "while True:\n            for x in await self.poll():\n                if x:\n"
        "                    break",
        "while True:\n            async with self.lock:\n                match x:\n"
        "                    case 1:\n                        self.x()",
    ],
)
def test_a_loop_that_only_a_cancel_leaves_runs_until_cancelled(loop: str) -> None:
    assert lines(poller(loop=loop)) == [4]


@pytest.mark.parametrize(
    "loop",
    [
        "await self.poll()",
        "for x in self.y:\n            await self.poll()",
        "while True:\n            if await self.poll():\n                break",
        "while True:\n            try:\n                await self.poll()\n"
        "            except ConnectionError:\n                return",
        "while True:\n            with self.x:\n                raise ValueError",
        "while True:\n            while self.x:\n                pass\n            else:\n"
        "                return",
        "while True:\n            match await self.poll():\n                case None:\n"
        "                    return",
        "while True:\n            self.spin()",
        "while self.running:\n            await self.poll()",
    ],
)
def test_a_task_that_may_end_by_itself_is_not_reported(loop: str) -> None:
    assert lines(poller(loop=loop)) == []


def test_the_loop_may_stand_in_what_the_body_awaits() -> None:
    source = poller(loop="await self._loop()") + (
        "\n    async def _loop(self):\n        while True:\n            await self.poll()\n"
    )
    assert lines(source) == [4]


@pytest.mark.parametrize(
    "close",
    [
        "self._task.cancel()",
        "await self._task",
        "await asyncio.wait({self._task})",
        "await asyncio.gather(self._task, return_exceptions=True)",
        "t, self._task = self._task, None\n        t.cancel()",
        "if (t := self._task) is not None:\n            t.cancel()",
        "for t in (self._task, self._other):\n            t.cancel()",
        "await end(self._task)",
        "end(self._task)",
        "self.ending.append(self._task)",
        "getattr(self, '_task').cancel()",
        "for name in ('_task', '_other'):\n            self.end(name)",
        "return self._task",
        "self.owner._task.cancel()",
        "with self._task as x:\n            pass",
    ],
)
def test_a_join_has_many_faces(close: str) -> None:
    assert lines(poller(close=close)) == []


@pytest.mark.parametrize(
    "look",
    [
        "if self._task: pass",
        "if self._task is None: return",
        "assert self._task",
        "log.info('closing', self._task)",
        "print(len(self._task))",
        "self._task.add_done_callback(print)",
        "x = 1 if self._task else 2",
        "if self._task and self.other: pass",
        "while not self._task.done(): pass",
    ],
)
def test_a_look_at_the_task_does_not_end_it(look: str) -> None:
    assert lines(poller(close=look)) == [4]


@pytest.mark.parametrize(
    ("loop", "close"),
    [
        ("while True:\n            await self.queue.get()", "self.queue.put_nowait(None)"),
        ("while True:\n            await self.queue.get()", "await self.queue.put(None)"),
        ("while True:\n            await self.event.wait()", "self.event.set()"),
        ("while True:\n            await self.reader.read()", "self.reader.close()"),
        ("while True:\n            await self.poll(self.going)", "self.going = False"),
    ],
)
def test_a_sign_from_close_counts_as_an_end(loop: str, close: str) -> None:
    assert lines(poller(loop=loop, close=close)) == []


def test_an_unknown_base_may_end_it() -> None:
    assert lines(poller(bases="(Base)")) == []
    assert lines(poller(bases="(object)")) == [4]


def test_a_known_base_that_ends_it_is_seen() -> None:
    base = "class Base:\n    def stop(self):\n        end = self._task\n        end.cancel()\n"
    assert lines(base + poller(bases="(Base)")) == []


def test_another_file_that_ends_an_attribute_of_this_name_keeps_it_silent() -> None:
    assert lines(poller(), "poller._task.cancel()") == []
    assert lines(poller(), "await poller._task") == []
    assert lines(poller(), "poller._other.cancel()") == [4]


def test_a_class_without_a_close_method_is_another_kind() -> None:
    assert lines(kind("HF112").wrong) == []


def test_a_done_callback_is_no_close_method() -> None:
    source = kind("HF111").wrong.replace("async def close(self)", "def _finish_run(self, task)")
    source = source.replace(
        "_run())", "_run())\n        self._task.add_done_callback(self._finish_run)"
    )
    assert "_finish_run" in source
    assert findings(kind("HF111").wrong)
    assert findings(source) == []


def test_a_method_that_ends_a_part_is_no_close_method() -> None:
    source = kind("HF111").wrong.replace("async def close(self)", "def cleanup_run(self, key)")
    assert "cleanup_run" in source
    assert findings(source) == []
    assert findings(source.replace("(self, key)", "(self, key=None)"))


# --- made by a method, and ended only to be started again ------------------------------------------


@pytest.mark.parametrize(
    ("maker", "keep"),
    [
        ("def _make(self):\n        return asyncio.create_task(self._run())",
         "self._task = self._make()"),
        ("def _spawn(self, coro):\n        return asyncio.create_task(coro)",
         "self._task = self._spawn(self._run())"),
        ("def _spawn(self, coro):\n        return asyncio.create_task(coro)",
         "self._tasks.append(self._spawn(self._run()))"),
    ],
)  # fmt: skip
def test_a_task_that_a_method_makes_is_found(maker: str, keep: str) -> None:
    assert lines(poller(keep) + f"    {maker}\n") == [4]


@pytest.mark.parametrize(
    ("maker", "close"),
    [
        ("def _make(self):\n        return asyncio.create_task(self._run())", "self._task.cancel()"),
        ("def _make(self):\n        self.all.add(t := asyncio.create_task(self._run()))\n"
         "        return t", "pass"),
        ("def _make(self):\n        return self.group.create_task(self._run())", "pass"),
        ("def _make(self):\n        return asyncio.create_task(self._once())", "pass"),
    ],
)  # fmt: skip
def test_a_task_that_a_method_makes_and_something_ends_is_not_reported(
    maker: str, close: str
) -> None:
    assert 4 not in lines(poller("self._task = self._make()", close=close) + f"    {maker}\n")


RESTART = "self._task.cancel()\n        self.start()"


@pytest.mark.parametrize(
    "body",
    [
        RESTART,
        "if self._task is not None:\n            self._task.cancel()\n        self.start()",
        "if self._task:\n            self._task.cancel()\n"
        "        self._task = asyncio.create_task(self._run())",
        "self._task.cancel()\n        try:\n            await self._task\n"
        "        except asyncio.CancelledError:\n            pass\n        self.start()",
    ],
)
def test_a_task_that_is_only_ended_to_start_the_next_one_is_found(body: str) -> None:
    assert 4 in lines(poller() + f"    async def restart(self):\n        {body}\n")


@pytest.mark.parametrize(
    "more",
    [
        # It may end it for good.
        f"    def restart(self):\n        {RESTART.replace('self.start()', 'pass')}\n",
        "    def restart(self):\n        self._task.cancel()\n        if self.on:\n"
        "            self.start()\n",
        # A close method as well.
        f"    def stop(self):\n        {RESTART}\n",
        f"    def restart(self):\n        {RESTART}\n"
        "    def stop(self):\n        self._task.cancel()\n",
        f"    def restart(self):\n        {RESTART}\n"
        "    def pause(self):\n        self._task.cancel()\n",
        f"    def restart(self):\n        {RESTART}\n        return self._task\n",
        f"    def restart(self):\n        {RESTART}\n\ndef end(poller):\n    poller._task.cancel()\n",
        f"    def restart(self):\n        {RESTART}\nNAMES = ['_task']\n",
        f"    def restart(self):\n        {RESTART}\n"
        "    async def wait(self):\n        await self._task\n",
    ],
)
def test_a_task_that_something_else_may_end_is_not_reported(more: str) -> None:
    assert lines(poller() + more) == []


def test_a_close_method_that_restarts_first_is_not_reported() -> None:
    assert (
        lines(poller(close="self.restart()") + f"    def restart(self):\n        {RESTART}\n") == []
    )


def test_another_file_that_ends_a_restarted_task_keeps_it_silent() -> None:
    source = poller() + f"    def restart(self):\n        {RESTART}\n"
    assert lines(source) == [4]
    assert lines(source, "poller._task.cancel()") == []


# --- in a field of a record -----------------------------------------------------------------------

RECORD = """\
class Job:
    def __init__(self, task):
        self.work = task
"""
KEEP = "self._jobs[1] = Job(asyncio.create_task(self._run()))"


@pytest.mark.parametrize("close", ["self._jobs.clear()", "self._jobs = {}", "self._jobs.pop(1)"])
def test_a_task_in_a_record_that_close_only_forgets_is_found(close: str) -> None:
    (finding,) = findings(poller(KEEP, close=close) + RECORD)
    assert finding.place.line == 4
    assert "`self._jobs` as `.work`" in finding.message


@pytest.mark.parametrize(
    "more",
    [
        "    def stop(self):\n        self.work.cancel()\n",
        "    async def stop(self):\n        await self.work\n",
        "    def get(self):\n        return self.work\n",
        "def stop(job):\n    job.work.cancel()\n",
        "def stop(jobs):\n    give(job.work for job in jobs)\n",
    ],
)
def test_a_task_in_a_record_that_something_ends_is_not_reported(more: str) -> None:
    assert lines(poller(KEEP) + RECORD + more) == []


def test_another_file_that_names_the_field_keeps_it_silent() -> None:
    assert lines(poller(KEEP) + RECORD, "job.work.cancel()") == []


@pytest.mark.parametrize(
    ("close", "found"),
    [
        ("self._tasks.clear()", [4]),
        ("self._tasks.pop()", [4]),
        ("end(self._tasks.pop())", []),
        ("return self._tasks.pop()", []),
    ],
)
def test_a_container_that_is_only_emptied_ends_nothing(close: str, found: list[int]) -> None:
    keep = "self._tasks.append(asyncio.create_task(self._run()))"
    assert lines(poller(keep, close=close)) == found


def test_a_task_that_two_methods_have_made_is_one_finding() -> None:
    maker = "    def _make(self):\n        return asyncio.create_task(self._run())\n"
    again = "    def ensure(self):\n        if self._task.done():\n            self._task = self._make()\n"
    assert lines(poller("self._task = self._make()") + maker + again) == [4]
