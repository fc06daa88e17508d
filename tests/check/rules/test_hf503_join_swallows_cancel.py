"""HF503: a waiter tells its own cancellation from that of the task."""

from __future__ import annotations

import pytest

from handfast._check.finding import Finding
from handfast._check.model.syntax.module import Module
from handfast._check.rules.hf503_join_swallows_cancel import RULE
from handfast._check.source import parse
from handfast.catalogue import kind


def findings(source: str) -> list[Finding]:
    return list(RULE.check(Module(parse("x.py", source.encode()), "x")))


def found(source: str) -> list[tuple[int, bool]]:
    """The lines with a finding, each with whether it is reported by default."""
    return [(each.place.line, not each.pedantic) for each in findings(source)]


def test_the_wrong_example_is_found_and_the_right_one_is_not() -> None:
    assert found(kind("HF503").wrong) == [(11, True)]
    assert found(kind("HF503").right) == []


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (
            "import asyncio\nclass C:\n    def __init__(self):\n"
            "        self._task = asyncio.create_task(g())\n    async def f(self):\n        try:\n"
            "            await self._task\n        except asyncio.CancelledError:\n"
            "            pass\n        await g()\n",
            [(8, True)],
        ),
        (
            "import asyncio\nclass C:\n    def __init__(self):\n"
            "        self._task = asyncio.create_task(g())\n    async def f(self):\n        try:\n"
            "            await self._task\n        except asyncio.CancelledError:\n"
            "            pass\n",
            [(8, False)],
        ),
        (
            "import asyncio\nclass C:\n    def __init__(self):\n"
            "        self._task = asyncio.create_task(g())\n    async def f(self):\n        try:\n"
            "            await self._task\n        except asyncio.CancelledError:\n"
            "            return None\n",
            [(8, False)],
        ),
        (
            "import asyncio\nclass C:\n    def __init__(self):\n"
            "        self._task = asyncio.create_task(g())\n    async def f(self):\n        try:\n"
            "            await self._task\n        except asyncio.CancelledError:\n"
            "            raise ConnectionError('lost')\n",
            [(8, True)],
        ),
        (
            "import asyncio\nclass C:\n    def __init__(self):\n"
            "        self._task = asyncio.create_task(g())\n    async def f(self):\n        try:\n"
            "            await self._task\n        except asyncio.CancelledError:\n"
            "            raise self.error\n",
            [],
        ),
        (
            "import asyncio\nclass C:\n    def __init__(self):\n"
            "        self._task = asyncio.create_task(g())\n    async def f(self):\n        try:\n"
            "            await self._task\n        except (OSError, asyncio.CancelledError):\n"
            "            raise ConnectionError\n",
            [],
        ),
        (
            "import asyncio\nclass C:\n    def __init__(self):\n"
            "        self._task = asyncio.create_task(g())\n    async def f(self):\n        try:\n"
            "            await self._task\n        except asyncio.CancelledError:\n"
            "            raise\n",
            [],
        ),
        (
            "import asyncio\nclass C:\n    def __init__(self):\n"
            "        self._task = asyncio.create_task(g())\n    async def close(self):\n"
            "        try:\n            await self._task\n        except asyncio.CancelledError:\n"
            "            pass\n",
            [(8, True)],  # the caller continues
        ),
        (
            "import asyncio\nclass C:\n    def __init__(self):\n"
            "        self._task = asyncio.create_task(g())\n    async def close(self):\n"
            "        self._timer.cancel()\n        if not self._task.done():\n            try:\n"
            "                await asyncio.shield(self._task)\n"
            "            except asyncio.CancelledError:\n                pass\n",
            [(10, True)],  # the task is not what it cancels, and `done()` comes before the `await`
        ),
        (
            "import asyncio\nclass C:\n    def __init__(self):\n"
            "        self._task = asyncio.create_task(g())\n    async def close(self):\n"
            "        self._task.cancel()\n        try:\n"
            "            await self._task\n"
            "        except asyncio.CancelledError:\n            pass\n",
            [(9, False)],
        ),
        (
            "import asyncio\nclass C:\n    def __init__(self):\n"
            "        self._task = asyncio.create_task(g())\n    async def f(self):\n        try:\n"
            "            await self._task\n        except asyncio.CancelledError:\n"
            "            raise self._error_of(1)\n",
            [(8, True)],
        ),
        (
            "import asyncio\nclass C:\n    def __init__(self):\n"
            "        self._task = asyncio.create_task(g())\n    async def f(self):\n"
            "        self._task.cancel()\n        try:\n            await self._task\n"
            "        except asyncio.CancelledError:\n            pass\n"
            "        self._task = asyncio.create_task(g())\n",
            [(9, True)],
        ),
        (
            "import asyncio\nclass C:\n    def __init__(self):\n"
            "        self._task = asyncio.create_task(g())\n    async def f(self):\n"
            "        self._task.cancel()\n        try:\n            await self._task\n"
            "        except asyncio.CancelledError:\n            pass\n        await g()\n",
            [(9, False)],
        ),
        (
            "import asyncio\nclass C:\n    def __init__(self):\n"
            "        self._task = asyncio.create_task(g())\n    async def f(self):\n"
            "        while True:\n            self._task.cancel()\n            try:\n"
            "                await self._task\n            except asyncio.CancelledError:\n"
            "                pass\n            await g()\n",
            [(10, True)],
        ),
        (
            "import asyncio\nclass C:\n    def __init__(self):\n"
            "        self._task = asyncio.create_task(g())\n    async def f(self):\n"
            "        while True:\n            self._task.cancel()\n            try:\n"
            "                await self._task\n            except asyncio.CancelledError:\n"
            "                break\n",
            [(10, False)],
        ),
        (
            "import asyncio\nclass C:\n    def __init__(self):\n"
            "        self._task = asyncio.create_task(g())\n    async def f(self):\n        try:\n"
            "            pass\n        finally:\n            try:\n"
            "                await self._task\n            except asyncio.CancelledError:\n"
            "                pass\n            await g()\n",
            [(11, False)],
        ),
        (
            "import asyncio\nclass C:\n    def __init__(self):\n"
            "        self._task = asyncio.create_task(g())\n    async def f(self):\n        try:\n"
            "            await self._task\n        except asyncio.CancelledError:\n"
            "            if not self._task.cancelled():\n                raise\n        await g()\n",
            [],
        ),
        (
            "import asyncio\nclass C:\n    def __init__(self):\n"
            "        self._task = asyncio.create_task(g())\n    async def f(self):\n        try:\n"
            "            await self._task\n        except OSError:\n            pass\n"
            "        await g()\n",
            [],
        ),
        (
            "import asyncio\nasync def f(task):\n    try:\n"
            "        await asyncio.wait_for(task, 1)\n    except asyncio.CancelledError:\n"
            "        pass\n    raise ValueError\n",
            [(5, True)],
        ),
        (
            "import asyncio\nasync def f(x):\n    try:\n        await x\n"
            "    except asyncio.CancelledError:\n        pass\n    await g()\n",
            [],
        ),
        (
            "import asyncio\nasync def f(loop):\n    x = loop.create_future()\n    try:\n"
            "        await x\n    except asyncio.CancelledError:\n        pass\n    await g()\n",
            [(6, True)],
        ),
        (
            "import asyncio\nasync def f(x):\n    try:\n        await x.reply_future\n"
            "        await x[0]\n    except asyncio.CancelledError:\n        pass\n    await g()\n",
            [(6, True)],
        ),
        (
            "import asyncio, contextlib\nasync def f(task):\n"
            "    with contextlib.suppress(asyncio.CancelledError):\n        await task\n"
            "    await g()\n",
            [(3, True)],
        ),
        (
            "import asyncio\nasync def main(task):\n    try:\n        await task\n"
            "    except asyncio.CancelledError:\n        pass\n    await g()\n",
            [],
        ),
        (
            "import asyncio\nasync def f(task):\n    try:\n        await g()\n"
            "        async with x: pass\n    except asyncio.CancelledError:\n        pass\n"
            "    await g()\n",
            [],
        ),
    ],
)
def test_waits_for_tasks(source: str, expected: list[tuple[int, bool]]) -> None:
    assert found(source) == expected


def test_in_a_handler_that_raises_again_nothing_is_lost() -> None:
    source = (
        "import asyncio, contextlib\nasync def f(task):\n    try:\n        await g()\n"
        "    except Exception:\n        with contextlib.suppress(BaseException):\n            await task\n"
        "        raise\n    await h()\n"
    )
    assert found(source) == []
    assert found(source.replace("        raise\n", "")) == [(6, True)]


REAPED = """\
import asyncio

async def reap(process):
    waiter = asyncio.ensure_future(process.wait())
    cancelled = False
    while True:
        try:
            await asyncio.shield(waiter)
            return cancelled
        except asyncio.CancelledError:
            cancelled = True
"""


def test_a_cancellation_that_the_function_returns_is_not_lost() -> None:
    assert found(REAPED) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("return cancelled", "return waiter"),
        ("            cancelled = True", "            other = True"),
        ("            cancelled = True", "            cancelled = False"),
    ],
)
def test_a_cancellation_that_is_not_returned_is_lost(old: str, new: str) -> None:
    assert found(REAPED.replace(old, new)) == [(10, True)]


SEVERAL = """
import asyncio
class C:
    async def finish(self):
        {wait}
        except asyncio.CancelledError:
            {handler}
        await self.flush()
"""


@pytest.mark.parametrize("tasks", ["self._tasks", "list(self._tasks.values())", "self.futures"])
def test_tasks_of_a_container(tasks: str) -> None:
    together = f"try: await asyncio.gather(*{tasks})"
    assert found(SEVERAL.format(wait=together, handler="pass")) == [(6, True)]
    loop = SEVERAL.replace(
        "        {wait}\n        except",
        f"        for each in {tasks}:\n          try: await each\n          except",
    )
    assert found(loop.format(handler="pass")) == [(7, True)]
    assert found(loop.format(handler="raise")) == []
    assert found(loop.format(handler="if asyncio.current_task().cancelling(): raise")) == []


def test_what_is_no_container_of_tasks() -> None:
    for given in ("self._jobs()", "self._calls"):
        wait = f"try: await asyncio.gather(*{given})"
        assert found(SEVERAL.format(wait=wait, handler="pass")) == []


def test_tasks_of_a_container_that_were_cancelled_before() -> None:
    wait = "for each in self._tasks: each.cancel()\n        try: await asyncio.gather(*self._tasks)"
    assert found(SEVERAL.format(wait=wait, handler="pass")) == [(7, False)]
