"""HF501: which handler catches the cancellation of its own task."""

from __future__ import annotations

import pytest

from handfast._check.finding import Finding
from handfast._check.model.syntax.module import Module
from handfast._check.rules.hf501_cancel_swallowed import RULE
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
    assert RULE.code == kind("HF501").code
    assert not RULE.pedantic
    assert lines(kind("HF501").wrong) == [6]
    assert findings(kind("HF501").right) == []


def test_the_finding_names_the_await_at_which_it_arrives() -> None:
    (finding,) = findings(kind("HF501").wrong)
    assert [each.place.line for each in finding.related] == [5]
    assert "line 5" in finding.message


def loop(handler: str, action: str = "pass", head: str = "while True") -> str:
    return f"""\
import asyncio

async def poll(self):
    {head}:
        try:
            await self.fetch()
        {handler}:
            {action}
"""


@pytest.mark.parametrize(
    "handler",
    [
        "except asyncio.CancelledError",
        "except BaseException",
        "except",
        "except (ValueError, asyncio.CancelledError)",
    ],
)
@pytest.mark.parametrize("action", ["pass", "continue", "print('again')"])
def test_a_loop_that_continues_is_found(handler: str, action: str) -> None:
    assert lines(loop(handler, action)) == [7]


def test_a_for_loop_that_goes_on_with_the_next_is_found() -> None:
    assert lines(loop("except BaseException", head="for each in self.all")) == [7]


def test_a_suppress_inside_a_try_that_catches_the_cancellation_is_found() -> None:
    source = """\
import asyncio
from contextlib import suppress

async def start(self):
    while True:
        try:
            with suppress(asyncio.CancelledError):
                await self.fetch()
        except asyncio.CancelledError:
            break
"""
    assert 7 in lines(source) + pedantic(source)


def test_a_suppress_in_a_loop_is_found() -> None:
    source = """\
import asyncio
from contextlib import suppress

async def poll(self):
    while True:
        with suppress(asyncio.CancelledError):
            await self.fetch()
"""
    assert lines(source) == [6]


@pytest.mark.parametrize("action", ["return", "break"])
def test_an_end_by_name_is_a_matter_of_taste(action: str) -> None:
    source = loop("except asyncio.CancelledError", action)
    assert lines(source) == []
    assert pedantic(source) == [7]


def test_a_loop_with_a_flag_is_a_matter_of_taste() -> None:
    source = loop("except asyncio.CancelledError", head="while self.running")
    assert lines(source) == []
    assert pedantic(source) == [7]


def test_a_broad_handler_in_a_function_that_others_await_is_found_with_the_caller() -> None:
    source = """\
async def ask(client):
    try:
        return await client.get()
    except:
        return None

async def show(client):
    print(await ask(client))
"""
    (finding,) = findings(source)
    assert (finding.place.line, finding.pedantic) == (4, False)
    assert [each.place.line for each in finding.related] == [3, 8]


def test_a_named_handler_below_an_endless_loop_is_found() -> None:
    source = """\
import asyncio

class Link:
    async def run(self):
        while True:
            await self.connect()

    async def connect(self):
        try:
            await self.read()
        except asyncio.CancelledError:
            self.why = "cancelled"
"""
    assert lines(source) == [11]


@pytest.mark.parametrize(
    "action",
    [
        "raise",
        "self.error = error",
        "future.set_exception(error)",
        "errors.append(error)",
        "return error",
        "sys.exit(1)",
        "asyncio.current_task().uncancel()",
    ],
)
def test_raised_or_handed_on_is_silent(action: str) -> None:
    assert findings(loop("except BaseException as error", action)) == []


@pytest.mark.parametrize(
    ("before", "body"),
    [
        ("task.cancel()", "await task"),
        ("pass", "await self._task"),
        ("pass", "await asyncio.gather(*self._tasks)"),
        ("task.cancel()", "await asyncio.wait_for(task, 5)"),
        ("pass", "await cancel_and_wait(task)"),
        ("task.cancel()", "await self.joined(task)"),
    ],
)
def test_joining_a_task_that_was_cancelled_is_silent(before: str, body: str) -> None:
    source = f"""\
import asyncio

async def restart(self, task):
    while True:
        {before}
        try:
            {body}
        except asyncio.CancelledError:
            pass
"""
    assert findings(source) == []


def test_an_earlier_handler_that_raises_is_silent() -> None:
    source = """\
import asyncio

async def poll(self):
    while True:
        try:
            await self.fetch()
        except asyncio.CancelledError:
            raise
        except BaseException:
            pass
"""
    assert findings(source) == []


def test_stored_and_raised_later_is_silent() -> None:
    source = """\
import asyncio

async def drain(self):
    cancelled = False
    for each in self.all:
        try:
            await each.flush()
        except asyncio.CancelledError:
            cancelled = True
    if cancelled:
        raise asyncio.CancelledError
"""
    assert findings(source) == []


def test_a_try_without_an_await_is_silent() -> None:
    assert findings(loop("except", "pass").replace("await ", "")) == []


def test_a_plain_function_is_silent() -> None:
    assert findings("def f():\n    try:\n        g()\n    except:\n        pass\n") == []


def test_the_entry_of_a_program_is_silent() -> None:
    source = """\
import asyncio

async def serve():
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        pass

asyncio.run(serve())
"""
    assert findings(source) == []


def test_clean_up_in_a_handler_that_raises_is_silent() -> None:
    source = """\
async def open(self):
    try:
        await self.connect()
    except BaseException:
        for each in self.all:
            try:
                await each.undo()
            except BaseException:
                pass
        raise
"""
    assert findings(source) == []


def test_another_cancelled_error_is_silent() -> None:
    source = loop("except CancelledError").replace(
        "import asyncio", "from concurrent.futures import CancelledError"
    )
    assert findings(source) == []


def test_a_last_effort_to_close_is_a_matter_of_taste() -> None:
    source = """\
async def release(self):
    for each in self.all:
        try:
            await each.close()
        except BaseException:
            pass
"""
    assert lines(source) == []


def test_a_handler_that_tells_it_apart_is_silent() -> None:
    action = "if isinstance(error, asyncio.CancelledError): return stop(error)"
    assert findings(loop("except BaseException as error", action)) == []


BLIND = """\
import asyncio
class Client:
    async def receive(self):
        while not self.done:
            try:
                self.queue.put_nowait(await self.socket.recv())
            except:
                pass
"""


def test_a_handler_of_everything_in_a_loop_with_a_flag_is_found() -> None:
    assert lines(BLIND) == [7]
    assert lines(BLIND.replace("except:", "except BaseException:")) == [7]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("except:", "except asyncio.CancelledError:"),
        ("pass", "self.done = True"),
        ("pass", "break"),
    ],
)
def test_a_handler_that_may_know_of_the_flag_is_a_matter_of_taste(old: str, new: str) -> None:
    assert lines(BLIND.replace(old, new)) == []


LOGGED = """\
import asyncio
class Device:
    def start(self):
        self.task = asyncio.create_task(self.refresh())
    async def refresh(self):
        try:
            self.state = await self.api.get()
        except (OSError, asyncio.TimeoutError, asyncio.CancelledError):
            log.warning("cannot refresh")
            return
        self.show()
"""


def test_a_cancellation_that_is_logged_as_a_failure_is_found() -> None:
    assert lines(LOGGED) == [8]


def test_a_cancellation_that_is_not_logged_as_a_failure_is_a_matter_of_taste() -> None:
    assert lines(LOGGED.replace("log.warning", "log.debug")) == []
    assert lines(LOGGED.replace("(OSError, asyncio.TimeoutError, asyncio.CancelledError)",
                              "asyncio.CancelledError")) == []  # fmt: skip


def test_a_suppress_inside_a_try_that_also_catches_it_is_found_by_itself() -> None:
    source = """\
import asyncio
from contextlib import suppress

async def serve(payload):
    while True:
        try:
            with suppress(asyncio.TimeoutError, asyncio.CancelledError):
                await payload.read()
            payload.close()
        except asyncio.CancelledError:
            break
"""
    assert 7 in [each.place.line for each in findings(source)]


TRANSLATES = (
    "import asyncio\nasync def fetch(reader):\n    try:\n        return await reader.read()\n"
    "    except asyncio.CancelledError:\n        raise {error}\n"
)


@pytest.mark.parametrize(
    "error", ["ConnectionError('gone')", "ConnectionError", "reader.exception_of(1) from None"]
)
def test_a_cancel_that_is_replaced_with_a_failure_is_found(error: str) -> None:
    assert lines(TRANSLATES.format(error=error)) == [5]


@pytest.mark.parametrize(
    "error",
    [
        "",
        "reader.error",
        "asyncio.CancelledError('gone')",
        "TimeoutError",
        "Shutdown()",
        "reader.again()",
    ],
)
def test_an_error_that_may_stand_for_the_cancel_is_not(error: str) -> None:
    assert lines(TRANSLATES.format(error=error)) == []


def test_a_handler_that_only_may_raise_does_not_replace_the_cancel() -> None:
    source = TRANSLATES.format(error="ConnectionError") + "        return None\n"
    source = source.replace("        raise", "        if reader.eof:\n            raise")
    assert lines(source) == []


def test_a_log_that_is_a_list_does_not_keep_the_error() -> None:
    source = (
        "import asyncio\nasync def gather(self):\n    try:\n        await self.read()\n"
        "    except (OSError, asyncio.CancelledError):\n        logger.exception('lost')\n"
        "        self.log.append('lost')\n"
    )
    assert lines(source) == [5]


@pytest.mark.parametrize(("after", "expected"), [("await self.write()", [4]), ("pass", [])])
def test_a_caller_that_waits_again_was_to_be_cancelled(after: str, expected: list[int]) -> None:
    source = (
        "import asyncio\nclass C:\n    async def read(self):\n"
        "        try: await self.reader.read()\n        except asyncio.CancelledError: pass\n"
        f"    async def serve(self):\n        await self.read()\n        {after}\n"
    )
    assert [line - 1 for line in lines(source)] == expected


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ("self.cancelled_result()", False),
        ("Answer.build_cancelled(self)", False),
        ("self.empty_result()", True),
        ("None", True),
    ],
)
def test_a_result_that_names_the_cancellation_tells_the_caller(result: str, expected: bool) -> None:
    source = f"""\
import asyncio

class Agent:
    async def serve(self):
        while True:
            await self.turn()
    async def turn(self):
        try:
            return await self.reply()
        except asyncio.CancelledError:
            return {result}
"""
    assert [not each.pedantic for each in findings(source)] == [expected]
