"""The README keeps its word: its example runs, and CI runs its test command and no other."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def fence(language: str, after: str) -> str:
    """The first block of this language after a marker."""
    found = re.search(rf"```{language}\n(.*?)```", README[README.index(after) :], re.DOTALL)
    assert found is not None
    return found[1]


def test_first_example_prints_what_the_readme_says() -> None:
    marker = "[start:first]"
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", fence("python", marker)],
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert (result.stdout, result.stderr) == (fence("text", marker), "")


def test_first_example_has_eight_lines() -> None:
    lines = fence("python", "[start:first]").splitlines()
    assert len([line for line in lines if line.strip()]) == 8


@pytest.mark.parametrize("command", ["tour", "tests"])
def test_each_command_is_one_line(command: str) -> None:
    assert fence("sh", f"<!-- command: {command} -->").count("\n") == 1


posix = pytest.mark.skipif(os.name != "posix", reason=".ci/run is a bash script")


def ci_run(folder: Path, readme: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a copy of .ci/run beside this README."""
    (folder / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", folder / ".ci" / "run")
    (folder / "README.md").write_text(readme)
    return subprocess.run(
        [folder / ".ci" / "run"],
        env={**os.environ, "HOME": str(folder / "home"), **environment},
        capture_output=True,
        text=True,
        timeout=30,
    )


@posix
def test_ci_runs_the_readmes_command_and_passes_its_exit_code_on(tmp_path: Path) -> None:
    readme = README.replace(fence("sh", "<!-- command: tests -->"), "echo it ran && exit 7\n")
    result = ci_run(tmp_path, readme)
    assert "\nit ran\n" in result.stdout
    assert result.returncode == 7


@posix
def test_ci_without_a_command_in_the_readme_fails_by_name(tmp_path: Path) -> None:
    result = ci_run(tmp_path, "# holdfast\n")
    assert result.returncode == 2
    assert "no test command" in result.stderr


@posix
def test_ci_finds_newer_interpreters_and_leaves_python3_alone(tmp_path: Path) -> None:
    for version in ("3.12.9", "3.12.10"):
        folder = tmp_path / "pyenv" / "versions" / version / "bin"
        folder.mkdir(parents=True)
        for name in ("python3", "python3.12"):
            (folder / name).write_text(f"#!/bin/sh\necho {version}\n")
            (folder / name).chmod(0o755)
    asked = "python3.12 -V && python3 -c 'import sys; print(sys.base_prefix)'\n"
    readme = README.replace(fence("sh", "<!-- command: tests -->"), asked)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    result = ci_run(tmp_path, readme, PYENV_ROOT=str(tmp_path / "pyenv"), PATH=path)
    expected = ["3.12.10", sys.base_prefix]
    if sys.version_info[:2] == (3, 12):  # the running one comes first, and is one already
        expected[0] = f"Python {sys.version.split()[0]}"
    assert result.stdout.splitlines()[1:] == expected
