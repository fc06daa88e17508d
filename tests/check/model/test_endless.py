"""Tasks that run until they are cancelled."""

from __future__ import annotations

from handfast._check.model.syntax.call_graph import awaited_from
from handfast._check.model.syntax.memo import remembered
from handfast._check.model.syntax.module import Module
from handfast._check.model.tasks.endless import endless_loop, never_ended
from handfast._check.source import parse

SOURCE = """\
import asyncio
class A:
    def __init__(self):
        self.task = asyncio.create_task(self.run())
        self.short = asyncio.create_task(self.once())
        self.other = asyncio.create_task(unknown())

    async def run(self):
        await self.once()
        await self.loop()

    async def once(self):
        await self.run()

    async def loop(self):
        while True:
            await asyncio.sleep(1)

    async def ticks(self):
        while True:
            yield await asyncio.sleep(1)

    def spin(self):
        while True:
            pass
"""


def module() -> Module:
    return Module(parse("x.py", SOURCE.encode()), "x")


def test_what_is_awaited_runs_inside() -> None:
    methods = module().classes["A"].methods
    assert [each.name for each in awaited_from(methods["run"])] == ["run", "once", "loop"]


def test_generators_and_plain_functions_are_no_services() -> None:
    methods = module().classes["A"].methods
    assert {name for name, method in methods.items() if endless_loop(method)} == {"loop"}


def test_services_of_a_class() -> None:
    klass = module().classes["A"]
    assert [(each.root, each.loop.lineno) for each in never_ended(klass)] == [
        ("self.task", 16),
        ("self.short", 16),
    ]


def test_an_answer_is_computed_once() -> None:
    computed = []

    @remembered
    def ask(subject: Module) -> int:
        computed.append(subject)
        return len(computed)

    one, other = module(), module()
    assert [ask(one), ask(one), ask(other)] == [1, 1, 2]
