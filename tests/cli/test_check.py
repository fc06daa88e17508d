"""`holdfast check`: what it prints, the status it leaves with, and that Ctrl-C leaves no mess."""

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

import holdfast.cli.check
from holdfast.catalogue import kind
from holdfast.check.rules import close_without_join, task_dropped
from holdfast.check.rules.rule import Rule
from holdfast.cli.app import app
from tests.check.tiny import RULE

WRONG = "import asyncio\ndrop(asyncio)\n"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path(".git").mkdir()  # a repository of its own: the one around it may ignore this folder
    monkeypatch.setattr("holdfast.check.rules.RULES", (RULE,))
    return tmp_path


def run(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, ["check", "--jobs", "1", *arguments], input=stdin)


def put(name: str, content: str = WRONG) -> Path:
    path = Path(name)
    path.write_text(content)
    return path


def test_exit_status_tells_clean_from_found_from_wrong_use() -> None:
    put("a.py", "x = 1\n")
    assert (run().exit_code, run().stdout) == (0, "All clear: 1 file checked.\n")
    put("a.py")
    assert run().exit_code == 1
    assert run("nowhere").exit_code == 2
    assert run("--nonsense").exit_code == 2


def test_the_text_has_the_place_the_code_and_both_lines() -> None:
    put("a.py")
    told = run("a.py").stdout
    assert told.startswith("a.py:2:1: HF101 This is dropped, and imported above\n")
    assert "1 | import asyncio\n  | -------------- imported here\n" in told
    assert "2 | drop(asyncio)\n  | ^^^^^^^^^^^^^\n" in told


def test_a_broken_file_alone_is_a_finding() -> None:
    put("a.py", "import asyncio\n(\n")
    result = run()
    assert result.exit_code == 1
    assert "a.py:2:1: HF000 syntax error" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["nowhere"], "there is no file or folder 'nowhere'"),
        (["--select", "HF9"], "--select: no code begins with 'HF9'"),
        (["--ignore", "HF1O1"], "did you mean HF101"),
        (
            ["--format", "jsn"],
            "--format 'jsn': use one of text, json, sarif, github. Did you mean json?",
        ),
        (["--statistics", "--format", "sarif"], "--statistics can be had as text or json"),
        (["-", "--fix"], "cannot be mended"),
        (["--baseline", "a", "--write-baseline", "b"], "one at a time"),
        (["--baseline", "none.json"], "there is no baseline at none.json"),
        (["--write-baseline", "/dev/null/x"], "cannot be written"),
    ],
)
def test_wrong_use_is_explained(arguments: list[str], told: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert told in result.stderr


def test_a_wrong_setting_is_explained() -> None:
    put("pyproject.toml", "[tool.holdfast.check]\nselct = []\n")
    put("a.py")
    result = run()
    assert (result.exit_code, "did you mean 'select'?" in result.stderr) == (2, True)


def test_codes_are_given_with_commas_or_one_by_one() -> None:
    put("a.py")
    assert run("--select", "HF2, HF301").exit_code == 0
    assert run("--select", "HF2,HF101").exit_code == 1
    assert run("--select", "HF2", "--select", "HF101").exit_code == 1
    assert run("--ignore", "HF1").exit_code == 0


def test_pedantic_rules_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.check.rules.RULES", (Rule("HF101", RULE.check, pedantic=True),))
    put("a.py")
    assert (run().exit_code, run("--pedantic").exit_code) == (0, 1)


@pytest.mark.parametrize("form", ["json", "sarif"])
def test_json_and_sarif_are_json_and_nothing_else(form: str) -> None:
    put("a.py")
    assert json.loads(run("--format", form).stdout)


def test_annotations_for_github() -> None:
    put("a.py")
    assert run("--format", "github").stdout.startswith("::error file=a.py,line=2,")


def test_the_standard_input_is_checked_and_its_lines_shown() -> None:
    told = run("-", stdin=WRONG).stdout
    assert told.startswith("-:2:1: HF101")
    assert "2 | drop(asyncio)" in told


def test_a_notebook_is_named_as_not_checked() -> None:
    put("n.ipynb")
    result = run("n.ipynb")
    assert (result.exit_code, "n.ipynb is a notebook" in result.stderr) == (0, True)


def test_statistics() -> None:
    put("a.py", WRONG + "drop(1)\n")
    assert run("--statistics").stdout == "2  HF101  [*]  task-dropped\n"
    [entry] = json.loads(run("--statistics", "--format", "json").stdout)
    assert (entry["count"], entry["fixable"]) == (2, True)


def test_fix_mends_and_diff_only_shows() -> None:
    path = put("a.py", WRONG + "drop(drop(1))  # noqa: HF201, HF102\n")
    shown = run("--diff")
    assert shown.exit_code == 1
    assert "-drop(asyncio)\n" in shown.stdout
    assert "+keep(asyncio)\n" in shown.stdout
    assert "drop" in path.read_text()
    mended = run("--fix")
    assert (mended.exit_code, mended.stderr) == (0, "Mended 3.\n")
    assert (
        path.read_text() == "import asyncio\nkeep(asyncio)\nkeep(keep(1))  # noqa: HF201, HF102\n"
    )
    assert run("--diff").exit_code == 0


def test_a_suggestion_is_shown_and_goes_in_only_if_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("holdfast.check.rules.RULES", (task_dropped.RULE, close_without_join.RULE))
    source = kind("HF101").wrong + "\n\n" + kind("HF303").wrong.replace("import asyncio\n", "")
    path = put("a.py", source)
    told = run().stdout
    assert (
        "help: keep the task in `self._background_tasks` until it is done (--unsafe-fixes)" in told
    )
    assert "help: wait for its end after the cancel (--unsafe-fixes)" in told
    assert told.endswith(" Of these, 2 with --unsafe-fixes: look at --diff first.\n")
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
    mended = run("--unsafe-fixes")
    assert (mended.exit_code, mended.stderr) == (0, "Mended 2.\n")


def test_a_caller_on_a_thread_that_nobody_understands_is_wrong_use() -> None:
    put("pyproject.toml", '[tool.holdfast.check]\nthread-callbacks = ["connect"]\n')
    put("a.py")
    result = run()
    assert (result.exit_code, "'connect' is none of 'package.function'" in result.stderr) == (
        2, True,
    )  # fmt: skip


def test_a_file_that_cannot_be_mended_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    put("a.py")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("holdfast.check.fixing.write", full)
    result = run("--fix")
    assert (result.exit_code, "a.py cannot be written: No space left" in result.stderr) == (2, True)


def test_a_baseline_silences_what_is_known() -> None:
    path = put("a.py")
    assert run("--write-baseline", "known.json").exit_code == 0
    path.write_text("import asyncio\nx = 1\ndrop(asyncio)\n")
    assert run("--baseline", "known.json").exit_code == 0
    path.write_text("import asyncio\ndrop(2)\n")
    result = run("--baseline", "known.json")
    assert result.exit_code == 1
    assert "1 entry of the baseline no longer occurs" in result.stderr


def test_explain_shows_the_page_of_a_code() -> None:
    assert "task-dropped" in run("--explain", "HF101").stdout
    assert "noqa-unused" in run("--explain", "hf001").stdout
    assert run("--explain", "HF1O1").exit_code == 2


def test_the_cache_lies_beside_the_project_unless_it_is_not_wanted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    put("pyproject.toml", "")
    Path("sub").mkdir()
    put("sub/a.py")
    monkeypatch.chdir("sub")
    run("--no-cache")
    assert not Path("../.holdfast_cache").exists()
    first = run().stdout
    assert Path("../.holdfast_cache/check.json").exists()
    assert run().stdout == first


def test_help_says_what_leaves_with_which_status() -> None:
    told = run("--help").stdout
    assert "Exit status 0: nothing found; 1: something; 2: wrong use" in told


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_colour_is_for_terminals_and_those_who_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    put("a.py")
    assert "\x1b[" not in run().stdout
    monkeypatch.setattr(sys, "stdout", Terminal())
    assert holdfast.cli.check._is_colourful()
    monkeypatch.setenv("NO_COLOR", "1")
    assert not holdfast.cli.check._is_colourful()


def test_a_bar_is_shown_on_a_terminal_once_it_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with holdfast.cli.check._Bar() as bar:
        bar(1, 10)
        assert terminal.getvalue() == ""
        monkeypatch.setattr("holdfast.cli.check._PATIENCE", 0.0)
        bar(2, 10)
        bar(3, 10)
        assert "of 10 files" in terminal.getvalue()


# In a process of its own: the signal goes to the whole group, as a terminal sends it.
SLOW = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)
from holdfast.check import jobs, rules
from holdfast.check.rules.rule import Rule
jobs._PART = 1
def slow(module):
    print("working", flush=True)
    time.sleep(0.5)
    yield from ()
rules.RULES = (Rule("HF101", slow),)
from holdfast.cli.app import app
app(["check", "--jobs", "2"])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no process groups")
def test_ctrl_c_leaves_no_mess(here: Path) -> None:
    for number in range(40):
        put(f"f{number}.py")
    source = str(Path(holdfast.__file__).parents[1])
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
