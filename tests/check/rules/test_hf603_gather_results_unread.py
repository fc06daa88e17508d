"""HF603: which exceptions nothing reads."""

from __future__ import annotations

import pytest

from handfast._check.finding import Finding
from handfast._check.model.syntax.module import Module
from handfast._check.rules.hf603_gather_results_unread import RULE
from handfast._check.source import parse
from handfast.catalogue import kind


def findings(source: str) -> list[Finding]:
    return list(RULE.check(Module(parse("x.py", source.encode()), "x")))


def lines(source: str) -> list[int]:
    """The lines of the findings that are shown by default."""
    return [each.place.line for each in findings(source) if not each.pedantic]


def pedantic_lines(source: str) -> list[int]:
    return [each.place.line for each in findings(source) if each.pedantic]


def test_the_wrong_example_is_found_and_the_right_one_is_not() -> None:
    assert RULE.code == kind("HF603").code
    assert not RULE.pedantic
    assert lines(kind("HF603").wrong) == [5]
    assert findings(kind("HF603").right) == []


SAVE = """\
import asyncio
async def save(document):
    await document.write()
async def save_all(documents):
    jobs = [save(each) for each in documents]
    await asyncio.gather(*jobs, return_exceptions=True)
"""


def test_the_coroutine_whose_error_is_lost_is_named() -> None:
    assert lines(SAVE) == [6]
    assert findings(SAVE)[0].related[0].place.line == 2


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    await asyncio.gather", "    done = await asyncio.gather"),
        ("return_exceptions=True", "return_exceptions=False"),
        ("    jobs =", "    old.cancel()\n    jobs ="),
        ("[save(each) for each in documents]", "documents"),
        ("save(each)", "each.wait()"),
        (
            "    await document.write()",
            "    try:\n        await document.write()\n    except Exception:\n        log()",
        ),
    ],
)
def test_results_that_say_nothing_or_are_read_are_left_alone(old: str, new: str) -> None:
    assert findings(SAVE.replace(old, new, 1)) == []


@pytest.mark.parametrize(("old", "new"), [("save_all", "close"), ("save(each)", "each.close()")])
def test_cleaning_up_is_a_matter_of_taste(old: str, new: str) -> None:
    source = SAVE.replace(old, new)
    assert lines(source) == []
    assert pedantic_lines(source) == [6]


def test_tasks_made_one_by_one_are_seen() -> None:
    source = """\
import asyncio
async def go(self, items):
    tasks = []
    for item in items:
        tasks.append(asyncio.create_task(self.client.push(item)))
    await asyncio.gather(*tasks, return_exceptions=True)
"""
    assert lines(source) == [6]


def test_a_comment_that_speaks_of_errors_says_that_it_is_meant() -> None:
    meant = "    # If one of them fails, we do not care.\n    await asyncio"
    assert findings(SAVE.replace("    await asyncio", meant)) == []


FETCH = """\
import asyncio
async def fetch_all(pages, sem):
    async def fetch(page):
        if page.known:
            return
        async with sem:
            {fetch}
    await asyncio.gather(*[fetch(each) for each in pages], return_exceptions=True)

async def fetch_page(page):
    try:
        page.text = await page.get()
    except {kind}:
        page.text = None
"""


def test_an_error_that_what_is_awaited_handles_is_not_lost() -> None:
    for fetch in (
        "await fetch_page(page)",
        "return await fetch_page(page)",
        "got = await fetch_page(page)",
    ):
        assert findings(FETCH.format(fetch=fetch, kind="Exception")) == []
        assert lines(FETCH.format(fetch=fetch, kind="KeyError")) == [8]
    assert lines(FETCH.format(fetch="await page.get()", kind="Exception")) == [8]
    assert lines(FETCH.format(fetch="raise await fetch_page(page)", kind="Exception")) == [8]
    entered = FETCH.replace("async with sem:", "async with sem.enter(page):")
    assert lines(entered.format(fetch="await fetch_page(page)", kind="Exception")) == [8]
    awaited = FETCH.replace("if page.known:", "if await page.known():")
    assert lines(awaited.format(fetch="await fetch_page(page)", kind="Exception")) == [8]


@pytest.mark.parametrize(
    ("name", "default"),
    [("async_abort_all", False), ("__pre_destroy__", False), ("load_all", True), ("about", True)],
)
def test_a_method_that_ends_all_is_pedantic(name: str, default: bool) -> None:
    source = f"""\
import asyncio

class Sessions:
    async def {name}(self):
        await asyncio.gather(*(each.update() for each in self.sessions), return_exceptions=True)
"""
    assert [not each.pedantic for each in findings(source)] == [default]


TWO = """\
import asyncio
async def both(one, two):
    one, two = asyncio.create_task(one.get()), asyncio.create_task(two.get())
    tasks = [one, two]
    await asyncio.gather({gathered}, return_exceptions=True)
    {after}
"""


@pytest.mark.parametrize(
    ("gathered", "after", "expected"),
    [
        ("one, two", "return await one, await two", []),
        ("*tasks", "for task in tasks: await task", []),
        ("*tasks", "return [await task for task in tasks]", []),
        ("one, two", "return await three", [5]),
        ("*tasks", "for task in others: await task", [5]),
        ("one, two", "pass", [5]),
    ],
)
def test_a_task_that_is_awaited_once_more_raises_its_error(
    gathered: str, after: str, expected: list[int]
) -> None:
    source = TWO.format(gathered=gathered, after=after)
    assert lines(source) == expected
