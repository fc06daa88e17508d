"""The call graph: names to functions, callers and callees, and what is reached from a function."""

from __future__ import annotations

from handfast._check.model.syntax.call_graph import (
    awaited_from,
    callees,
    callers,
    closure,
    members,
    reached_from,
)
from handfast._check.model.syntax.module import Module
from handfast._check.source import parse

SOURCE = """\
from functools import partial

class Base:
    async def close(self):
        await self.stop()
    def stop(self): pass

class Child(Base):
    async def close(self):
        await super().close()
        self.start(partial(helper, 1))
    async def stop(self):
        self.later()
    async def later(self): pass
    def start(self, given): pass

def helper(x):
    helper(x)
    other()
def other():
    helper(1)
"""


def module() -> Module:
    return Module(parse("x.py", SOURCE.encode()), "x")


def test_super_and_overriding_methods_are_resolved_in_the_class_that_is_checked() -> None:
    child = module().classes["Child"]
    base = module().classes["Base"]
    close = child.methods["close"]
    assert [each.qualname for _, each in callees(close, child)] == ["Base.close", "Child.start"]
    inherited = callees(child.lineage[1].methods["close"], child)
    assert [each.qualname for _, each in inherited] == ["Child.stop"]
    assert [each.qualname for each in members(base)] == ["Base.close", "Base.stop"]


def test_a_coroutine_that_is_not_awaited_does_not_run_in_the_caller() -> None:
    child = module().classes["Child"]
    stop = child.methods["stop"]
    assert callees(stop, child) == ()
    assert [each.name for each in reached_from(stop)] == ["stop", "later"]
    assert [each.name for each in awaited_from(stop)] == ["stop"]


def test_callers_without_a_class_are_those_of_the_module() -> None:
    found = module()
    helper = found.find_function("helper")
    assert helper is not None
    assert [each.name for each, _ in callers(None, helper)] == ["other"]


def test_functions_that_call_each_other_are_reached_once() -> None:
    found = module()
    helper, other = found.find_function("helper"), found.find_function("other")
    assert helper is not None
    assert reached_from(helper) == [helper, other]
    assert closure(helper, lambda each: [helper, helper]) == [helper]
