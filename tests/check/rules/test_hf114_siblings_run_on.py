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
            [(5, False)],
        ),
        (
            "import asyncio\nasync def f(c):\n    while True:\n        try:\n"
            "            await asyncio.gather(g(), h())\n        except Exception:\n"
            "            return\n",
            [(5, False)],
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


HANDLED = """\
import asyncio

async def poll(api):
    while True:
        await api.poll()

async def receive(api):
    await api.receive()

async def load(api):
    try:
        await asyncio.gather(receive(api), poll(api))
    except Exception:
        log()
"""


def test_a_handled_error_leaves_an_endless_loop() -> None:
    assert found(HANDLED) == [(12, True)]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("while True", "while api.more"),
        ("poll(api))", "receive(api))"),
        ("        log()\n", "        log()\n    finally:\n        await api.leave()\n"),
    ],
)
def test_siblings_that_end_after_a_handled_error_are_pedantic(old: str, new: str) -> None:
    assert found(HANDLED.replace(old, new)) == [(12, False)]
