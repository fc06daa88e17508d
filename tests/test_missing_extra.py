"""A message that names an extra has the line for a published handfast and the one for a clone."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

import pytest

import handfast
from handfast._missing_extra import install_line

SOURCE = Path(handfast.__file__).parent
# `pip install --target` is a way to install that some comments are about.
INSTALL = re.compile(r"pip install (?!--)")


@pytest.mark.parametrize(
    ("bridge", "package", "install"),
    [
        ("reactivex", "reactivex", install_line("rx")),
        ("langgraph", "langgraph", install_line("langgraph")),
        ("anyio", "anyio", "pip install anyio"),
        ("aiohttp", "aiohttp", "pip install aiohttp"),
        ("starlette", "starlette", install_line("starlette")),
    ],
)
def test_a_bridge_names_the_library_that_is_missing(
    bridge: str, package: str, install: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in [package, *(name for name in sys.modules if name.startswith(f"{package}."))]:
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.delitem(sys.modules, f"handfast.bridges.{bridge}", raising=False)
    with pytest.raises(ModuleNotFoundError) as caught:
        importlib.import_module(f"handfast.bridges.{bridge}")
    assert str(caught.value) == f"this bridge needs {package}: {install}"
    assert caught.value.name == package


def test_install_lines_are_in_one_file() -> None:
    files = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if INSTALL.search(path.read_text(encoding="utf-8"))
    }
    assert files == {"_missing_extra.py"}


def test_every_extra_that_a_message_names_exists() -> None:
    pyproject = (SOURCE.parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    named = {
        extra
        for path in SOURCE.rglob("*.py")
        for extra in re.findall(
            r"(?:install_line\(|missing_for_bridge\(\"\w+\", )[\"'](\w+)", path.read_text()
        )
    }
    assert named >= {"cli", "cluster", "rx", "langgraph"}
    for extra in named:
        assert f"\n{extra} = [" in pyproject
