"""Nodes around a node and below it."""

from __future__ import annotations

import ast

import pytest

from handfast._check.model.syntax.ancestors import (
    ancestors,
    calls_in,
    contains,
    enclosing_loop,
    enclosing_tries,
    is_in_finally,
    last_name,
    steps_up,
)
from handfast._check.model.syntax.function import Function
from handfast._check.model.syntax.module import Module
from handfast._check.source import parse

SOURCE = """\
while True:
    async def run(self):
        for each in jobs:
            try:
                at(body)
            {except_} ValueError:
                at(handler)
            else:
                at(orelse)
            finally:
                at(finalbody)
        at(outside)
"""


@pytest.fixture(params=["except", "except*"])
def run(request: pytest.FixtureRequest) -> Function:
    text = SOURCE.format(except_=request.param)
    return Module(parse("x.py", text.encode()), "x").functions[0]


def at(function: Function, name: str) -> ast.Call:
    return next(call for call in function.calls if ast.unparse(call) == f"at({name})")


def test_the_ancestors_end_at_the_function(run: Function) -> None:
    kinds = [type(each) for each in ancestors(run, at(run, "outside"))]
    assert kinds == [ast.Expr]
    kinds = [type(each) for each in ancestors(run, at(run, "handler"))]
    assert kinds[:2] == [ast.Expr, ast.ExceptHandler]
    assert kinds[-1] is ast.For


def test_each_step_up_names_the_part_it_comes_from(run: Function) -> None:
    call = at(run, "outside")
    ((part, up),) = steps_up(run, call)
    assert part is call
    assert isinstance(up, ast.Expr)


def test_the_loop_around_is_one_of_the_same_function(run: Function) -> None:
    assert isinstance(enclosing_loop(run, at(run, "body")), ast.For)
    assert enclosing_loop(run, at(run, "outside")) is None


def test_handlers_see_the_body_only(run: Function) -> None:
    names = ["body", "handler", "orelse", "finalbody", "outside"]
    seen = [name for name in names if any(enclosing_tries(run, at(run, name)))]
    assert seen == ["body"]


def test_only_the_last_block_is_the_finally(run: Function) -> None:
    names = ["body", "handler", "orelse", "finalbody", "outside"]
    assert [name for name in names if is_in_finally(run, at(run, name))] == ["finalbody"]


def test_what_a_block_has_below_it() -> None:
    body = ast.parse("a(b())\nif x:\n    raise x\nwith lambda: c(): d()").body
    assert [ast.unparse(each) for each in calls_in(body)] == ["a(b())", "b()", "d()"]
    assert contains(body, ast.Raise, ast.Return)
    assert not contains(body, ast.Return)


@pytest.mark.parametrize(
    ("text", "name"), [("a.b.c", "c"), ("c", "c"), ("f().c", "c"), ("c()", ""), ("c[0]", "")]
)
def test_the_last_name(text: str, name: str) -> None:
    assert last_name(ast.parse(text, mode="eval").body) == name


def test_nothing_has_no_name() -> None:
    assert last_name(None) == ""
