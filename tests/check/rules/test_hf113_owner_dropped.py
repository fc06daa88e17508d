"""HF113: an object with tasks is closed on every path."""

from __future__ import annotations

import pytest

from handfast._check.finding import Finding
from handfast._check.model.syntax.module import Module
from handfast._check.rules.hf113_owner_dropped import RULE
from handfast._check.source import parse
from handfast.catalogue import kind


def findings(source: str) -> list[Finding]:
    return list(RULE.check(Module(parse("x.py", source.encode()), "x")))


def lines(source: str) -> list[int]:
    return [each.place.line for each in findings(source)]


def test_the_wrong_example_is_found_and_the_right_one_is_not() -> None:
    assert RULE.code == kind("HF113").code
    assert not RULE.pedantic
    (finding,) = findings(kind("HF113").wrong)
    assert finding.place.line == 17
    assert [each.place.line for each in finding.related] == [19, 18, 7]
    assert lines(kind("HF113").right) == []


FEED = kind("HF113").wrong.partition("async def first")[0]
LISTENER = FEED.replace("__init__(self, listen)", "start(self, listen)")


def first(body: str, feed: str = FEED) -> str:
    return f"{feed}async def first(listen, parse):\n{body}"


def test_an_early_return_that_skips_the_close_is_found() -> None:
    body = (
        "    feed = Feed(listen)\n    if await parse():\n        return\n    await feed.aclose()\n"
    )
    assert len(lines(first(body))) == 1


def test_a_task_that_a_method_starts_counts_from_its_call() -> None:
    started = (
        "    feed = Feed()\n    feed.start(listen)\n    await parse()\n    await feed.aclose()\n"
    )
    assert len(lines(first(started, LISTENER))) == 1
    assert lines(first(started.replace("    feed.start(listen)\n", ""), LISTENER)) == []


@pytest.mark.parametrize(
    "body",
    [
        "    feed = Feed(listen)\n    try:\n        await parse()\n    finally:\n"
        "        await feed.aclose()\n",
        "    feed = Feed(listen)\n    try:\n        await parse()\n    finally:\n        await parse()\n"
        "        await feed.aclose()\n",
        "    feed = Feed(listen)\n    await feed.aclose()\n",
        "    feed = Feed(listen)\n    parse()\n    await feed.aclose()\n",
        "    feed = Feed(listen)\n    keep(feed)\n    await parse()\n    await feed.aclose()\n",
        "    feed = Feed(listen)\n    async with aclosing(feed):\n        await parse()\n",
        "    feed = Feed(listen)\n    await parse()\n",
        "    feed = Feed(listen)\n    await parse()\n    await feed.aclose()\n    return lambda: feed\n",
        "    feed = Feed(listen)\n    feed = Feed(listen)\n    await parse()\n    await feed.aclose()\n",
        "    feed = Other(listen)\n    await parse()\n    await feed.aclose()\n",
        "    feed = Feed(listen)\n    x = feed.items\n    try:\n        await x\n"
        "    except BaseException:\n        await feed.aclose()\n        raise\n    await feed.aclose()\n",
    ],
)
def test_an_owner_that_is_closed_or_passed_on_is_not_reported(body: str) -> None:
    assert lines(first(body)) == []
