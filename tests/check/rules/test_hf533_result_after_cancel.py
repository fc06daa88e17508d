"""HF533: a result is set only on a future that is not done."""

from __future__ import annotations

import pytest

from handfast._check.finding import Finding
from handfast._check.model.syntax.module import Module
from handfast._check.rules.hf533_result_after_cancel import RULE
from handfast._check.source import parse
from handfast.catalogue import kind


def findings(source: str) -> list[Finding]:
    return list(RULE.check(Module(parse("x.py", source.encode()), "x")))


def found(source: str) -> list[tuple[int, bool]]:
    """The lines with a finding, each with whether it is reported by default."""
    return [(each.place.line, not each.pedantic) for each in findings(source)]


def test_the_wrong_example_is_found_and_the_right_one_is_not() -> None:
    assert found(kind("HF533").wrong) == [(17, True)]
    assert found(kind("HF533").right) == []


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (
            "import asyncio\nclass C:\n    async def ask(self):\n"
            "        self._f = asyncio.Future()\n        return await self._f\n"
            "    def got(self, x):\n        self._f.set_result(x)\n",
            [(7, True)],
        ),
        (
            "import asyncio\nclass C:\n    async def ask(self):\n"
            "        self._f = asyncio.Future()\n        return await self._f\n"
            "    def got(self, x):\n        self._f.set_result(x)\n    def lost(self, x):\n"
            "        self._f.set_exception(x)\n",
            [(7, True)],
        ),
        (
            "import asyncio\nclass C:\n    async def ask(self):\n"
            "        self._f = asyncio.Future()\n        return await self._f\n"
            "    def got(self, x):\n        if not self._f.done():\n"
            "            self._f.set_result(x)\n",
            [],
        ),
        (
            "import asyncio\nclass C:\n    async def ask(self):\n"
            "        self._f = asyncio.Future()\n        return await self._f\n"
            "    def got(self, x):\n        try:\n            self._f.set_result(x)\n"
            "        except asyncio.InvalidStateError:\n            pass\n",
            [],
        ),
        (
            "import asyncio\nclass C:\n    async def ask(self):\n"
            "        self._f = asyncio.Future()\n        return await self._f\n"
            "    def got(self, x):\n        try:\n            self._f.set_result(x)\n"
            "        except (KeyError, ValueError):\n            pass\n",
            [(8, True)],
        ),
        (
            "import asyncio\nclass C:\n    async def ask(self):\n"
            "        self._f = asyncio.Future()\n        return await self._f\n"
            "    def got(self, x):\n        with suppress(asyncio.InvalidStateError):\n"
            "            self._f.set_result(x)\n",
            [],
        ),
        (
            "import asyncio\nclass C:\n    async def ask(self):\n"
            "        self._f = asyncio.Future()\n        return await self._f\n"
            "    def got(self, x):\n        self._other.set_result(x)\n",
            [],
        ),
        (
            "import asyncio\nclass C:\n    async def ask(self):\n"
            "        self._f = asyncio.Future()\n        return await asyncio.shield(self._f)\n"
            "    def got(self, x):\n        self._f.set_result(x)\n",
            [],
        ),
        (
            "import asyncio\nclass C:\n    async def ask(self):\n"
            "        self._f = asyncio.Future()\n        return await self.wait(self._f)\n"
            "    def got(self, x):\n        self._f.set_result(x)\n",
            [],
        ),
        (
            "import asyncio\nclass C:\n    async def ask(self):\n"
            "        self._f = asyncio.Future()\n        try:\n            return await self._f\n"
            "        finally:\n            self._f = None\n    def got(self, x):\n"
            "        self._f.set_result(x)\n",
            [(10, False)],
        ),
        (
            "import asyncio\nclass C:\n    async def ask(self):\n"
            "        self._f = asyncio.Future()\n        try:\n            return await self._f\n"
            "        except TimeoutError:\n            self._f = None\n    def got(self, x):\n"
            "        self._f.set_result(x)\n",
            [(10, False)],
        ),
        (
            "import asyncio\nclass C:\n    def __init__(self):\n"
            "        self._f = asyncio.Future()\n        self._f.set_result(None)\n"
            "    async def ask(self):\n        await self._f\n",
            [],
        ),
        (
            "import asyncio\nclass C:\n    async def ask(self):\n        f = asyncio.Future()\n"
            "        self._fs.append(f)\n        keep.append(f)\n        await f\n"
            "    def got(self, x):\n        for f in self._fs:\n            f.set_result(x)\n",
            [(10, True)],
        ),
        (
            "import asyncio\nclass C:\n    async def ask(self):\n        f = asyncio.Future()\n"
            "        self._fs.append(f)\n    def got(self, x):\n        for f in self._fs:\n"
            "            f.set_result(x)\n",
            [],
        ),
    ],
)
def test_results(source: str, expected: list[tuple[int, bool]]) -> None:
    assert found(source) == expected


SCHEDULED = (
    "import asyncio\nasync def ask(loop, start):\n    future = loop.create_future()\n"
    "    def done(result):\n        {done}\n    start(done)\n    return await {wait}\n"
)
THREADSAFE = "loop.call_soon_threadsafe(future.set_result, result)"


@pytest.mark.parametrize(
    ("done", "wait", "expected"),
    [
        (THREADSAFE, "future", [(5, True)]),
        (THREADSAFE, "asyncio.wait_for(future, 1)", [(5, True)]),
        (THREADSAFE, "asyncio.shield(future)", []),
        (THREADSAFE, "other", []),
        (f"if not future.done(): {THREADSAFE}", "future", []),
        ("loop.call_later(1, future.set_result, None)", "future", []),
        ("loop.call_soon_threadsafe(other.set_result, result)", "future", []),
        ("loop.call_soon_threadsafe(finish, future)", "future", []),
        (f"{THREADSAFE}; {THREADSAFE}", "future", [(5, True)]),  # one cause
    ],
)
def test_a_result_that_the_loop_sets_later(
    done: str, wait: str, expected: list[tuple[int, bool]]
) -> None:
    assert found(SCHEDULED.format(done=done, wait=wait)) == expected


def test_a_timer_beside_another_method_that_sets_the_result() -> None:
    source = (
        "import asyncio\nclass C:\n    async def wait(self, loop):\n"
        "        future = loop.create_future()\n        self._waiting.append(future)\n"
        "        timer = loop.call_later(1, future.set_result, None)\n        try:\n"
        "            await future\n        finally:\n            self._waiting.remove(future)\n"
        "            timer.cancel()\n    def notify(self):\n        for each in self._waiting:\n"
        "            if not each.done():\n                each.set_result(None)\n"
    )
    assert found(source) == [(6, True)]
    assert found(source.replace("self._waiting.append(future)", "pass")) == []


def test_a_wait_for_of_the_project_waits_too() -> None:
    source = (
        "import asyncio\nclass C:\n    def __init__(self):\n        self._f = asyncio.Future()\n"
        "    async def ask(self):\n        return await self._wait_for(self._f, timeout=1)\n"
        "    def got(self, x):\n        self._f.set_result(x)\n"
    )
    assert found(source) == [(8, True)]


CLOSURE = """
import asyncio, contextlib, functools
class C:
    async def ask(self, loop):
        future = loop.create_future()
        def reply(result, error=None):
            {body}
        {give}
        {wait}
"""


def closure(
    body: str = "future.set_result(result)",
    give: str = "self.send(reply)",
    wait: str = "return await future",
) -> list[tuple[int, bool]]:
    return found(CLOSURE.format(body=body, give=give, wait=wait))


def test_a_callback_sets_the_future_that_the_function_awaits() -> None:
    assert closure() == [(7, True)]
    assert closure(wait="return await asyncio.wait_for(future, 5)") == [(7, True)]
    assert closure(wait="return future") == [(7, True)]
    assert closure(give="self._reply = reply") == [(7, True)]
    assert closure(give="self.send(on_reply=reply)") == [(7, True)]
    assert closure(body="future.set_exception(error) if error else future.set_result(result)") == [
        (7, True)
    ]
    assert closure(wait="async with asyncio.timeout(5): await future") == [(7, True)]
    assert closure(wait="async with self.semaphore: await future") == [(7, True)]


def test_a_lambda_sets_the_future_that_the_function_awaits() -> None:
    assert closure(body="pass", give="self.send(lambda x: future.set_result(x))") == [(8, True)]


def test_a_callback_that_looks_at_the_future_first() -> None:
    assert closure(body="if not future.done(): future.set_result(result)") == []
    assert closure(body="if not future.cancelled(): future.set_result(result)") == []
    assert closure(body="with contextlib.suppress(Exception): future.set_result(result)") == []


def test_a_callback_that_is_taken_back_after_the_wait() -> None:
    wait = "try: await future\n        finally: self.drop(reply)"
    assert closure(wait=wait) == [(7, False)]
    assert closure(wait="with self.subscribed(reply): await future") == [(7, False)]


def test_what_is_no_callback_for_the_future() -> None:
    assert closure(wait="return await asyncio.shield(future)") == []
    assert closure(wait="return await other") == []
    assert closure(body="future.set_result(None)") == []  # used as an event
    assert closure(give="reply(1)") == []  # called right here
    assert closure(give="pass") == []
    assert closure(give="loop.call_later(5, reply, None)") == []
    assert closure(give="loop.add_signal_handler(2, reply, None)") == []
    assert closure(body="other.set_result(result)") == []
    assert closure(body="future = other; future.set_result(result)") == []


OBJECT = """
import asyncio, functools
class Protocol:
    def __init__(self, request, future=None):
        self.request = request
        self.future = future
    def lost(self, error):
        {lost}
class C:
    async def ask(self, loop):
        future = loop.create_future()
        {give}
        return await future
    def received(self, future, x=None):
        future.set_result(1)
"""


def given(give: str, lost: str = "self.future.set_result(True)") -> list[tuple[int, bool]]:
    return found(OBJECT.format(give=give, lost=lost))


def test_an_object_sets_the_future_that_it_is_given() -> None:
    assert given("await connect(lambda: Protocol(1, future))") == [(8, True)]
    assert given("Protocol(1, future=future)") == [(8, True)]
    closing = OBJECT.format(
        give="t = connect(lambda: Protocol(1, future))", lost="self.future.set_result(True)"
    ).replace("return await future", "try: await future\n        finally: t.close()")
    assert found(closing) == [(8, False)]
    assert found(closing.replace("def lost", "def connection_lost")) == [(8, True)]
    assert given("Protocol(1, future)", lost="pass") == []
    assert given("Protocol(future)") == []
    assert given("Other(1, future)") == []
    assert (
        given("Protocol(1, future)", "if not self.future.done(): self.future.set_result(1)") == []
    )


def test_a_callback_sets_the_future_that_it_is_given() -> None:
    assert given("loop.add_reader(3, self.received, future)") == [(15, True)]
    assert given("send(functools.partial(self.received, future))") == [(15, True)]
    assert given("loop.add_reader(3, self.received, 1, future)") == []
    assert given("loop.add_reader(3, self.received, 1, 2, future)") == []
    assert given("loop.call_later(3, self.received, future)") == []
    assert given("self.received(1)") == []
    source = OBJECT.format(give="op.then(functools.partial(self.received, future))", lost="pass")
    threaded = source.replace(
        "future.set_result(1)", "loop.call_soon_threadsafe(future.set_result, 1)"
    )
    assert found(threaded) == [(15, True)]
    assert found(threaded.replace("(future.set_result, 1)", "(x.set_result, 1)")) == []
    assert found(threaded.replace("future.set_result, 1", "future.cancel")) == []


def test_a_class_without_a_constructor_keeps_no_future() -> None:
    source = OBJECT.format(give="Protocol(1, future)", lost="self.future.set_result(True)")
    assert found(source.replace("__init__", "start")) == []


FIELD = """
import asyncio, concurrent.futures
from typing import NamedTuple, Optional
class Request(NamedTuple):
    key: str
    future: {declared}
class C:
    async def ask(self, key):
        {ask}
    def received(self, x):
        for request in self.queue:
            {set}
"""
ASK = "request = Request(key, self.new()); self.queue.append(request); return await request.future"
SET = "request.future.set_result(x)"


def field(
    declared: str = "asyncio.Future", ask: str = ASK, sets: str = SET
) -> list[tuple[int, bool]]:
    return found(FIELD.format(declared=declared, ask=ask, set=sets))


@pytest.mark.parametrize(
    "declared",
    ["asyncio.Future[str]", "Optional[asyncio.futures.Future]", '"asyncio.Future[str]"'],
)
def test_the_future_in_a_field_of_another_object(declared: str) -> None:
    assert field(declared) == [(12, True)]
    assert field(declared, sets=f"{SET} if x else request.future.set_exception(x)") == [(12, True)]
    assert field(declared, ASK.replace("await request.future", "request.future")) == [(12, True)]
    waiting = ASK.replace("await request.future", "await asyncio.wait_for(request.future, 5)")
    assert field(declared, waiting) == [(12, True)]


def test_a_future_that_gets_into_a_field_by_its_name() -> None:
    ask = "f = asyncio.Future(); self.queue.append(Request(key, future=f)); return await f"
    assert field("object", ask) == [(12, True)]
    assert field("object", ask.replace("asyncio.Future()", "self.new()")) == []
    source = FIELD.format(
        declared="object",
        ask="future = asyncio.Future(); self.put(key, future); return future",
        set=SET,
    )
    put = (
        "    def put(self, key, future: asyncio.Future):\n"
        "        queue.append(Request(key, future=future))\n"
    )
    assert found(source + put) == [(12, True)]
    assert found(source + put.replace(": asyncio.Future", "")) == []


def test_a_field_whose_future_is_not_known_to_be_cancelled() -> None:
    assert field("concurrent.futures.Future") == []
    assert field("'not an annotation ['") == []
    assert field(sets="if not request.future.done(): " + SET) == []
    assert field(sets="with suppress(asyncio.InvalidStateError): " + SET) == []
    assert field(sets="request.other.set_result(x)") == []
    assert field(ask="self.queue.append(Request(key, self.new()))") == []
    assert field(ask=ASK.replace("await request.future", "await request.other")) == []


KEPT = """
import asyncio
class C:
    async def ask(self, x):
        future = asyncio.get_running_loop().create_future()
        {store}
        {wait}
    async def run(self):
        {take}
        future.set_result(1)
    async def use(self):
        {use}
"""


def kept(
    store: str = "self.requested[x] = future",
    wait: str = "return await future",
    take: str = "future = self.requested.pop(1)",
    use: str = "return 1",
) -> str:
    return KEPT.format(store=store, wait=wait, take=take, use=use)


@pytest.mark.parametrize(
    ("store", "take"),
    [
        ("await self.requested.put((x, future))", "x, future = await self.requested.get()"),
        ("self.requested.put_nowait((x, future))", "x, future = await self.requested.get()"),
        ("self.requested.append((x, future))", "x, future = self.requested.pop()"),
    ],
)
def test_a_container_of_tuples_with_futures(store: str, take: str) -> None:
    assert found(kept(store, take=take)) == [(10, True)]
    tested = f"{take}\n        if future.done(): return"
    assert found(kept(store, take=tested)) == []
    assert found(kept(store, "await asyncio.shield(future)", take)) == []


def test_a_container_of_objects_with_futures() -> None:
    take = "request = await self.requested.get()"
    for made in ("Request(x, future)", "Request(future=future)"):
        source = kept(f"await self.requested.put({made})", take=take)
        assert found(source.replace("future.set_result", "request.future.set_result")) == [
            (10, True)
        ]
    assert found(kept("await self.requested.put(wrap(future))", take=take)) == []


@pytest.mark.parametrize(
    ("use", "expected"),
    [
        ("return await self.ask(2)", [(10, True)]),
        ("return await asyncio.wait_for(self.ask(2), 5)", [(10, True)]),
        ("return await asyncio.shield(self.ask(2))", [(10, False)]),
        ("return 1", [(10, False)]),
    ],
)
def test_a_future_that_callers_get(use: str, expected: list[tuple[int, bool]]) -> None:
    assert found(kept(wait="return future", use=use)) == expected
    tested = kept(
        wait="return future",
        use=use,
        take="future = self.requested.pop(1)\n        if future.done(): return",
    )
    assert found(tested) == []


def test_an_await_before_the_future_is_kept_is_no_evidence() -> None:
    source = kept("if x: return await future\n        self.requested[x] = future", "return x")
    assert found(source) == []


def test_a_future_that_is_created_with_its_type() -> None:
    source = (
        "import asyncio\nclass C:\n    async def ask(self):\n"
        "        self._f = asyncio.Future[str]()\n        return await self._f\n"
        "    def got(self, x):\n        self._f.set_result(x)\n"
    )
    assert found(source) == [(7, True)]
    assert found(source.replace("asyncio.Future[str]", "list[str]")) == []
