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


# --- the entry of a key ---------------------------------------------------------------------------

USERS = """\
class Users:
    async def kick(self, key, other):
        {body}
    def {name}(self, key):
        self._users.pop(key, None)
"""
IN = "if key in self._users:\n            await self.notify(key)\n            "


def entries(body: str, name: str = "on_leave") -> list[Finding]:
    return findings(USERS.format(body=body, name=name))


@pytest.mark.parametrize(
    "body",
    [
        f"{IN}del self._users[key]",
        f"{IN}user = self._users.pop(key)",
        f"{IN}self._users.remove(key)",
        "if key not in self._users:\n            return\n        await self.notify(key)\n"
        "        del self._users[key]",
        "assert key in self._users\n        async with self.session():\n            pass\n"
        "        self._users.pop(key)",
    ],
)
def test_an_entry_that_is_tested_before_an_await_and_removed_after_it_is_found(body: str) -> None:
    (finding,) = entries(body)
    assert not finding.pedantic
    assert "`Users.on_leave`" in finding.message
    assert [each.message for each in finding.related] == ["tested here", "this may remove it"]


@pytest.mark.parametrize("name", ["close", "add"])
def test_without_another_method_that_removes_entries_it_is_pedantic(name: str) -> None:
    source = USERS.format(body=f"{IN}del self._users[key]", name=name)
    if name == "add":
        source = source.replace("self._users.pop(key, None)", "self._users[key] = 1")
    (finding,) = findings(source)
    assert finding.pedantic


@pytest.mark.parametrize(
    "body",
    [
        "if key in self._users:\n            del self._users[key]\n        await self.notify(key)",
        f"{IN}self._users.pop(key, None)",
        f"{IN}self._users.discard(key)",
        f"{IN}if key in self._users:\n                del self._users[key]",
        f"{IN}del self._users[other]",
        f"{IN}del self._others[key]",
        f"{IN}self._users[key] = 1\n            del self._users[key]",
        f"{IN}try:\n                del self._users[key]\n            except KeyError:\n                pass",
        f"{IN}with suppress(KeyError):\n                del self._users[key]",
        f"async with self._lock:\n            {IN.replace(chr(10), chr(10) + '    ')}del self._users[key]",
        "await self.notify(key)\n        del self._users[key]",
        "if other in self._users:\n            await self.notify(key)\n        del self._users[key]",
    ],
)  # fmt: skip
def test_an_entry_that_is_still_there_or_may_be_gone_is_not_reported(body: str) -> None:
    assert entries(body) == []


def test_a_worker_that_awaits_each_call_has_no_second_caller() -> None:
    worker = "    async def run(self):\n        while True:\n            await self.kick(1, 2)\n"
    assert findings(USERS.format(body=f"{IN}del self._users[key]", name="on_leave") + worker) == []


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        ("if name not in self.places:\n            await context.abort(name)", []),
        (
            "if name not in self.places:\n            await context.abort(name)\n        await save()",
            [8],
        ),
        ("if name in self.places:\n            await context.lock(name)", [7]),
        (
            "if name in self.places:\n            log()\n        else:\n"
            "            await context.abort(name)",
            [],
        ),
    ],
)
def test_the_branch_without_the_key_removes_nothing(test: str, expected: list[int]) -> None:
    source = f"""\
class Coordinator:
    def load(self, name):
        self.places.pop(name)
    async def delete(self, name, context):
        {test}
        del self.places[name]
"""
    assert [each.place.line for each in findings(source)] == expected
