"""The line that swallows a cancel, for each way to do it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from handfast._explore.verdict.swallower import AwaitLine, swallower
from handfast.explore import explore, victim

LINES = Path(__file__).read_text().splitlines()


async def by_name() -> None:
    try:
        await asyncio.sleep(1)
    except ValueError:
        pass
    except asyncio.CancelledError:  # here
        pass


async def in_a_tuple() -> None:
    try:
        try:
            await asyncio.sleep(1)
        except asyncio.CancelledError:
            raise
    except (OSError, BaseException):  # here
        pass


async def bare() -> None:
    try:
        await asyncio.sleep(1)
    except:  # noqa: E722  # here
        pass


async def suppressed() -> None:
    with suppress(OSError), suppress(asyncio.CancelledError):  # here
        await asyncio.sleep(1)


async def in_the_caller() -> None:
    async def inner() -> None:
        try:
            await asyncio.sleep(1)
        finally:
            await asyncio.sleep(0)

    try:
        await inner()
    except asyncio.CancelledError:  # here
        pass


@pytest.mark.parametrize("swallow", [by_name, in_a_tuple, bare, suppressed, in_the_caller])
def test_it_is_named(swallow: Callable[[], Coroutine[Any, Any, None]]) -> None:
    line = re.fullmatch(rf".*test_swallower\.py:(\d+) in {swallow.__name__}", place(swallow))
    assert line is not None
    assert LINES[int(line[1]) - 1].endswith("# here")


# A text, because Python warns about it since 3.14 (PEP 765).
JUMP = """
async def jump_in_finally():
    while True:
        try:
            await asyncio.sleep(1)
        finally:
            break
"""


@pytest.mark.filterwarnings("ignore:'break' in a 'finally' block:SyntaxWarning")
def test_a_jump_in_a_finally_is_named(tmp_path: Path) -> None:
    file = tmp_path / "jump.py"
    file.write_text(JUMP)
    names: dict[str, Any] = {"asyncio": asyncio}
    exec(compile(JUMP, str(file), "exec"), names)
    assert place(names["jump_in_finally"]).endswith("jump.py:7 in jump_in_finally")


def test_without_a_handler_or_a_source_there_is_none(tmp_path: Path) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("def f(:\n")
    here = AwaitLine(__file__, 1, "f")
    assert swallower([here, AwaitLine(str(broken), 1, "f"), AwaitLine("<string>", 1, "f")]) == ""
    assert swallower([AwaitLine(asyncio.tasks.__file__, 1, "sleep")]) == ""


def place(swallow: Callable[[], Coroutine[Any, Any, None]]) -> str:
    """The line that the explorer names."""

    async def program() -> None:
        await victim(swallow())

    counterexample = explore(program, cancel=True).counterexample
    assert counterexample is not None
    assert counterexample.code == "HF501"
    (where,) = counterexample.verdict.where
    return where
