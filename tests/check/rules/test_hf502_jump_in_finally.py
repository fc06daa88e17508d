"""HF502: no jump leaves a `finally`."""

from __future__ import annotations

import pytest

from handfast._check.finding import Finding
from handfast._check.model.syntax.module import Module
from handfast._check.rules.hf502_jump_in_finally import RULE
from handfast._check.source import parse
from handfast.catalogue import kind


def findings(source: str) -> list[Finding]:
    return list(RULE.check(Module(parse("x.py", source.encode()), "x")))


def found(source: str) -> list[tuple[int, bool]]:
    """The lines with a finding, each with whether it is reported by default."""
    return [(each.place.line, not each.pedantic) for each in findings(source)]


def test_the_wrong_example_is_found_and_the_right_one_is_not() -> None:
    assert found(kind("HF502").wrong) == [(7, True)]
    assert found(kind("HF502").right) == []


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (
            "async def f():\n    while True:\n        try:\n            await g()\n"
            "        finally:\n            break\n",
            [(6, True)],
        ),
        (
            "async def f():\n    try:\n        g()\n    except OSError:\n        await g()\n"
            "    finally:\n        if h():\n            return\n",
            [(8, True)],
        ),
        (
            "async def f():\n    try:\n        await g()\n    finally:\n        for x in h():\n"
            "            break\n        def k():\n            return 1\n",
            [],
        ),
        (
            "async def f():\n    try:\n        await g()\n    finally:\n        for x in h():\n"
            "            return\n",
            [(6, True)],
        ),
        (
            "async def f():\n    try:\n        g()\n    finally:\n        return 1\n",
            [],
        ),
        (
            "def f():\n    try:\n        g()\n    finally:\n        return 1\n",
            [],
        ),
        (
            "async def f():\n    try:\n        await g()\n    finally:\n        try:\n"
            "            await h()\n        finally:\n            return 1\n",
            [(8, True)],
        ),
    ],
)
def test_jumps_in_finally(source: str, expected: list[tuple[int, bool]]) -> None:
    assert found(source) == expected
