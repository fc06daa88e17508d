"""Where tasks are created, what they run, and what keeps them."""

from __future__ import annotations

import ast

import pytest

from handfast._check.model.syntax.module import Module
from handfast._check.model.tasks.creation import TaskCreation, task_bodies, task_creations


def made(body: str, more: str = "") -> list[TaskCreation]:
    from handfast._check.source import parse

    lines = "\n".join(f"        {line}" for line in body.splitlines())
    source = f"import asyncio\nclass A:\n    async def go(self, loop, coro):\n{lines}\n{more}"
    return list(task_creations(Module(parse("x.py", source.encode()), "x")))


def retentions(body: str) -> list[tuple[str, str]]:
    (one,) = made(body)
    return [(each.how, each.name) for each in one.retentions]


@pytest.mark.parametrize(
    "call",
    [
        "asyncio.create_task(f())",
        "asyncio.ensure_future(f())",
        "asyncio.tasks.create_task(f())",
        "asyncio.get_running_loop().create_task(f())",
        "asyncio.get_event_loop().create_task(f())",
        "loop.create_task(f())",
        "self.loop.create_task(f())",
        "self.client._loop.create_task(f())",
        "asyncio.create_task(coro=f())",
        "x = asyncio.new_event_loop()\nx.create_task(f())",
    ],
)
def test_a_task_is_made(call: str) -> None:
    (one,) = made(call)
    assert isinstance(one.coro, ast.Call)


@pytest.mark.parametrize(
    "call",
    [
        "group.create_task(f())",
        "self.create_task(f())",
        "create_task(f())",
        "hass.async_create_task(f())",
    ],
)
def test_what_others_track_is_not_in_here(call: str) -> None:
    assert made(call) == []


T = "asyncio.create_task(f())"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (T, [("dropped", "")]),
        (f"[{T} for x in y]", [("dropped", "")]),
        (f"await {T}", [("awaited", "")]),
        (f"return {T}", [("returned", "")]),
        (f"yield {T}", [("returned", "")]),
        (f"self.t = {T}", [("attribute", "self.t")]),
        (f"self.t: X = {T}", [("attribute", "self.t")]),
        (f"self.t += [{T}]", [("attribute", "self.t")]),
        (f"self.t['x'] = {T}", [("element", "self.t")]),
        (f"other['x'] = {T}", [("element", "other")]),
        (f"other.t = {T}", [("outside", "other.t")]),
        (f"self.t.add({T})", [("element", "self.t")]),
        (f"self.t.setdefault('x', {T})", [("element", "self.t")]),
        (f"keep({T})", [("passed", "keep")]),
        (f"keep(task={T})", [("passed", "")]),
        (f"t = {T}", [("local", "t")]),
        (f"t = {T}\nt.cancel()", [("local", "t")]),
        (f"t = {T}\nt", [("local", "t")]),
        (f"t = {T}\nself.t.add(t)", [("local", "t"), ("element", "self.t")]),
        (f"t = {T}\nself.t = t", [("local", "t"), ("attribute", "self.t")]),
        (f"t = {T}\nreturn t", [("local", "t"), ("returned", "")]),
        (f"t = {T}\nawait t", [("local", "t"), ("awaited", "")]),
        (f"t = {T}\nt = t", [("local", "t")]),
        (f"self.a = self.b = {T}", [("attribute", "self.a"), ("attribute", "self.b")]),
        (f"if (t := {T}): pass", [("local", "t"), ("passed", "")]),
        (f"a, b = {T}, 1", [("local", "a")]),
        (f"self.a, b = {T}, 1", [("attribute", "self.a")]),
        (f"a, b = 1, [{T}]", [("local", "b")]),
        (f"x = {T} == 1", [("passed", "")]),
        (f"x = y if {T} else z", [("local", "x")]),
    ],
)
def test_who_keeps_it(body: str, expected: list[tuple[str, str]]) -> None:
    assert retentions(body) == expected


def test_an_inner_function_keeps_what_it_uses() -> None:
    body = f"t = {T}\ndef stop():\n    def deeper():\n        self.late.append(t)"
    assert retentions(body) == [("local", "t"), ("element", "self.late")]


def test_the_key_of_an_element_is_known() -> None:
    (one,) = made(f"self.t[key] = {T}")
    (element,) = one.retentions
    assert isinstance(element.key, ast.Name)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("asyncio.create_task(self.work())", ["A.work"]),
        ("asyncio.create_task(plain())", ["plain"]),
        ("asyncio.create_task(self.gone())", []),
        ("asyncio.create_task(gone())", []),
        ("asyncio.create_task(coro)", []),
        ("asyncio.create_task(functools.partial(self.work, 1)())", ["A.work"]),
        ("async def own(): pass\nasyncio.create_task(own())", ["A.go.own"]),
    ],
)
def test_what_it_runs(call: str, expected: list[str]) -> None:
    more = "    async def work(self): pass\nasync def plain(): pass\n"
    (one,) = made(call, more)
    assert [each.qualname for each in one.bodies] == expected
    assert {each.qualname for each in task_bodies(one.function.module)} == set(expected)
