"""HF513: clean-up runs on a cancellation, too."""

from __future__ import annotations

import pytest

from handfast._check.finding import Finding
from handfast._check.model.syntax.module import Module
from handfast._check.rules.hf513_cancel_skips_cleanup import RULE
from handfast._check.source import parse
from handfast.catalogue import kind


def findings(source: str) -> list[Finding]:
    return list(RULE.check(Module(parse("x.py", source.encode()), "x")))


def found(source: str) -> list[tuple[int, bool]]:
    """The lines with a finding, each with whether it is reported by default."""
    return [(each.place.line, not each.pedantic) for each in findings(source)]


def test_the_wrong_example_is_found_and_the_right_one_is_not() -> None:
    assert found(kind("HF513").wrong) == [(5, True)]
    assert found(kind("HF513").right) == []


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (
            "async def f():\n    c = await connect()\n    try:\n        await g(c)\n"
            "    except (OSError, Exception) as e:\n        pool.release(c)\n"
            "        raise Failed() from e\n",
            [(5, True)],
        ),
        (
            "async def f():\n    c = await connect()\n    try:\n        g(c)\n"
            "    except Exception:\n        c.close()\n        raise\n",
            [],
        ),
        (
            "async def f():\n    c = await connect()\n    try:\n        await g(c)\n"
            "    except Exception:\n        c.close()\n",
            [],
        ),
        (
            "async def f():\n    c = await connect()\n    try:\n        await g(c)\n"
            "    except OSError:\n        c.close()\n        raise\n",
            [(5, True)],
        ),
        (
            "async def f():\n    c = await connect()\n    try:\n        await g(c)\n"
            "    except Exception:\n        log()\n        raise\n",
            [],
        ),
        (
            "async def f():\n    c = await connect()\n    try:\n        await g(c)\n"
            "    except Exception:\n        self.c.close()\n        x[0].close()\n        raise\n",
            [],
        ),
        (
            "async def f():\n    c = await connect()\n    try:\n        await g(c)\n"
            "    except asyncio.CancelledError:\n        c.close()\n        raise\n"
            "    except Exception:\n        c.close()\n        raise\n",
            [],
        ),
        (
            "async def f():\n    c = await connect()\n    try:\n        await g(c)\n"
            "    except Exception:\n        c.close()\n        raise\n    finally:\n"
            "        end(c)\n",
            [],
        ),
        (
            "async def f():\n    c = await connect()\n    try:\n        try:\n"
            "            await g(c)\n        except Exception:\n            c.close()\n"
            "            raise\n    except BaseException:\n        c.abort()\n        raise\n",
            [],
        ),
        (
            "async def f():\n    c = await connect()\n    async with c:\n        try:\n"
            "            await g(c)\n        except Exception:\n            c.close()\n"
            "            raise\n",
            [],
        ),
        (
            "async def f():\n    c = await connect()\n    with lock:\n        try:\n"
            "            await g(c)\n        except Exception:\n            c.close()\n"
            "            raise\n",
            [(6, True)],
        ),
        (
            "async def f(c):\n    try:\n        await g(c)\n    except Exception:\n"
            "        c.close()\n        raise\n",
            [],
        ),
        (
            "def f():\n    c = connect()\n    try:\n        g(c)\n    except Exception:\n"
            "        c.close()\n        raise\n",
            [],
        ),
    ],
)
def test_cleanup_in_handlers(source: str, expected: list[tuple[int, bool]]) -> None:
    assert found(source) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            "await self.read()\n        except Exception:\n            self.abort()\n            raise",
            1,
        ),
        (
            "await self.read()\n        except Exception as e:\n            await self.disconnect()\n"
            "            raise e",
            1,
        ),
        ("await self.read()\n        except Exception:\n            self.abort()", 0),
        (
            "await self.read()\n        except Exception:\n            self.fail()\n            raise",
            0,
        ),
        ("self.read()\n        except Exception:\n            self.abort()\n            raise", 0),
        (
            "await self.read()\n        except Exception:\n            self.abort()\n            raise\n"
            "        finally:\n            self.count -= 1",
            1,
        ),
        (
            "await self.read()\n        except BaseException:\n            self.abort()\n            raise",
            0,
        ),
    ],
)
def test_the_object_itself_is_closed_on_a_cancellation_too(body: str, expected: int) -> None:
    source = f"class C:\n    async def start(self):\n        try:\n            {body}\n"
    assert len(findings(source)) == expected


def test_a_method_that_gives_back_what_it_is_given_releases_it() -> None:
    source = (
        "class C:\n    async def send(self):\n        slot = Slot()\n        try:\n"
        "            await self.work(slot)\n        except Exception as e:\n"
        "            await self.slot_closed(slot)\n            raise e\n"
    )
    assert found(source) == [(6, True)]


TIMER = (
    "class C:\n    async def run(self):\n        timer = self.create_task(self.expire())\n"
    "        try:\n            await {work}\n        except Exception:\n            {end}\n"
    "            log()\n"
)


@pytest.mark.parametrize("end", ["timer.cancel()", "await self.cancel_task(timer)"])
def test_a_task_that_only_an_error_ends_is_left_by_a_cancellation(end: str) -> None:
    assert found(TIMER.format(work="self.work()", end=end)) == [(6, True)]
    assert found(TIMER.format(work="timer", end=end)) == []  # the await passes the cancel on
    ended = TIMER.format(work="self.work()", end=end) + "        finally:\n            end(timer)\n"
    assert found(ended) == []


def test_what_is_no_task_of_the_function_is_not_its_to_end() -> None:
    source = TIMER.format(work="self.work()", end="timer.cancel()")
    assert found(source.replace("self.create_task(self.expire())", "self.timer()")) == []
    assert found(source.replace("timer.cancel()", "pass")) == []


STATE = """
class C:
    async def open(self, key, x):
        {before}
        try:
            await self.work(x)
        except {kind} as e:
            {undone}
            {end}
        {after}
"""


@pytest.mark.parametrize(
    ("before", "undone"),
    [
        ("self._users += 1", "self._users -= 1"),
        ("self._users[key] += 1", "self._users[key] -= 1"),
        ("self._pool.users[self.key] += 1", "self._pool.users[self.key] -= 1"),
        ("self._client = Client()", "self._client = None"),
        ("self._names = [x]", "self._names = []"),
        ("if self._client is None: self._client = Client()", "self._client = None"),
        ("self._channels[key] = x", "self._channels[key] = None"),
        ("self._channels[key] = x", "del self._channels[key]"),
        ("self._channels[key] = x", "self._channels.pop(key, None)"),
    ],
)
def test_state_that_only_an_error_takes_back(before: str, undone: str) -> None:
    def lines(
        kind: str = "Exception", end: str = "raise", after: str = "return x", undone: str = undone
    ) -> list[tuple[int, bool]]:
        return found(STATE.format(before=before, undone=undone, kind=kind, end=end, after=after))

    assert lines() == [(7, True)]
    assert lines(end="raise e") == [(7, True)]
    assert lines(end="return None") == []  # the error is not passed on
    assert lines(kind="BaseException") == []
    assert lines(kind="ValueError") == []
    # An entry is stranded; a client may have to be reset only after this error.
    assert lines(kind="TimeoutError") == ([(7, True)] if "[" in before.split(" =")[0] else [])
    assert lines(undone="log(e)") == []
    assert lines(undone="self._other = None") == []
    root = before.removeprefix("if self._client is None: ").split("=")[0].strip(" +").split("[")[0]
    ended = f"finally:\n            end({root})"
    assert (
        found(
            STATE.format(before=before, undone=undone, kind="Exception", end="raise", after=ended)
        )
        == []
    )


@pytest.mark.parametrize(
    ("before", "undone"),
    [
        ("if x: self._client = Client()", "self._client = None"),  # not always before it
        ("self._client = None", "self._client = None"),
        ("self._users -= 1", "self._users += 1"),
        ("self._channels[key] = x", "self._channels[x] = None"),
        ("self._channels[key] = x", "del self._channels"),
        ("client = Client()", "client = None"),
        ("self._channels[0] = x", "self._channels[0] = None"),
        ("self._client = Client()", "x.pop()"),
        ("x.client = Client()", "x.client = None"),
    ],
)
def test_state_that_is_not_known_to_be_taken_back(before: str, undone: str) -> None:
    source = STATE.format(
        before=before, undone=undone, kind="Exception", end="raise", after="return x"
    )
    assert found(source) == []


def test_state_that_is_set_after_the_wait() -> None:
    source = (
        "class C:\n    async def open(self):\n        try:\n            await work()\n"
        "            self._client = Client()\n        except Exception:\n"
        "            self._client = None\n            raise\n"
    )
    assert found(source) == []


def test_what_the_try_opens_is_open_after_a_cancellation() -> None:
    source = (
        "class C:\n    async def enter(self):\n        try:\n            await self._client.{open}()\n"
        "        except (Exception, KeyboardInterrupt):\n            await self._client.close()\n"
        "            raise\n"
    )
    assert found(source.format(open="connect")) == [(5, True)]
    assert found(source.format(open="force_connect")) == [(5, True)]
    assert found(source.format(open="send")) == []
    assert found(source.format(open="connect").replace("self._client.close", "self._x.close")) == []
    assert found(source.format(open="connect").replace("KeyboardInterrupt", "BaseException")) == []


def test_a_handler_that_raises_in_a_finally_of_its_own() -> None:
    source = (
        "async def connect():\n    con = await new()\n    try:\n        await setup(con)\n"
        "    except Exception as e:\n        try:\n            await con.close()\n"
        "        finally:\n            {end}\n    return con\n"
    )
    assert found(source.format(end="raise e")) == [(5, True)]
    assert found(source.format(end="log(e)")) == []


def test_a_method_that_closes_the_writer_it_is_given() -> None:
    source = (
        "class C:\n    async def connect(self):\n        reader, writer = await open_connection()\n"
        "        try:\n            await self.login(reader)\n        except Exception:\n"
        "            await self._close_writer(writer)\n            raise\n"
    )
    assert found(source) == [(6, True)]
    assert found(source.replace("_close_writer", "_log_writer")) == []


def test_a_question_releases_nothing() -> None:
    source = """\
import asyncio

async def serve(queue):
    loop = asyncio.new_event_loop()
    try:
        await queue.get()
    except Exception:
        if loop.is_closed():
            return
        raise
"""
    assert not findings(source)
    assert findings(source.replace("if loop.is_closed():\n            return", "loop.close()"))
    assert findings(
        source.replace("if loop.is_closed():\n            return", "loop.mark_closed()")
    )


NARROW = """
class C:
    async def f(self, given):
        {made}
        try:
            await self.work({waited})
        except {kind}:
            {end}
            raise Lost
        {after}
"""


def narrow(
    kind: str,
    made: str = "c = await connect()",
    end: str = "c.close()",
    waited: str = "c",
    after: str = "return c",
) -> str:
    return NARROW.format(kind=kind, made=made, end=end, waited=waited, after=after)


@pytest.mark.parametrize(
    "source",
    [
        narrow("OSError"),
        narrow("asyncio.TimeoutError"),
        narrow("(asyncio.TimeoutError, ValueError)"),
        narrow("asyncio.IncompleteReadError"),
        narrow("TimeoutError", "c = await asyncio.create_subprocess_exec(given)", "c.kill()"),
        narrow("Refused", "t = asyncio.create_task(g())", "t.cancel()"),
        narrow("Refused", "await self.lock.acquire()", "self.lock.release()"),
        narrow("OSError", "self.busy = True", "self.busy = False", after="self.busy = False"),
    ],
)
def test_a_handler_of_some_errors_is_skipped_as_well(source: str) -> None:
    assert found(source) == [(7, True)]


@pytest.mark.parametrize(
    "source",
    [
        narrow("Refused"),  # an answer of the protocol, after which the connection is of no use
        narrow("(OSError, asyncio.CancelledError)"),
        narrow("OSError", end="self.close()"),
        narrow("OSError", made="c = given"),
        narrow("OSError", made="c = self.get_connection(given)"),
        narrow("OSError", made="pass"),
        narrow("asyncio.TimeoutError", "c = asyncio.create_task(g())", "c.cancel()"),
        narrow("OSError", "c = Queue()", "c.put(1)"),
        narrow("Refused", "self.busy = True", "self.busy = False", after="self.busy = False"),
        narrow("OSError") + "        finally:\n            c.close()\n",
    ],
)
def test_a_handler_of_some_errors_that_may_be_right(source: str) -> None:
    source = source.replace("        return c\n        finally", "        finally")
    assert found(source) == []


def test_the_handlers_of_one_try_are_one_finding() -> None:
    again = "        except TimeoutError:\n            c.close()\n            raise\n"
    source = narrow("OSError").replace("        return c", f"{again}        return c")
    assert found(source) == [(7, True)]


FLIGHT = """
class C:
    async def get(self, key, loop):
        future = loop.create_future()
        {store}
        try:
            result = await self.load(key)
            future.set_result(result)
        except {kind} as e:
            future.set_exception(e)
            raise
        {after}
"""


def flight(
    store: str = "self._loading[key] = future",
    kind: str = "Exception",
    after: str = "return result",
) -> list[tuple[int, bool]]:
    return found(FLIGHT.format(store=store, kind=kind, after=after))


def test_a_future_for_others_that_only_an_error_ends() -> None:
    assert flight() == [(9, True)]
    assert flight(kind="BaseException") == []
    assert flight(kind="(Exception, CancelledError)") == []
    assert flight(after="finally:\n            future.cancel()") == []
    assert flight(store="pass") == [(9, False)]
    assert found(FLIGHT.format(store="self.x = future", kind="Exception", after="").replace(
        "loop.create_future()", "self.take()")) == [(9, False)]  # fmt: skip


def test_a_future_that_gets_its_result_after_the_try() -> None:
    source = FLIGHT.format(
        store="self._loading[key] = future", kind="Exception", after="future.set_result(result)"
    )
    assert found(source.replace("            future.set_result(result)\n", "", 1)) == [(8, True)]
    without = source.replace("future.set_result(result)", "log(result)")
    assert found(without) == []
