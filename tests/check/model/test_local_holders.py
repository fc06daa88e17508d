"""The local names that hold a task, and where other code gets it."""

from __future__ import annotations

import pytest

from handfast._check.model.syntax.module import Module
from handfast._check.model.tasks.creation import TaskCreation, task_creations
from handfast._check.model.tasks.local_holders import escapes, holders_of, is_only_held_locally
from handfast._check.source import parse


def creation(body: str) -> TaskCreation:
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    source = f"import asyncio\nasync def f(given):\n    t = asyncio.create_task(g())\n{lines}\n"
    return task_creations(Module(parse("x.py", source.encode()), "x"))[0]


@pytest.mark.parametrize(
    "body",
    [
        "x = t",
        "x = [t]",
        "x = (t, 1)",
        "x = {1: t}",
        "x = {**{1: t}}",
        "x = t if y else None",
        "x = y or t",
        "x = [t] + y",
        "x = [*y, t]",
        "x = {u for u in [t]}",
        "for x in [t]: pass",
        "x, y = await asyncio.wait([t])",
        "x = list([t])",
        "y = {1: t}\nx = y.pop(1)",
        "y = {1: t}\nx = y[1]",
        "y = {1: t}\nfor k, x in y.items(): pass",
        "x = []\nx.append(t)",
        "if (x := t): pass",
    ],
)
def test_x_holds_the_task(body: str) -> None:
    assert "x" in holders_of(creation(body))


@pytest.mark.parametrize(
    "body", ["x = await t", "x = t.result()", "x = h(t)", "x = 1", "x.append(1)", "x = a.b(t)"]
)
def test_x_does_not_hold_the_task(body: str) -> None:
    assert "x" not in holders_of(creation(body))


@pytest.mark.parametrize(
    "body",
    [
        "await t",
        "return t",
        "yield t",
        "yield from t",
        "keep(t)",
        "keep(task=t)",
        "keep([t])",
        "await asyncio.wait([t])",
        "async for x in t: pass",
        "async for x in h([t]): pass",
        "[x async for x in t]",
        "with t: pass",
        "self.t = t",
        "x[0] = t",
        "self.ts.append(t)",
        "await t.wait()",
        "while not t.done(): pass",
        "while x and not t.cancelled(): pass",
    ],
)
def test_other_code_waits_for_it_or_gets_it(body: str) -> None:
    one = creation(body)
    assert list(escapes(one.function, holders_of(one)))


@pytest.mark.parametrize(
    "body",
    [
        "t.cancel()",
        "t.result()",
        "t.unknown",
        "t.unknown()",
        "x = t",
        "x, y = t, 1",
        "x.append(t)",
        "print(t)",
        "log.info('x', t)",
        "t is None",
        "if t: pass",
        "for x in [t]: pass",
        "[x for x in [t]]",
        "if t.done(): pass",
        "x = list([t])",
    ],
)
def test_no_other_code_gets_it(body: str) -> None:
    one = creation(body)
    assert not list(escapes(one.function, holders_of(one)))


@pytest.mark.parametrize(
    ("body", "held"),
    [
        ("t.cancel()", True),
        ("x = []\nx.append(t)", True),
        ("await asyncio.wait([t])", True),
        ("if t: pass", True),
        ("print(t)", True),
        ("outside.append(t)", False),
        ("self.t = t", False),
        ("return t", False),
        ("keep(t)", False),
        ("keep(task=t)", False),
        ("given = t", False),
        ("global t", False),
        ("def stop():\n    t.cancel()", False),
        ("def outer():\n    def stop():\n        t.cancel()", False),
    ],
)
def test_whether_only_its_function_holds_it(body: str, held: bool) -> None:
    assert is_only_held_locally(creation(body)) is held


def test_a_task_that_is_kept_elsewhere_is_not_held_here() -> None:
    source = "import asyncio\nasync def f():\n    await asyncio.create_task(g())\n"
    one = task_creations(Module(parse("x.py", source.encode()), "x"))[0]
    assert not is_only_held_locally(one)
