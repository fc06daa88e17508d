"""Effects of a function: through calls, overriding methods and parameters."""

from __future__ import annotations

from handfast._check.model.operations.effects import effects
from handfast._check.model.operations.locks import locks_over
from handfast._check.model.syntax.call_graph import members, runs
from handfast._check.model.syntax.module import Module
from handfast._check.source import parse

SOURCE = """\
import asyncio

class Base:
    async def close(self):
        self.end()
        async with self._lock:
            await self._join(self._task)

    def end(self):
        pass

    async def _join(self, task):
        await task

class Child(Base):
    def end(self):
        self._task.cancel()

    async def work(self):
        try:
            asyncio.create_task(self.close())
        finally:
            self.tidy()

    def tidy(self):
        pass
"""
MODULE = Module(parse("x.py", SOURCE.encode()), "x")
BASE, CHILD = MODULE.classes["Base"], MODULE.classes["Child"]
CLOSE = BASE.methods["close"]


def done(kind: str, klass: str) -> list[tuple[str, int]]:
    return [
        (each.root, getattr(each.node, "lineno", 0))
        for each in effects(CLOSE, MODULE.classes[klass])
        if each.kind == kind
    ]


def test_an_inherited_method_meets_the_overriding_one() -> None:
    assert done("cancel", "Child") == [("self._task", 5)]
    assert not done("cancel", "Base")
    assert BASE.methods["end"] not in members(CHILD)


def test_what_is_done_to_a_parameter_is_done_to_what_was_given() -> None:
    assert ("self._task", 7) in done("join", "Base")


def test_what_is_started_as_a_task_does_not_run_here() -> None:
    work, tidy = CHILD.methods["work"], CHILD.methods["tidy"]
    assert dict(runs(work, CHILD)) == {work: False, tidy: True}


def test_a_private_method_holds_the_locks_of_its_callers() -> None:
    join = BASE.methods["_join"]
    assert locks_over(BASE, join, join.body[0]) == {"self._lock"}
