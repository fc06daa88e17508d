"""Full names, for each form of import."""

from __future__ import annotations

import ast

import pytest

from handfast._check.model.syntax.names import Names, dotted


def resolve(imports: str, expression: str, package: str = "") -> str:
    names = Names(ast.parse(imports), package)
    return names.resolve(ast.parse(expression, mode="eval").body)


@pytest.mark.parametrize(
    ("imports", "expression", "expected"),
    [
        ("import asyncio", "asyncio.create_task", "asyncio.create_task"),
        ("import asyncio as aio", "aio.create_task", "asyncio.create_task"),
        ("from asyncio import create_task", "create_task", "asyncio.create_task"),
        ("from asyncio import create_task as go", "go", "asyncio.create_task"),
        ("import a.b.c", "a.b.c.d", "a.b.c.d"),
        ("import a.b as x", "x.c", "a.b.c"),
        ("def f():\n    import asyncio as aio", "aio.wait", "asyncio.wait"),
        ("", "self.loop.create_task", "self.loop.create_task"),
        ("", "f().x", "f.().x"),
        ("", "f[0].x", "f.[].x"),
        ("", "f()", ""),
        ("", "1 + 2", ""),
    ],
)
def test_names_are_written_out(imports: str, expression: str, expected: str) -> None:
    assert resolve(imports, expression) == expected


@pytest.mark.parametrize(
    ("imports", "package", "expected"),
    [
        ("from . import x", "a.b", "a.b.x"),
        ("from .c import x", "a.b", "a.b.c.x"),
        ("from .. import x", "a.b", "a.x"),
        ("from ..c import x", "a.b", "a.c.x"),
        ("from .c import x", "", "c.x"),
    ],
)
def test_relative_imports_start_from_the_package(imports: str, package: str, expected: str) -> None:
    assert resolve(imports, "x", package) == expected


def test_known_says_what_is_imported() -> None:
    names = Names(ast.parse("from a import b"))
    assert names.known("b") == "a.b"
    assert names.known("c") == ""


def test_dotted_gives_up_on_what_is_no_name() -> None:
    assert dotted(ast.parse("'x'.join", mode="eval").body) == ""
