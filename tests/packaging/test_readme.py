"""The README shows what the tools print, and CI runs its test command."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from handfast._audit.demo import write_demo

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def fence(language: str, after: str) -> str:
    """The first block of this language after a text of the README."""
    found = re.search(rf"```{language}\n(.*?)```", README[README.index(after) :], re.DOTALL)
    assert found is not None
    return found[1]


def run(folder: Path, *command: str) -> str:
    """Run a module of this Python in a folder; what it prints."""
    result = subprocess.run(
        [sys.executable, "-m", *command], cwd=folder, capture_output=True, text=True, timeout=60
    )
    return result.stdout


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The service of `handfast audit --demo`, which the README shows the tools on."""
    folder = tmp_path_factory.mktemp("service")
    write_demo(folder)
    (folder / "test_http.py").unlink(missing_ok=True)
    return folder


QUIET = ("-p", "no:langsmith_plugin", "-p", "no:cacheprovider", "-p", "no:pyleak")
SHOWN = {
    "handfast check service.py": (),
    "pytest --handfast": QUIET,
    "pytest --handfast-explore --handfast-explore-cancel": (*QUIET, "-k", "save"),
}


@pytest.mark.parametrize("command", SHOWN)
def test_a_tool_prints_what_the_readme_shows(command: str, service: Path) -> None:
    shown = README.partition(f"```console\n$ {command}\n")[2].partition("```")[0]
    printed = run(service, *command.split(), *SHOWN[command])
    # The number of a process and its command differ; there is none while it starts.
    plain = re.compile(r"child process .*")
    assert shown
    assert plain.sub("", shown) in plain.sub("", printed)


def test_the_first_screen_has_the_install_line_a_command_its_output_and_a_number() -> None:
    screen = "\n".join(README.splitlines()[:30])
    order = [
        "# handfast",
        "finds and prevents",
        "pip install",
        "handfast audit",
        "$ handfast",
        "27 bugs",
    ]
    places = [screen.index(each) for each in order]
    assert places == sorted(places)


def test_the_number_of_bugs_is_that_of_the_scripts() -> None:
    scripts = {each.stem for each in (ROOT / "wild" / "confirmed").glob("*.py")} - {"script"}
    assert f"{len(scripts)} bugs in the newest releases" in README


def test_first_example_has_eight_lines() -> None:
    lines = fence("python", "[start:first]").splitlines()
    assert len([line for line in lines if line.strip()]) == 8


@pytest.mark.parametrize("command", ["demo", "tests"])
def test_each_command_is_one_line(command: str) -> None:
    assert fence("sh", f"<!-- command: {command} -->").count("\n") == 1


posix = pytest.mark.skipif(os.name != "posix", reason=".ci/run is a bash script")


def ci_run(folder: Path, readme: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a copy of .ci/run in a folder with this README."""
    (folder / ".ci").mkdir(parents=True)
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
def test_ci_runs_the_command_of_the_readme_and_returns_its_exit_code(tmp_path: Path) -> None:
    readme = README.replace(fence("sh", "<!-- command: tests -->"), "echo it ran && exit 7\n")
    result = ci_run(tmp_path, readme)
    assert "\nit ran\n" in result.stdout
    assert result.returncode == 7


@posix
def test_ci_fails_if_the_readme_has_no_test_command(tmp_path: Path) -> None:
    result = ci_run(tmp_path, "# handfast\n")
    assert result.returncode == 2
    assert "no test command" in result.stderr


@posix
def test_ci_adds_newer_interpreters_and_keeps_python3(tmp_path: Path) -> None:
    for version in ("3.12.9", "3.12.10"):
        folder = tmp_path / "pyenv" / "versions" / version / "bin"
        folder.mkdir(parents=True)
        for name in ("python3", "python3.12"):
            (folder / name).write_text(f"#!/bin/sh\necho {version}\n")
            (folder / name).chmod(0o755)
    command = "python3.12 -V && python3 -c 'import sys; print(sys.base_prefix)'\n"
    readme = README.replace(fence("sh", "<!-- command: tests -->"), command)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    result = ci_run(tmp_path, readme, PYENV_ROOT=str(tmp_path / "pyenv"), PATH=path)
    expected = ["3.12.10", sys.base_prefix]
    if sys.version_info[:2] == (3, 12):  # the running interpreter comes first
        expected[0] = f"Python {sys.version.split()[0]}"
    assert result.stdout.splitlines()[1:] == expected


@posix
@pytest.mark.parametrize("there", [True, False])
def test_ci_adds_newer_pythons_from_the_script_or_reports_that_there_is_none(
    tmp_path: Path, there: bool
) -> None:
    command = "echo $PATH\n"
    readme = README.replace(fence("sh", "<!-- command: tests -->"), command)
    if there:
        (tmp_path / "shared").mkdir()
        script = tmp_path / "shared" / "newer-python"
        script.write_text("#!/bin/sh\n[ $1 = 3.14 ] && echo /newer/$1\n")
        script.chmod(0o755)
    result = ci_run(tmp_path / "repo", readme)
    path = result.stdout.splitlines()[-1].split(os.pathsep)
    assert ("/newer/3.14" in path, "/newer/3.15" in path) == (there, False)
    assert ("no Python 3.14 " in result.stderr, "no Python 3.15 " in result.stderr) == (
        not there,
        True,
    )
