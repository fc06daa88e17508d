"""HF304: no task waits for itself in the close method of its object."""

from __future__ import annotations

import pytest

from handfast._check.finding import Finding
from handfast._check.model.syntax.module import Module
from handfast._check.rules.hf304_close_joins_itself import RULE
from handfast._check.source import parse
from handfast.catalogue import kind


def findings(source: str) -> list[Finding]:
    return list(RULE.check(Module(parse("x.py", source.encode()), "x")))


def found(source: str) -> list[tuple[int, bool]]:
    """The lines with a finding, each with whether it is reported by default."""
    return [(each.place.line, not each.pedantic) for each in findings(source)]


def test_the_wrong_example_is_found_and_the_right_one_is_not() -> None:
    assert found(kind("HF304").wrong) == [(17, True)]
    assert found(kind("HF304").right) == []


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (
            "import asyncio\nclass C:\n    def start(self):\n"
            "        self._task = asyncio.create_task(self._run())\n    async def _run(self):\n"
            "        while True:\n            await g()\n            await self.close()\n"
            "    async def close(self):\n        self._task.cancel()\n        await self._task\n",
            [(11, True)],
        ),
        (
            "import asyncio\nclass C:\n    def start(self):\n"
            "        self._task = asyncio.create_task(self._run())\n    async def _run(self):\n"
            "        while True:\n            await g()\n            await self.close()\n"
            "    async def close(self):\n        self._task.cancel()\n        await h()\n",
            [(10, True)],
        ),
        (
            "import asyncio\nclass C:\n    def start(self):\n"
            "        self._task = asyncio.create_task(self._run())\n    async def _run(self):\n"
            "        while True:\n            await g()\n            await self.close()\n"
            "    async def close(self):\n        self._task.cancel()\n",
            [],
        ),
        (
            "import asyncio\nclass C:\n    def start(self):\n"
            "        self._task = asyncio.create_task(self._run())\n    async def _run(self):\n"
            "        while True:\n            await g()\n            await self.close()\n"
            "    async def close(self):\n        await h()\n",
            [],
        ),
        (
            "import asyncio\nclass C:\n    def start(self):\n"
            "        self._task = asyncio.create_task(self._run())\n    async def _run(self):\n"
            "        while True:\n            await g()\n            await self.close()\n"
            "    async def close(self):\n        self._task.cancel()\n        try:\n"
            "            await self._task\n        except asyncio.CancelledError:\n"
            "            pass\n",
            [],
        ),
        (
            "import asyncio\nclass C:\n    def start(self):\n"
            "        self._task = asyncio.create_task(self._run())\n    async def _run(self):\n"
            "        while True:\n            await g()\n            await self.close()\n"
            "    async def close(self):\n        try:\n            self._task.cancel()\n"
            "            await h()\n        except asyncio.CancelledError:\n            pass\n",
            [],
        ),
        (
            "import asyncio\nclass C:\n    def start(self):\n"
            "        self._task = asyncio.create_task(self._run())\n    async def _run(self):\n"
            "        while True:\n            await g()\n            await self.close()\n"
            "    async def close(self):\n        if self._task is not None:\n"
            "            await self._task\n",
            [(11, True)],
        ),
        (
            "import asyncio\nclass C:\n    def start(self):\n"
            "        self._task = asyncio.create_task(self._run())\n    async def _run(self):\n"
            "        while True:\n            await g()\n            await self.close()\n"
            "    async def close(self):\n        if self._task is not self._current:\n"
            "            await self._task\n",
            [],
        ),
        (
            "import asyncio\nclass C:\n    def start(self):\n"
            "        self._task = asyncio.create_task(self._run())\n    async def _run(self):\n"
            "        while True:\n            await g()\n            await self.close()\n"
            "    async def close(self):\n        self._stop()\n        await h()\n"
            "    def _stop(self):\n        self._task.cancel()\n",
            [(13, True)],
        ),
        (
            "import asyncio\nclass C:\n    def start(self):\n"
            "        self._task = asyncio.create_task(self._run())\n    async def _run(self):\n"
            "        while True:\n            await g()\n    async def close(self):\n"
            "        self._task.cancel()\n        await self._task\n",
            [],
        ),
        (
            "import asyncio\nclass C:\n    def start(self):\n"
            "        self._task = asyncio.create_task(self._run())\n    async def _run(self):\n"
            "        while True:\n            await g()\n            self.close()\n"
            "    def close(self):\n        self._task.cancel()\n",
            [],
        ),
    ],
)
def test_close_methods_that_the_task_calls(source: str, expected: list[tuple[int, bool]]) -> None:
    assert found(source) == expected


def test_a_close_method_that_knows_its_task_is_right() -> None:
    source = kind("HF304").wrong.replace(
        "_task.cancel()", "_task.cancel()\n        asyncio.current_task()"
    )
    assert found(source) == []
    assert found(source.replace("current_task", "get_running_loop"))


TIMER = """
import asyncio
class Batch:
    def add(self, item):
        self._timer = asyncio.create_task(self._later())
    async def _later(self):
        await asyncio.sleep(5)
        {first}
        {flush}
    async def flush(self):
        {before}
        {cancel}
        await self.send()
    def _reset(self):
        self._timer.cancel()
"""


def timer(
    first: str = "log()",
    flush: str = "await self.flush()",
    before: str = "log()",
    cancel: str = "self._timer.cancel()",
) -> str:
    return TIMER.format(first=first, flush=flush, before=before, cancel=cancel)


def test_a_timer_that_the_method_it_calls_cancels() -> None:
    assert found(timer()) == [(12, True)]
    assert found(timer(cancel="self._reset()")) == [(15, True)]
    (finding,) = findings(timer(cancel="self._reset()"))
    assert "at its next `await`" in finding.message


@pytest.mark.parametrize(
    "source",
    [
        timer(first="self._timer = None"),
        timer(first="self._timer = None", cancel="self._reset()"),
        timer(before="if asyncio.current_task() is self._timer: return"),
        timer(before="if self._timer is not self.current: return", cancel="self._reset()"),
        timer(flush="self._reset()"),
        timer(flush="while True: await self.read(); self._reset()"),
        timer(flush="await self.read()"),
        timer(cancel="self._other.cancel()"),
    ],
)
def test_a_timer_that_is_not_cut_short(source: str) -> None:
    assert found(source) == []
