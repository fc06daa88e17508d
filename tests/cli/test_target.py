"""Targets of commands: `module:function`, `file.py:function`, and the errors for wrong ones."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from handfast.cli.target import BadTarget, find


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder to write modules into; none of them stays imported."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def write(path: str, source: str = "async def main(): ...\n") -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(source)


def wrong(target: str) -> str:
    with pytest.raises(BadTarget) as caught:
        find(target)
    return str(caught.value)


def test_a_module_in_the_current_folder_and_one_in_a_package(here: Path) -> None:
    write("zoo_app.py")
    write("zoo_pkg/__init__.py", "")
    write("zoo_pkg/inner.py")
    assert find("zoo_app:main").__module__ == "zoo_app"
    assert find("zoo_pkg.inner:main").__module__ == "zoo_pkg.inner"


def test_a_file_can_import_modules_beside_it(here: Path) -> None:
    write("deep/zoo_beside.py", "VALUE = 3\n")
    write("deep/zoo_file.py", "from zoo_beside import VALUE\nasync def main(n=VALUE): ...\n")
    assert find("deep/zoo_file.py:main").__module__ == "zoo_file"
    assert find(f"{here}/deep/zoo_file.py:main").__module__ == "handfast_explores_zoo_file"


def test_a_file_with_the_name_of_a_module_does_not_replace_it() -> None:
    import json

    write("json.py")
    assert find("json.py:main").__module__ == "handfast_explores_json"
    assert sys.modules["json"] is json


def test_any_async_callable_without_arguments_is_accepted() -> None:
    write(
        "zoo_kinds.py",
        "import functools\n"
        "class Kind:\n"
        "    async def __call__(self): ...\n"
        "    @staticmethod\n"
        "    async def inside(*args, **kwargs): ...\n"
        "kind = Kind()\n"
        "async def needs(x): ...\n"
        "partial = functools.partial(needs, 1)\n",
    )
    assert callable(find("zoo_kinds:kind"))
    assert find("zoo_kinds:Kind.inside").__name__ == "inside"
    assert isinstance(find("zoo_kinds:partial"), functools.partial)


@pytest.mark.parametrize("target", ["zoo_app", ":main", "zoo_app:", ""])
def test_an_incomplete_target_is_refused(target: str) -> None:
    assert wrong(target) == f"{target!r} names no function: write package.module:function"


def test_for_a_missing_module_similar_ones_are_suggested() -> None:
    write("zoo_app.py")
    write("quarry/__init__.py", "")
    write("quarry/inner.py")
    assert wrong("zoo_ap:main") == "no module is called 'zoo_ap'. Did you mean zoo_app?"
    expected = "no module is called 'quarry.iner'. Did you mean quarry.inner?"
    assert wrong("quarry.iner:main") == expected
    assert wrong("zzzzzzzz.y:main") == "no module is called 'zzzzzzzz'."


def test_for_a_missing_file_similar_ones_are_suggested() -> None:
    write("deep/zoo_file.py")
    expected = "there is no file 'deep/zoo_fil.py'. Did you mean deep/zoo_file.py?"
    assert wrong("deep/zoo_fil.py:main") == expected


def test_an_error_in_the_module_is_shown_with_its_line(here: Path) -> None:
    write("zoo_broken.py", "\n1 / 0\n")
    said = rf"cannot be imported: ZeroDivisionError: division by zero ({here}/zoo_broken.py:2)"
    assert wrong("zoo_broken:main") == f"zoo_broken {said}"
    assert wrong("zoo_broken.py:main") == f"zoo_broken.py {said}"
    write("zoo_script.py", "import sys\nsys.exit(0)\n")
    assert "zoo_script cannot be imported: SystemExit: 0" in wrong("zoo_script:main")
    write("zoo_lacks.py", "import zoo_nowhere\n")
    assert "zoo_lacks cannot be imported: ModuleNotFoundError" in wrong("zoo_lacks:main")


def test_an_object_that_is_not_an_async_function_is_refused() -> None:
    write("zoo_things.py", "number = 3\ndef sync(): ...\nasync def main(a, b=1): ...\n")
    for name in ("number", "sync"):
        assert "is not an async function" in wrong(f"zoo_things:{name}")
    assert "zoo_things:main needs a: write" in wrong("zoo_things:main")
    assert wrong("zoo_things:mian") == "zoo_things has no 'mian'. Did you mean main?"
