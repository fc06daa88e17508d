"""HF302: a session, pool or loop and the tasks that use it."""

from __future__ import annotations

import pytest

from handfast._check.finding import Finding
from handfast._check.model.syntax.module import Module
from handfast._check.rules.hf302_closed_before_users import RULE
from handfast._check.source import parse
from handfast.catalogue import kind


def findings(source: str) -> list[Finding]:
    return list(RULE.check(Module(parse("x.py", source.encode()), "x")))


def lines(source: str) -> list[int]:
    """The lines of the findings that are shown by default."""
    return [each.place.line for each in findings(source) if not each.pedantic]


def test_the_wrong_example_is_found_and_the_right_one_is_not() -> None:
    assert RULE.code == kind("HF302").code
    assert lines(kind("HF302").wrong) == [14]
    assert not findings(kind("HF302").right)


CRAWLER = """\
import asyncio

class Crawler:
    def start(self):
        self._task = asyncio.create_task({body})

    async def _crawl(self):
        while True:
            await self._{used}.get()

    async def close(self):
        {close}
"""
END = "self._task.cancel(); await asyncio.wait({self._task})"


def crawler(*close: str, body: str = "self._crawl()", used: str = "session") -> str:
    return CRAWLER.format(body=body, used=used, close="\n        ".join(close))


def test_the_message_names_both_places() -> None:
    found = findings(crawler("await self._session.close()", END))
    assert [each.place.line for each in found] == [12]
    assert [each.place.line for each in found[0].related] == [9, 5]


def test_a_coroutine_of_the_session_itself_uses_it() -> None:
    assert lines(crawler("await self._session.close()", END, body="self._session.fetch()")) == [12]


def test_pools_and_executors_count() -> None:
    for used in ("pool", "thread_pool", "executor"):
        close = f"self._{used}.shutdown(); await self.flush()"
        assert lines(crawler(close, END, used=used)) == [12]


def test_silent_in_the_right_order() -> None:
    assert not findings(crawler(END, "await self._session.close()"))


def test_silent_where_nothing_suspends_before_the_cancel() -> None:
    assert not findings(crawler("self._pool.shutdown()", END, used="pool"))


def test_silent_for_a_connection_whose_close_tells_the_reader_to_end() -> None:
    assert not findings(crawler("await self._ws.close()", END, used="ws"))


def test_silent_for_what_the_session_holds() -> None:
    assert not findings(crawler("await self._session.detector.aclose()", END))


def test_silent_where_the_task_does_not_use_it() -> None:
    assert not findings(crawler("await self._session.close()", END, used="other"))


def test_silent_where_the_task_only_asks_whether_it_is_closed() -> None:
    for closed in ("session.closed", "session.is_closed()"):
        source = crawler("await self._session.close()", END)
        watching = source.replace("while True", f"while not self._{closed}").replace(
            "await self._session.get()", "await asyncio.sleep(1)"
        )
        assert not findings(watching)
        assert lines(watching.replace("asyncio.sleep(1)", "self._session.get()")) == [12]


def test_a_use_that_is_itself_a_close_is_no_use() -> None:
    source = crawler("await self._session.close()", END)
    assert findings(source.replace(".get()", ".close()")) == []


KEYED = """\
import asyncio
class Feeds:
    def add(self, key):
        self._tasks[key] = asyncio.create_task(self._run(key))
    async def _run(self, key):
        while True:
            await {used}.get(key)
    async def remove(self, key):
        {remove}
"""
SHARED = "task = self._tasks.pop(key)\n        task.cancel()\n        await asyncio.wait([task])\n        "


def keyed(remove: str, used: str = "self._session") -> str:
    return KEYED.format(remove=remove, used=used)


@pytest.mark.parametrize(
    "close",
    ["await self._session.close()", "self._session.close()", "await self._session.aclose()"],
)
def test_what_the_tasks_of_all_keys_use_is_not_closed_with_one(close: str) -> None:
    (finding,) = findings(keyed(SHARED + close))
    assert finding.place.line == 12
    assert "which the tasks of the other keys still use (line 7)" in finding.message


@pytest.mark.parametrize(
    ("remove", "used"),
    [
        (f"{SHARED}if not self._tasks:\n            await self._session.close()", ""),
        (f"{SHARED}if self._tasks:\n            return\n        await self._session.close()", ""),
        (f"{SHARED}await self._sessions.pop(key).close()", ""),
        (f"{SHARED}await self._session.close()", "self._other"),
        (f"{SHARED}await self._session.connection.close()", ""),
        ("for key in list(self._tasks):\n            self._tasks.pop(key).cancel()\n"
         "        await self._session.close()", ""),
        ("self._tasks.pop('main').cancel()\n        await self._session.close()", ""),
        ("self._others.pop(key).cancel()\n        await self._session.close()", ""),
    ],
)  # fmt: skip
def test_what_one_key_has_for_itself_or_the_last_one_closes_is_not_reported(
    remove: str, used: str
) -> None:
    assert findings(keyed(remove, used or "self._session")) == []
