"""HF533: a result is set only on a future that is not done."""

from __future__ import annotations

import pytest

from handfast._check.finding import Finding
from handfast._check.model.syntax.module import Module
from handfast._check.rules.hf533_result_after_cancel import RULE
from handfast._check.source import parse
from handfast.catalogue import kind


def findings(source: str) -> list[Finding]:
    return list(RULE.check(Module(parse("x.py", source.encode()), "x")))


def found(source: str) -> list[tuple[int, bool]]:
    """The lines with a finding, each with whether it is reported by default."""
    return [(each.place.line, not each.pedantic) for each in findings(source)]


def test_the_wrong_example_is_found_and_the_right_one_is_not() -> None:
    assert found(kind("HF533").wrong) == [(17, True)]
    assert found(kind("HF533").right) == []


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (
            "import asyncio\nclass C:\n    async def ask(self):\n"
            "        self._f = asyncio.Future()\n        return await self._f\n"
            "    def got(self, x):\n        self._f.set_result(x)\n",
            [(7, True)],
        ),
        (
            "import asyncio\nclass C:\n    async def ask(self):\n"
            "        self._f = asyncio.Future()\n        return await self._f\n"
            "    def got(self, x):\n        self._f.set_result(x)\n    def lost(self, x):\n"
            "        self._f.set_exception(x)\n",
            [(7, True)],
        ),
        (
            "import asyncio\nclass C:\n    async def ask(self):\n"
            "        self._f = asyncio.Future()\n        return await self._f\n"
            "    def got(self, x):\n        if not self._f.done():\n"
            "            self._f.set_result(x)\n",
            [],
        ),
        (
            "import asyncio\nclass C:\n    async def ask(self):\n"
            "        self._f = asyncio.Future()\n        return await self._f\n"
            "    def got(self, x):\n        try:\n            self._f.set_result(x)\n"
            "        except asyncio.InvalidStateError:\n            pass\n",
            [],
        ),
        (
            "import asyncio\nclass C:\n    async def ask(self):\n"
            "        self._f = asyncio.Future()\n        return await self._f\n"
            "    def got(self, x):\n        try:\n            self._f.set_result(x)\n"
            "        except (KeyError, ValueError):\n            pass\n",
            [(8, True)],
        ),
        (
            "import asyncio\nclass C:\n    async def ask(self):\n"
            "        self._f = asyncio.Future()\n        return await self._f\n"
            "    def got(self, x):\n        with suppress(asyncio.InvalidStateError):\n"
            "            self._f.set_result(x)\n",
            [],
        ),
        (
            "import asyncio\nclass C:\n    async def ask(self):\n"
            "        self._f = asyncio.Future()\n        return await self._f\n"
            "    def got(self, x):\n        self._other.set_result(x)\n",
            [],
        ),
        (
            "import asyncio\nclass C:\n    async def ask(self):\n"
            "        self._f = asyncio.Future()\n        return await asyncio.shield(self._f)\n"
            "    def got(self, x):\n        self._f.set_result(x)\n",
            [],
        ),
        (
            "import asyncio\nclass C:\n    async def ask(self):\n"
            "        self._f = asyncio.Future()\n        return await self.wait(self._f)\n"
            "    def got(self, x):\n        self._f.set_result(x)\n",
            [],
        ),
        (
            "import asyncio\nclass C:\n    async def ask(self):\n"
            "        self._f = asyncio.Future()\n        try:\n            return await self._f\n"
            "        finally:\n            self._f = None\n    def got(self, x):\n"
            "        self._f.set_result(x)\n",
            [(10, False)],
        ),
        (
            "import asyncio\nclass C:\n    async def ask(self):\n"
            "        self._f = asyncio.Future()\n        try:\n            return await self._f\n"
            "        except TimeoutError:\n            self._f = None\n    def got(self, x):\n"
            "        self._f.set_result(x)\n",
            [(10, False)],
        ),
        (
            "import asyncio\nclass C:\n    def __init__(self):\n"
            "        self._f = asyncio.Future()\n        self._f.set_result(None)\n"
            "    async def ask(self):\n        await self._f\n",
            [],
        ),
        (
            "import asyncio\nclass C:\n    async def ask(self):\n        f = asyncio.Future()\n"
            "        self._fs.append(f)\n        keep.append(f)\n        await f\n"
            "    def got(self, x):\n        for f in self._fs:\n            f.set_result(x)\n",
            [(10, True)],
        ),
        (
            "import asyncio\nclass C:\n    async def ask(self):\n        f = asyncio.Future()\n"
            "        self._fs.append(f)\n    def got(self, x):\n        for f in self._fs:\n"
            "            f.set_result(x)\n",
            [],
        ),
    ],
)
def test_results(source: str, expected: list[tuple[int, bool]]) -> None:
    assert found(source) == expected


SCHEDULED = (
    "import asyncio\nasync def ask(loop, start):\n    future = loop.create_future()\n"
    "    def done(result):\n        {done}\n    start(done)\n    return await {wait}\n"
)
THREADSAFE = "loop.call_soon_threadsafe(future.set_result, result)"


@pytest.mark.parametrize(
    ("done", "wait", "expected"),
    [
        (THREADSAFE, "future", [(5, True)]),
        (THREADSAFE, "asyncio.wait_for(future, 1)", [(5, True)]),
        (THREADSAFE, "asyncio.shield(future)", []),
        (THREADSAFE, "other", []),
        (f"if not future.done(): {THREADSAFE}", "future", []),
        ("loop.call_later(1, future.set_result, None)", "future", []),
        ("loop.call_soon_threadsafe(other.set_result, result)", "future", []),
        ("loop.call_soon_threadsafe(finish, future)", "future", []),
        (f"{THREADSAFE}; {THREADSAFE}", "future", [(5, True)]),  # one cause
    ],
)
def test_a_result_that_the_loop_sets_later(
    done: str, wait: str, expected: list[tuple[int, bool]]
) -> None:
    assert found(SCHEDULED.format(done=done, wait=wait)) == expected


def test_a_timer_beside_another_method_that_sets_the_result() -> None:
    source = (
        "import asyncio\nclass C:\n    async def wait(self, loop):\n"
        "        future = loop.create_future()\n        self._waiting.append(future)\n"
        "        timer = loop.call_later(1, future.set_result, None)\n        try:\n"
        "            await future\n        finally:\n            self._waiting.remove(future)\n"
        "            timer.cancel()\n    def notify(self):\n        for each in self._waiting:\n"
        "            if not each.done():\n                each.set_result(None)\n"
    )
    assert found(source) == [(6, True)]
    assert found(source.replace("self._waiting.append(future)", "pass")) == []


def test_a_wait_for_of_the_project_waits_too() -> None:
    source = (
        "import asyncio\nclass C:\n    def __init__(self):\n        self._f = asyncio.Future()\n"
        "    async def ask(self):\n        return await self._wait_for(self._f, timeout=1)\n"
        "    def got(self, x):\n        self._f.set_result(x)\n"
    )
    assert found(source) == [(8, True)]
