"""HF504: a task is cancelled and awaited, and its CancelledError leaves the function."""

from __future__ import annotations

import pytest

from handfast._check.finding import Finding
from handfast._check.model.syntax.module import Module
from handfast._check.rules.hf504_join_raises_cancel import RULE
from handfast._check.source import parse
from handfast.catalogue import kind


def findings(source: str) -> list[Finding]:
    return list(RULE.check(Module(parse("x.py", source.encode()), "x")))


def found(source: str) -> list[tuple[int, bool]]:
    """The lines, and whether they are shown by default."""
    return [(each.place.line, not each.pedantic) for each in findings(source)]


def test_the_wrong_example_is_found_and_the_right_one_is_not() -> None:
    assert RULE.code == kind("HF504").code
    assert found(kind("HF504").wrong) == [(16, True)]
    assert found(kind("HF504").right) == []


CLIENT = """\
import asyncio, contextlib
class Client:
    def start(self):
        self._task = asyncio.create_task(self._run())
        self._tasks.append(asyncio.create_task(self._run()))
    async def _run(self):
        {body}
    async def {name}(self):
        {end}
"""
BODY = "while True: await asyncio.sleep(1)"


def client(end: str, name: str = "close", body: str = BODY) -> list[tuple[int, bool]]:
    end = end.replace("; ", ";").replace(";", "\n        ")
    return found(CLIENT.format(end=end, name=name, body=body))


JOIN = "self._task.cancel(); await self._task"


def test_a_close_method_that_raises_the_cancel_of_its_task() -> None:
    assert client(JOIN) == [(10, True)]
    assert client("if self._task: self._task.cancel(); await self._task") == [(10, True)]
    assert client("self._task.cancel(); self._closed = True; await self._task") == [(11, True)]
    assert client("task = self._task; task.cancel(); await task") == [(11, True)]
    assert client("try: pass;finally:\n            " + JOIN.replace("; ", "\n            ")) == [
        (12, True)
    ]


def test_the_message_names_what_is_skipped() -> None:
    end = f"{JOIN}; await self._connection.close()"
    (finding,) = findings(CLIENT.format(end=end.replace("; ", "\n        "), name="x", body=BODY))
    assert "leaves `x`, and line 11 is skipped" in finding.message
    assert [each.place.line for each in finding.related] == [9]
    assert client(end, name="x") == [(10, True)]
    assert client(JOIN, name="x") == [(10, False)]
    assert client(f"{JOIN}; return True", name="x") == [(10, False)]


def test_a_loop_that_cancels_and_one_that_awaits() -> None:
    cancels = "for t in self._tasks: t.cancel()"
    assert client(f"{cancels}; for t in self._tasks: await t") == [(10, True)]
    assert client(f"{cancels}; for other in self._tasks: await other") == [(10, True)]
    assert client(f"{cancels}; for t in self._others: await t") == []
    assert client("for t in self._tasks: print(t); for t in self._tasks: await t") == []
    assert client("for t in self._tasks:\n            t.cancel()\n            await t") == [
        (11, True)
    ]
    unknown = f"{cancels}; for t in self._tasks: await t".replace("_tasks", "_others")
    assert client(unknown) == [(10, False)]


@pytest.mark.parametrize(
    "end",
    [
        "self._task.cancel(); await asyncio.wait([self._task])",
        "self._task.cancel(); await asyncio.gather(self._task, return_exceptions=True)",
        "self._task.cancel(); with contextlib.suppress(asyncio.CancelledError): await self._task",
        "self._task.cancel();try: await self._task;except asyncio.CancelledError: pass",
        "self._task.cancel();try: await self._task;except BaseException: pass",
        "await self._task",
        "self._other.cancel(); await self._task",
        "self._task.cancel(); await flush(); await self._task",
        "self._task.cancel(); self._task = asyncio.create_task(self._run()); await self._task",
        "if self.failed:\n            self._task.cancel()\n            raise ValueError;await self._task",
        "self._task.cancel(); done = await self._task",
        "try: await work();except asyncio.CancelledError:\n            self._task.cancel()\n"
        "            await self._task\n            raise",
    ],
)
def test_a_join_that_raises_no_cancel(end: str) -> None:
    assert client(end) == []


@pytest.mark.parametrize(
    "body",
    [
        "try: await work()\n        except asyncio.CancelledError: print('ended')",
        "with contextlib.suppress(asyncio.CancelledError): await work()",
        "try: await work()\n        except BaseException: pass",
        "try: await work()\n        except asyncio.CancelledError as e: self._done.set_exception(e)",
        "try: await work()\n        except asyncio.CancelledError as e: return e",
        "try: await work()\n        except ValueError: raise\n        except asyncio.CancelledError:\n"
        "            if self._ending: return\n            raise",
        "await self._inner()\n    async def _inner(self):\n        try: await work()\n"
        "        except asyncio.CancelledError: return",
    ],
)
def test_a_task_that_keeps_its_cancellation_ends_without_it(body: str) -> None:
    assert client(JOIN, body=body) == []


def test_a_task_whose_coroutine_is_not_known_is_pedantic() -> None:
    assert client(JOIN.replace("_task", "_given")) == [(10, False)]


def test_a_caller_that_catches_the_cancel() -> None:
    caller = "    async def end(self):\n        try:\n            await self._stop()\n        {handler}\n"
    source = CLIENT.format(end=JOIN.replace("; ", "\n        "), name="_stop", body=BODY)
    caught = "except asyncio.CancelledError:\n            pass"
    assert found(source + caller.format(handler=caught)) == []
    assert found(source + caller.format(handler="finally:\n            pass")) == [(10, True)]
