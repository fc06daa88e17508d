"""`handfast check`: its output, its exit status, and Ctrl-C."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import handfast.cli.check
from handfast._check.rules import hf101_task_dropped as task_dropped
from handfast._check.rules import hf303_close_without_join as close_without_join
from handfast._check.rules.rule import Rule
from handfast.catalogue import kind
from handfast.cli.app import app
from tests.check.tiny_rules import RULE

WRONG = "import asyncio\ndrop(asyncio)\n"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path(".git").mkdir()  # the root of a project
    monkeypatch.setattr("handfast._check.rules.RULES", (RULE,))
    return tmp_path


def run(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, ["check", "--jobs", "1", *arguments], input=stdin)


def put(name: str, content: str = WRONG) -> Path:
    path = Path(name)
    path.write_text(content)
    return path


def test_exit_status() -> None:
    put("a.py", "x = 1\n")
    assert (run().exit_code, run().stdout) == (0, "All clear: 1 file checked.\n")
    put("a.py")
    assert run().exit_code == 1
    assert run("nowhere").exit_code == 2
    assert run("--nonsense").exit_code == 2


def test_the_text_has_the_place_the_code_and_the_lines() -> None:
    put("a.py")
    shown = run("a.py").stdout
    assert shown.startswith("a.py:2:1: HF101 This is dropped, and imported above\n")
    assert "1 | import asyncio\n  | -------------- imported here\n" in shown
    assert "2 | drop(asyncio)\n  | ^^^^^^^^^^^^^\n" in shown


def test_a_broken_file_is_a_finding() -> None:
    put("a.py", "import asyncio\n(\n")
    result = run()
    assert result.exit_code == 1
    assert "a.py:2:1: HF000 syntax error" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "there is no file or folder 'nowhere'"),
        (["--select", "HF9"], "--select: no code begins with 'HF9'"),
        (["--ignore", "HF1O1"], "did you mean HF101"),
        (["--format", "jsn"], "there is no format 'jsn': did you mean json?"),
        (["--explain", "HF101"], "use `handfast explain HF101`"),
        (["--statistics", "--format", "sarif"], "--statistics needs --output-format text or json"),
        (["-", "--fix"], "standard input cannot be fixed"),
        (["--baseline", "a", "--write-baseline", "b"], "use either --baseline or --write-baseline"),
        (["--baseline", "none.json"], "there is no baseline at none.json"),
        (["--write-baseline", "/dev/null/x"], "cannot be written"),
    ],
)
def test_wrong_usage_is_explained(arguments: list[str], message: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_wrong_setting_is_explained() -> None:
    put("pyproject.toml", "[tool.handfast.check]\nselct = []\n")
    put("a.py")
    result = run()
    assert (result.exit_code, "did you mean 'select'?" in result.stderr) == (2, True)


def test_codes_can_be_separated_by_commas_or_repeated_options() -> None:
    put("a.py")
    assert run("--select", "HF2, HF301").exit_code == 0
    assert run("--select", "HF2,HF101").exit_code == 1
    assert run("--select", "HF2", "--select", "HF101").exit_code == 1
    assert run("--ignore", "HF1").exit_code == 0


def test_pedantic_rules_need_an_option(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("handfast._check.rules.RULES", (Rule("HF101", RULE.check, pedantic=True),))
    put("a.py")
    assert (run().exit_code, run("--pedantic").exit_code) == (0, 1)


@pytest.mark.parametrize("form", ["json", "sarif"])
def test_json_and_sarif_are_valid_json(form: str) -> None:
    put("a.py")
    assert json.loads(run("--format", form).stdout)


def test_annotations_for_github() -> None:
    put("a.py")
    assert run("--format", "github").stdout.startswith("::error file=a.py,line=2,")


def test_standard_input_is_checked_and_its_lines_are_shown() -> None:
    shown = run("-", stdin=WRONG).stdout
    assert shown.startswith("-:2:1: HF101")
    assert "2 | drop(asyncio)" in shown


def test_a_notebook_is_reported_as_not_checked() -> None:
    put("n.ipynb")
    result = run("n.ipynb")
    assert (result.exit_code, "n.ipynb is a notebook" in result.stderr) == (0, True)


def test_statistics() -> None:
    put("a.py", WRONG + "drop(1)\n")
    assert run("--statistics").stdout == "2  HF101  [*]  task-dropped\n"
    [entry] = json.loads(run("--statistics", "--format", "json").stdout)
    assert (entry["count"], entry["fixable"]) == (2, True)


def test_fix_changes_files_and_diff_does_not() -> None:
    path = put("a.py", WRONG + "drop(drop(1))  # noqa: HF201, HF102\n")
    shown = run("--diff")
    assert shown.exit_code == 1
    assert "-drop(asyncio)\n" in shown.stdout
    assert "+keep(asyncio)\n" in shown.stdout
    assert "drop" in path.read_text()
    fixed = run("--fix")
    assert (fixed.exit_code, fixed.stderr) == (0, "Fixed 3.\n")
    assert (
        path.read_text() == "import asyncio\nkeep(asyncio)\nkeep(keep(1))  # noqa: HF201, HF102\n"
    )
    assert run("--diff").exit_code == 0


def test_an_unsafe_fix_is_shown_and_applied_only_with_its_option(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("handfast._check.rules.RULES", (task_dropped.RULE, close_without_join.RULE))
    source = kind("HF101").wrong + "\n\n" + kind("HF303").wrong.replace("import asyncio\n", "")
    path = put("a.py", source)
    shown = run().stdout
    assert (
        "help: keep the task in `self._background_tasks` until it is done (--unsafe-fixes)" in shown
    )
    assert "help: wait for its end after the cancel (--unsafe-fixes)" in shown
    assert shown.endswith(" 2 fixable with --unsafe-fixes (review with --diff first).\n")
    assert [each["fix"]["safe"] for each in json.loads(run("--format", "json").stdout)] == [
        False, False,
    ]  # fmt: skip
    [log] = json.loads(run("--format", "sarif").stdout)["runs"]
    [change] = log["results"][0]["fixes"][0]["artifactChanges"]
    assert len(change["replacements"]) == 3
    assert run("--diff").stdout == ""
    assert "+        task.add_done_callback(" in run("--diff", "--unsafe-fixes").stdout
    assert run("--fix").exit_code == 1
    assert path.read_text() == source
    fixed = run("--unsafe-fixes")
    assert (fixed.exit_code, fixed.stderr) == (0, "Fixed 2.\n")


def test_a_wrong_thread_callback_is_wrong_usage() -> None:
    put("pyproject.toml", '[tool.handfast.check]\nthread-callbacks = ["connect"]\n')
    put("a.py")
    result = run()
    assert (result.exit_code, "'connect' is none of 'package.function'" in result.stderr) == (
        2, True,
    )  # fmt: skip


def test_a_file_that_cannot_be_written_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    put("a.py")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("handfast._check.fixes.apply_fixes.write", full)
    result = run("--fix")
    assert (result.exit_code, "a.py cannot be written: No space left" in result.stderr) == (2, True)


def test_other_files_are_fixed_although_one_cannot_be_written() -> None:
    # Attack 4: the first one ended the run, and what was fixed was not said.
    put("a.py").chmod(0o444)
    other = put("b.py")
    result = run("--fix")
    assert result.exit_code == 2
    assert "a.py cannot be written: the file is read-only\nFixed 1.\n" in result.stderr
    assert "keep(" in other.read_text()


def test_a_baseline_hides_known_findings() -> None:
    path = put("a.py")
    assert run("--write-baseline", "known.json").exit_code == 0
    path.write_text("import asyncio\nx = 1\ndrop(asyncio)\n")
    assert run("--baseline", "known.json").exit_code == 0
    path.write_text("import asyncio\ndrop(2)\n")
    result = run("--baseline", "known.json")
    assert result.exit_code == 1
    assert "1 entry of the baseline no longer occurs" in result.stderr


def test_the_cache_is_in_the_folder_of_the_project(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    put("pyproject.toml", "")
    Path("sub").mkdir()
    put("sub/a.py")
    monkeypatch.chdir("sub")
    run("--no-cache")
    assert not Path("../.handfast_cache").exists()
    first = run().stdout
    assert Path("../.handfast_cache/check.json").exists()
    assert run().stdout == first


def test_help_has_the_exit_statuses() -> None:
    shown = run("--help").stdout
    assert "Exit status 0: no findings; 1: findings; 2: wrong usage" in shown


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_colour_is_for_terminals_or_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    put("a.py")
    assert "\x1b[" not in run().stdout
    monkeypatch.setattr(sys, "stdout", Terminal())
    assert handfast.cli.check._is_colourful()
    monkeypatch.setenv("NO_COLOR", "1")
    assert not handfast.cli.check._is_colourful()


def test_a_progress_bar_is_shown_on_a_terminal_after_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with handfast.cli.check._Bar() as bar:
        bar(1, 10)
        assert terminal.getvalue() == ""
        bar._began -= 60  # a minute ago
        bar(2, 10)
        bar(3, 10)
        assert "of 10 files" in terminal.getvalue()


def test_without_rich_there_is_no_progress_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setitem(sys.modules, "rich.console", None)
    with handfast.cli.check._Bar() as bar:
        bar._began -= 60  # a minute ago
        bar(2, 10)
    assert terminal.getvalue() == ""


# In a separate process: the signal goes to the whole group, as a terminal sends it.
SLOW = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)
from handfast._check.engine import parallel
from handfast._check import rules
from handfast._check.rules.rule import Rule
parallel._PART = 1
def slow(module):
    print("working", flush=True)
    time.sleep(0.5)
    yield from ()
rules.RULES = (Rule("HF101", slow),)
from handfast.cli.app import app
app(["check", "--jobs", "2"])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no process groups")
def test_ctrl_c_ends_all_processes_and_writes_no_files(here: Path) -> None:
    for number in range(40):
        put(f"f{number}.py")
    source = str(Path(handfast.__file__).parents[1])
    with subprocess.Popen(
        [sys.executable, "-c", SLOW],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": source},
        start_new_session=True,
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        os.killpg(child.pid, signal.SIGINT)
        _, errors = child.communicate(timeout=30)
    assert (child.returncode, errors) == (130, "interrupted\n")
    deadline = time.monotonic() + 5
    with pytest.raises(ProcessLookupError):
        while time.monotonic() < deadline:
            os.killpg(child.pid, 0)
            time.sleep(0.05)
    assert sorted(os.listdir()) == sorted([".git", *(f"f{number}.py" for number in range(40))])
