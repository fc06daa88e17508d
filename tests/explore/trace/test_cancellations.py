"""Every report says who cancelled which task, and where."""

from __future__ import annotations

import asyncio
import pickle
import re
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from handfast._explore.trace import cancel_calls
from handfast._explore.trace.cancel_text import cancel_lines
from handfast._explore.trace.model import Cancellation, Lane, Trace
from handfast.explore import explore

HERE = Path(__file__).name
Program = Callable[[], Coroutine[Any, Any, None]]


def cancelled(program: Program, **options: Any) -> list[str]:
    """The lines of the report about cancels, without the folder of this file."""
    found = explore(program, **options).counterexample
    assert found is not None
    lines = list(found.verdict.cancelled)
    for text in (found.report(width=300), str(found), found.to_html()):
        assert all(line in text for line in lines)
    assert found.replay().cancelled == found.verdict.cancelled
    assert pickle.loads(pickle.dumps(found.verdict)).cancelled == found.verdict.cancelled
    return [re.sub(r"\S*[/\\]", "", line) for line in lines]


def line_of(text: str, function: str) -> str:
    """`file:line in function` of the only line with this text in this file."""
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    (at,) = (n for n, line in enumerate(lines, start=1) if line.strip() == text)
    return f"{HERE}:{at} in {function}"


def test_a_task_that_cancels_another_is_named_with_its_line() -> None:
    async def program() -> None:
        waiting = asyncio.create_task(asyncio.sleep(5), name="waiting")

        async def impatient() -> None:
            waiting.cancel("enough")

        await asyncio.gather(impatient())
        await waiting

    where = line_of('waiting.cancel("enough")', "impatient")
    assert cancelled(program) == [f"waiting was cancelled by impatient at {where}"]


def test_the_explorer_is_named_with_the_line_at_which_the_task_waited() -> None:
    async def program() -> None:
        async def work() -> None:
            try:
                await asyncio.sleep(7)
            except asyncio.CancelledError:
                await asyncio.sleep(0)

        await asyncio.wait([asyncio.create_task(work())])

    where = line_of("await asyncio.sleep(7)", "work")
    expected = f"work was cancelled by the explorer while it waited at {where}"
    assert cancelled(program, cancel=True) == [expected]


def test_a_timeout_and_a_task_group_are_named() -> None:
    async def program() -> None:
        async def slow() -> None:
            await asyncio.sleep(9)

        async def fails() -> None:
            async with asyncio.timeout(1):
                await asyncio.sleep(11)

        async with asyncio.TaskGroup() as group:
            group.create_task(slow())
            group.create_task(fails())

    lines = cancelled(program)
    assert lines[:2] == [
        f"fails was cancelled by its timeout while it waited at "
        f"{line_of('await asyncio.sleep(11)', 'fails')}",
        f"slow was cancelled by its task group while it waited at "
        f"{line_of('await asyncio.sleep(9)', 'slow')}",
    ]
    assert lines[2].startswith("program was cancelled by its task group while it waited at ")


def test_a_callback_and_a_task_that_cancels_itself_are_named() -> None:
    async def program() -> None:
        me = asyncio.current_task()
        assert me is not None
        other = asyncio.create_task(asyncio.sleep(3), name="other")
        asyncio.get_running_loop().call_later(1, other.cancel)
        third = asyncio.create_task(asyncio.sleep(3), name="third")

        def stop() -> None:
            third.cancel()

        asyncio.get_running_loop().call_later(2, stop)
        await asyncio.wait([third])
        await asyncio.wait([other])
        me.cancel()
        await asyncio.sleep(0)

    by_callback, by_function, by_itself = cancelled(program)
    assert by_callback.startswith("other was cancelled by a callback while it waited at ")
    assert by_function.startswith("third was cancelled by the callback stop at test_")
    assert by_itself == f"program was cancelled by itself at {line_of('me.cancel()', 'program')}"


def test_a_task_that_waits_nowhere_is_named_without_a_line() -> None:
    trace = Trace(lanes=[Lane(0, "work", None, None, None)])
    trace.cancellations.append(Cancellation(0, None, "", None, None, 0))
    assert cancel_lines(trace) == ("work was cancelled by the explorer",)


def test_many_cancels_are_counted() -> None:
    async def program() -> None:
        tasks = [asyncio.create_task(asyncio.sleep(1), name=f"task {n}") for n in range(9)]
        await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        raise AssertionError

    found = explore(program).counterexample
    assert found is not None
    assert len(found.verdict.cancelled) == 6
    assert found.verdict.cancelled[-1] == "and 4 other calls of cancel()"


def test_no_profiler_is_left_and_another_one_is_not_replaced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def program() -> None:
        task = asyncio.create_task(asyncio.sleep(1), name="task")
        await asyncio.sleep(0)
        task.cancel()
        await task

    def other(*event: object) -> None: ...

    assert explore(program).counterexample is not None
    assert sys.getprofile() is None
    sys.setprofile(other)
    try:
        found = explore(program).counterexample
        assert sys.getprofile() is other
    finally:
        sys.setprofile(None)
    assert found is not None
    assert " while it waited at " in found.verdict.cancelled[0]  # the line of the call is unknown
    monkeypatch.setattr(cancel_calls, "_MOST_CALLS", 3)
    assert found.verdict.cancelled == explore(program).counterexample.verdict.cancelled  # type: ignore[union-attr]


def test_the_hook_sees_calls_of_cancel_on_tasks_only() -> None:
    """Called as the interpreter calls it; what runs inside a hook is not measured."""
    seen: list[object] = []
    calls = cancel_calls.CancelCalls(lambda task, frame: seen.append(task))

    async def program() -> None:
        task = asyncio.create_task(asyncio.sleep(1))
        future = asyncio.get_running_loop().create_future()
        for event, called in [
            ("c_call", task.cancel),
            ("c_call", future.cancel),
            ("c_call", task.done),
            ("c_return", task.cancel),
            ("call", None),
        ]:
            calls._called(sys._getframe(), event, called)
        task.cancel()
        await asyncio.wait([task])
        calls._left = 0
        calls._called(sys._getframe(), "c_call", task.cancel)
        assert seen == [task]

    asyncio.run(program())
