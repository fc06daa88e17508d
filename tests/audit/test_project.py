"""What an audit finds in the folder of a project, and which interpreter it uses."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from handfast._audit.audit import Plan, make_plan
from handfast._audit.project import Project, find_project
from handfast._audit.suite.interpreter import Interpreter, find_interpreter


def write(root: Path, **files: str) -> None:
    """Write files; `__` in a name is a slash, and a name without a dot is a Python file."""
    for name, text in files.items():
        path = root / name.replace("__", "/")
        path = path if path.suffix else path.with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_packages_modules_and_tests_are_found(tmp_path: Path) -> None:
    write(tmp_path, app__core="import asyncio\nasync def main(): ...\n", tests__test_app="")
    write(tmp_path, single="", docs__conf="", setup="", test_top="", tests__helper="")
    (tmp_path / "app" / "__init__.py").touch()
    project = find_project(tmp_path)
    assert project.sources == ["app", "single.py"]
    assert project.tests == ["tests", "test_top.py"]
    assert project.test_files == 2
    assert project.has_async
    assert project.notes == []


def test_tests_inside_a_package_are_found(tmp_path: Path) -> None:
    write(tmp_path, app__core="", app__tests__test_core="async def test_it(): ...\n")
    project = find_project(tmp_path)
    assert (project.sources, project.tests) == (["app"], ["app/tests"])
    assert (project.test_files, project.has_async) == (1, True)


@pytest.mark.parametrize("paths", ["app", "app/tests", "app app/tests core.py"])
def test_a_package_that_testpaths_names_is_checked(tmp_path: Path, paths: str) -> None:
    write(tmp_path, app__core="", core="", app__tests__test_core="async def test_it(): ...\n")
    (tmp_path / "pytest.ini").write_text(f"[pytest]\ntestpaths = {paths}\n")
    project = find_project(tmp_path)
    assert (project.sources, project.tests) == (["app", "core.py"], paths.split())


def test_a_folder_of_tests_is_not_checked_whatever_its_name(tmp_path: Path) -> None:
    write(tmp_path, app__core="", spec__client="", spec__unit__test_it="")
    write(tmp_path, unit_tests__client="")
    (tmp_path / "pytest.ini").write_text("[pytest]\ntestpaths = spec/unit unit_tests\n")
    assert find_project(tmp_path).sources == ["app"]


def test_a_folder_src_is_checked_as_a_whole(tmp_path: Path) -> None:
    write(tmp_path, src__app__core="x = 1\n")
    project = find_project(tmp_path)
    assert project.sources == ["src"]
    assert not project.has_async
    assert project.test_files == 0


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pytest.ini", "[pytest]\naddopts = -n 2\nasyncio_mode = auto\ntestpaths = checks\n"),
        (
            "pytest.toml",
            '[pytest]\naddopts = ["-n", "2"]\nasyncio_mode = "auto"\ntestpaths = ["checks"]\n',
        ),
        ("tox.ini", "[pytest]\naddopts = -n 2\nasyncio_mode = auto\ntestpaths = checks\n"),
        ("setup.cfg", "[tool:pytest]\naddopts = -n 2\nasyncio_mode = auto\ntestpaths = checks\n"),
        (
            "pyproject.toml",
            '[tool.pytest.ini_options]\naddopts = ["-n", "2"]\n'
            'asyncio_mode = "auto"\ntestpaths = ["checks"]\n',
        ),
        (
            "pyproject.toml",
            '[tool.pytest]\naddopts = ["-n", "2"]\nasyncio_mode = "auto"\ntestpaths = ["checks"]\n',
        ),
    ],
)
def test_the_settings_of_pytest_are_read(tmp_path: Path, name: str, text: str) -> None:
    write(tmp_path, checks__test_it="async def test_it(): ...\n")
    (tmp_path / name).write_text(text)
    project = find_project(tmp_path)
    assert (project.config, project.addopts, project.tests) == (name, ["-n", "2"], ["checks"])
    assert project.runners == ["pytest-asyncio (auto)"]


@pytest.mark.parametrize("text", ["[tool]\nx = 1\n", "tool = 1\n", "[tool]\npytest = 1\n", ""])
def test_a_pyproject_without_settings_of_pytest_is_passed_over(tmp_path: Path, text: str) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    (tmp_path / "tox.ini").write_text("[tox]\n")
    (tmp_path / "setup.cfg").write_text("[tool:pytest]\naddopts = --x='\n")
    project = find_project(tmp_path)
    assert (project.config, project.addopts) == ("setup.cfg", ["--x='"])


def test_the_pattern_of_test_files_is_read(tmp_path: Path) -> None:
    write(tmp_path, app="", checks__check_it="async def test_it(): ...\n", checks__test_no="")
    (tmp_path / "setup.cfg").write_text("[tool:pytest]\npython_files = check_*.py *_spec.py\n")
    project = find_project(tmp_path)
    assert (project.tests, project.test_files) == (["checks"], 1)


def test_the_packages_of_a_monorepo_are_found(tmp_path: Path) -> None:
    (tmp_path / "env").mkdir()
    (tmp_path / "env" / "pyvenv.cfg").write_text("")
    write(
        tmp_path,
        libs__one__src__one="async def work(): ...\n",
        libs__one__tests__test_one="",
        libs__two__tests__test_two="",
        env__lib__python__site="",
    )
    project = find_project(tmp_path)
    assert project.sources == ["libs"]
    assert project.tests == ["libs/one/tests", "libs/two/tests"]
    assert (project.test_files, project.has_async) == (2, True)


def test_settings_of_pytest_that_only_a_folder_below_has_are_a_sentence(tmp_path: Path) -> None:
    write(tmp_path, libs__one__tests__test_one="", libs__two__tests__test_two="")
    for name in ("one", "two"):
        file = tmp_path / "libs" / name / "pyproject.toml"
        file.write_text('[tool.pytest.ini_options]\npythonpath = ["src"]\n')
    (tmp_path / "libs" / "setup.cfg").write_text("[metadata]\n")
    assert find_project(tmp_path).notes == [
        "suite: pytest does not read libs/one/pyproject.toml and 1 more from this folder; "
        "`handfast audit libs/one` uses it"
    ]
    (tmp_path / "libs" / "one" / "pyproject.toml").write_text("[tool\n")
    assert find_project(tmp_path).notes == []
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    assert find_project(tmp_path).notes == []


def test_a_broken_pyproject_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool\n")
    project = find_project(tmp_path)
    assert project.broken
    (note,) = project.notes
    assert note.startswith("pyproject.toml cannot be read (")
    assert note.endswith("): its settings are not used")


def test_how_async_tests_run_is_read_from_the_tests(tmp_path: Path) -> None:
    write(
        tmp_path,
        tests__test_a="@pytest.mark.asyncio\n@pytest.mark.anyio\n",
        tests__test_b="class T(unittest.IsolatedAsyncioTestCase): ...\nasyncio.run(main())\n",
    )
    (tmp_path / "tests" / "test_c.py").symlink_to(tmp_path / "nowhere")  # cannot be read
    assert find_project(tmp_path).runners == ["pytest-asyncio", "anyio", "unittest", "asyncio.run"]


# --- the interpreter -----------------------------------------------------------------------------


def fake_python(folder: Path, answer: str) -> str:
    """An interpreter that prints this, whatever it is to run."""
    python = folder / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f"#!/bin/sh\necho '{answer}'\n")
    python.chmod(0o755)
    return str(python)


def test_the_environment_of_the_project_comes_first(tmp_path: Path) -> None:
    other = tmp_path / "other"
    in_variable = fake_python(other, "[[3, 12, 0], true, true]")
    environment = {"VIRTUAL_ENV": str(other)}
    found = find_interpreter(tmp_path, None, environment)
    assert found == Interpreter(in_variable, "VIRTUAL_ENV", "3.12.0", has_plugin=True)
    own = fake_python(tmp_path / ".venv", "[[3, 9, 18], true, false]")
    found = find_interpreter(tmp_path, None, environment)
    trouble = "it is Python 3.9.18, and handfast needs 3.11 or newer"
    assert found == Interpreter(own, ".venv", "3.9.18", trouble=trouble)


def test_without_an_environment_this_python_is_used(tmp_path: Path) -> None:
    found = find_interpreter(tmp_path, None, {})
    assert found.path == sys.executable
    assert found.version == ".".join(map(str, sys.version_info[:3]))
    assert found.trouble == ""


def test_an_interpreter_that_cannot_run_tests_says_why(tmp_path: Path) -> None:
    without_pytest = fake_python(tmp_path / "a", "[[3, 13, 0], false, false]")
    assert find_interpreter(tmp_path, without_pytest).trouble == "pytest is not installed there"
    broken = fake_python(tmp_path / "b", "hello")
    assert find_interpreter(tmp_path, broken).trouble.startswith("it does not run: ")
    missing = find_interpreter(tmp_path, str(tmp_path / "missing"))
    assert missing.trouble == "it does not run: No such file or directory"


# --- the plan ------------------------------------------------------------------------------------


def test_the_plan_says_what_was_found_and_what_will_run(tmp_path: Path) -> None:
    write(tmp_path, app="", tests__test_app="asyncio.run(main())\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    python = fake_python(tmp_path / ".venv", "[[3, 12, 0], true, true]")
    assert list(make_plan(tmp_path, None, 60).lines()) == [
        f"project    {tmp_path}",
        "sources    app.py",
        "tests      tests (1 file, async tests run by asyncio.run, settings in pytest.ini)",
        f"python     {python} (Python 3.12.0, found by: .venv)",
        "will run   check the sources; run the suite once and look for leaks; explore its async "
        "tests; at most 1 minute",
    ]
    (tmp_path / "tests" / "test_app.py").write_text("")
    *_, will_run = make_plan(tmp_path, None, 60).lines()
    assert will_run == (
        "will run   check the sources; run the suite once and look for leaks; at most 1 minute"
    )


def test_the_plan_of_a_project_without_tests(tmp_path: Path) -> None:
    interpreter = Interpreter("python", "venv", trouble="pytest is not installed there")
    packages = [f"p{number}" for number in range(6)]
    plan = Plan(Project(tmp_path, packages), interpreter, 150)
    lines = list(plan.lines())
    assert lines[1:3] == ["sources    p0, p1, p2, p3 and 2 more", "tests      none found"]
    assert lines[3:] == [
        "python     python (cannot run the tests: pytest is not installed there)",
        "will run   check the sources; at most 2.5 minutes",
    ]
    assert plan.no_suite == "no tests were found"
    plan.project.test_files = 1
    assert plan.no_suite == (
        "python cannot run them: pytest is not installed there; name another with --python"
    )
