"""HF211: two callers do not do the same work."""

from __future__ import annotations

import pytest

from handfast._check.finding import Finding
from handfast._check.model.syntax.module import Module
from handfast._check.rules.hf211_slot_work_doubled import RULE
from handfast._check.source import parse
from handfast.catalogue import kind


def findings(source: str) -> list[Finding]:
    return list(RULE.check(Module(parse("x.py", source.encode()), "x")))


def found(source: str) -> list[tuple[int, bool]]:
    """The lines with a finding, each with whether it is reported by default."""
    return [(each.place.line, not each.pedantic) for each in findings(source)]


def test_the_wrong_example_is_found_and_the_right_one_is_not() -> None:
    assert found(kind("HF211").wrong) == [(8, False)]
    assert found(kind("HF211").right) == []


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (
            "class C:\n    async def close(self):\n        await self._c.close()\n"
            "    async def ask(self):\n        if self._c is None:\n"
            "            self._c = await connect()\n",
            [(6, True)],
        ),
        (
            "class C:\n    async def close(self):\n        await self._c.close()\n"
            "    async def ask(self):\n        if not self._c:\n            log()\n"
            "            self._c = await self.driver.open_connection()\n",
            [(7, True)],
        ),
        (
            "class C:\n    async def close(self):\n        await self._c.close()\n"
            "    async def ask(self):\n        if self._c is None:\n"
            "            self._c = await load()\n",
            [(6, False)],
        ),
        (
            "class C:\n    async def close(self):\n        await self._c.close()\n"
            "    async def ask(self):\n        if self._x is None:\n"
            "            self._x = await connect()\n",
            [(6, False)],
        ),
        (
            "class C:\n    async def close(self):\n        await self._c.close()\n"
            "    async def ask(self):\n        if self._c is not None:\n"
            "            self._c = await connect()\n",
            [],
        ),
        (
            "class C:\n    async def close(self):\n        await self._c.close()\n"
            "    async def ask(self):\n        if self._x is None:\n"
            "            self._c = await connect()\n",
            [],
        ),
        (
            "class C:\n    async def close(self):\n        await self._c.close()\n"
            "    async def ask(self):\n        if self._c is None:\n"
            "            self._opening = True\n            self._c = await connect()\n",
            [],
        ),
        (
            "class C:\n    async def close(self):\n        await self._c.close()\n"
            "    async def ask(self):\n        if self._c is None:\n"
            "            c = await connect()\n",
            [],
        ),
        (
            "class C:\n    async def close(self):\n        await self._c.close()\n"
            "    async def ask(self):\n        async with self._lock:\n"
            "            if self._c is None:\n                self._c = await connect()\n",
            [],
        ),
        (
            "class C:\n    async def close(self):\n        await self._c.close()\n"
            "    async def ask(self):\n        if k not in self._c:\n"
            "            self._d[k] = await connect()\n",
            [],
        ),
        (
            "class C:\n    async def close(self):\n        await self._c.close()\n"
            "    async def start(self):\n        if self._c is None:\n"
            "            self._c = await connect()\n",
            [(6, False)],
        ),
        (
            "class C:\n    async def close(self):\n        await self._c.close()\n"
            "    async def _ask(self):\n        if self._c is None:\n"
            "            self._c = await connect()\n    async def run(self):\n        while True:\n"
            "            await self._ask()\n",
            [],
        ),
        (
            "class C:\n    async def close(self):\n        await self._c.close()\n"
            "    async def ask(self):\n        pass\n    async def stop(self):\n"
            "        if self._c is None:\n            self._c = await connect()\n",
            [],
        ),
    ],
)
def test_lookups_before_an_await(source: str, expected: list[tuple[int, bool]]) -> None:
    assert found(source) == expected


LIMITS = """\
class Pool:
    async def get(self, limit):
        {body}
"""
OPEN = "self._all.append(await self.connect())"


@pytest.mark.parametrize(
    ("body", "line"),
    [
        (f"if len(self._all) < limit:\n            {OPEN}", 4),
        ("if len(self._all) < limit:\n            new = await self.connect()\n"
         "            self._all.add(new)", 5),
        ("if len(self._all) >= limit:\n            raise RuntimeError\n"
         "        new = await self.connect()\n        self._all.append(new)", 6),
        ("if self._active < limit:\n            await self.log()\n            self._active += 1", 5),
        ("if self._active >= limit:\n            return\n        await self.log()\n"
         "        self._active += 1", 6),
    ],
)  # fmt: skip
def test_a_limit_that_is_tested_before_an_await_is_found(body: str, line: int) -> None:
    found = findings(LIMITS.format(body=body))
    assert [(each.place.line, each.pedantic) for each in found] == [(line, False)]


@pytest.mark.parametrize(
    "body",
    [
        "if len(self._all) < limit:\n            self._all.append(1)\n        await self.log()",
        f"async with self._lock:\n            if len(self._all) < limit:\n                {OPEN}",
        "if self._active < limit:\n            self._active += 1\n            await self.log()",
        "if len(self._all) < limit:\n            new = await self.connect()\n"
        "            if len(self._all) < limit:\n                self._all.append(new)",
        f"if len(self._all) > limit:\n            {OPEN}",
        f"if len(self._other) < limit:\n            {OPEN}",
        f"if self._all:\n            {OPEN}",
        OPEN,
        "if self._active < limit:\n            await self.log()\n            self._other += 1",
        "if self._all < limit:\n            await self.log()\n            self._all.append(1)",
    ],
)
def test_a_limit_that_holds_is_not_reported(body: str) -> None:
    assert findings(LIMITS.format(body=body)) == []


def test_a_worker_that_opens_one_after_the_other_keeps_its_limit() -> None:
    source = LIMITS.format(body=f"if len(self._all) < limit:\n            {OPEN}")
    worker = "    async def run(self):\n        while True:\n            await self.get(3)\n"
    assert findings(source + worker) == []
