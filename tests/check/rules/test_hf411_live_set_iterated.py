"""HF411: which iteration other code can break."""

from __future__ import annotations

import pytest

from handfast._check.finding import Finding
from handfast._check.model.syntax.module import Module
from handfast._check.rules.hf411_live_set_iterated import RULE
from handfast._check.rules.rule import Words
from handfast._check.source import parse
from handfast.catalogue import kind


def findings(source: str) -> list[Finding]:
    return list(RULE.check(Module(parse("x.py", source.encode()), "x")))


def lines(source: str) -> list[int]:
    """The lines of the findings that are shown by default."""
    return [each.place.line for each in findings(source) if not each.pedantic]


def test_the_wrong_example_is_found_and_the_right_one_is_not() -> None:
    assert RULE.code == kind("HF411").code
    assert not RULE.pedantic
    assert lines(kind("HF411").wrong) == [14]
    assert findings(kind("HF411").right) == []


def test_the_fix_is_a_copy_and_is_safe() -> None:
    fix = findings(kind("HF411").wrong)[0].fix
    assert fix is not None
    assert fix.safe
    assert [edit.text for edit in fix.edits] == ["list(self._tasks)"]


CHANNELS = """\
import asyncio
class Channels:
    def __init__(self):
        self.members = {}
    def leave(self, name):
        self.members.pop(name, None)
    async def tell(self, words):
        for member in self.members.values():
            await member.send(words)
"""


def test_a_dict_that_a_method_takes_from_is_found() -> None:
    assert lines(CHANNELS) == [8]
    assert [each.place.line for each in findings(CHANNELS)[0].related] == [9, 6]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("self.members.values()", "list(self.members.values())"),
        ("self.members.values()", "self.members.copy().values()"),
        ("await member.send(words)", "member.send(words)"),
        ("await member.send(words)", "await member.send(words)\n            break"),
        ("await member.send(words)", "return await member.send(words)"),
        ("self.members.pop(name, None)", "self.members[name].pop()"),
        ("self.members.pop(name, None)", "self.members = {}"),
        ("def leave", "def close"),
        ("self.members = {}", "self.members = make()"),
    ],
)
def test_a_loop_that_nothing_can_change_is_not_reported(old: str, new: str) -> None:
    assert findings(CHANNELS.replace(old, new)) == []


def test_a_list_does_not_raise() -> None:
    source = (
        CHANNELS.replace("{}", "[]").replace(".values()", "").replace("pop(name, None)", "pop()")
    )
    assert findings(source) == []


def test_a_lock_that_both_hold_keeps_them_apart() -> None:
    source = """\
import asyncio
class Channels:
    def __init__(self):
        self.members = set()
    async def leave(self, member):
        async with self.lock:
            self.members.discard(member)
    async def tell(self, words):
        async with self.lock:
            for member in self.members:
                await member.send(words)
"""
    assert findings(source) == []
    assert lines(
        source.replace("async with self.lock:\n            self", "if 1:\n            self")
    ) == [10]


def test_a_task_that_was_cancelled_and_joined_takes_nothing_any_more() -> None:
    source = """\
import asyncio
class Fetcher:
    def __init__(self):
        self.pending = set()
        self.task = create_task(self.run())
    async def run(self):
        self.pending -= await self.done()
    async def close(self):
        self.task.cancel()
        await self.task
        for each in self.pending:
            await each
"""
    assert findings(source) == []
    assert lines(source.replace("        await self.task\n", "")) == [10]


def test_a_lock_that_all_callers_hold_is_held() -> None:
    source = """\
import asyncio
class Channels:
    def __init__(self):
        self.members = {}
    async def leave(self, name):
        async with self.lock:
            self._drop(name)
    def _drop(self, name):
        self.members.pop(name)
    async def close(self):
        async with self.lock:
            for member in self.members.values():
                await member.close()
"""
    assert findings(source) == []
    assert lines(source.replace("_drop", "drop")) == [12]


def test_a_private_method_without_a_known_caller_is_no_evidence() -> None:
    hidden = CHANNELS.replace("def leave", "def _leave")
    assert lines(hidden) == []
    called = hidden + "    def on_gone(self, name):\n        self._leave(name)\n"
    assert lines(called) == [8]
    assert lines(hidden + "    handlers = {1: _leave}\n") == [8]


WEAK = """\
from weakref import WeakSet
class Connection:
    def __init__(self):
        self.channels = WeakSet()
    def channel(self):
        channel = Channel()
        self.channels.add(channel)
        return channel
    async def restore(self):
        for channel in self.channels:
            await channel.restore()
"""


def test_a_weak_set_that_a_method_adds_to_is_found() -> None:
    assert lines(WEAK) == [10]
    assert "adds to" in findings(WEAK)[0].message
    assert lines(WEAK.replace("in self.channels", "in tuple(self.channels)")) == []


def test_what_a_plain_set_gets_may_all_come_before_the_loop() -> None:
    assert lines(WEAK.replace("WeakSet()", "set()")) == []


def test_a_list_that_others_remove_from_skips() -> None:
    source = (
        CHANNELS.replace("{}", "[]")
        .replace(".values()", "")
        .replace("pop(name, None)", "remove(name)")
    )
    assert lines(source) == [8]
    assert "skips" in findings(source)[0].message
    assert findings(source.replace("def leave", "async def start_members")) == []


POOL = """\
class Pool:
    def __init__(self):
        self._workers = []
    @property
    def workers(self):
        return self._workers
    def gone(self, worker):
        self._workers.remove(worker)
class Server:
    def __init__(self):
        self.pool = Pool()
    async def drain(self):
        for worker in self.pool.workers:
            await worker.join()
"""


def test_a_container_of_another_object_is_found() -> None:
    assert lines(POOL) == [13]
    assert lines(POOL.replace("in self.pool.workers", "in list(self.pool.workers)")) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("return self._workers", "return list(self._workers)"),
        ("self.pool = Pool()", "self.pool = make()"),
        ("self.pool = Pool()", "self.pool = pool"),
        ("self._workers.remove(worker)", "pass"),
    ],
)
def test_a_container_of_an_object_that_is_not_known_is_not_reported(old: str, new: str) -> None:
    assert findings(POOL.replace(old, new)) == []


def test_a_listener_that_signs_off_from_a_list_is_pedantic() -> None:
    hooks = (
        CHANNELS.replace("{}", "[]")
        .replace(".values()", "")
        .replace("pop(name, None)", "remove(name)")
        .replace("def leave", "def remove_member")
    )
    assert [each.pedantic for each in findings(hooks)] == [True]
    inner = hooks.replace(
        "def remove_member(self, name):\n", "def remove_member(self, name):\n      def later():\n"
    )
    assert [each.pedantic for each in findings(inner)] == [True]
    gone = hooks + "    def on_gone(self, name):\n        self.members.remove(name)\n"
    assert lines(gone) == [8]
    assert lines(CHANNELS.replace("def leave", "def remove_member")) == [8]


STREAMS = """\
import asyncio
async def watcher(group):
    streams = {}
    async for event in listen():
        streams[event.key] = asyncio.Queue()
        group.create_task(worker(streams, key=event.key))
    await depletion(streams=streams)
async def worker(streams, key):
    try:
        await serve(streams[key])
    finally:
        del streams[key]
async def depletion(*, streams):
    for stream in streams.values():
        await stream.put(None)
"""


def test_a_dict_that_is_handed_to_both_is_live() -> None:
    (finding,) = findings(STREAMS)
    assert (finding.place.line, finding.pedantic) == (14, False)
    assert [each.place.line for each in finding.related] == [15, 12]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("in streams.values()", "in list(streams.values())"),
        ("del streams[key]", "streams[key].close()"),
        ("worker(streams, key", "worker(others, key"),
        ("    streams = {}", "    streams = make()"),
        ("await stream.put(None)", "stream.put_nowait(None)"),
        ("*, streams):", "*, streams):\n    streams = dict(streams)"),
    ],
)
def test_a_dict_that_only_one_of_them_changes_is_not_reported(old: str, new: str) -> None:
    assert STREAMS.replace(old, new) != STREAMS
    assert findings(STREAMS.replace(old, new)) == []


def test_a_dict_that_is_handed_to_methods_is_live_too() -> None:
    source = """\
class Watcher:
    async def run(self, group):
        streams = {}
        group.create_task(self.work(streams, 1))
        await self.end(streams)
    async def work(self, streams, key):
        streams.pop(key)
    async def end(self, streams):
        for stream in streams:
            await stream.put(None)
"""
    assert lines(source) == [9]
    assert lines(source.replace("self.work(streams, 1)", "self.work({}, 1)")) == []
    assert lines(source.replace("streams.pop(key)", "self.streams.pop(key)")) == []


SERVER = """\
class Server:
    def __init__(self):
        self.clients = {}
    async def send_all(self, message):
        for client in self.clients.values():
            await client.send(message)
    async def on_open(self, key, client):
        await client.greet()
        self.clients[key] = client
    async def stop(self):
        for client in list(self.clients.values()):
            await client.close()
"""


def test_what_a_coroutine_adds_is_found() -> None:
    assert lines(SERVER) == [5]
    assert "`Server.on_open` adds to it" in findings(SERVER)[0].message
    assert (
        lines(
            SERVER.replace(
                "self.clients.values():\n            await client.send",
                "list(self.clients.values()):\n            await client.send",
            )
        )
        == []
    )


@pytest.mark.parametrize(
    ("what", "instead"),
    [
        ("async def on_open(self, key, client)", "async def start(self, key='', client=None)"),
        ("async def on_open(self, key, client)", "async def setup_client(self, key, client)"),
        ("async def on_open(self, key, client):\n        await client.greet()", "def f(self, key, client):"),
        ("self.clients[key] = client", "if key in self.clients: self.clients[key] = client"),
        ("self.clients[key] = client", "if key not in self.clients: self.clients[key] = client"),
        ("self.clients[key] = client", "self.clients['first'] = client"),
        ("self.clients[key] = client", "self.clients = {}"),
        ("async def send_all(self, message):", "async def close(self, message):"),
    ],
)  # fmt: skip
def test_what_is_added_before_or_is_no_new_entry_is_not(what: str, instead: str) -> None:
    assert what in SERVER
    assert lines(SERVER.replace(what, instead)) == []


@pytest.mark.parametrize("name", ["disconnect", "on_close"])
def test_a_method_that_ends_one_element_is_found(name: str) -> None:
    source = f"""\
class Sockets:
    def __init__(self):
        self.sockets = set()
    def {name}(self, socket):
        self.sockets.remove(socket)
    async def send_all(self, message):
        for socket in self.sockets:
            await socket.send(message)
"""
    assert lines(source) == [7]
    assert lines(source.replace(f"def {name}(self, socket)", f"def {name}(self)")) == []


LISTENERS = """\
import asyncio

class Bus:
    def __init__(self):
        self.listeners = {}
    async def start(self):
        for listener in self.listeners.values():
            await listener.start()
    def remove_listener(self, name):
        self.listeners.pop(name)
"""


def test_listeners_that_are_started_or_ended_are_pedantic() -> None:
    assert [each.pedantic for each in findings(LISTENERS)] == [True]
    assert [each.pedantic for each in findings(LISTENERS.replace("start(self)", "stop(self)"))] == [
        True
    ]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("start(self)", "publish(self)"),
        ("remove_listener", "remove_client"),
        ("remove_listener", "on_leave"),
    ],
)
def test_other_loops_and_other_removals_are_no_listeners(old: str, new: str) -> None:
    assert [each.pedantic for each in findings(LISTENERS.replace(old, new))] == [False]


def test_what_does_not_start_is_removed_before_anything_iterates() -> None:
    source = """\
import asyncio

class Scanner:
    def __init__(self):
        self.modules = {}
    async def finish(self):
        for module in self.modules.values():
            await module.finish()
    async def setup_modules(self):
        for name in await self.failed():
            self.modules.pop(name)
"""
    assert not findings(source)
    assert not findings(source.replace("setup_modules", "_init_modules"))
    assert findings(source.replace("setup_modules", "check_modules"))
    assert findings(source.replace("setup_modules", "reset_modules"))


@pytest.mark.parametrize(
    ("lines", "has"),
    [
        (["    for x in y:", "        await x"], True),
        (["    for x in y:", "        def f(): pass", "        await x"], True),
        (["    for x in y: await x"], True),
        (["    for x in y:", "        yield x"], True),
        (["    for x in y:", "        async with x: pass"], True),
        (["    for x in y: pass", "    for z in y: await z"], True),
        (["    await x", "    for x in y: pass"], False),
        (["    for x in y: pass", "async def g(): await x"], False),
        (["    for x in y: pass", "class C: pass", "    await x"], False),
        (["    return [x for x in y]", "    await x"], False),
        (["    await x"], False),
    ],
)
def test_only_a_file_with_a_loop_that_may_suspend_is_looked_at(lines: list[str], has: bool) -> None:
    assert Words("\n".join(["async def f():", *lines])).has("<loops>") is has
