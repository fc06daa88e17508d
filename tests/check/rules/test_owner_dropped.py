"""HF113: an owner of tasks is closed on every way out."""

from __future__ import annotations

import pytest

from holdfast.catalogue import kind
from holdfast.check.finding import Finding
from holdfast.check.model.module import Module
from holdfast.check.rules.owner_dropped import RULE
from holdfast.check.source import parse


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


def test_an_early_return_that_passes_the_close_by_is_no_excuse() -> None:
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
def test_an_owner_that_is_closed_or_in_other_hands_is_left_alone(body: str) -> None:
    assert lines(first(body)) == []
