"""The command line itself: version, help, a missing extra, wrong input, Ctrl-C."""

import runpy
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import handfast.cli
from handfast.cli import main, version_line
from handfast.cli.app import app

# By its path: pytest loads the modules of a plugin itself, in a way that `run_module` cannot read.
MODULE = Path(handfast.__file__).with_name("__main__.py")


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The command as a user runs it: another process, warnings as errors."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "handfast", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_version_names_handfast_and_python() -> None:
    result = command("--version")
    assert result.stdout.startswith(f"handfast {handfast.__version__}, Python 3.")
    assert (result.returncode, result.stderr) == (0, "")


def test_help_names_every_command() -> None:
    result = CliRunner().invoke(app, ["--help"])
    assert result.exit_code == 0
    for word in ("explain", "check", "explore", "--version"):
        assert word in result.stdout


def test_no_command_shows_the_help() -> None:
    result = CliRunner().invoke(app, [])
    assert "explain" in result.output


def test_an_unknown_command_exits_with_status_two() -> None:
    result = command("no-such-command")
    assert result.returncode == 2
    assert "no-such-command" in result.stderr
    assert "Traceback" not in result.stderr


def test_the_module_runs_the_same_command_as_the_script(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["handfast", "--version"])
    with pytest.raises(SystemExit) as left:
        runpy.run_path(str(MODULE), run_name="__main__")
    assert left.value.code == 0
    assert capsys.readouterr().out == f"{version_line()}\n"


def test_importing_the_module_runs_nothing() -> None:
    assert "main" in runpy.run_path(str(MODULE), run_name="imported")


@pytest.mark.parametrize(
    ("words", "extra"),
    [([], "cli"), (["explore"], "cli"), (["audit"], "cli,test"), (["lsp"], "lsp")],
)
def test_a_missing_extra_is_named_in_one_line_with_both_ways_to_install(
    words: list[str], extra: str
) -> None:
    program = "import sys; sys.modules['typer'] = None; from handfast.cli import main; main()"
    result = subprocess.run(
        [sys.executable, "-c", program, *words], capture_output=True, text=True, timeout=60
    )
    assert (result.returncode, result.stdout) == (2, "")
    assert (
        f"pip install 'handfast[{extra}]', or in a clone pip install '.[{extra}]'" in result.stderr
    )
    assert result.stderr.count("\n") == 1


def forget_the_app(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("handfast.cli.")]:
        monkeypatch.delitem(sys.modules, name)
        monkeypatch.delattr(handfast.cli, name.rpartition(".")[2])


@pytest.mark.parametrize("missing", ["rich", "typer"])
def test_a_missing_extra_exits_with_status_two(
    missing: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    forget_the_app(monkeypatch)
    for name in [name for name in sys.modules if name.startswith(f"{missing}.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 2
    said = capsys.readouterr().err
    assert "pip install 'handfast[cli]'" in said
    assert said.count("\n") == 1


def test_a_missing_module_of_handfast_is_not_reported_as_a_missing_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    forget_the_app(monkeypatch)
    monkeypatch.setattr(sys, "argv", ["handfast", "explain"])
    monkeypatch.setitem(sys.modules, "handfast.catalogue", None)
    with pytest.raises(ModuleNotFoundError, match=r"handfast\.catalogue"):
        main()


def test_ctrl_c_during_the_imports_prints_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("handfast.cli.app.app", interrupted)
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 130


def test_a_second_ctrl_c_ends_the_process_with_the_same_status(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    exits: list[int] = []

    def interrupted(arguments: object) -> int:
        if not exits:
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        return 130

    monkeypatch.setattr("os._exit", exits.append)
    monkeypatch.setattr("handfast.cli.explain.main", interrupted)
    monkeypatch.setattr(sys, "argv", ["handfast", "explain"])
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(SystemExit) as left:
            main()
        # The interpreter takes back other handlers than this one before its end.
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        with pytest.raises(SystemExit):
            main()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN, "nohup: it stays ignored"
    finally:
        signal.signal(signal.SIGINT, before)
    assert (left.value.code, exits) == (130, [130])
