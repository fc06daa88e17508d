"""HF115: a task is cancelled on every way out."""

from __future__ import annotations

import pytest

from handfast._check.finding import Finding
from handfast._check.model.syntax.module import Module
from handfast._check.rules.hf115_task_outlives_error import RULE
from handfast._check.source import parse
from handfast.catalogue import kind


def findings(source: str) -> list[Finding]:
    return list(RULE.check(Module(parse("x.py", source.encode()), "x")))


def lines(source: str) -> list[int]:
    """The lines of the findings that are shown by default."""
    return [each.place.line for each in findings(source) if not each.pedantic]


def body(text: str, head: str = "async def f(queue, stop):") -> str:
    return f"import asyncio\n{head}\n    t = asyncio.create_task(work())\n{text}"


def test_the_wrong_example_is_found_and_the_right_one_is_not() -> None:
    assert lines(kind("HF115").wrong) == [5]
    assert findings(kind("HF115").right) == []


def test_the_finding_names_the_await_and_the_cancel() -> None:
    (finding,) = findings(kind("HF115").wrong)
    assert [each.place.line for each in finding.related] == [6, 9]
    assert "line 6" in finding.message


@pytest.mark.parametrize(
    "text",
    [
        "    await g()\n    t.cancel()\n",
        "    await asyncio.shield(t)\n    t.cancel()\n",
        "    await asyncio.wait([t], timeout=1)\n    if not t.done():\n        t.cancel()\n",
        "    async for each in queue:\n        pass\n    t.cancel()\n",
        "    try:\n        await g()\n    except OSError:\n        t.cancel()\n        raise\n"
        "    t.cancel()\n",
        "    try:\n        await g()\n    finally:\n        log()\n    t.cancel()\n",
        "    try:\n        await g()\n    except asyncio.CancelledError:\n        log()\n        raise\n"
        "    t.cancel()\n",
        "    ts = [t]\n    done, rest = await asyncio.wait(ts)\n    for each in rest:\n"
        "        each.cancel()\n",
    ],
)
def test_an_await_that_may_leave_before_the_cancel_is_found(text: str) -> None:
    assert lines(body(text)) == [3]


@pytest.mark.parametrize(
    "text",
    [
        "    try:\n        await g()\n    finally:\n        t.cancel()\n",
        "    try:\n        await g()\n    finally:\n        if t:\n            t.cancel()\n",
        "    try:\n        await g()\n    finally:\n        await close()\n        t.cancel()\n",
        "    try:\n        await g()\n    except BaseException:\n        t.cancel()\n        raise\n"
        "    t.cancel()\n",
        "    try:\n        await asyncio.wait([t])\n    except asyncio.CancelledError:\n"
        "        t.cancel()\n        raise\n    t.cancel()\n",
        "    try:\n        await g()\n    except asyncio.CancelledError:\n        pass\n    t.cancel()\n",
        "    t.cancel()\n    await g()\n",
        "    await t\n    t.cancel()\n",  # the await passes the cancellation on
        "    await asyncio.wait_for(t, 1)\n    t.cancel()\n",
        "    await asyncio.gather(t, g())\n    t.cancel()\n",
        "    await g()\n",  # nothing shows that it has to end
        "    tasks.add(t)\n    await g()\n    t.cancel()\n",
        "    g(t)\n    await g()\n    t.cancel()\n",
        "    if t.done():\n        t.result()\n    else:\n        t.cancel()\n    await g()\n",
    ],
)
def test_a_task_that_ends_on_every_way_is_not(text: str) -> None:
    assert findings(body(text)) == []


def test_tasks_that_are_left_together_are_one_finding() -> None:
    text = "    u = asyncio.create_task(more())\n    await g()\n    t.cancel()\n    u.cancel()\n"
    assert lines(body(text)) == [3]


def test_a_plain_function_and_the_entry_point_of_a_program_are_not_interrupted() -> None:
    text = "    await g()\n    t.cancel()\n"
    assert findings(body(text, "async def main():")) == []
    assert findings(body("    t.cancel()\n", "def f():")) == []


def test_an_await_after_the_task_in_a_loop_is_named_before_one_that_stands_above() -> None:
    source = (
        "import asyncio\nasync def f(queue):\n    while True:\n        await queue.ready()\n"
        "        t = asyncio.create_task(queue.get())\n        await g()\n        t.cancel()\n"
        "        if queue.ended: return\n"
    )
    (finding,) = findings(source)
    assert "line 6" in finding.message


def test_a_function_that_never_returns_has_no_way_on_which_all_goes_well() -> None:
    source = (
        "import asyncio\nasync def supervise(make, changed):\n"
        "    t = asyncio.create_task(make())\n    while True:\n        await changed.wait()\n"
        "        t.cancel()\n        {last}\n        t = asyncio.create_task(make())\n"
    )
    assert findings(source.format(last="await asyncio.wait([t])")) == []
    assert lines(source.format(last="if changed.last: return")) == [8]
