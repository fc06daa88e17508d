"""The door of the command line: version, help, a missing extra, wrong input, Ctrl-C."""

import os
import runpy
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from typer.testing import CliRunner

import holdfast.cli
from holdfast.cli import main
from holdfast.cli.app import app
from holdfast.cli.version import line

# By its path: pytest loads the modules of a plugin itself, in a way that `run_module` cannot read.
MODULE = Path(holdfast.__file__).with_name("__main__.py")


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The command as a user runs it: another process, warnings as errors."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "holdfast", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_version_names_holdfast_and_python() -> None:
    result = command("--version")
    assert result.stdout.startswith(f"holdfast {holdfast.__version__}, Python 3.")
    assert (result.returncode, result.stderr) == (0, "")


def test_help_names_every_command() -> None:
    result = command("--help")
    assert result.returncode == 0
    for word in ("tour", "explain", "explore", "--version"):
        assert word in result.stdout


def test_no_command_shows_the_help() -> None:
    result = CliRunner().invoke(app, [])
    assert "tour" in result.output


def test_a_command_that_does_not_exist_is_an_error_of_the_caller() -> None:
    result = command("no-such-command")
    assert result.returncode == 2
    assert "no-such-command" in result.stderr
    assert "Traceback" not in result.stderr


def test_the_module_and_the_script_are_one_door(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["holdfast", "--version"])
    with pytest.raises(SystemExit) as left:
        runpy.run_path(str(MODULE), run_name="__main__")
    assert left.value.code == 0
    assert capsys.readouterr().out == f"{line()}\n"


def test_importing_the_module_runs_nothing() -> None:
    assert "main" in runpy.run_path(str(MODULE), run_name="imported")


@pytest.mark.parametrize("missing", ["rich", "typer"])
def test_a_missing_extra_is_one_line_that_says_what_to_install(missing: str) -> None:
    program = f"import sys; sys.modules[{missing!r}] = None; from holdfast.cli import main; main()"
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60
    )
    assert (result.returncode, result.stdout) == (2, "")
    assert 'pip install "holdfast[cli]"' in result.stderr
    assert result.stderr.count("\n") == 1


def forget_the_app(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("holdfast.cli.")]:
        monkeypatch.delitem(sys.modules, name)
        monkeypatch.delattr(holdfast.cli, name.rpartition(".")[2])


def test_a_missing_extra_leaves_with_code_two(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    forget_the_app(monkeypatch)
    monkeypatch.setitem(sys.modules, "typer", None)
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 2
    assert 'pip install "holdfast[cli]"' in capsys.readouterr().err


def test_a_missing_module_of_our_own_is_not_taken_for_a_missing_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    forget_the_app(monkeypatch)
    monkeypatch.setattr(sys, "argv", ["holdfast", "explain"])
    monkeypatch.setitem(sys.modules, "holdfast.catalogue", None)
    with pytest.raises(ModuleNotFoundError, match=r"holdfast\.catalogue"):
        main()


def test_ctrl_c_before_the_app_is_there_is_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("holdfast.cli.app.app", interrupted)
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 130


def marked(mark: str) -> list[str]:
    """The command lines of all processes that have this mark in their environment."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_text().replace("\0", " "))
        except OSError:  # it ended while we looked, or is not ours
            continue
    return found


def start_tour(mark: str) -> subprocess.Popen[str]:
    name, _, value = mark.partition("=")
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-m", "holdfast", "tour"],
        env={**os.environ, name: value},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture
def mark() -> str:
    """What the environment of a process, and of all it starts, can be known by."""
    if not Path("/proc/self/environ").exists():
        pytest.skip("looks for orphans in /proc")
    return f"HOLDFAST_TEST_MARK={uuid.uuid4()}"


@pytest.mark.parametrize("seen", ["1. A child fails", "4. Work from a thread"])
def test_ctrl_c_in_the_tour_leaves_no_mess(seen: str, mark: str) -> None:
    """After stop 1 the owner with the straggler is open; after stop 4 the child process starts."""
    with start_tour(mark) as tour:
        assert tour.stdout is not None
        for text in tour.stdout:
            if seen in text:
                break
        tour.send_signal(signal.SIGINT)
        _, errors = tour.communicate(timeout=30)
    assert (tour.returncode, errors.strip()) == (130, "")
    assert marked(mark) == []


def test_the_tour_leaves_no_process_behind(mark: str) -> None:
    with start_tour(mark) as tour:
        _, errors = tour.communicate(timeout=120)
    assert (tour.returncode, errors) == (0, "")
    assert marked(mark) == []
