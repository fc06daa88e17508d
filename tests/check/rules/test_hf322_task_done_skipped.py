"""HF322: ways from one `get` to the next that skip `task_done`."""

from __future__ import annotations

import pytest

from handfast._check.finding import Finding
from handfast._check.model.syntax.module import Module
from handfast._check.rules.hf322_task_done_skipped import RULE
from handfast._check.source import parse
from handfast.catalogue import kind


def findings(source: str) -> list[Finding]:
    return list(RULE.check(Module(parse("x.py", source.encode()), "x")))


def lines(source: str) -> list[int]:
    """The lines of the findings that are shown by default."""
    return [each.place.line for each in findings(source) if not each.pedantic]


def test_the_wrong_example_is_found_and_the_right_one_is_not() -> None:
    assert RULE.code == kind("HF322").code
    assert lines(kind("HF322").wrong) == [15]
    assert findings(kind("HF322").right) == []


def worker(body: str, join: str = "await self.queue.join()", get: str = "self.queue.get()") -> str:
    inside = body.replace("\n", "\n            ")
    return f"""\
class Worker:
    async def work(self):
        while True:
            item = await {get}
            {inside}
    async def drain(self):
        {join}
"""


DONE = "self.queue.task_done()"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (f"await self.handle(item)\n{DONE}", "and the worker ends"),
        (f"if item is None:\n    continue\n{DONE}", "From line 6 on"),
        (f"try:\n    await self.handle(item)\n    {DONE}\nexcept Exception:\n    pass",
         "on line 6 fails"),
        (f"try:\n    await self.handle(item)\nexcept BaseException:\n    log()\n    continue\n{DONE}",
         "on line 6 fails"),
        (f"try:\n    await self.handle(item)\nexcept ValueError:\n    pass\n{DONE}",
         "and the worker ends"),
        (f"try:\n    await self.handle(item)\nexcept Exception:\n    raise\n{DONE}",
         "and the worker ends"),
        (f"async with self.lock:\n    self.n += 1\n{DONE}", "and the worker ends"),
    ],
)  # fmt: skip
def test_a_way_past_task_done_is_found(body: str, message: str) -> None:
    found = findings(worker(body))
    assert len(found) == 1
    assert message in found[0].message


def test_the_queue_may_be_an_argument_of_the_worker() -> None:
    source = """\
async def work(queue):
    while True:
        item = await queue.get()
        await item()
        queue.task_done()
async def run(queue):
    await queue.join()
"""
    assert lines(source) == [5]


@pytest.mark.parametrize(
    "body",
    [
        f"try:\n    await self.handle(item)\nfinally:\n    {DONE}",
        f"{DONE}\nawait self.handle(item)",
        f"try:\n    await self.handle(item)\nexcept Exception:\n    log()\n{DONE}",
        f"try:\n    await self.handle(item)\nexcept Exception:\n    {DONE}\n    continue\n{DONE}",
        # Only a cancellation goes past it.
        f"try:\n    await self.handle(item)\nexcept Exception:\n    log()\nexcept CancelledError:\n"
        f"    raise\n{DONE}",
        # The example of the documentation: a pause does not fail.
        f"await asyncio.sleep(item)\n{DONE}",
        f"if item is None:\n    break\n{DONE}",
        f"if item is None:\n    {DONE}\n    continue\n{DONE}",
        f"self.count(item)\n{DONE}",
        "await self.handle(item)",
        # Several items for one call of `handle`.
        f"more = await self.queue.get()\nawait self.handle(item, more)\n{DONE}\n{DONE}",
        f"await self.handle(item)\nfor _ in item:\n    {DONE}",
        "await self.handle(item)\nself.other.task_done()",
    ],
)
def test_a_worker_that_counts_each_item_is_not_reported(body: str) -> None:
    assert findings(worker(body)) == []


@pytest.mark.parametrize(
    "join",
    [
        "await asyncio.wait_for(self.queue.join(), 3)",
        "await asyncio.wait([self.task, asyncio.ensure_future(self.queue.join())])",
        "await self.pool.join()",
        "self.queue.join()",
        "await self.queue.join(3)",
        "pass",
    ],
)
def test_a_queue_that_nothing_waits_for_without_an_end_is_not_reported(join: str) -> None:
    assert findings(worker(f"await self.handle(item)\n{DONE}", join)) == []


def test_another_function_that_counts_the_item_silences_it() -> None:
    source = worker(f"if item.later:\n    continue\nawait self.handle(item)\n{DONE}")
    other = "    def finish(self):\n        self.queue.task_done()\n"
    assert findings(source + other) == []
    second = (
        "    def drop(self):\n        self.queue.get_nowait()\n        self.queue.task_done()\n"
    )
    assert len(findings(source + second)) == 1


def test_a_get_under_a_suppress_or_outside_a_loop_is_not_followed() -> None:
    suppressed = worker(f"await self.handle(item)\n{DONE}").replace(
        "            item = await self.queue.get()",
        "            with suppress(Exception):\n                item = await self.queue.get()",
    )
    assert findings(suppressed) == []
    once = worker(f"await self.handle(item)\n{DONE}").replace("while True", "if self.on")
    assert findings(once) == []
