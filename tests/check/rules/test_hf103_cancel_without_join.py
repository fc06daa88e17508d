"""HF103: a cancelled task is awaited by the function that cancels it."""

from __future__ import annotations

import pytest

from handfast._check.finding import Finding
from handfast._check.model.syntax.module import Module
from handfast._check.rules.hf103_cancel_without_join import RULE
from handfast._check.source import parse
from handfast.catalogue import kind


def findings(source: str) -> list[Finding]:
    return list(RULE.check(Module(parse("x.py", source.encode()), "x")))


def lines(source: str) -> list[int]:
    return [each.place.line for each in findings(source)]


def test_the_wrong_example_is_found_and_the_right_one_is_not() -> None:
    assert RULE.code == kind("HF103").code
    (finding,) = findings(kind("HF103").wrong)
    assert finding.place.line == 8
    assert finding.related[0].place.line == 5
    assert finding.pedantic, "nobody knows what `ask` does after a cancel"
    assert lines(kind("HF103").right) == []


FUNCTION = """\
import asyncio

async def work(x):
    {work}

async def {name}(ask, x):
    task = asyncio.create_task(work(x))
    {body}
"""
CLEANS_UP = "try:\n        await x()\n    finally:\n        await x.aclose()"


def function(
    body: str = "try:\n        await ask()\n    finally:\n        task.cancel()",
    work: str = CLEANS_UP,
    name: str = "answer",
) -> str:
    return FUNCTION.format(body=body, work=work, name=name)


def test_a_task_with_clean_up_that_is_cancelled_and_left_is_found() -> None:
    (finding,) = findings(function())
    assert finding.place.line == 14
    assert not finding.pedantic
    assert [each.place.line for each in finding.related] == [10, 4]
    assert "`answer`" in finding.message


@pytest.mark.parametrize(
    ("work", "pedantic"),
    [
        ("await x()", True),
        ("try:\n        await x()\n    finally:\n        x.close()", True),
        ("async with x:\n        await x()", False),
        ("try:\n        await x()\n    except BaseException:\n        await x.b()", False),
        ("try:\n        await x()\n    except ValueError:\n        await x.b()", True),
        ("await deeper(x)\n\nasync def deeper(x):\n    " + CLEANS_UP, False),
    ],
)
def test_it_is_pedantic_unless_the_body_has_more_to_do_after_a_cancel(
    work: str, pedantic: bool
) -> None:
    assert [each.pedantic for each in findings(function(work=work))] == [pedantic]


@pytest.mark.parametrize(
    "body",
    [
        "task.cancel()\n    await task",
        "task.cancel()\n    await asyncio.wait({task})",
        "task.cancel()\n    await asyncio.gather(task, return_exceptions=True)",
        "task.cancel()\n    with suppress(asyncio.CancelledError):\n        await task",
        "task.cancel()\n    return task",
        "task.cancel()\n    await end(task)",
        "task.cancel()\n    ending.append(task)\n    await asyncio.wait(ending)",
        "tasks = [task]\n    for t in tasks:\n        t.cancel()\n    await asyncio.gather(*tasks)",
        "task.cancel()\n    async for x in asyncio.as_completed([task]):\n        pass",
        "while True:\n        await asyncio.wait([task])\n        task.cancel()",
        "try:\n        await ask()\n    finally:\n        task.cancel()\n        await join(task)",
        "task.cancel()\n    yield task",
        "task.cancel()\n    self.late = task",
        "task.cancel()\n    [await t async for t in some(task)]",
        "task.cancel()\n    async with holding(task):\n        pass",
    ],
)
def test_a_join_after_the_cancel_is_seen(body: str) -> None:
    assert lines(function(body)) == []


@pytest.mark.parametrize(
    "body",
    [
        "await asyncio.wait([task], timeout=1)\n    task.cancel()",
        "task.cancel()\n    print(task.cancelled())",
        "task.cancel()\n    log.info('gone', task)",
        "task.cancel()\n    x = task.done() or task is None",
        "tasks = [task]\n    for t in tasks:\n        t.cancel()",
        "tasks = {1: task}\n    for t in tasks.values():\n        t.cancel()",
        "done, pending = await asyncio.wait({task}, timeout=1)\n    for t in pending:\n        t.cancel()",
        "tasks = set()\n    tasks.add(task)\n    for t in list(tasks):\n        t.cancel()",
    ],
)
def test_a_look_at_the_task_is_no_join(body: str) -> None:
    assert len(findings(function(body))) == 1


@pytest.mark.parametrize(
    "body",
    [
        "self.task = task\n    task.cancel()",
        "keep(task)\n    task.cancel()",
        "def stop():\n        task.cancel()\n    stop()",
        "global task\n    task.cancel()",
        "x.append(task)\n    task.cancel()",
        "await ask()",
    ],
)
def test_a_task_that_others_hold_or_that_is_not_cancelled_is_not_reported(body: str) -> None:
    assert lines(function(body)) == []


@pytest.mark.parametrize(
    "body",
    [
        "await asyncio.wait([task])\n    task.cancel()",
        "await asyncio.gather(task, return_exceptions=True)\n    task.cancel()",
        "await task\n    task.cancel()",
        "task.cancel()\n    while not task.done():\n        await asyncio.sleep(0)",
    ],
)
def test_a_task_that_is_over_needs_no_join(body: str) -> None:
    assert lines(function(body)) == []


@pytest.mark.parametrize(
    ("body", "pedantic"),
    [
        ("    sock = ask()\n    {task}\n    task.cancel()\n    await sock.close()\n", False),
        ("    sock = ask()\n    {task}\n    await sock.close()\n    task.cancel()\n", True),
        ("    async with ask() as sock:\n        {task}\n        task.cancel()\n", False),
        ("    async with ask():\n        {task}\n        task.cancel()\n", True),
        ("    {task}\n    task.cancel()\n    await ask.other()\n", True),
    ],
)
def test_what_the_task_uses_is_not_closed_before_the_task_has_ended(
    body: str, pedantic: bool
) -> None:
    task = "task = asyncio.create_task(pump(sock))"
    source = f"import asyncio\nasync def go(ask):\n{body.format(task=task)}"
    assert [each.pedantic for each in findings(source)] == [pedantic]


def test_one_cancel_of_many_tasks_is_found_once() -> None:
    source = """\
import asyncio
async def go(ask):
    tasks = [asyncio.create_task(ask(1)), asyncio.create_task(ask(2))]
    await asyncio.wait(tasks, timeout=1)
    for task in tasks:
        task.cancel()
"""
    assert lines(source) == [6]


def test_a_close_method_is_another_kind() -> None:
    assert lines(function(name="close")) == []


@pytest.mark.parametrize("call", ["queue.get()", "event.wait()", "asyncio.sleep(1)", "ws.recv()"])
def test_a_task_that_only_waits_ends_in_the_step_of_the_cancel(call: str) -> None:
    source = (
        "import asyncio\nasync def go(queue, event, ws):\n"
        f"    task = asyncio.create_task({call})\n    await queue.join()\n    task.cancel()\n"
    )
    assert lines(source) == []


def test_a_plain_function_cannot_wait() -> None:
    assert (
        lines(function().replace("async def answer", "def answer").replace("await ask", "ask"))
        == []
    )


BEATING = """\
import asyncio
class Batch:
    async def run(self, rows):
        beat = asyncio.create_task(self.beat())
        try:
            return await self.store(rows)
        finally:
            beat.cancel()
    async def beat(self):
        while True:
            {step}
            await asyncio.sleep(1)
"""


def is_default(step: str) -> list[bool]:
    source = BEATING.format(step=step).encode()
    return [not each.pedantic for each in RULE.check(Module(parse("x.py", source), "x"))]


@pytest.mark.parametrize(
    "step", ["await self.db.write()", "await asyncio.wait_for(self.db.write(), 1)"]
)
def test_a_task_that_works_on_and_on_is_cut_in_its_work(step: str) -> None:
    assert is_default(step) == [True]


@pytest.mark.parametrize(
    "step",
    ["self.count()", "await self.queue.get()", "await asyncio.wait_for(self.event.wait(), 1)"],
)
def test_a_task_that_waits_on_and_on_is_found_with_pedantic(step: str) -> None:
    assert is_default(step) == [False]


@pytest.mark.parametrize(
    ("after", "default"),
    [
        ("await self.db.release()", False),
        ("async with self.db.session():\n                self.count()", False),
        ("if rows:\n                await self.db.release()", True),
        ("self.db.release()", True),
    ],
)
def test_a_task_ends_while_the_function_waits_for_something_else(after: str, default: bool) -> None:
    source = BEATING.format(step="await self.db.write()")
    source = source.replace("beat.cancel()\n", f"beat.cancel()\n            {after}\n")
    assert [not each.pedantic for each in findings(source)] == [default]
