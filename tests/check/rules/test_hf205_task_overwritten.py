"""HF205: a task is not overwritten while it may run."""

from __future__ import annotations

import pytest

from handfast._check.finding import Finding
from handfast._check.model.syntax.module import Module
from handfast._check.rules.hf205_task_overwritten import RULE
from handfast._check.source import parse
from handfast.catalogue import kind


def findings(source: str) -> list[Finding]:
    return list(RULE.check(Module(parse("x.py", source.encode()), "x")))


def found(source: str) -> list[tuple[int, bool]]:
    """The lines with a finding, each with whether it is reported by default."""
    return [(each.place.line, not each.pedantic) for each in findings(source)]


def test_the_wrong_example_is_found_and_the_right_one_is_not() -> None:
    assert found(kind("HF205").wrong) == [(10, True)]
    assert found(kind("HF205").right) == []


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (
            "import asyncio\nclass C:\n    async def _run(self):\n        while True:\n"
            "            await g()\n    async def close(self):\n        self._task.cancel()\n"
            "        await self._task\n    def reconnect(self):\n"
            "        self._task = asyncio.create_task(self._run())\n",
            [(10, True)],
        ),
        (
            "import asyncio\nclass C:\n    async def _run(self):\n        while True:\n"
            "            await g()\n    async def close(self):\n        self._task.cancel()\n"
            "        await self._task\n    def start(self):\n"
            "        self._task = asyncio.create_task(self._run())\n",
            [],
        ),
        (
            "import asyncio\nclass C:\n    async def _run(self):\n        while True:\n"
            "            await g()\n    async def close(self):\n        self._task.cancel()\n"
            "        await self._task\n    def reconnect(self):\n        self._task.cancel()\n"
            "        self._task = asyncio.create_task(self._run())\n",
            [],
        ),
        (
            "import asyncio\nclass C:\n    async def _run(self):\n        while True:\n"
            "            await g()\n    async def close(self):\n        self._task.cancel()\n"
            "        await self._task\n    def reconnect(self):\n        if self.open:\n"
            "            self._task = asyncio.create_task(self._run())\n",
            [],
        ),
        (
            "import asyncio\nclass C:\n    async def _run(self):\n        while True:\n"
            "            await g()\n    async def close(self):\n        self._task.cancel()\n"
            "        await self._task\n    def reconnect(self):\n        if self.open:\n"
            "            return\n        self._task = asyncio.create_task(self._run())\n",
            [],
        ),
        (
            "import asyncio\nclass C:\n    async def _run(self):\n        while True:\n"
            "            await g()\n    async def close(self):\n        self._task.cancel()\n"
            "        await self._task\n    def _reconnect(self):\n"
            "        self._task = asyncio.create_task(self._run())\n    async def again(self):\n"
            "        await self._task\n        self._reconnect()\n",
            [],
        ),
        (
            "import asyncio\nclass C:\n    async def _run(self):\n        while True:\n"
            "            await g()\n    async def close(self):\n        self._task.cancel()\n"
            "        await self._task\n    def reconnect(self):\n"
            "        self._task = t = asyncio.create_task(self._run())\n        keep(t)\n",
            [],
        ),
        (
            "import asyncio\nclass C:\n    async def _run(self):\n        while self.open:\n"
            "            await g()\n    async def close(self):\n        self._task.cancel()\n"
            "        await self._task\n    def reconnect(self):\n"
            "        self._task = asyncio.create_task(self._run())\n",
            [],
        ),
        (
            "import asyncio\nclass C:\n    async def _run(self):\n        while True:\n"
            "            await g()\n    async def close(self):\n        self.other.cancel()\n"
            "        await self.other\n    def reconnect(self):\n"
            "        self._task = asyncio.create_task(self._run())\n",
            [],
        ),
        (
            "import asyncio\nclass C:\n    async def _run(self):\n        while True:\n"
            "            await g()\n    async def on_disconnect(self):\n"
            "        self._task.cancel()\n        await self._task\n    def on_connect(self):\n"
            "        self._task = asyncio.create_task(self._run())\n",
            [],
        ),
    ],
)
def test_stores_of_tasks(source: str, expected: list[tuple[int, bool]]) -> None:
    assert found(source) == expected


PLAYER = """
import asyncio

class Player:
    def play(self, track):
        self._task = asyncio.create_task(self._play(track))

    async def _play(self, track):
        await track.load()

    async def stop(self):
        self._task.cancel()
"""


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("", "", [(6, True)]),
        ("self._play(track)", "self._play()", []),
        ("self._play(track)", "track", []),
        ("def play", "def start", []),
        ("self._task.cancel()", "await self._task", []),
    ],
)
def test_a_task_for_an_argument(old: str, new: str, expected: list[tuple[int, bool]]) -> None:
    assert found(PLAYER.replace(old, new)) == expected
