"""HF531: what stays acquired after a cancellation."""

from __future__ import annotations

import ast

import pytest

from handfast._check.finding import Finding
from handfast._check.model.syntax.function import Function
from handfast._check.model.syntax.module import Module
from handfast._check.rules import hf531_acquired_before_try
from handfast._check.rules.hf531_acquired_before_try import RULE
from handfast._check.rules.rule import Words
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
    assert RULE.code == kind("HF531").code
    assert not RULE.pedantic
    assert lines(kind("HF531").wrong) == [3]
    assert findings(kind("HF531").right) == []


def query(acquire: str, between: str, release: str) -> str:
    return f"""\
async def query(self, pool, lock):
    {acquire}
    {between}
    try:
        return await self.run()
    finally:
        {release}
"""


@pytest.mark.parametrize(
    ("acquire", "release"),
    [
        ("c = await pool.acquire()", "pool.release(c)"),
        ("c = await pool.acquire()", "await c.close()"),
        ("await lock.acquire()", "lock.release()"),
        ("await self._lock.acquire()", "self._lock.release()"),
        ("c = await asyncio.create_subprocess_exec('x')", "c.kill()"),
    ],
)
def test_an_await_between_acquiring_and_guarding_is_found(acquire: str, release: str) -> None:
    (finding,) = findings(query(acquire, "await self.prepare()", release))
    assert (finding.place.line, finding.pedantic) == (3, False)
    assert [each.place.line for each in finding.related] == [2, 7]


@pytest.mark.parametrize(
    "between",
    [
        "self.count += 1",
        "self.open.add(c); await self.prepare()",
        "self.current = c; await self.prepare()",
        "c = await self.prepare()",
        "async with c: await self.prepare()",
    ],
)
def test_no_await_between_or_passed_on_is_silent(between: str) -> None:
    assert findings(query("c = await pool.acquire()", between, "pool.release(c)")) == []


def test_a_try_around_the_whole_is_silent() -> None:
    source = """\
async def query(pool):
    c = None
    try:
        c = await pool.acquire()
        await c.ping()
        try:
            return await c.run()
        finally:
            await c.close()
    except BaseException:
        if c:
            c.abort()
        raise
"""
    assert findings(source) == []


def test_a_finally_that_gives_something_else_back_is_silent() -> None:
    assert findings(query("c = await self.ask()", "await self.more()", "pool.release(d)")) == []


def test_a_pool_that_takes_something_else_back_is_silent() -> None:
    source = query("pool = await create_pool()", "c = await pool.acquire()", "pool.release(c)")
    assert findings(source) == []


FREE = """\
class Node:
    async def execute(self, command):
        connection = self.acquire_connection()
        await connection.send(command)
        try:
            return await connection.read()
        finally:
            self._free.append(connection)
"""


def test_what_is_put_back_among_the_free_ones_is_given_back() -> None:
    assert lines(FREE) == [4]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("acquire_connection", "connection_for"),
        ("_free", "_seen"),
        ("await connection.send", "connection.send"),
    ],
)
def test_what_is_not_acquired_or_not_released_is_not_reported(old: str, new: str) -> None:
    assert lines(FREE.replace(old, new)) == []


def test_a_name_under_which_something_is_acquired_later_is_no_thing_to_give_back() -> None:
    late = "limiter = await self.pool.acquire(client)"
    assert findings(query("client = await self.who()", late, "self.pool.release(client)")) == []
    other = "limiter = await self.pool.acquire(self.other)"
    assert lines(query("client = await self.who()", other, "self.pool.release(client)")) == [3]


PLAIN = """\
class Node:
    async def execute(self, commands):
        connection = await self.pool.acquire()
        for command in commands:
            try:
                command.result = await connection.run(command)
            except ValueError:
                pass
        await self.pool.release(connection)
"""


def test_what_is_given_back_without_any_try_is_found() -> None:
    (finding,) = findings(PLAIN)
    assert (finding.place.line, finding.pedantic) == (6, False)
    assert [each.place.line for each in finding.related] == [3, 9]
    lock = "async def go(lock, work):\n    await lock.acquire()\n    await work()\n    lock.release()\n"
    assert lines(lock) == [3]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("await connection.run", "connection.run"),
        ("self.pool.acquire()", "self.pool.describe()"),
        (
            "command.result = await connection.run(command)",
            "self.connection = connection; await go()",
        ),
        ("pass", "await self.pool.release(connection)"),
        ("        await self.pool.release(connection)\n", ""),
    ],
)
def test_what_is_released_or_guarded_elsewhere_is_not_reported(old: str, new: str) -> None:
    source = PLAIN.replace(old, new)
    assert source != PLAIN
    assert lines(source) == []


def test_a_try_around_the_whole_that_speaks_of_it_looks_after_it() -> None:
    lock = "await lock.acquire()\n        await work()\n        lock.release()"
    ends = "    try:\n        {lock}\n    except Exception:\n        {end}\n"
    source = "async def go(lock, work):\n" + ends
    assert lines(source.format(lock=lock, end="lock.release()")) == []
    assert lines(source.format(lock=lock, end="raise")) == [4]


def test_a_long_block_of_tries_is_searched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    searched = []
    acquired = hf531_acquired_before_try._acquired

    def counted(function: Function, stmt: ast.stmt) -> list[str]:
        searched.append(stmt)
        return acquired(function, stmt)

    monkeypatch.setattr(hf531_acquired_before_try, "_acquired", counted)
    one = "    try:\n        await f()\n    finally:\n        g()\n"
    assert findings("async def run():\n" + one * 50) == []
    assert len(searched) <= 50


BROWSER = """\
async def visit(url):
    async with playwright() as p:
        browser = await p.firefox.launch()
        page = await browser.new_page()
        try:
            await page.open(url)
        finally:
            await browser.close()
"""


def test_a_context_manager_closes_what_it_has_given_out() -> None:
    assert lines(BROWSER) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("await p.firefox", "await firefox"),
        ("async with playwright() as p", "async with playwright() as q"),
        ("async with playwright() as p", "if p.ready"),
    ],
)
def test_a_context_manager_of_something_else_closes_nothing(old: str, new: str) -> None:
    assert lines(BROWSER.replace(old, new)) == [4]


FLAG = """
class C:
    async def {name}(self):
        if {test}: {refuse}
        self.busy = True
        {work}
        {reset}
        log()
"""


def flag(
    name: str = "refresh",
    test: str = "self.busy",
    refuse: str = "return",
    work: str = "await g()",
    reset: str = "self.busy = False",
) -> str:
    return FLAG.format(name=name, test=test, refuse=refuse, work=work, reset=reset)


@pytest.mark.parametrize("source", [flag(), flag(refuse="raise Busy")])
def test_a_flag_that_an_error_leaves_set(source: str) -> None:
    (finding,) = findings(source)
    assert finding.place.line == 6
    assert not finding.pedantic


@pytest.mark.parametrize(
    "source",
    [
        flag(name="close"),
        flag(test="self.ready"),
        flag(refuse="await self.idle()"),
        flag(work="g()"),
        flag(work="yield await g()"),
        flag(work="if not self.busy: await g()"),
        flag(reset="await self.idle()"),
        flag(work="try: await g()", reset="finally: self.busy = False"),
    ],
)
def test_a_flag_that_may_be_right(source: str) -> None:
    assert findings(source) == []


def test_a_flag_that_a_try_around_resets() -> None:
    source = (
        "class C:\n    async def f(self):\n        if self.busy: return\n        try:\n"
        "            self.busy = True\n            await g()\n            self.busy = False\n"
        "        except BaseException:\n            self.busy = False\n            raise\n"
    )
    assert findings(source) == []


@pytest.mark.parametrize(
    ("text", "has"),
    [
        ("if self.busy: return\nself.busy = True", True),
        ("if (self.busy):\n    return\nself.busy=True", True),
        ("if self.busy: return\nself.other = True", False),
        ("if self.busy > 1: return\nself.busy = True", False),
    ],
)
def test_only_a_file_with_a_flag_is_looked_at(text: str, has: bool) -> None:
    assert Words(text).has("<flags>") is has
