"""Whose code a line is: the program's, a library's, the standard library's or our own."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import handfast
from handfast import _code_owner
from handfast._census import owned_by
from handfast._code_owner import (
    code_owner,
    first_program_frame,
    in_package,
    in_stdlib_module,
    installed_path,
    installed_project,
    is_machinery,
    is_program,
    made_by_program,
    module_in_package,
)
from handfast.explore import explore, victim
from handfast.scripted import child

PACKAGE = Path(handfast.__file__).parent
PURELIB = sysconfig.get_path("purelib")


def test_code_owner_of_each_kind_of_file() -> None:
    assert code_owner(__file__) == "program"
    assert code_owner(pytest.__file__) == "library"
    assert code_owner(asyncio.__file__) == "stdlib"
    assert code_owner(contextlib.__file__) == "stdlib"
    assert code_owner(handfast.__file__) == "handfast"


@pytest.mark.parametrize("filename", ["<string>", "<stdin>", "<doctest a[0]>", "page.html"])
def test_code_without_a_file_is_the_programs(filename: str) -> None:
    assert code_owner(filename) == "program"


def test_frozen_modules_are_the_standard_librarys() -> None:
    assert code_owner("<frozen importlib._bootstrap>") == "stdlib"
    assert code_owner("<frozen os>") == "stdlib"


@pytest.mark.parametrize(
    ("filename", "owner"),
    [
        (os.path.join(PURELIB, "a", "b.py"), "library"),
        (os.path.join(sysconfig.get_path("scripts"), "pytest"), "library"),
        ("/usr/lib/python3/dist-packages/a.py", "library"),
        ("/elsewhere/lib/python3.12/site-packages/a/b.py", "library"),
        ("/elsewhere/lib/python3.12/queue.py", "stdlib"),
        ("/usr/src/app/main.py", "program"),
        ("/home/me/site-packages.py", "program"),
    ],
)
def test_code_owner_by_folder(filename: str, owner: str) -> None:
    assert code_owner(filename) == owner


# --- our own files -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "place",
    ["new.py", "_runtime/scope/tasks/task_wrapper.py", "_explore/loop/a/b/c.py"],
)
def test_our_own_files_are_ours_at_any_depth(place: str) -> None:
    assert code_owner(str(PACKAGE / place)) == "handfast"


def test_a_folder_whose_name_only_begins_like_ours_is_not_ours() -> None:
    assert code_owner(f"{PACKAGE}_fork/a.py") == "program"
    assert not in_package(str(PACKAGE / "explorer" / "a.py"), "explore")
    assert not module_in_package(f"{PACKAGE.name}.explorer", "explore")


@pytest.mark.parametrize(
    ("place", "parts"),
    [
        ("_explore/loop/victims.py", {"explore"}),
        (
            "_explore/simulation/processes/launch.py",
            {"explore", "explore.simulation", "explore.processes"},
        ),
        ("_runtime/scope/tasks/task_wrapper.py", {"runtime"}),
        (
            "_explore/simulation/threads/worker.py",
            {"explore", "explore.simulation", "explore.threads"},
        ),
        ("_await_stack.py", {"runtime"}),
        ("_census/kinds/tasks.py", {"census"}),
        ("cli/app.py", set()),
    ],
)
def test_part_of_the_package(place: str, parts: set[Any]) -> None:
    filename = str(PACKAGE / place)
    module = f"{PACKAGE.name}.{place.removesuffix('.py').replace('/', '.')}"
    assert {part for part in _code_owner._PARTS if in_package(filename, part)} == parts
    assert {part for part in _code_owner._PARTS if module_in_package(module, part)} == parts


@pytest.mark.parametrize("part", _code_owner._PARTS)
def test_every_part_of_the_table_exists(part: _code_owner.PackagePart) -> None:
    """Fails when a folder is moved and the table is not."""
    assert any(in_package(str(path), part) for path in PACKAGE.rglob("*.py"))


@pytest.mark.parametrize(
    ("function", "part"),
    [
        (handfast.Scope.close, "runtime"),
        (handfast.KeyedTasks.close, "runtime"),
        (handfast.run, "runtime"),
        (explore, "explore"),
        (victim, "explore"),
        (child, "explore.processes"),
        (owned_by, "census"),
    ],
)
def test_public_functions_lie_in_the_part_that_the_table_names(
    function: Callable[..., Any], part: _code_owner.PackagePart
) -> None:
    assert in_package(inspect.unwrap(function).__code__.co_filename, part)


# --- the standard library ------------------------------------------------------------------------


def test_modules_of_the_standard_library() -> None:
    assert in_stdlib_module(asyncio.__file__, "queue", "asyncio")
    assert in_stdlib_module(str(Path(os.__file__).parent / "queue.py"), "queue")
    assert not in_stdlib_module(contextlib.__file__, "asyncio", "queue")
    assert not in_stdlib_module(str(Path(__file__).parent / "asyncio" / "a.py"), "asyncio")


def test_machinery_is_asyncio_and_the_named_parts() -> None:
    scope = str(PACKAGE / "_runtime" / "scope.py")
    assert is_machinery(asyncio.__file__)
    assert is_machinery(scope, "explore", "runtime")
    assert not is_machinery(scope, "explore")
    assert not is_machinery(contextlib.__file__, "explore", "runtime")


# --- installed packages --------------------------------------------------------------------------


def fill(folder: Path, name: str, record: str | None) -> Path:
    """A module in a folder, installed as pip does it."""
    folder.mkdir(exist_ok=True)
    metadata = folder / f"{name}-1.0.dist-info"
    metadata.mkdir()
    if record is not None:
        (metadata / "RECORD").write_text(record)
    (folder / name).mkdir()
    module = folder / name / "core.py"
    module.write_text("")
    return module


@pytest.mark.parametrize("record", ["cache/core.py,sha256=x,0\n", '"cache/a,b.py",,\n', None])
def test_target_folder_of_pip_is_a_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record: str | None
) -> None:
    module = fill(tmp_path / "vendor", "cache", record)
    monkeypatch.syspath_prepend(tmp_path / "vendor")
    assert code_owner(str(module)) == "library"
    assert installed_path(str(module)) == "cache/core.py"
    assert installed_project(str(module)) == "cache"


def test_program_in_the_folder_that_pip_has_filled_stays_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`pip install --target .` beside the handler of an AWS Lambda function."""
    module = fill(tmp_path, "cache", "cache/core.py,,\ncache-1.0.dist-info/RECORD,,\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert code_owner(str(module)) == "library"
    assert code_owner(str(tmp_path / "handler.py")) == "program"
    assert installed_path(str(tmp_path / "handler.py")) is None


def test_folder_that_is_not_on_the_path_is_not_installed(tmp_path: Path) -> None:
    assert code_owner(str(fill(tmp_path / "vendor", "cache", None))) == "program"


def test_module_in_an_archive_on_the_path_is_the_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "app.pyz").touch()
    monkeypatch.syspath_prepend(tmp_path / "app.pyz")
    assert code_owner(str(tmp_path / "app.pyz" / "main.py")) == "program"


def test_editable_install_is_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "project" / "src"
    (source / "mine").mkdir(parents=True)
    (source / "mine.egg-info").mkdir()
    monkeypatch.syspath_prepend(source)
    assert code_owner(str(source / "mine" / "core.py")) == "program"


def test_installed_path_is_the_same_on_every_machine() -> None:
    assert installed_path(os.path.join(PURELIB, "a", "b.py")) == "a/b.py"
    assert installed_path(asyncio.__file__) == "asyncio/__init__.py"
    assert installed_path(__file__) is None
    assert installed_path("<string>") is None


def test_installed_project() -> None:
    assert installed_project(os.path.join(PURELIB, "a", "b.py")) == "a"
    assert installed_project(os.path.join(PURELIB, "six.py")) == "six"
    assert installed_project(str(PACKAGE / "_runtime" / "scope.py")) == PACKAGE.name
    assert installed_project(asyncio.__file__) == ""
    assert installed_project(os.path.join(sysconfig.get_path("scripts"), "pytest")) == ""
    assert installed_project(__file__) == ""


# --- frames --------------------------------------------------------------------------------------


def called_from(filename: str, function: Callable[[], Any]) -> Any:
    """Call a function from a frame whose code lies in `filename`."""
    names: dict[str, Any] = {"function": function}
    exec(compile("def call():\n    return function()", filename, "exec"), names)
    return names["call"]()


def caller() -> FrameType | None:
    return sys._getframe(1).f_back


def test_first_program_frame_is_found_behind_libraries() -> None:
    library = os.path.join(PURELIB, "a.py")
    frame = called_from(library, lambda: first_program_frame(caller()))
    assert frame is not None
    assert frame.f_code is called_from.__code__


def test_first_program_frame_is_not_searched_beyond_the_end() -> None:
    runner = str(PACKAGE / "_explore" / "loop" / "stepping.py")
    assert called_from(runner, lambda: first_program_frame(sys._getframe(1), runner.__eq__)) is None
    assert first_program_frame(None) is None


@pytest.mark.parametrize(
    ("place", "by_program"),
    [
        ("_explore/victim.py", True),
        ("_explore/loop/stepping.py", True),
        ("_explore/simulation/network/sockets.py", False),
        ("_runtime/scope/tasks/task_registry.py", False),
    ],
)
def test_explorer_passes_on_what_the_program_makes(place: str, by_program: bool) -> None:
    assert called_from(str(PACKAGE / place), lambda: made_by_program(caller())) is by_program


def test_asyncio_passes_on_what_the_program_makes() -> None:
    assert called_from(asyncio.__file__, lambda: made_by_program(caller()))
    assert not called_from(os.path.join(PURELIB, "a.py"), lambda: made_by_program(caller()))
    assert not made_by_program(None)


# --- what it costs -------------------------------------------------------------------------------


def test_importing_it_imports_neither_the_package_nor_sysconfig() -> None:
    program = (
        "import importlib.util, json, sys\n"
        "before = set(sys.modules)\n"
        f"spec = importlib.util.spec_from_file_location('alone._code_owner', {_code_owner.__file__!r})\n"
        "spec.loader.exec_module(importlib.util.module_from_spec(spec))\n"
        "print(json.dumps(sorted(set(sys.modules) - before)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", program], capture_output=True, text=True, check=True
    )
    loaded = json.loads(done.stdout)
    assert not [name for name in loaded if name.partition(".")[0] == PACKAGE.name]
    assert "sysconfig" not in loaded


def test_is_program() -> None:
    assert is_program(__file__)
    assert not is_program(asyncio.__file__)
