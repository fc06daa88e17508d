"""HF114: the siblings of a failed coroutine are ended."""

from __future__ import annotations

import pytest

from handfast._check.finding import Finding
from handfast._check.model.syntax.module import Module
from handfast._check.rules.hf114_siblings_run_on import RULE
from handfast._check.source import parse
from handfast.catalogue import kind


def findings(source: str) -> list[Finding]:
    return list(RULE.check(Module(parse("x.py", source.encode()), "x")))


def found(source: str) -> list[tuple[int, bool]]:
    """The lines with a finding, each with whether it is reported by default."""
    return [(each.place.line, not each.pedantic) for each in findings(source)]


def test_the_wrong_example_is_found_and_the_right_one_is_not() -> None:
    assert found(kind("HF114").wrong) == [(7, True)]
    assert found(kind("HF114").right) == []


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (
            "import asyncio\nasync def f(c):\n    while True:\n        try:\n"
            "            await asyncio.gather(g(), h())\n        except Exception:\n"
            "            log()\n",
            [(5, True)],
        ),
        (
            "import asyncio\nasync def f(c):\n    while True:\n        try:\n"
            "            await asyncio.gather(g(), h())\n        except Exception:\n"
            "            return\n",
            [(5, True)],
        ),
        (
            "import asyncio\nasync def f(c):\n    while True:\n        try:\n"
            "            await asyncio.gather(g(), h())\n        except OSError:\n"
            "            log()\n",
            [],
        ),
        (
            "import asyncio\nasync def f(c):\n    try:\n        await asyncio.gather(g(), h())\n"
            "    except Exception:\n        if c:\n            raise\n",
            [],
        ),
        (
            "import asyncio\nasync def f(c):\n    try:\n        await asyncio.gather(*map(g, c))\n"
            "    except Exception:\n        log()\n",
            [(4, False)],
        ),
        (
            "import asyncio\nasync def f(c):\n    try:\n"
            "        await asyncio.gather(*(g(c, x) for x in xs))\n    finally:\n"
            "        await c.close()\n",
            [(4, False)],
        ),
        (
            "import asyncio\nasync def f(c):\n    try:\n        await asyncio.gather(g(c))\n"
            "    finally:\n        await c.close()\n",
            [],
        ),
        (
            "import asyncio\nasync def f(c):\n    try:\n"
            "        await asyncio.gather(g(c), h(c), return_exceptions=True)\n    finally:\n"
            "        await c.close()\n",
            [],
        ),
        (
            "import asyncio\nasync def f(c):\n    try:\n"
            "        await asyncio.gather(g(c), h(c), return_exceptions=False)\n    finally:\n"
            "        await c.close()\n",
            [(4, True)],
        ),
        (
            "import asyncio\nasync def f(c):\n    try:\n        await asyncio.gather(g(), h())\n"
            "    finally:\n        await c.close()\n",
            [],
        ),
        (
            "import asyncio\nasync def f(c):\n    try:\n        x = asyncio.gather(g(c), h(c))\n"
            "    finally:\n        await c.close()\n",
            [],
        ),
        (
            "import asyncio\nasync def f(c):\n    try:\n        await asyncio.gather(g(c), h(c))\n"
            "    finally:\n        t.cancel()\n        await c.close()\n",
            [],
        ),
        (
            "import asyncio\nasync def f(c):\n    try:\n        await asyncio.gather(g(c), h(c))\n"
            "    finally:\n        await end(c)\n",
            [],
        ),
    ],
)
def test_gathers(source: str, expected: list[tuple[int, bool]]) -> None:
    assert found(source) == expected
