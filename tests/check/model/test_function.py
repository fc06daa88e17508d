"""Where the values of a function come from."""

from __future__ import annotations

import ast

import pytest

from handfast._check.model.syntax.function import Function, names_in
from handfast._check.model.syntax.module import Module
from handfast._check.source import parse


def module(source: str) -> Module:
    return Module(parse("x.py", source.encode()), "x")


def method(body: str, parameters: str = "self, given") -> Function:
    lines = "\n".join(f"        {line}" for line in body.splitlines())
    source = f"import asyncio\nclass A:\n    async def f({parameters}):\n{lines}\n"
    return next(each for each in module(source).functions if each.name == "f")


def roots(body: str) -> set[str]:
    """The roots of what `found(...)` is given."""
    function = method(body)
    call = next(each for each in function.calls if getattr(each.func, "id", "") == "found")
    return set(function.roots(call.args[0]))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("found(self.a)", {"self.a"}),
        ("found(self.a[0])", {"self.a"}),
        ("found(self.a.b)", {"self.a"}),
        ("found(given)", {"given"}),
        ("found(given.a)", {"given.a", "given"}),
        ("found(outside)", {"outside"}),
        ("found(None)", set()),
        ("found(lambda: 1)", set()),
        ("x = self.a\nfound(x)", {"self.a"}),
        ("x = self.a\nx = self.b\nfound(x)", {"self.a", "self.b"}),
        ("x: T = self.a\nfound(x)", {"self.a"}),
        ("x: T\nfound(x)", set()),
        ("x += self.a\nfound(x)", {"self.a"}),
        ("x, self.a = self.a, None\nfound(x)", {"self.a"}),
        ("x, y = self.a, self.b\nfound(y)", {"self.b"}),
        ("x, *y = self.a\nfound(y)", {"self.a"}),
        ("[x, y] = self.a\nfound(y)", {"self.a"}),
        ("if (x := self.a):\n    found(x)", {"self.a"}),
        ("found(x := self.a)", {"self.a"}),
        ("for x in self.a:\n    found(x)", {"self.a"}),
        ("for k, x in self.a.items():\n    found(x)", {"self.a"}),
        ("async for x in self.a:\n    found(x)", {"self.a"}),
        ("[found(x) for x in self.a]", {"self.a"}),
        ("with self.a as x:\n    found(x)", {"self.a"}),
        ("with self.a:\n    found(self.a)", {"self.a"}),
        ("match self.a:\n    case T() as x:\n        found(x)", {"self.a"}),
        ("match self.a:\n    case [x, _]:\n        found(x)", {"self.a"}),
        ("found(self.a.pop())", {"self.a"}),
        ("found(self.a.get(1))", {"self.a"}),
        ("found(list(self.a))", {"self.a"}),
        ("found([*self.a, self.b])", {"self.a", "self.b"}),
        ("found({1: self.a})", {"self.a"}),
        ("found({self.a} | self.b)", {"self.a", "self.b"}),
        ("found([x for x in self.a])", {"self.a"}),
        ("found({1: x for x in self.a})", {"self.a"}),
        ("found(self.a if x else self.b)", {"self.a", "self.b"}),
        ("found(self.a or self.b)", {"self.a", "self.b"}),
        ("found(await self.a)", {"self.a"}),
        ("found(chain(self.a, self.b))", {"self.a", "self.b"}),
        ("found(make())", {"make()"}),
        ("found(self.make())", {"self.make()"}),
        ("found(make()())", set()),
        ("found(getattr(self, 'a', None))", {"self.a"}),
        ("found(getattr(given, 'a'))", {"getattr()"}),
        (
            "done, pending = await asyncio.wait(self.a)\nfound(pending)",
            {"self.a", "asyncio.wait()"},
        ),
        (
            "for x in asyncio.as_completed(self.a):\n    found(x)",
            {"self.a", "asyncio.as_completed()"},
        ),
        ("x = x\nfound(x)", set()),
    ],
)
def test_roots(body: str, expected: set[str]) -> None:
    assert roots(body) == expected


def test_roots_of_an_inner_function_go_outside() -> None:
    source = """\
class A:
    def f(this, given):
        task = this._task
        def g(own):
            end(task, given, own, this.b)
        h = lambda x: end(x)
"""
    found = module(source)
    inner = next(each for each in found.functions if each.name == "g")
    end = inner.calls[0]
    assert [set(inner.roots(each)) for each in end.args] == [
        {"self._task"},
        {"given"},
        {"own"},
        {"self.b"},
    ]
    assert inner.self_here == "this"
    assert inner.klass is found.classes["A"]
    assert inner.name_of(end.args[3]) == "self.b"
    assert inner.outer is not None
    assert inner.outer.inner[0] is inner
    assert [each.name for each in found.functions] == ["f", "g", "<lambda>"]


def test_a_chain_of_operators_is_no_deep_one() -> None:
    text = " + ".join(["self.a"] * 900)
    assert roots(f"found({text})") == {"self.a"}


def test_what_a_function_is() -> None:
    function = method("yield 1", "self, /, a, *b, c, **d")
    assert function.parameters == ("self", "a", "c", "b", "d")
    assert function.is_async
    assert function.is_generator
    assert function.name == "f"
    assert function.self_name == "self"
    assert len(function.body) == 1
    assert repr(function) == "<Function A.f>"


@pytest.mark.parametrize("decorator", ["staticmethod", "classmethod"])
def test_a_method_without_self_has_none(decorator: str) -> None:
    found = module(f"class A:\n    @{decorator}\n    def f(x):\n        def g(): pass\n")
    assert [each.self_here for each in found.functions] == ["", ""]


def test_a_plain_function_has_no_class() -> None:
    (function,) = module("def f(): pass\n").functions
    assert function.klass is None
    assert function.self_here == ""
    assert not function.is_async


def test_a_lambda_is_a_function_too() -> None:
    (function,) = module("f = lambda x: g(x)\n").functions
    assert function.name == "<lambda>"
    assert function.body == []
    assert len(function.calls) == 1
    assert function.self_name == ""
    assert function.flow.nodes == []


def test_decorators_belong_to_the_outside() -> None:
    function = method("@deco(1)\ndef g():\n    inner()\nlast()")
    assert [getattr(each.func, "id", "") for each in function.calls] == ["deco", "last"]


def test_names_in_an_expression() -> None:
    assert set(names_in(ast.parse("a + b.c", mode="eval").body)) == {"a", "b"}


@pytest.mark.parametrize(
    ("use", "roots"),
    [
        ("for t in self.a:\n        use(t)\n    for t in self.b:\n        pass", {"self.a"}),
        ("for t in self.a:\n        pass\n    for t in self.b:\n        use(t)", {"self.b"}),
        ("[use(t) for t in self.a]\n    [t for t in self.b]", {"self.a"}),
        (
            "for t in self.a:\n        pass\n    for t in self.b:\n        pass\n    use(t)",
            {"self.a", "self.b"},
        ),
        ("t = self.c\n    for t in self.a:\n        use(t)", {"self.a", "self.c"}),
    ],
)
def test_a_loop_variable_of_two_loops_comes_from_the_loop_around_it(
    use: str, roots: set[str]
) -> None:
    source = f"class C:\n  def f(self):\n    {use}\n"
    module = Module(parse("x.py", source.encode()), "x")
    (function,) = [each for each in module.functions if each.name == "f"]
    (call,) = [each for each in function.calls if ast.unparse(each.func) == "use"]
    assert function.roots(call.args[0]) == roots
