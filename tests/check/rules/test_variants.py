"""Forms of known bugs that a reading or a published fix has shown missing, and right code that was
reported. Each program has one finding by default, or none."""

from __future__ import annotations

import pytest

from handfast._check.model.syntax.module import Module
from handfast._check.rules import RULES
from handfast._check.rules.rule import Words
from handfast._check.source import parse

HEAD = "import asyncio\nfrom contextlib import suppress\nasync def save(x=0): await x.send()\n"


def default_codes(source: str) -> list[str]:
    text = HEAD + source
    module, words = Module(parse("x.py", text.encode()), "x"), Words(text)
    return [
        finding.code
        for rule in RULES
        if not rule.pedantic and rule.may_find_in(words)
        for finding in rule.check(module)
        if not finding.pedantic
    ]


DROPPED = {
    "with a callback": "def f(): asyncio.create_task(save()).add_done_callback(print)",
    "after and": "def f(x): x and asyncio.create_task(save())",
    "or nothing": "def f(x): asyncio.create_task(save()) if x else None",
    "at a timeout": (
        "async def f(xs):\n    ts = [asyncio.create_task(save(x)) for x in xs]\n"
        "    done, pending = await asyncio.wait(ts, timeout=3)\n    return done\n"
    ),
}


@pytest.mark.parametrize("source", DROPPED.values(), ids=DROPPED)
def test_a_dropped_task(source: str) -> None:
    assert default_codes(source) == ["HF101"]


NOT_AWAITED = {
    "in a comprehension": "async def f(xs): [save(x) for x in xs]",
    "in a condition": "async def f(x): save(x) if x else None",
    "in a name that is tested": "async def f(x):\n    y = save(x)\n    if y: return 1\n",
    "of asyncio": "async def f(): asyncio.sleep(1)",
    "as a timer": "async def f(loop): loop.call_later(1, save, 2)",
    "as a signal handler": "def f(loop): loop.add_signal_handler(2, save)",
    "as a done callback": "def f(task): task.add_done_callback(lambda _: save())",
    "as a thread": "import threading\ndef f(): threading.Thread(target=save).start()",
}


@pytest.mark.parametrize("source", NOT_AWAITED.values(), ids=NOT_AWAITED)
def test_a_coroutine_that_is_not_awaited(source: str) -> None:
    assert default_codes(source) == ["HF122"]


@pytest.mark.parametrize(
    "source",
    [
        "def f(self): self.call_later(1, save)",  # textual awaits what its callbacks return
        "import tornado\ndef f(loop): loop.call_later(1, save)",
        "def f(loop, g): loop.call_later(1, g)",
        "import inspect\ndef f():\n    if not inspect.iscoroutinefunction(save): save()\n",
        "async def f(x):\n    y = save(x)\n    if y: await y\n",
    ],
)
def test_a_coroutine_that_something_awaits(source: str) -> None:
    assert default_codes(source) == []


RUNNING = """
class C:
    async def run(self):
        self.busy = True
        try:
            await self.work()
        except {kind}:
            self.busy = False
            raise
        {last}
"""
FLAGGED = """
async def send(stream):
    broken = False
    try:
        await stream.write()
    except {kind}:
        broken = True
        raise
    finally:
        if broken: stream.abort()
"""
LOCKED = """
class C:
    async def run(self):
        await self.lock.acquire()
        try:
            await self.work()
        except {kind}:
            self.lock.release()
            raise
        self.lock.release()
"""


def test_what_only_an_error_resets() -> None:
    for kind, expected in (("Exception", ["HF513"]), ("BaseException", [])):
        assert default_codes(RUNNING.format(kind=kind, last="self.busy = False")) == expected
        assert default_codes(LOCKED.format(kind=kind)) == expected
    assert default_codes(RUNNING.format(kind="Exception", last="self.count += 1")) == ["HF513"]
    assert default_codes(FLAGGED.format(kind="OSError")) == ["HF513"]
    assert default_codes(FLAGGED.format(kind="(OSError, asyncio.CancelledError)")) == []


OPENED = """
async def connect(host):
    stream = None
    try:
        stream = await dial(host)
        {check}
    except Exception:
        if stream is not None: stream.close()
        raise
    return stream
"""


def test_until_the_await_returns_there_is_nothing_to_release() -> None:
    assert default_codes(OPENED.format(check="check(stream)")) == []
    assert default_codes(OPENED.format(check="await check(stream)")) == ["HF513"]


ENTERED = """
class C:
    async def __aenter__(self):
        {first}
        {second}
        return self
    async def __aexit__(self, *exc):
        self._task.cancel()
        await asyncio.wait([self._task])
"""


def test_a_task_that_a_failed_enter_leaves_running() -> None:
    made, hello = "self._task = asyncio.create_task(self._read())", "await self.hello()"
    assert default_codes(ENTERED.format(first=made, second=hello)) == ["HF115"]
    assert default_codes(ENTERED.format(first=hello, second=made)) == []
    careful = f"try: {hello}\n        except BaseException: self._task.cancel(); raise"
    assert default_codes(ENTERED.format(first=made, second=careful)) == []


def test_a_task_that_a_loop_in_the_finally_cancels() -> None:
    source = """
async def serve(connect, read, ping):
    while True:
        reader = pinger = None
        try:
            try:
                reader = asyncio.create_task(read())
                pinger = asyncio.create_task(ping())
                await connect()
            finally:
                for task in (reader, pinger):
                    if task is not None:
                        task.cancel()
                        with suppress(asyncio.CancelledError):
                            await task
        except OSError:
            await asyncio.sleep(1)
        else:
            break
"""
    assert "HF115" not in default_codes(source)


CLOSING = """
class C:
    def start(self):
        self._task = self.group.create_task(self._run())
    async def _run(self):
        while True:
            {handle}
    async def handle(self, item):
        if isinstance(item, int):
            await self.stop()
    async def stop(self, again=False):
        if not again:
            await self.cancel_task(self._task)
        await self.flush()
"""


def test_a_task_of_a_framework_that_closes_its_object() -> None:
    assert default_codes(CLOSING.format(handle="await self.stop()")) == ["HF304"]
    assert default_codes(CLOSING.format(handle="await self.stop(again=True)")) == []
    # Another task may be the one that gets such an item.
    assert default_codes(CLOSING.format(handle="await self.handle(await self.get())")) == []


def test_a_wait_that_goes_on_until_the_end() -> None:
    source = """
async def finish(future):
    while not future.done():
        try:
            await future
        except asyncio.CancelledError:
            {then}
    await save()
"""
    assert default_codes(source.format(then="continue")) == []
    assert default_codes(source.format(then="return 1")) == ["HF503"]


UPDATED = """
class C:
    async def change(self, n):
        {read}
        {wait}
        {store}
"""


@pytest.mark.parametrize(
    ("read", "store"),
    [
        ("old = self.count", "self.count = old + 1"),
        ("if self.seats >= n:\n            await save()", "    self.seats -= n"),
    ],
)
def test_an_update_that_another_one_is_lost_in(read: str, store: str) -> None:
    source = UPDATED.format(
        read=read, wait="    " * store.startswith(" ") + "await save()", store=store
    )
    assert default_codes(source) == ["HF211"]
    assert default_codes(source.replace("await save()", "print()")) == []
    locked = source.replace("self, n):", "self, n):\n      async with self.lock:")
    assert default_codes(locked) == []


def test_a_cancellation_that_is_kept_for_others() -> None:
    source = """
class C:
    async def _read(self):
        try:
            await self.stream.read()
        except {kind} as error:
            self._error = error
            raise
    async def get(self):
        if self._error: raise self._error
"""
    assert default_codes(source.format(kind="BaseException")) == ["HF522"]
    assert default_codes(source.format(kind="Exception")) == []


def test_the_future_of_a_chained_assignment() -> None:
    source = """
class C:
    async def ask(self, key):
        self._waiting[key] = reply = asyncio.get_running_loop().create_future()
        return await reply
    def answered(self, key, value):
        {test}self._waiting.pop(key).set_result(value)
"""
    assert default_codes(source.format(test="")) == ["HF533"]
    assert default_codes(source.format(test="if not self._waiting[key].done(): ")) == []


def test_a_callback_that_runs_after_the_container_is_cleared() -> None:
    source = """
class C:
    def add(self, work):
        task = asyncio.create_task(work())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.remove)
    async def leave(self):
        for task in self._tasks: task.cancel()
        {wait}
        self._tasks.clear()
"""
    assert default_codes(source.format(wait="self.left = True")) == ["HF604"]
    assert default_codes(source.format(wait="await asyncio.sleep(0)")) == []


def test_a_code_in_the_text_of_an_error_is_no_text() -> None:
    source = """
async def visit(page):
    try:
        await page.open()
    except Exception as error:
        if "{text}" not in str(error): raise
    await page.read()
"""
    assert default_codes(source.format(text="was aborted")) == ["HF611"]
    assert default_codes(source.format(text="net::ERR_ABORTED")) == []


def test_entering_the_checked_object_itself() -> None:
    source = """
class C:
    async def serve(self):
        if self._server is None: raise RuntimeError
        async with {entered}:
            await self._server.serve_forever()
    async def close(self):
        self._server = None
"""
    assert default_codes(source.format(entered="self._server")) == []
    assert default_codes(source.format(entered="self._lock")) == ["HF311"]


def test_a_task_that_each_round_of_a_loop_overwrites() -> None:
    source = """
class C:
    async def serve(self):
        while True:
            item = await self.queue.get()
            {ended}self._task = asyncio.create_task(save(item))
    async def close(self):
        self._task.cancel()
        await asyncio.wait([self._task])
"""
    assert default_codes(source.format(ended="")) == ["HF205"]
    assert default_codes(source.format(ended="await self._task; ")) == []


NAMED = """\
class Session:
    def __init__(self, loop): self.loop = loop
    def publish(self, messages):
        spawn = self.loop.create_task
        for each in messages:
            spawn(save(each))
"""


def test_a_task_that_a_named_function_creates() -> None:
    assert default_codes(NAMED) == ["HF101"]
    kept = NAMED.replace("spawn(save(each))", "self.last = spawn(save(each))")
    assert "HF101" not in default_codes(kept)


@pytest.mark.parametrize(
    "source",
    [
        "spawn = asyncio.create_task\ndef f(): spawn(save())",
        "def f(loop):\n    spawn = loop.create_task\n    def g(): spawn(save())\n    return g\n",
        "def f(): asyncio.Task(save())",
        "from asyncio import Task\ndef f(): Task(save())",
    ],
)
def test_a_task_by_another_name(source: str) -> None:
    assert default_codes(source) == ["HF101"]


@pytest.mark.parametrize(
    "source",
    [
        NAMED.replace("def publish(self, messages)", "def publish(self, messages, spawn)").replace(
            "        spawn = self.loop.create_task\n", ""
        ),
        NAMED.replace("self.loop.create_task", "self.loop.create_task\n        spawn = print"),
        NAMED.replace("self.loop.create_task", "self.group.create_task"),
        "from jobs import Task\ndef f(): Task(save())",
        "def f(): return asyncio.Task(save())",
    ],
)
def test_what_is_not_known_to_create_a_task(source: str) -> None:
    assert default_codes(source) == []


AS_COMPLETED = """\
async def first(a, b):
    for each in asyncio.as_completed([save(a), save(b)]):
        found = await each
        break
    return found
"""


def test_the_first_of_as_completed() -> None:
    assert default_codes(AS_COMPLETED) == ["HF101"]
    assert default_codes(AS_COMPLETED.replace("        break\n", "")) == []
    assert default_codes(AS_COMPLETED.replace("[save(a), save(b)]", "[save(a)]")) == []
    assert default_codes(AS_COMPLETED.replace("        break", "        if found: break")) == []


RACED = """\
class Client:
    def __init__(self):
        self.pool = None
    async def connect(self):
        if self.pool is None:
            async with asyncio.Lock():
                if self.pool is None:
                    self.pool = await self.open()
    async def open(self): ...
    async def close(self): await self.pool.close()
"""


def test_a_lock_that_is_created_where_it_is_entered_keeps_nobody_out() -> None:
    assert default_codes(RACED) == ["HF211"]
    assert default_codes(RACED.replace("asyncio.Lock()", "self.lock")) == []


TAKEN = """\
class Account:
    def __init__(self):
        self.balance = 0
    async def withdraw(self, amount):
        if self.balance < amount:
            raise ValueError
        await save(amount)
        self.balance -= amount
"""


def test_a_guard_before_a_change() -> None:
    assert default_codes(TAKEN) == ["HF211"]
    assert default_codes(TAKEN.replace("raise ValueError", "return False")) == ["HF211"]


@pytest.mark.parametrize(
    ("what", "instead"),
    [
        ("        await save(amount)\n", ""),
        ("raise ValueError", "print(amount)"),
        ("self.balance < amount", "self.limit < amount"),
        ("self.balance < amount", "self.balance > amount"),
    ],
)
def test_a_guard_of_something_else(what: str, instead: str) -> None:
    assert default_codes(TAKEN.replace(what, instead)) == []


REGISTERED = """\
class Bridge:
    def __init__(self, loop, library):
        self.loop = loop
        self.queue = asyncio.Queue()
        library.on("data", self.got)
        library.on("end", self.ended)
    def got(self, data):
        self.loop.call_soon_threadsafe(self.queue.put_nowait, data)
    def ended(self):
        self.queue.put_nowait(None)
"""


def test_the_callbacks_of_one_object_run_on_one_thread() -> None:
    assert default_codes(REGISTERED) == ["HF402"]
    together = REGISTERED.replace('library.on("data", self.got)\n        ', "").replace(
        'library.on("end", self.ended)', "library.register(self.got, self.ended)"
    )
    assert default_codes(together) == ["HF402"]


@pytest.mark.parametrize(
    ("what", "instead"),
    [
        ('library.on("end"', 'self.loop.on("end"'),
        ("self.loop.call_soon_threadsafe(self.queue.put_nowait, data)", "print(data)"),
        ("        self.loop.call_soon", "        if data: self.loop.call_soon"),
        ('"end", self.ended', "self.ended()"),
    ],
)
def test_callbacks_of_others_may_run_on_the_loop(what: str, instead: str) -> None:
    assert what in REGISTERED
    assert default_codes(REGISTERED.replace(what, instead)) == []


def test_the_cancellation_class_of_anyio_is_swallowed() -> None:
    source = """\
import anyio
async def run(step):
    while True:
        try:
            await step()
        except anyio.get_cancelled_exc_class():
            continue
"""
    assert default_codes(source) == ["HF501"]
    assert default_codes(source.replace("continue", "raise")) == []


STACK = """\
from contextlib import AsyncExitStack
async def run(group):
    stack = AsyncExitStack()
    await stack.enter_async_context(asyncio.timeout(5))
    group.create_task(stack.aclose())
"""


def test_a_stack_with_a_scope_is_closed_in_another_task() -> None:
    assert default_codes(STACK) == ["HF542"]
    assert default_codes(STACK.replace("asyncio.timeout(5)", "connect()")) == []


SET = """\
class Link:
    async def run(self, ready):
        try:
            socket = await self.dial()
            ready.set_result(True)
            await socket.read()
        except Exception as error:
            ready.set_exception(error)
"""


def test_a_handler_sets_what_its_try_has_set() -> None:
    assert default_codes(SET) == ["HF533"]


@pytest.mark.parametrize(
    ("what", "instead"),
    [
        ("            await socket.read()\n", ""),
        ("ready.set_result(True)", "ready.set_result(True)\n            return"),
        ("ready.set_exception", "if not ready.done(): ready.set_exception"),
        ("ready.set_exception", "self.ended.set_exception"),
    ],
)
def test_a_handler_that_sets_a_future_once(what: str, instead: str) -> None:
    assert what in SET
    assert default_codes(SET.replace(what, instead)) == []


FUTURE = """\
from {package} import futures
class Box:
    def __init__(self): self.ready = futures.Future()
    async def run(self): await self.ready
    def set(self): self.ready.set_result(1)
"""


def test_a_future_by_the_name_of_a_module_of_the_project() -> None:
    assert default_codes(FUTURE.format(package="project")) == ["HF533"]
    assert default_codes(FUTURE.format(package="concurrent")) == []


def test_a_future_that_is_shielded_under_a_timeout() -> None:
    source = FUTURE.format(package="project")
    waited = "asyncio.wait_for(asyncio.shield(self.ready), 5)"
    assert default_codes(source.replace("await self.ready", f"await {waited}")) == []
