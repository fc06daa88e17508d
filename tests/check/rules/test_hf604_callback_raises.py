"""HF604: which done callback can raise."""

from __future__ import annotations

import pytest

from handfast._check.finding import Finding
from handfast._check.model.syntax.module import Module
from handfast._check.rules.hf604_callback_raises import RULE
from handfast._check.source import parse
from handfast.catalogue import kind


def findings(source: str) -> list[Finding]:
    return list(RULE.check(Module(parse("x.py", source.encode()), "x")))


def lines(source: str) -> list[int]:
    """The lines of the findings that are shown by default."""
    return [each.place.line for each in findings(source) if not each.pedantic]


def test_the_wrong_example_is_found_and_the_right_one_is_not() -> None:
    assert RULE.code == kind("HF604").code
    assert not RULE.pedantic
    assert lines(kind("HF604").wrong) == [20]
    assert findings(kind("HF604").right) == []


JOBS = """\
import asyncio
class Jobs:
    def start(self, key, job):
        task = asyncio.create_task(job())
        self.live[key] = task
        task.add_done_callback(lambda _: self.live.pop(key))
    def forget(self):
        self.live.clear()
"""


@pytest.mark.parametrize("out", ["self.live.pop(key)", "self.live.remove(key)"])
def test_an_entry_that_another_takes_away_is_found(out: str) -> None:
    assert lines(JOBS.replace("self.live.pop(key)", out)) == [6]


def test_a_start_method_rarely_clears_what_still_runs() -> None:
    source = JOBS.replace("def forget", "def start_all")
    assert [each.pedantic for each in findings(source)] == [True]


def test_a_bound_remove_is_found() -> None:
    source = JOBS.replace("lambda _: self.live.pop(key)", "self.live.remove")
    assert lines(source) == [6]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("self.live.pop(key)", "self.live.pop(key, None)"),
        ("self.live.pop(key)", "self.live.discard(key)"),
        ("self.live.clear()", "pass"),
        ("    def forget", "    async def forget"),
        ("self.live.pop(key)", "self.live.pop(key) if key in self.live else None"),
    ],
)
def test_bookkeeping_that_cannot_raise_is_not_reported(old: str, new: str) -> None:
    assert findings(JOBS.replace(old, new)) == []


LOOK = """\
import asyncio
class Work:
    def start(self):
        self.task = asyncio.create_task(self.run())
        self.task.add_done_callback(self.ended)
    def ended(self, task):
        if task.exception():
            log(task)
    def stop(self):
        self.task.cancel()
"""


def test_the_exception_of_a_task_that_is_cancelled_raises() -> None:
    assert lines(LOOK) == [7]
    assert [each.place.line for each in findings(LOOK)[0].related] == [5, 10]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("if task.exception()", "if not task.cancelled() and task.exception()"),
        ("self.task.cancel()", "pass"),
        (
            "        if task.exception():\n            log(task)\n",
            "        try:\n            task.exception()\n        except asyncio.CancelledError:\n"
            "            pass\n",
        ),
    ],
)
def test_a_callback_that_tests_first_or_is_never_cancelled_is_not_reported(
    old: str, new: str
) -> None:
    assert findings(LOOK.replace(old, new)) == []


def test_a_callback_that_reads_a_flag_of_the_canceller_is_not_reported() -> None:
    source = LOOK.replace("if task", "if not self.stopped and task").replace(
        "self.task.cancel()", "self.stopped = True; self.task.cancel()"
    )
    assert findings(source) == []


def test_a_callback_that_tests_the_container_first_is_not_reported() -> None:
    source = """\
import asyncio
class Jobs:
    def start(self, job):
        task = asyncio.create_task(job())
        task.add_done_callback(self.ended)
    def ended(self, task):
        if not self.live:
            return
        self.live.remove(task)
    def forget(self):
        self.live.clear()
"""
    assert findings(source) == []


def test_a_future_that_a_callback_sets_is_set_for_a_cancelled_task_too() -> None:
    source = (
        "import asyncio\n\ndef f(waiter):\n    def done(task):\n        if error := task.exception():\n"
        "            waiter.set_exception(error)\n\n    task = asyncio.create_task(g())\n"
        "    task.add_done_callback(done)\n"
    )
    assert [each.place.line for each in findings(source)] == [5]
    assert findings(source.replace("waiter.set_exception", "log")) == []
    assert (
        findings(
            source.replace("if error", "if not task.cancelled() and (error").replace(
                "exception():", "exception()):"
            )
        )
        == []
    )


def test_a_coroutine_that_suspends_before_it_cancels_and_clears() -> None:
    source = JOBS.replace(
        "    def forget(self):\n",
        "    async def stop(self):\n        await self.tell()\n"
        "        for task in self.live.values():\n            task.cancel()\n        {between}\n",
    )
    assert lines(source.format(between="pass")) == [6]
    assert lines(source.format(between="await gather(*self.live.values())")) == []


PASSED_ON = """\
import functools
def done({parameters}):
    error = task.exception()
    if error is None:
        future.set_result(task.result())
def start(task, future):
    task.add_done_callback(functools.partial(done, {bound}))
"""


def test_a_partial_callback_reads_the_exception_of_the_task() -> None:
    assert lines(PASSED_ON.format(parameters="future, task", bound="future")) == [3]
    assert lines(PASSED_ON.format(parameters="future, task, x", bound="future")) == []
    guarded = PASSED_ON.format(parameters="future, task", bound="future").replace(
        "    error =", "    if task.cancelled(): return\n    error ="
    )
    assert lines(guarded) == []


OBSERVED = """\
import asyncio, concurrent.futures
def observe(observer, future: {declared}):
    def done(future):
        try:
            value = future.result()
        except {kind} as error:
            {tells}
        else:
            observer.on_next(value)
    future.add_done_callback(done)
"""


def observed(
    declared: str = "asyncio.Future",
    kind: str = "Exception",
    tells: str = "observer.on_error(error)",
) -> list[int]:
    return lines(OBSERVED.format(declared=declared, kind=kind, tells=tells))


def test_an_error_that_is_passed_on_and_a_cancellation_that_is_not() -> None:
    assert observed() == [6]
    assert observed("Optional[asyncio.Future]", "(ValueError, Exception)") == [6]
    source = OBSERVED.format(
        declared="object", kind="Exception", tells="observer.on_error(error)"
    ).replace("    future.add", "    future = asyncio.ensure_future(future)\n    future.add")
    assert lines(source) == [6]


def test_a_callback_that_learns_of_a_cancellation() -> None:
    assert observed(kind="BaseException") == []
    assert observed(kind="(Exception, asyncio.CancelledError)") == []
    assert observed(tells="if not future.cancelled(): observer.on_error(error)") == []
    assert observed("concurrent.futures.Future") == []  # its CancelledError is an Exception
    assert observed("object") == []
    assert observed(tells="log.error(error)") == []
    assert observed(tells="observer.on_error()") == []
    assert observed(kind="ValueError") == []
