"""HF512: which shielded task has no reference."""

from __future__ import annotations

import pytest

from handfast._check.finding import Finding
from handfast._check.model.syntax.module import Module
from handfast._check.rules.hf512_shield_unheld import RULE
from handfast._check.source import parse
from handfast.catalogue import kind


def findings(source: str) -> list[Finding]:
    return list(RULE.check(Module(parse("x.py", source.encode()), "x")))


def lines(source: str) -> list[int]:
    """The lines of the findings that are shown by default."""
    return [each.place.line for each in findings(source) if not each.pedantic]


def pedantic(source: str) -> list[int]:
    return [each.place.line for each in findings(source) if each.pedantic]


def test_the_wrong_example_is_found_and_the_right_one_is_not() -> None:
    assert RULE.code == kind("HF512").code
    assert not RULE.pedantic
    assert lines(kind("HF512").wrong) == [9]
    assert findings(kind("HF512").right) == []


def shielded(inner: str) -> str:
    return f"""\
import asyncio

async def write(entry):
    await asyncio.sleep(1)

def begin(entry):
    return tasks[entry]

async def book(self, entry, task, loop):
    await asyncio.shield({inner})
"""


@pytest.mark.parametrize(
    "inner",
    [
        "write(entry)",
        "self.store.write(entry)",
        "asyncio.create_task(write(entry))",
        "asyncio.ensure_future(write(entry))",
        "asyncio.gather(write(entry), write(entry))",
        "asyncio.wait_for(write(entry), 5)",
    ],
)
def test_a_coroutine_without_a_reference_is_found(inner: str) -> None:
    assert lines(shielded(inner)) == [10]


@pytest.mark.parametrize(
    "inner",
    [
        "task",
        "self._task",
        "begin(entry)",
        "self.get_task()",
        "asyncio.gather(*self._tasks)",
        "loop.run_in_executor(None, print)",
        "self.spawn(write(entry))",
        "self.create_task(write(entry))",
        "self.wait_until_ready()",
        "asyncio.to_thread(print)",
        "asyncio.wait_for(task, 5)",
    ],
)
def test_what_other_code_holds_or_what_only_waits_is_silent(inner: str) -> None:
    assert findings(shielded(inner)) == []


def test_the_fix_of_the_report_is_found() -> None:
    # Seed 003 would shield the clean-up: a second cancellation abandons it.
    source = """\
import asyncio

async def search():
    context = None
    try:
        context = await create_context()
        return await do_work(context)
    finally:
        if context:
            await asyncio.shield(context.cleanup())
"""
    assert lines(source) == [10]


def test_the_function_that_runs_on_is_named() -> None:
    (finding,) = findings(shielded("write(entry)"))
    assert [each.place.line for each in finding.related] == [3]


def test_the_tracker_of_the_report_is_found_in_both_places() -> None:
    # Seed 003: its `ResourceTracker`.
    source = """\
import asyncio

class ResourceTracker:
    async def track_resource(self, resource):
        self.active_resources.add(resource)
        try:
            yield resource
        finally:
            await asyncio.shield(resource.cleanup())
            self.active_resources.discard(resource)

    async def cleanup_all(self):
        cleanup_tasks = [
            asyncio.shield(resource.cleanup())
            for resource in self.active_resources
        ]
        await asyncio.gather(*cleanup_tasks, return_exceptions=True)
"""
    assert lines(source) == [9, 14]


def test_a_future_that_an_object_stores_is_silent() -> None:
    source = shielded("write(entry)").replace("await asyncio.shield", "self.task = asyncio.shield")
    assert findings(source) == []


def test_in_a_handler_it_is_pedantic() -> None:
    source = (
        "import asyncio\n\nasync def f():\n    try:\n        await g()\n    except OSError:\n"
        "        await asyncio.shield(work())\n    await asyncio.shield(work())\n"
    )
    module = Module(parse("x.py", source.encode()), "x")
    assert [(each.place.line, each.pedantic) for each in RULE.check(module)] == [
        (7, True),
        (8, False),
    ]


def test_a_task_of_a_thread_is_held_by_the_executor() -> None:
    assert findings(shielded("asyncio.create_task(asyncio.to_thread(work))")) == []
    assert findings(shielded("asyncio.create_task(work())"))


@pytest.mark.parametrize(
    ("handler", "pedantic"),
    [
        ("except asyncio.CancelledError:\n        pass", True),
        ("except BaseException:\n        log()", True),
        ("except asyncio.CancelledError:\n        raise", False),
        ("except OSError:\n        log()", False),
        ("finally:\n        log()", False),
    ],
)
def test_a_handler_that_expects_the_cancellation_is_pedantic(handler: str, pedantic: bool) -> None:
    source = f"""\
import asyncio

async def send(stream):
    try:
        await asyncio.shield(stream.write())
    {handler}
"""
    assert [each.pedantic for each in findings(source)] == [pedantic]


def test_the_shields_of_one_package_are_one_finding() -> None:
    source = """\
import asyncio

async def save(database, row):
    await asyncio.shield(database.write(row))
    await asyncio.shield(database.commit())
"""
    first, second = findings(source)
    assert first.message != second.message
    assert first.cause == second.cause
