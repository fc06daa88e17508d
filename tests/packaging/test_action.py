"""The GitHub Action and the pre-commit hook, run on a tiny project as GitHub and pre-commit run them."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import handfast

ROOT = Path(__file__).parents[2]
yaml = pytest.importorskip("yaml")
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
APP = """
import asyncio

async def work():
    await asyncio.sleep(1)

async def start():
    asyncio.create_task(work())
"""
ERROR = re.compile(r"^::error file=app\.py,line=8,.*title=handfast \(HF101\)::", re.MULTILINE)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    project.mkdir()
    (project / "app.py").write_text(APP)
    return project


class Step(NamedTuple):
    """What the last step of the action has printed and written."""

    status: int
    printed: str
    errors: str
    outputs: dict[str, str]


def run(project: Path, **inputs: str) -> Step:
    """Run the step that runs handfast, with its variables from action.yml, in a shell."""
    (step,) = (each for each in ACTION["runs"]["steps"] if each.get("id") == "run")
    values = {f"inputs.{name}": each["default"] for name, each in ACTION["inputs"].items()}
    values |= {f"inputs.{name}": value for name, value in inputs.items()}
    values |= {"github.action_path": str(ROOT), "steps.install.outputs.python": sys.executable}
    variables = {name: values[value[4:-3]] for name, value in step["env"].items()}
    output = project.parent / "output"
    output.touch()
    runner = {"RUNNER_TEMP": str(project.parent), "GITHUB_OUTPUT": str(output)}
    environment = {**os.environ, **variables, **runner}
    environment.pop("VIRTUAL_ENV", None)
    # GitHub's `shell: bash`
    command = ("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"])
    result = subprocess.run(
        command, cwd=project, env=environment, capture_output=True, text=True, timeout=60
    )
    outputs = dict(line.split("=", 1) for line in output.read_text().splitlines())
    return Step(result.returncode, result.stdout, result.stderr, outputs)


def results_in(file: str) -> list[tuple[str, str, int]]:
    """The results of a SARIF file: code, file, line."""
    (log,) = json.loads(Path(file).read_text())["runs"]
    places = [(each, each["locations"][0]["physicalLocation"]) for each in log["results"]]
    return [
        (each["ruleId"], place["artifactLocation"]["uri"], place["region"]["startLine"])
        for each, place in places
    ]


def test_check_annotates_the_line_writes_sarif_and_fails(project: Path) -> None:
    step = run(project, sarif="true")
    assert (step.status, step.errors) == (1, "")
    assert ERROR.match(step.printed)
    assert results_in(step.outputs["sarif"]) == [("HF101", "app.py", 8)]


def test_options_reach_the_command_and_without_findings_it_succeeds(project: Path) -> None:
    step = run(project, path="app.py", arguments="--ignore HF101 --no-cache")
    assert step == (0, "", "", {})


def test_audit_annotates_the_line_writes_sarif_and_fails(project: Path) -> None:
    step = run(project, command="audit", minutes="1", sarif="true")
    assert step.status == 1, step
    assert "at most 1 minute" in step.printed
    assert ERROR.search(step.printed)
    assert results_in(step.outputs["sarif"]) == [("HF101", "app.py", 8)]


def test_wrong_inputs_are_status_2_and_upload_nothing(project: Path) -> None:
    step = run(project, command="fix", sarif="true")
    assert (step.status, step.outputs) == (2, {})
    assert step.errors == "handfast: the input `command` is check or audit, not 'fix'\n"
    step = run(project, path="missing", sarif="true")
    assert (step.status, step.outputs) == (2, {})


def test_the_pre_commit_hook_needs_no_extra(project: Path) -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert (hook["id"], hook["language"]) == ("handfast-check", "python")
    assert "additional_dependencies" not in hook
    # pre-commit installs the repository without extras, and appends the names of changed files.
    program, *arguments = shlex.split(hook["entry"])
    blocked = "import sys; sys.modules.update(rich=None, typer=None); from handfast.cli import main; main()"
    assert program == "handfast"
    result = subprocess.run(
        [sys.executable, "-c", blocked, *arguments, "app.py"],
        cwd=project,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (result.returncode, result.stderr) == (1, "")
    assert "app.py:8:5: HF101" in result.stdout


def test_the_guide_has_the_inputs_with_their_defaults_and_this_version() -> None:
    guide = (ROOT / "docs" / "guides" / "ci.md").read_text()
    rows = re.findall(r"^\| `([\w-]+)` \| (?:`(.+?)`)? ?\|", guide, re.MULTILINE)
    assert dict(rows) == {name: each["default"] for name, each in ACTION["inputs"].items()}
    versions = set(re.findall(r"(?:handfast@|rev: )(\S+)", guide))
    assert versions == {f"v{handfast.__version__}"}


def test_the_page_for_coding_assistants_is_short_and_its_commands_exist() -> None:
    page = (ROOT / "AGENTS.md").read_text()
    assert len(page.splitlines()) <= 40
    commands = set(re.findall(r"`handfast (\w+)", page))
    assert all((ROOT / "src" / "handfast" / "cli" / f"{each}.py").is_file() for each in commands)
