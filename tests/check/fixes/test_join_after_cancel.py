"""Fixes of HF103 and HF303: wait for a task after it is cancelled."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from handfast.catalogue import kind
from tests.check.fixes.fixing import findings, fixed, suggestions


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "bot.py"


@pytest.mark.parametrize(
    ("code", "join"),
    [
        ("HF103", "    if pending:\n        await asyncio.wait(pending)\n    return"),
        (
            "HF303",
            "        cancelled = {self._task}\n        self._task = None\n"
            "        await asyncio.wait(cancelled)\n",
        ),
    ],
)
def test_the_wrong_examples_wait_after_the_cancel(path: Path, code: str, join: str) -> None:
    [found] = suggestions(path, kind(code).wrong, code)
    assert found.fix is not None
    assert (found.fix.safe, found.fix.message) == (False, "wait for its end after the cancel")
    assert join in fixed(path, kind(code).wrong, code)


FUNCTION = """\
import asyncio


async def work(x):
    try:
        await x()
    finally:
        await x.aclose()


async def answer(ask, x):
    task = asyncio.create_task(work(x))
    {body}
"""


def function(body: str) -> str:
    return FUNCTION.format(body=body)


@pytest.mark.parametrize(
    ("body", "join"),
    [
        ("task.cancel()  # over", "task.cancel()  # over\n    await asyncio.wait({task})\n"),
        ("task.cancel(msg='over')", "    await asyncio.wait({task})\n"),
        (
            "try:\n        await ask()\n    finally:\n        task.cancel()",
            "        task.cancel()\n        await asyncio.wait({task})\n",
        ),
        (
            "if task is not None:\n        task.cancel()\n    ask()",
            "        task.cancel()\n        await asyncio.wait({task})\n    ask()",
        ),
        (
            "tasks = [task]\n    for t in tasks:\n        t.cancel()\n    ask()",
            "    if tasks:\n        await asyncio.wait(tasks)\n    ask()",
        ),
        (
            "tasks = {1: task}\n    for t in tasks.values():\n        t.cancel()",
            "    if tasks:\n        await asyncio.wait(tasks.values())\n",
        ),
        (
            "tasks = {1: task}\n    for key, t in list(tasks.items()):\n        t.cancel()",
            "    if tasks:\n        await asyncio.wait(tasks.values())\n",
        ),
        (
            "tasks = {1: task}\n    for key, t in tasks.items():\n        print(key)\n        t.cancel()",
            "    if tasks:\n        await asyncio.wait(tasks.values())\n",
        ),
        (
            "tasks = {task}\n    for t in list(tasks):\n        if not t.done():\n            t.cancel()",
            "    if tasks:\n        await asyncio.wait(tasks)\n",
        ),
        (
            "other = task\n    for t in (task, other):\n        t.cancel()",
            "    await asyncio.wait({task, other})\n",
        ),
        (
            "task.cancel()\n    ask.cancel()\n    x.cancel()\n    ask()",
            "    x.cancel()\n    await asyncio.wait({task})\n    ask()",
        ),
        (
            "task.cancel()\n    ask.cancel()\n    task = None",
            "    ask.cancel()\n    cancelled = {task}\n    task = None\n"
            "    await asyncio.wait(cancelled)\n",
        ),
        (
            "try:\n        task.cancel()\n    except ValueError:\n        pass",
            "        await asyncio.wait({task})\n",
        ),
        (
            "try:\n        await ask()\n    except BaseException:\n        task.cancel()\n        raise",
            "        await asyncio.wait({task})\n        raise",
        ),
        (
            "with suppress(KeyError), ask:\n        task.cancel()",
            "        await asyncio.wait({task})\n",
        ),
        (
            "for _ in range(3):\n        task.cancel()\n    ask()",
            "        task.cancel()\n        await asyncio.wait({task})\n    ask()",
        ),
    ],
)
def test_each_form_of_cancel_is_followed_by_a_wait(path: Path, body: str, join: str) -> None:
    assert join in fixed(path, function(body), "HF103")


@pytest.mark.parametrize(
    "body",
    [
        "task.cancel(); ask()",
        "if ask: task.cancel()",
        "gone = task.cancel()",
        "task and task.cancel()",
        "[t.cancel() for t in [task]]",
        "tasks = [task]\n    for t in tasks:\n        if ask(t):\n            t.cancel()",
        "tasks = [task]\n    for t in tasks:\n        t.cancel()\n        break",
        "tasks = [task]\n    for t in tasks:\n        t.cancel()\n    else:\n        ask()",
        "tasks = [task]\n    for t in tasks: t.cancel(); ask()",
        "tasks = (t for t in [task])\n    for t in tasks:\n        t.cancel()",
        "tasks = filter(None, [task])\n    for t in tasks:\n        t.cancel()",
        "tasks = [task]\n    for t in ask(tasks):\n        t.cancel()",
        "tasks = [task]\n    for t in [*tasks]:\n        t.cancel()",
        "tasks = [[1, task]]\n    for _, t in tasks:\n        t.cancel()",
        "asyncio = ask\n    task.cancel()",
        "with suppress(asyncio.CancelledError):\n        task.cancel()",
        "try:\n        task.cancel()\n    except BaseException:\n        pass",
        "try:\n        if ask:\n            task.cancel()\n    except:\n        pass",
        "task.cancel()\n    ask.cancel(); x()",
    ],
)
def test_no_fix_if_it_is_not_clear_what_to_wait_for(path: Path, body: str) -> None:
    path.write_text(function(body))
    assert [each.fix for each in findings(path, "HF103")] in ([], [None])


def test_no_fix_in_an_async_generator(path: Path) -> None:
    body = "yield 1\n    task.cancel()"
    assert suggestions(path, function(body), "HF103") == []


@pytest.mark.parametrize(
    ("line", "join"),
    [
        ("import asyncio as aio", "    await aio.wait({task})\n"),
        ("import asyncio.subprocess", "    await asyncio.wait({task})\n"),
        ("import asyncio.subprocess as asyncio_subprocess", ""),
        ("from asyncio import create_task", ""),
        ("if True:\n    import asyncio", ""),
    ],
)
def test_the_fix_uses_the_name_of_asyncio_in_the_file(path: Path, line: str, join: str) -> None:
    name = "aio.create_task" if " as aio" in line else "asyncio.create_task"
    name = "create_task" if "from" in line else name
    source = function("task.cancel()").replace("import asyncio\n", f"{line}\n")
    source = source.replace("asyncio.create_task", name)
    if "asyncio_subprocess" in line:
        source = source.replace("\n\n\nasync", "\nfrom asyncio import create_task\n\n\nasync", 1)
        source = source.replace("asyncio.create_task", "create_task")
    if join:
        assert join in fixed(path, source, "HF103")
    else:
        assert suggestions(path, source, "HF103") == []


def test_tabs_stay_tabs(path: Path) -> None:
    body = "tasks = [task]\n    for t in tasks:\n        t.cancel()"
    after = fixed(path, function(body).replace("    ", "\t"), "HF103")
    assert "\n\tif tasks:\n\t\tawait asyncio.wait(tasks)\n" in after


AGENT = """\
import asyncio


class Agent:
    def __init__(self):
        self._tasks = {{}}

    def start(self, key):
        self._task = asyncio.create_task(self._run())
        self._tasks[key] = asyncio.create_task(self._run())

    async def _run(self):
        await asyncio.sleep(1)
        {run}

    {kind} close(self):
        {close}
"""


def agent(close: str, *, run: str = "pass", kind: str = "async def") -> str:
    return AGENT.format(close=close, run=run, kind=kind)


@pytest.mark.parametrize(
    ("close", "join"),
    [
        (
            "if self._task:\n            self._task.cancel()\n            self._task = None",
            "            cancelled = {self._task}\n            self._task = None\n"
            "            await asyncio.wait(cancelled)\n",
        ),
        (
            "task, self._task = self._task, None\n        task.cancel()",
            "        task.cancel()\n        await asyncio.wait({task})\n",
        ),
        (
            "for task in self._tasks.values():\n            task.cancel()\n        self._tasks.clear()",
            "        cancelled = set(self._tasks.values())\n        self._tasks.clear()\n"
            "        if cancelled:\n            await asyncio.wait(cancelled)\n",
        ),
        (
            "for task in self._tasks.values():\n            task.cancel()\n        self._tasks = {}\n"
            "        cancelled = 1",
            "        cancelled_tasks = set(self._tasks.values())\n        self._tasks = {}\n"
            "        if cancelled_tasks:\n            await asyncio.wait(cancelled_tasks)\n",
        ),
        (
            "for task in self._tasks.values():\n            task.cancel()\n        print()",
            "        if self._tasks:\n            await asyncio.wait(self._tasks.values())\n        print",
        ),
        (
            "self._task.cancel()\n        self._x, self._task = 1, None",
            "        self._x, self._task = 1, None\n        await asyncio.wait(cancelled)\n",
        ),
        (
            "for task in self._tasks.values():\n            task.cancel()\n"
            "        self._tasks: dict = {}",
            "        self._tasks: dict = {}\n        if cancelled:\n",
        ),
        (
            "self._task.cancel()\n        del self._task",
            "        del self._task\n        await asyncio.wait(cancelled)\n",
        ),
        (
            "self._tasks['x'].cancel()",
            "        await asyncio.wait({self._tasks['x']})\n",
        ),
    ],
)
def test_a_close_method_waits(path: Path, close: str, join: str) -> None:
    assert join in fixed(path, agent(close), "HF303")


def test_a_task_that_closes_its_own_object_does_not_wait_for_itself(path: Path) -> None:
    after = fixed(path, agent("self._task.cancel()", run="await self.close()"), "HF303")
    assert (
        """
        self._task.cancel()
        cancelled = {self._task} - {asyncio.current_task()}
        if cancelled:
            await asyncio.wait(cancelled)
"""
        in after
    )
    several = "for task in self._tasks.values():\n            task.cancel()\n        print()"
    assert """
        cancelled = set(self._tasks.values()) - {asyncio.current_task()}
        if cancelled:
            await asyncio.wait(cancelled)
        print()
""" in fixed(path, agent(several, run="await self.close()"), "HF303")


@pytest.mark.parametrize(
    ("close", "kind"),
    [
        ("self._task.cancel()", "def"),
        ("self._tasks.pop('x').cancel()", "async def"),
        ("for key in self._tasks:\n            self._tasks[key].cancel()", "async def"),
        (
            "for task in self._tasks.values():\n            task.cancel()\n        print()\n"
            "        self._tasks.clear()",
            "async def",
        ),
        ("self._task.cancel()\n        self._task = None; print()", "async def"),
        (
            "cancelled = cancelled_tasks = ending = 1\n        self._task.cancel()\n"
            "        self._task = None",
            "async def",
        ),
    ],
)
def test_a_close_method_that_cannot_wait_has_no_fix(path: Path, close: str, kind: str) -> None:
    assert suggestions(path, agent(close, kind=kind), "HF303") == []


# --- the fixed code ------------------------------------------------------------------------------


def loaded(source: str) -> Any:
    names: dict[str, Any] = {}
    exec(compile(source, "bot.py", "exec"), names)
    return SimpleNamespace(**names)


def test_the_fixed_close_returns_when_its_task_has_ended(path: Path) -> None:
    program = loaded(fixed(path, kind("HF303").wrong, "HF303"))
    ended = []

    async def beat() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append(True)

    async def run() -> None:
        heartbeat = program.Heartbeat(beat)
        await asyncio.sleep(0)
        await heartbeat.close()
        assert ended == [True]

    asyncio.run(run())


@pytest.mark.parametrize("servers", [[1], [1, 2, 3]])
def test_the_fixed_race_leaves_no_task(path: Path, servers: list[int]) -> None:
    program = loaded(fixed(path, kind("HF103").wrong, "HF103"))

    async def ask(server: int) -> int:
        try:
            await (asyncio.sleep(0) if server == 1 else asyncio.Event().wait())
        finally:
            await asyncio.sleep(0)
        return server

    async def run() -> None:
        assert await program.first_answer(ask, servers) == 1
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(run())


def test_the_fixed_close_can_be_called_by_its_own_task(path: Path) -> None:
    source = agent("self._task.cancel()", run="await self.close()")
    program = loaded(fixed(path, source, "HF303").replace("sleep(1)", "sleep(0)"))

    async def run() -> None:
        own = program.Agent()
        own._task = asyncio.create_task(own._run())
        await asyncio.wait({own._task})
        assert own._task.done()

    asyncio.run(run())
