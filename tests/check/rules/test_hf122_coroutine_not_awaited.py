"""HF122: a coroutine that is called is awaited."""

from __future__ import annotations

from pathlib import Path

import pytest

from handfast._check.engine import engine
from handfast._check.finding import Finding
from handfast._check.model.syntax.module import Module
from handfast._check.rules.hf122_coroutine_not_awaited import RULE
from handfast._check.source import parse
from handfast.catalogue import kind


def findings(source: str) -> list[Finding]:
    return list(RULE.check(Module(parse("x.py", source.encode()), "x")))


def found(source: str) -> list[tuple[int, bool]]:
    """The lines with a finding, each with whether it is reported by default."""
    return [(each.place.line, not each.pedantic) for each in findings(source)]


def test_the_wrong_example_is_found_and_the_right_one_is_not() -> None:
    assert found(kind("HF122").wrong) == [(16, True)]
    assert found(kind("HF122").right) == []


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (
            "async def f(): ...\ndef g():\n    f()\n",
            [(3, True)],
        ),
        (
            "async def f(): ...\ndef g():\n    x = f()\n",
            [(3, True)],
        ),
        (
            "async def f(): ...\ndef g():\n    x = f()\n    return x\n",
            [],
        ),
        (
            "async def f(): ...\ndef g():\n    global x\n    x = f()\n",
            [],
        ),
        (
            "async def f(): ...\nx = f()\n",
            [],
        ),
        (
            "async def f(): ...\ndef g():\n    if f():\n        pass\n    while not f():\n"
            "        pass\n    assert f()\n    return 1 if f() else 2\n",
            [(3, True), (5, True), (7, True), (8, True)],
        ),
        (
            "async def f(): ...\ndef g():\n    return f() or keep(f())\n",
            [],
        ),
        (
            "async def f(): ...\ndef g(f):\n    f()\n",
            [],
        ),
        (
            "async def f(): ...\ndef g():\n    f = h\n    def k():\n        f()\n",
            [],
        ),
        (
            "@task\nasync def f(): ...\ndef g():\n    f()\n",
            [],
        ),
        (
            "async def f():\n    yield 1\ndef g():\n    f()\n",
            [],
        ),
        (
            "try:\n    async def f(): ...\nexcept ImportError:\n    def f(): ...\ndef g():\n"
            "    f()\n",
            [],
        ),
        (
            "def g():\n    async def f(): ...\n    def k():\n        f()\n",
            [(4, True)],
        ),
        (
            "def g():\n    class C:\n        async def f(self): ...\n    f()\n",
            [],
        ),
        (
            "class B:\n    async def f(self): ...\nclass C(B):\n    def g(self):\n"
            "        self.f()\n        self.h()\n        other.f()\n        x[0].f()\n",
            [(5, True)],
        ),
        (
            "def g(self):\n    self.f()\n    (lambda: 1)()\n",
            [],
        ),
        (
            "import pytest\nasync def f(): ...\ndef test():\n    with pytest.raises(TypeError):\n"
            "        f()\n    with lock:\n        f()\n",
            [(7, True)],
        ),
    ],
)
def test_calls_of_coroutine_functions(source: str, expected: list[tuple[int, bool]]) -> None:
    assert found(source) == expected


def test_an_imported_coroutine_function_is_known(tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "__init__.py").touch()
    (tmp_path / "p" / "store.py").write_text(
        "import x\n\nasync def save(): ...\n\ndef load(): ...\n"
    )
    (tmp_path / "p" / "user.py").write_text(
        "import asyncio\nfrom p.store import load, save\nfrom p import store\n\n"
        "def use():\n    load()\n    save()\n    store.save()\n"
    )
    report = engine.check([tmp_path / "p"])
    assert [(each.code, each.place.line) for each in report.findings] == [
        ("HF122", 7),
        ("HF122", 8),
    ]


@pytest.mark.parametrize(
    ("use", "expected"),
    [
        ("store = Store()\n    store.save()", [(7, True)]),
        ("store = Store()\n    await store.save()", []),
        ("store = Other()\n    store.save()", []),
        ("store = Store()\n    store = other\n    store.save()", []),
        ("store.save()", []),
    ],
)
def test_a_method_of_an_object_in_a_local_name(use: str, expected: list[tuple[int, bool]]) -> None:
    source = f"class Store:\n    async def save(self): ...\n\n\nasync def f():\n    {use}\n"
    assert found(source) == expected
