"""A bridge whose library is not installed says which one to install."""

from __future__ import annotations

import importlib
import sys

import pytest


@pytest.mark.parametrize(
    ("bridge", "package", "install"),
    [
        ("reactivex", "reactivex", "holdfast[rx]"),
        ("langgraph", "langgraph", "holdfast[langgraph]"),
        ("anyio", "anyio", "anyio"),
        ("aiohttp", "aiohttp", "aiohttp"),
    ],
)
def test_a_missing_library_is_named_with_the_way_out(
    bridge: str, package: str, install: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, f"holdfast.bridges.{bridge}", raising=False)
    with pytest.raises(ModuleNotFoundError) as caught:
        importlib.import_module(f"holdfast.bridges.{bridge}")
    assert str(caught.value) == f'this bridge needs {package}: pip install "{install}"'
    assert caught.value.name == package


def test_the_room_itself_loads_no_neighbour() -> None:
    assert importlib.import_module("holdfast.bridges").__doc__
