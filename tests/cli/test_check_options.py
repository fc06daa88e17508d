"""The options of `handfast check` that users of ruff know."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner, Result

import handfast.cli.check
from handfast._check.engine.engine import check as check_paths
from handfast._check.output import FORMATS, explain_line, page_url
from handfast._check.report import Report
from handfast._check.rules.rule import Rule
from handfast.cli import main
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
    return CliRunner().invoke(app, ["check", "--jobs", "1", "--no-cache", *arguments], input=stdin)


def put(name: str, content: str = WRONG) -> Path:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    return path


@pytest.mark.parametrize("option", ["--format", "--output-format"])
def test_each_format_has_the_finding(option: str) -> None:
    put("a.py")
    for form in FORMATS:
        result = run(option, form)
        assert (result.exit_code, "HF101" in result.stdout) == (1, True), form
        coloured = run(option, form, "--color", "always").stdout
        # A report that leaves the machine has the command in place of the page.
        assert page_url("HF101") in coloured or explain_line("HF101") in coloured, form
    assert ElementTree.fromstring(run(option, "junit").stdout).attrib["failures"] == "1"


def test_standard_input_has_the_settings_and_the_package_of_its_file() -> None:
    put("pyproject.toml", '[tool.handfast.check.per-file-ignores]\n"p/a.py" = ["HF1"]\n')
    put("p/__init__.py", "")
    assert run("-", "--stdin-filename", "p/a.py", stdin=WRONG).exit_code == 0
    result = run("-", "--stdin-filename", "p/b.py", stdin=WRONG)
    assert (result.exit_code, result.stdout.startswith("p/b.py:2:1: HF101")) == (1, True)
    assert "2 | drop(asyncio)" in result.stdout
    assert not Path("p/b.py").exists()


def test_config_replaces_the_settings_files() -> None:
    put("pyproject.toml", '[tool.handfast.check]\nselect = ["HF2"]\n')
    put("a.py")
    put("other.toml", 'select = ["HF1"]\n')
    put("third/pyproject.toml", '[tool.handfast.check]\nselect = ["HF3"]\n')
    put("none.toml", "[tool.other]\n")
    assert run("a.py").exit_code == 0
    assert run("a.py", "--config", "other.toml").exit_code == 1
    assert run("a.py", "--config", "third/pyproject.toml").exit_code == 0
    assert run("a.py", "--config", "none.toml").exit_code == 1
    assert run("a.py", "--config", 'select = ["HF101"]').exit_code == 1
    assert run("a.py", "--config", "other.toml", "--config", 'ignore = ["HF101"]').exit_code == 0


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("gone.toml", "--config: gone.toml cannot be read: No such file"),
        ("a\0", "--config: a\\x00 cannot be read: "),
        ("selct = []", "--config: there is no setting 'selct': did you mean 'select'?"),
        ("select = [", "--config"),
        ("bad.toml", "bad.toml:2: there is no setting 'x'"),
    ],
)
def test_a_wrong_config_is_wrong_usage(value: str, message: str) -> None:
    put("bad.toml", "pedantic = true\nx = 1\n")
    result = run("--config", value)
    assert (result.exit_code, message in result.stderr) == (2, True), result.stderr


def test_excluded_files_are_left_out() -> None:
    put("a.py")
    put("gen/b.py")
    put("gen/c.py")
    put("pyproject.toml", '[tool.handfast.check]\nexclude = ["a.py"]\n')
    assert run("--show-files").stdout == "gen/b.py\ngen/c.py\n"
    assert run("--show-files", "--exclude", "gen/c.py").stdout == "a.py\ngen/b.py\n"
    assert run("--show-files", "--exclude", "gen,x").stdout == "a.py\n"


def test_codes_can_be_added_and_left_out_for_some_files(monkeypatch: pytest.MonkeyPatch) -> None:
    put("a.py")
    put("sub/b.py")
    monkeypatch.setattr("handfast._check.rules.RULES", (Rule("HF101", RULE.check, pedantic=True),))
    assert run().exit_code == 0
    assert run("--extend-select", "HF101").exit_code == 1
    shown = run("--extend-select", "HF101", "--per-file-ignores", "sub/*:HF1").stdout
    assert ("a.py:2" in shown, "b.py:2" in shown) == (True, False)
    put("pyproject.toml", '[tool.handfast.check]\nextend-select = ["HF101"]\n')
    assert run().exit_code == 1


def test_settings_are_shown() -> None:
    put("a.py")
    put("b.py")
    put(
        "pyproject.toml",
        '[tool.handfast.check]\nignore = ["HF2"]\nper-file-ignores = {"x" = ["HF1"]}\n',
    )
    put("sub/pyproject.toml", "[tool.handfast.check]\npedantic = true\n")
    put("sub/c.py")
    shown = run("--show-settings").stdout
    assert f"# a.py and 1 other files: {Path.cwd()}/pyproject.toml\n" in shown
    assert "relaxed = []\n" in shown
    assert 'ignore = ["HF2"]\npedantic = false\nper-file-ignores = {"x" = ["HF1"]}\n' in shown
    assert "pedantic = true" in shown


def test_quiet_prints_findings_only() -> None:
    put("a.py")
    assert "Found" not in run("--quiet").stdout
    result = run("-q", "--fix")
    assert (result.exit_code, result.output) == (0, "")


def test_fix_only_reports_nothing() -> None:
    path = put("a.py", WRONG + "(drop)(drop(1))\n")
    result = run("--fix-only")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "Fixed 3.\n")
    assert "drop" not in path.read_text()
    put("a.py").chmod(0o444)
    assert run("--fix-only").exit_code == 2


def test_exit_zero() -> None:
    put("a.py")
    assert (run().exit_code, run("--exit-zero").exit_code) == (1, 0)
    assert run("--exit-zero", "nowhere").exit_code == 2


def test_comments_are_added() -> None:
    path = put("a.py", WRONG + "drop('''\n''')\n")
    result = run("--add-noqa")
    assert (result.exit_code, result.stderr) == (0, "Added noqa comments for 2 findings.\n")
    assert path.read_text() == (
        "import asyncio\ndrop(asyncio)  # noqa: HF101\ndrop('''\n''')  # noqa: HF101\n"
    )
    assert run().exit_code == 0


def test_a_finding_that_no_comment_can_suppress_is_named() -> None:
    put("a.py", "import asyncio\ndrop(1) \\\n  .x\n")
    result = run("--add-noqa")
    assert result.exit_code == 2
    assert "a.py:2: HF101 has no line that a comment could be added to" in result.stderr


def test_nothing_found_says_what_was_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    hidden = Rule("HF101", RULE.check, pedantic=True)
    monkeypatch.setattr("handfast._check.rules.RULES", (hidden,))
    put("a.py", WRONG + "def f():\n    create_task(g())\n    ensure_future(g())\n")
    assert run().stdout == (
        "All clear: 1 file checked: 1 function, 2 task creations. --pedantic would add 1 finding.\n"
    )
    assert run("--select", "HF2").stdout.endswith(" --pedantic would add 0 findings.\n")
    assert run("--pedantic").exit_code == 1


@pytest.mark.parametrize(
    ("variables", "option", "colourful"),
    [
        ({"FORCE_COLOR": "1"}, "auto", True),
        ({"FORCE_COLOR": "0"}, "auto", False),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, "auto", False),
        ({"NO_COLOR": "1"}, "always", True),
        ({"FORCE_COLOR": "1"}, "never", False),
        ({}, "auto", False),
    ],
)
def test_colour(
    variables: dict[str, str], option: str, colourful: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    put("a.py")
    assert ("\x1b[" in run("--color", option).stdout) is colourful


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--nonsense"], "unrecognized arguments: --nonsense"),
        (["--jobs", "0"], "'0' is not a number of processes"),
        (["--per-file-ignores", "HF1"], "'HF1' is not PATTERN:CODE"),
        (["--color", "blue"], "--color"),
        (["-", "--watch"], "standard input cannot be watched"),
        (["--stdin-filename", "a.py"], "--stdin-filename needs - among the paths"),
    ],
)
def test_wrong_options_are_explained_in_one_line(arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(app, ["check", *arguments])
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert message in result.stderr


def test_watch_checks_again_after_a_change(monkeypatch: pytest.MonkeyPatch) -> None:
    path = put("a.py")
    pauses = 0

    def pause() -> None:
        nonlocal pauses
        pauses += 1
        if pauses == 2:
            path.write_text("x = 1\n")
        if pauses == 4:
            put("pyproject.toml", "[tool.handfast.check]\nx = 1\n")
        if pauses == 6:
            raise KeyboardInterrupt

    monkeypatch.setattr(handfast.cli.check, "_pause", pause)
    result = run("--watch")
    assert result.exit_code == 130
    assert result.stdout.count("Found 1 problem.") == 1
    assert result.stdout.count("All clear: 1 file checked.") == 1
    assert result.stderr.count("there is no setting 'x'") == 1
    assert result.stderr.count("Watching for changes") == 3


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_is_cleared_before_each_check(monkeypatch: pytest.MonkeyPatch) -> None:
    put("a.py", "x = 1\n")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)

    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", interrupt)
    assert handfast.cli.check.main(["--watch", "--no-cache", "--jobs", "1", "a.py"]) == 130
    assert terminal.getvalue().startswith("\x1b[2J\x1b[HAll clear")


def test_a_diff_on_a_terminal_has_no_control_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    # Attack 10: raw escapes of a file reached the terminal.
    put("a.py", WRONG + "x = '\x1b[2J'\n")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    assert handfast.cli.check.main(["--diff", "--no-cache", "--jobs", "1", "a.py"]) == 1
    assert " x = '\\x1b[2J'\n" in terminal.getvalue()


def test_a_diff_of_a_file_that_has_changed_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    path = put("a.py")
    check = check_paths

    def changed(*arguments: Any, **options: Any) -> Report:
        report = check(*arguments, **options)
        path.write_text("saved\n")
        return report

    monkeypatch.setattr(handfast.cli.check, "check_paths", changed)
    result = run("--diff")
    assert result.exit_code == 2
    assert "a.py cannot be shown: it has changed since it was checked" in result.stderr


def test_a_closed_input_and_a_deleted_folder_are_wrong_usage(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(SystemExit):
        handfast.cli.check.main(["-"])
    assert "standard input is closed" in capsys.readouterr().err
    folder = here / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    with pytest.raises(SystemExit):
        handfast.cli.check.main([])
    assert "the current folder cannot be used" in capsys.readouterr().err


def test_an_internal_error_is_no_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(handfast.cli.check, "check_paths", broken)
    result = run()
    assert (result.exit_code, "ZeroDivisionError" in result.stderr) == (2, True)


# --- without the extra, and with odd streams -------------------------------------------------------

PLAIN = "import sys; sys.modules['typer'] = sys.modules['rich'] = None; from handfast.cli import main; main()"


def plain(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", PLAIN, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_check_works_without_the_extra() -> None:
    put("a.py", "import asyncio\n\nasync def f():\n    asyncio.create_task(g())\n")
    result = plain("check", "--no-cache")
    assert (result.returncode, result.stderr) == (1, "")
    assert result.stdout.startswith("a.py:4:5: HF101")


@pytest.mark.parametrize("command", ["explain", "rule"])
def test_a_rule_is_explained_without_the_extra(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "rich.console", None)
    for arguments, words in (
        (
            ["HF101"],
            ("HF101 task-dropped", "Harm: lost work (", "Wrong:", "Right:", page_url("HF101")),
        ),
        (["hf000"], ("file-not-checked",)),
        ([], ("HF1xx  ownership", "HF101  task-dropped: ")),
    ):
        monkeypatch.setattr(sys, "argv", ["handfast", command, *arguments])
        with pytest.raises(SystemExit) as left:
            main()
        assert left.value.code == 0
        shown = capsys.readouterr().out
        assert all(word in shown for word in words)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
@pytest.mark.parametrize(
    ("shell", "status", "message"),
    [
        ('"$@" check --no-cache > /dev/full', 2, "standard output cannot be written: No space"),
        ('"$@" check --no-cache >&-', 2, "standard output cannot be written: it is closed"),
        ('"$@" check --no-cache - <&-', 2, "standard input is closed"),
        ('"$@" check --no-cache 2>&- >&-', 2, ""),
        ('"$@" check --no-cache nowhere 2> /dev/full', 2, ""),
        ('mkdir d; cd d; rmdir ../d; "$@" check', 2, "current folder cannot be used: No such file"),
        ('"$@" --version > /dev/full', 2, "standard output cannot be written: No space"),
    ],
)
def test_odd_streams_and_folders_are_no_traceback(shell: str, status: int, message: str) -> None:
    # Attack 23.
    put("a.py")
    command = ["sh", "-c", shell, "sh", sys.executable, "-m", "handfast"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (result.returncode, message in result.stderr) == (status, True), result.stderr
    assert "Traceback" not in result.stderr


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    put("a.py", WRONG + "drop(1)\n" * 5_000)
    command = f'"{sys.executable}" -m handfast check --no-cache | head -n 1'
    result = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60)
    assert result.stderr == ""
