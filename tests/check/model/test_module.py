"""Modules and classes: functions by name, methods over inheritance."""

from __future__ import annotations

import ast

import pytest

from handfast._check.model.syntax.module import Module
from handfast._check.source import parse


def module(source: str, path: str = "x.py", name: str = "pkg.x") -> Module:
    return Module(parse(path, source.encode()), name)


SOURCE = """\
import asyncio

def plain():
    async def inner():
        class Deep:
            def m(self): pass
    return lambda: 1

class Base:
    def close(self): pass

class A(Base):
    if True:
        def run(self):
            def local(): self.x
    key = lambda self: 2

run(plain)
"""


def test_functions_and_classes_are_found_in_source_order() -> None:
    found = module(SOURCE)
    assert [each.qualname for each in found.functions] == [
        "plain",
        "plain.inner",
        "plain.inner.Deep.m",
        "plain.<lambda>",
        "Base.close",
        "A.run",
        "A.run.local",
        "A.<lambda>",
    ]
    assert list(found.classes) == ["Deep", "Base", "A"]
    assert repr(found) == "<Module pkg.x>"
    assert repr(found.classes["A"]) == "<Class A>"


def test_methods_come_over_inheritance() -> None:
    klass = module(SOURCE).classes["A"]
    assert set(klass.all_methods) == {"run", "close"}
    assert set(klass.methods) == {"run"}
    assert klass.is_complete
    assert [each.name for each in klass.functions] == ["run", "local", "<lambda>"]


@pytest.mark.parametrize(
    ("bases", "complete"),
    [
        ("", True),
        ("(object)", True),
        ("(abc.ABC)", True),
        ("(Generic[T])", True),
        ("(Unknown)", False),
        ("(A)", False),
        ("(x.Unknown, object)", False),
    ],
)
def test_a_class_is_complete_if_its_bases_are_known(bases: str, complete: bool) -> None:
    source = f"from typing import Generic\nimport abc\nclass A{bases}: pass\n"
    assert module(source).classes["A"].is_complete is complete


def test_a_class_whose_base_is_not_complete_is_not_either() -> None:
    found = module("class A(Unknown): pass\nclass B(A): pass\n")
    assert not found.classes["B"].is_complete


def test_the_body_of_a_module_is_a_function_too() -> None:
    found = module(SOURCE)
    assert [getattr(call.func, "id", "") for call in found.body.calls] == ["run"]
    call = found.body.calls[0]
    assert found.function_around(call) is found.body
    assert isinstance(found.statement_of(call), ast.Expr)
    assert (found.body, call) in list(found.calls())


def test_a_node_is_found_in_its_innermost_function() -> None:
    found = module(SOURCE)
    inner = next(each for each in found.functions if each.name == "inner")
    assert found.function_around(inner.body[0]) is inner
    assert found.function_of(inner.node) is inner


def test_functions_are_found_by_plain_name_at_the_top_only() -> None:
    found = module(SOURCE)
    assert found.find_function("plain") is not None
    assert found.find_function("inner") is None
    assert found.find_class("Gone") is None


def test_a_package_is_its_own_package() -> None:
    source = "from . import y\nclass A(y.B): pass\n"
    assert module(source).classes["A"].base_names == ("pkg.y.B",)
    package = module(source, "pkg/__init__.py", "pkg")
    assert package.classes["A"].base_names == ("pkg.y.B",)
