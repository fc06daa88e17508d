"""HF731: which generator is not closed."""

from __future__ import annotations

import pytest

from handfast._check.finding import Finding
from handfast._check.model.syntax.module import Module
from handfast._check.rules.hf731_generator_left_open import RULE
from handfast._check.source import parse
from handfast.catalogue import kind


def findings(source: str) -> list[Finding]:
    return list(RULE.check(Module(parse("x.py", source.encode()), "x")))


def lines(source: str) -> list[int]:
    """The lines of the findings that are shown by default."""
    return [each.place.line for each in findings(source) if not each.pedantic]


def pedantic(source: str) -> list[int]:
    return [each.place.line for each in findings(source) if each.pedantic]


def test_the_wrong_example_is_found_with_pedantic_and_the_right_one_is_not() -> None:
    assert RULE.code == kind("HF731").code
    assert pedantic(kind("HF731").wrong) == [2]
    assert findings(kind("HF731").right) == []


GENERATOR = """\
from contextlib import aclosing

async def rows(pool):
    async with pool.connection() as connection:
        async for row in connection.cursor():
            yield row

"""


def find(loop: str) -> str:
    return f"{GENERATOR}async def find(pool, wanted):\n{loop}"


@pytest.mark.parametrize("word", ["break", "return row"])
def test_a_generator_that_holds_something_and_is_left_early_is_found(word: str) -> None:
    source = find(f"    async for row in rows(pool):\n        if row:\n            {word}\n")
    (finding,) = findings(source)
    assert (finding.place.line, finding.pedantic) == (9, False)
    assert [each.place.line for each in finding.related] == [11, 4]


def test_a_generator_under_a_name_is_found() -> None:
    source = find("    found = rows(pool)\n    async for row in found:\n        return row\n")
    assert lines(source) == [10]


def test_a_finally_that_waits_is_something_to_put_away() -> None:
    source = """\
async def rows(cursor):
    try:
        while True:
            yield await cursor.fetch()
    finally:
        await cursor.close()

async def first(cursor):
    async for row in rows(cursor):
        return row
"""
    assert lines(source) == [9]


def test_a_generator_around_such_a_generator_is_found() -> None:
    source = (
        GENERATOR
        + """\
async def names(pool):
    async for row in rows(pool):
        yield row.name

async def first(pool):
    async for name in names(pool):
        return name
"""
    )
    assert lines(source) == [13]


@pytest.mark.parametrize(
    "loop",
    [
        "    async with aclosing(rows(pool)) as found:\n"
        "        async for row in found:\n            return row\n",
        "    found = rows(pool)\n    try:\n        async for row in found:\n            return row\n"
        "    finally:\n        await found.aclose()\n",
        "    async for row in rows(pool):\n        print(row)\n",
        "    async for row in rows(pool):\n        for each in row:\n            break\n",
        "    found = rows(pool)\n    async for head in found:\n        break\n"
        "    async for row in found:\n        print(row)\n",
    ],
)
def test_closed_exhausted_or_gone_on_with_is_silent(loop: str) -> None:
    assert findings(find(loop)) == []


def test_a_generator_with_nothing_to_put_away_is_silent() -> None:
    source = """\
async def ticks():
    while True:
        yield await tick()

async def first():
    async for each in ticks():
        return each
"""
    assert findings(source) == []


def test_clean_up_that_does_not_wait_is_a_matter_of_taste() -> None:
    source = """\
async def rows(path):
    with open(path) as file:
        for line in file:
            yield line

async def first(path):
    async for row in rows(path):
        return row
"""
    assert lines(source) == []
    assert pedantic(source) == [7]


def test_the_phase_of_the_report_is_found() -> None:
    # Seed 003: it breaks out of the stream and leaves it to the collector.
    source = find(
        "    messages = rows(pool)\n    kept.append(messages)\n"
        "    async for number in messages:\n        return number\n"
    )
    assert lines(source) == [11]


@pytest.mark.parametrize("first", ["anext(rows(pool))", "rows(pool).__anext__()"])
def test_taking_only_the_first_is_found(first: str) -> None:
    assert lines(find(f"    return await {first}\n")) == [9]
