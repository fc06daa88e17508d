"""HF701: a child process is waited for or killed on every path."""

from __future__ import annotations

import pytest

from handfast._check.finding import Finding
from handfast._check.model.syntax.module import Module
from handfast._check.rules.hf701_process_left_running import RULE
from handfast._check.source import parse
from handfast.catalogue import kind


def findings(source: str) -> list[Finding]:
    return list(RULE.check(Module(parse("x.py", source.encode()), "x")))


def found(source: str) -> list[tuple[int, bool]]:
    """The lines with a finding, each with whether it is reported by default."""
    return [(each.place.line, not each.pedantic) for each in findings(source)]


def test_the_wrong_example_is_found_and_the_right_one_is_not() -> None:
    assert found(kind("HF701").wrong) == [(6, False)]
    assert found(kind("HF701").right) == []


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (
            "import asyncio\nasync def f():\n    p = await asyncio.create_subprocess_exec('x')\n",
            [(3, True)],
        ),
        (
            "import asyncio\nasync def f():\n    p = await asyncio.create_subprocess_exec('x')\n"
            "    if p and p.pid:\n        print(p.pid)\n",
            [(3, True)],
        ),
        (
            "import asyncio\nasync def f():\n    p = await asyncio.create_subprocess_exec('x')\n"
            "    await asyncio.wait_for(p.wait(), 1)\n",
            [(3, True)],
        ),
        (
            "import asyncio\nasync def f():\n    p = await asyncio.create_subprocess_exec('x')\n"
            "    async with asyncio.timeout(1):\n        await p.communicate()\n",
            [(3, True)],
        ),
        (
            "import asyncio\nasync def f():\n    p = await asyncio.create_subprocess_exec('x')\n"
            "    async with lock:\n        await p.communicate()\n",
            [(3, False)],
        ),
        (
            "import asyncio\nasync def f():\n    p = await asyncio.create_subprocess_exec('x')\n"
            "    keep(p)\n",
            [],
        ),
        (
            "import asyncio\nasync def f():\n    p = await asyncio.create_subprocess_exec('x')\n"
            "    return p\n",
            [],
        ),
        (
            "import asyncio\nasync def f():\n    p = await asyncio.create_subprocess_exec('x')\n"
            "    p.kill()\n",
            [],
        ),
        (
            "import asyncio\nasync def f():\n    p = await asyncio.create_subprocess_exec('x')\n"
            "    try:\n        await p.wait()\n    finally:\n        end(p)\n",
            [],
        ),
        (
            "import asyncio\nasync def f():\n    p = await asyncio.create_subprocess_exec('x')\n"
            "    try:\n        await p.wait()\n    except OSError:\n        p.returncode\n",
            [],
        ),
        (
            "import asyncio\nasync def f():\n    p = await asyncio.create_subprocess_exec('x')\n"
            "    try:\n        await p.wait()\n    finally:\n        log()\n",
            [(3, False)],
        ),
        (
            "import asyncio\nasync def f(self):\n"
            "    self.p = await asyncio.create_subprocess_exec('x')\n",
            [],
        ),
    ],
)
def test_child_processes(source: str, expected: list[tuple[int, bool]]) -> None:
    assert found(source) == expected


@pytest.mark.parametrize(
    ("leave", "expected"),
    [
        ("if x:\n        return\n    await p.wait()", [(3, True)]),
        ("if x:\n        raise ValueError\n    await p.wait()", [(3, True)]),
        ("await p.wait()\n    return", [(3, False)]),
        (
            "try:\n        if x:\n            return\n        await p.wait()\n    finally:\n        end(p)",
            [],
        ),
        ("while True:\n        await p.wait()", [(3, False)]),
    ],
)
def test_an_early_exit(leave: str, expected: list[tuple[int, bool]]) -> None:
    source = "import asyncio\nasync def f(x):\n    p = await asyncio.create_subprocess_exec('x')\n"
    assert found(f"{source}    {leave}\n") == expected


@pytest.mark.parametrize("last", ["return child.pid", "self.pid = child.pid"])
def test_other_code_can_end_a_process_by_its_pid(last: str) -> None:
    source = f"""\
import asyncio
async def start(self):
    child = await asyncio.create_subprocess_exec("true")
    {last}
"""
    assert findings(source) == []
    assert findings(source.replace(last, "print(child.pid)"))


@pytest.mark.parametrize(
    ("handler", "expected"),
    [
        ("log.error('slow: %s', p.pid)", [(4, True)]),
        ("log.error('slow: %s', p.returncode); raise", [(4, True)]),
        ("os.kill(p.pid, 9)", []),
        ("log.error('slow: %s', p.pid); p.kill()", []),
        ("log.error('slow: %s', p)", []),
        ("if p.returncode is None:\n            end()", []),
    ],
)
def test_a_handler_that_only_logs_the_process_does_not_end_it(
    handler: str, expected: list[tuple[int, bool]]
) -> None:
    source = f"""\
import asyncio
import os
async def f(log):
    p = await asyncio.create_subprocess_exec('x')
    try:
        await asyncio.wait_for(p.wait(), 3)
    except TimeoutError:
        {handler}
"""
    assert found(source) == expected
