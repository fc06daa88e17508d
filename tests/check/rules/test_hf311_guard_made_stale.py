"""HF311: a check of an attribute that an await makes stale."""

from __future__ import annotations

import pytest

from handfast._check.finding import Finding
from handfast._check.model.syntax.module import Module
from handfast._check.rules.hf311_guard_made_stale import RULE
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
    assert RULE.code == kind("HF311").code
    assert lines(kind("HF311").wrong) == [13]
    assert not findings(kind("HF311").right)


CHANNEL = """\
import asyncio

class Channel:
    async def send(self, data):
        {send}

    {close}:
        {clear}
"""
GUARD = "if self._ws is None: raise ConnectionError"


def channel(*send: str, close: str = "def close(self)", clear: str = "self._ws = None") -> str:
    return CHANNEL.format(send="\n        ".join(send), close=close, clear=clear)


def test_the_message_names_the_look_and_the_clearing() -> None:
    found = findings(channel(GUARD, "await self.ready()", "self._ws.send(data)"))
    assert [each.place.line for each in found] == [7]
    assert [each.place.line for each in found[0].related] == [5, 10]


def test_a_use_on_each_round_of_a_loop_is_found() -> None:
    assert lines(channel(GUARD, "async for each in data: await self._ws.send(each)")) == [6]


def test_what_a_loop_iterates_over_is_evaluated_once() -> None:
    assert not findings(channel(GUARD, "async for each in self._ws.read(): print(each)"))


def test_silent_where_nothing_suspends_between() -> None:
    assert not findings(channel("await self.ready()", GUARD, "await self._ws.send(data)"))


def test_silent_with_a_local_name() -> None:
    assert not findings(channel("ws = self._ws", "await self.ready()", "if ws: ws.send(data)"))


def test_silent_where_it_looks_again() -> None:
    again = "if self._ws: self._ws.send(data)"
    assert not findings(channel(GUARD, "await self.ready()", again))
    assert not findings(channel(GUARD, "await self.ready()", "self._ws and self._ws.send(data)"))


def test_silent_where_the_test_asks_for_something_else() -> None:
    test = "if self._ws.address == data: return"
    assert not findings(channel(test, "await self.ready()", "self._ws.send(data)"))


def test_silent_where_what_is_awaited_stores_it() -> None:
    source = channel("if not self._ws: await self.connect()", "self._ws.send(data)")
    more = "    async def connect(self):\n        self._ws = await dial()\n"
    assert not findings(source + more)


def test_silent_where_nothing_clears_it() -> None:
    assert not findings(channel(GUARD, "await nap()", "self._ws.send(data)", clear="pass"))


def test_silent_where_both_hold_the_lock() -> None:
    send = ["async with self._lock:", f"    {GUARD}", "    await nap()", "    self._ws.send(data)"]
    clear = "async with self._lock: self._ws = None"
    assert not findings(channel(*send, close="async def close(self)", clear=clear))
    assert lines(channel(*send)) == [8]


def test_silent_where_the_error_is_handled_on_the_spot() -> None:
    use = ["try:", "    self._ws.send(data)", "except Exception:", "    pass"]
    assert not findings(channel(GUARD, "await nap()", *use))


def test_pedantic_where_only_the_leaving_of_a_context_clears_it() -> None:
    leaving = "async def __aexit__(self, *error)"
    source = channel(GUARD, "await nap()", "self._ws.send(data)", close=leaving)
    assert not lines(source)
    assert pedantic(source) == [7]


def test_to_enter_a_timeout_does_not_suspend() -> None:
    for scope in ("asyncio.timeout(1)", "async_timeout.timeout(1)", "asyncio_timeout(1)"):
        use = f"async with {scope}: await self._ws.send(data)"
        assert not findings(channel(GUARD, use))
        assert lines(channel(GUARD, use, "await self._ws.send(data)")) == [7]
    assert lines(channel(GUARD, "async with self.turn(): await self._ws.send(data)")) == [6]
    entered = "async with asyncio.timeout(1), self.turn(): await self._ws.send(data)"
    assert lines(channel(GUARD, entered)) == [6]
    awaited = "async with asyncio.timeout(await self.limit()): await self._ws.send(data)"
    assert lines(channel(GUARD, awaited)) == [6]


def test_silent_where_the_error_is_suppressed_on_the_spot() -> None:
    use = "with contextlib.suppress({kind}): await self._ws.send(data)"
    assert not findings(channel(GUARD, "await self.ready()", use.format(kind="Exception")))
    assert lines(channel(GUARD, "await self.ready()", use.format(kind="KeyError"))) == [7]


READER = """\
import asyncio

class Reader:
    def start(self):
        self._task = asyncio.create_task(self._read())

    async def _read(self):
        if self._ws is None:
            return
        while True:
            await self._ws.receive()

    async def _stop_reading(self):
        self._task.cancel()
        await asyncio.wait([self._task])

    async def close(self):
        {close}
"""


def test_silent_where_it_runs_in_a_task_that_was_ended_before() -> None:
    ended = ("self._task.cancel()", "await self._stop_reading()", "await self._task")
    for end in ended:
        assert not findings(READER.format(close=f"{end}; self._ws = None"))
        assert lines(READER.format(close=f"self._ws = None; {end}")) == [11]
    called = "    async def read(self):\n        await self._read()\n"
    assert lines(READER.format(close="self._task.cancel(); self._ws = None") + called) == [11]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("setup", False),
        ("_set_up_camera", False),
        ("initialize", False),
        ("capture", True),
        ("upset", True),
    ],
)
def test_a_method_that_sets_up_is_rarely_closed_meanwhile(name: str, expected: bool) -> None:
    source = f"""\
import asyncio

class Camera:
    async def {name}(self):
        if self.device is None:
            return
        await asyncio.sleep(1)
        self.device.read()
    async def stop(self):
        self.device = None
"""
    assert [not each.pedantic for each in findings(source)] == [expected]
