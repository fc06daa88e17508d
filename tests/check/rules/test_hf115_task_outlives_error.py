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


FEED = """    queue = asyncio.Queue({limit})
    async def work():
        while (item := await queue.get()) is not None: await handle(item)
    async def fill(into): await into.put(1)
    t = asyncio.create_task({work})
{rest}"""
TWO = "    u = asyncio.create_task(more())\n"


@pytest.mark.parametrize(
    "text",
    [
        "    await g()\n    await cancel_all([t])\n",
        "    done, rest = await asyncio.wait([t], timeout=1)\n    for each in rest:\n"
        "        await aio.gracefully_cancel(each)\n",
        TWO + "    a = await t\n    b = await u\n    return a, b\n",
        TWO + "    return await u, await t\n",
        TWO + "    x = await u, await t\n",
        TWO + "    try:\n        await u\n    except OSError:\n        pass\n    await t\n",
        "    async for each in queue:\n        yield each\n    await t\n",
    ],
)
def test_a_task_that_something_else_leaves_is_found(text: str) -> None:
    assert len(lines(body(text))) == 1


@pytest.mark.parametrize(
    ("work", "limit", "expected"),
    [("work()", "", True), ("fill(queue)", "3", True), ("fill(queue)", "", False)],
)
def test_a_task_that_waits_for_the_function_is_found(work: str, limit: str, expected: bool) -> None:
    rest = "    await g(queue)\n    await t\n"
    source = "import asyncio\nasync def f():\n" + FEED.format(work=work, limit=limit, rest=rest)
    assert bool(lines(source)) is expected
    assert bool(findings(source))


@pytest.mark.parametrize(
    "rest",
    [
        "    try:\n        await g(queue)\n    finally:\n        queue.put_nowait(None)\n    await t\n",
        "    try:\n        await g(queue)\n    finally:\n        await t\n",
        "    try:\n        await g()\n    except BaseException:\n        queue.put_nowait(None)\n"
        "        raise\n    await t\n",
        "    queue.put_nowait(None)\n    await t\n",
    ],
)
def test_a_task_that_the_function_tells_to_end_is_not(rest: str) -> None:
    source = "import asyncio\nasync def f():\n" + FEED.format(work="work()", limit="", rest=rest)
    assert findings(source) == []


@pytest.mark.parametrize(
    "text",
    [
        TWO + "    await asyncio.wait([t, u])\n    return await t, await u\n",
        TWO + "    await asyncio.gather(t, u)\n    return await t, await u\n",
        TWO + "    try:\n        return await u, await t\n    finally:\n        t.cancel()\n"
        "        u.cancel()\n",
        TWO + "    try:\n        return await u, await t\n    finally:\n        timer.cancel()\n"
        "        await cancel_all(t, u)\n",
        "    try:\n        async for each in queue:\n            yield each\n    finally:\n"
        "        await t\n",
        "    async with cancel_on_exit(t):\n        await g()\n        await t\n",
        "    async with Tasks() as tasks:\n        tasks.add(t)\n        await g()\n"
        "        await t\n",
        "    try:\n        try:\n            await g()\n        finally:\n            timer.cancel()\n"
        "            await cancel_all(t)\n    finally:\n        await close()\n",
    ],
)
def test_a_task_that_something_ends_or_waits_for_is_not(text: str) -> None:
    assert findings(body(text)) == []


@pytest.mark.parametrize(
    "text",
    [
        "    await g()\n    await t\n",
        TWO + "    try:\n        await u\n    except Exception:\n        pass\n    await t\n",
        "    x = await g(), await t\n",
    ],
)
def test_a_task_that_may_be_wanted_is_pedantic(text: str) -> None:
    (finding,) = findings(body(text))
    assert finding.pedantic


@pytest.mark.parametrize(
    "source",
    [
        "import asyncio\nqueue = asyncio.Queue()\nasync def work(): await queue.get()\n"
        "async def f():\n    t = asyncio.create_task(work())\n    await g()\n    await t\n",
        "import asyncio\nasync def f(given):\n    queue = given\n"
        "    async def work(): await queue.get()\n    t = asyncio.create_task(work())\n"
        "    await g()\n    await t\n",
    ],
)
def test_a_queue_that_others_have_does_not_wait_for_this_function(source: str) -> None:
    (finding,) = findings(source)
    assert finding.pedantic


def test_the_second_of_two_tasks_that_a_finally_awaits() -> None:
    text = TWO + "    try:\n        return await u, await t\n    finally:\n        await t\n"
    assert findings(body(text)) == []


def test_a_timer_that_runs_on_does_nothing() -> None:
    text = "    await g()\n    await t\n"
    assert findings(body(text).replace("work()", "asyncio.sleep(3)")) == []


def test_a_context_manager_is_left_by_an_error_in_its_block() -> None:
    head = "@contextlib.asynccontextmanager\nasync def f():"
    (finding,) = findings("import contextlib\n" + body("    yield 1\n    await t\n", head))
    assert "An error in the block" in finding.message
    assert not finding.pedantic


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


WORKER = """\
import asyncio

async def work(queue):
    while True:
        job = await queue.get()
        if job is None:
            break
        task = None
        try:
            task = asyncio.create_task(job())
            done, _ = await asyncio.wait({task}, timeout=1)
            if task in done:
                result = task.result()
            else:
                task.cancel()
        except asyncio.CancelledError:
            task.cancel()
            raise
        except Exception:
            log()
"""


def test_nothing_but_a_cancellation_leaves_a_wait() -> None:
    assert findings(WORKER) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("asyncio.wait({task}, timeout=1)", "listen()"),
        ("done, _ = await asyncio.wait({task}, timeout=1)", "done = await job.wait({task})"),
    ],
)
def test_an_error_of_another_await_leaves_the_task(old: str, new: str) -> None:
    assert [each.place.line for each in findings(WORKER.replace(old, new))] == [10]


def test_a_task_that_a_failed_test_leaves_is_pedantic() -> None:
    source = """\
import asyncio

async def {name}():
    task = asyncio.create_task(work())
    await entered.wait()
    task.cancel()
"""
    assert [each.pedantic for each in findings(source.format(name="test_work"))] == [True]
    assert [each.pedantic for each in findings(source.format(name="testing"))] == [False]
