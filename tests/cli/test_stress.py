"""`handfast stress`: its output, its exit status, and Ctrl-C."""

from __future__ import annotations

import io
import json
import re
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import handfast.cli.stress
from handfast._leaks.stress.stress import Progress
from handfast.cli.app import app
from tests.cli.real_command import interrupted, start

pytestmark = pytest.mark.usefixtures("small_heap")

PROGRAMS = """
import asyncio, handfast, os, signal, sys

kept = []
if "RUNNING" in os.environ:  # a shell that runs the tests in the background has them ignore it
    signal.signal(signal.SIGINT, signal.default_int_handler)

async def leaky():
    print("the program speaks")
    kept.append(asyncio.create_task(asyncio.sleep(3600)))
    await asyncio.sleep(0)

async def fine():
    await asyncio.sleep(0)

async def torn():
    try:
        await asyncio.sleep(0)
    except asyncio.CancelledError:
        raise ValueError("torn")

async def swallows():
    try:
        await asyncio.sleep(0)
    except asyncio.CancelledError:
        await asyncio.Event().wait()

async def fails():
    raise ValueError("by itself")

async def endless():
    await asyncio.Event().wait()

async def exits():
    sys.exit(0)

async def long():
    os.write(int(os.environ["RUNNING"]), b".")
    async with handfast.Process("sleep", "600") as process:
        await process.close(grace=0)

def sync(): ...
async def needs(x): ...
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a module of programs, and the module is not imported afterwards."""
    name = f"programs_{uuid.uuid4().hex}"
    (tmp_path / f"{name}.py").write_text(PROGRAMS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield tmp_path / f"{name}.py"
    sys.modules.pop(name, None)


def stress(here: Path, function: str, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["stress", f"{here.stem}:{function}", *arguments])


def as_json(here: Path, function: str, *arguments: str) -> dict[str, Any]:
    output: dict[str, Any] = json.loads(stress(here, function, "--json", *arguments).stdout)
    return output


# --- output --------------------------------------------------------------------------------


def test_growth_is_shown_with_the_line_that_creates_it_and_a_plot(here: Path) -> None:
    result = stress(here, "leaky", "-n", "20", "--cancel", "none")
    assert (result.exit_code, result.stderr) == (1, "")
    headline, _, *rest = result.stdout.splitlines()
    assert headline == "growth in tasks: 20 runs after 10 to warm up"
    assert re.match(r"tasks +\d+ +\d+ +\+1\.0$", rest[1]), result.stdout
    assert f"HF102 task-left-over: 20 created at {here.name}:10 in leaky" in result.stdout
    assert "0 ... 20 runs" in result.stdout
    assert "the program speaks" not in result.stdout


def test_without_growth_the_number_of_runs_is_printed(here: Path) -> None:
    result = stress(here, "fine", "-n", "20")
    assert (result.exit_code, result.stderr) == (0, "")
    size = r"nothing grows: 20 runs after 10 to warm up, \d+ cancelled at 2 different steps\n"
    assert re.match(size, result.stdout), result.stdout
    assert "not checked: memory (memory=True traces it)" in result.stdout


def test_errors_after_a_cancel_are_shown_and_do_not_fail_the_command(here: Path) -> None:
    result = stress(here, "torn", "-n", "20", "--seed", "3")
    assert result.exit_code == 0
    assert "runs ended with an error:" in result.stdout
    assert "cancelled at its step 1: ValueError: torn" in result.stdout


def test_a_run_that_does_not_end_is_shown_with_status_one(here: Path) -> None:
    result = stress(here, "swallows", "-n", "100", "--timeout", "0.1")
    assert result.exit_code == 1
    assert "HF501 cancel-swallowed: run " in result.stdout


def test_json_has_everything(here: Path) -> None:
    output = as_json(here, "leaky", "-n", "20", "--cancel", "none", "--seed", "5")
    (growth,) = output["growth"]
    assert (growth["check"], growth["per_run"]) == ("tasks", 1.0)
    assert len(growth["samples"]) == 21
    assert growth["sources"][0]["count"] == 20
    assert (output["clean"], output["runs"], output["seed"]) == (False, 20, 5)
    assert output["summary"].startswith("growth in tasks")
    assert as_json(here, "torn", "-n", "20")["errors"][0]["point"]["step"] == 1


def test_the_options_are_passed_on(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[dict[str, Any]] = []

    class Refusing:
        def __init__(self, program: object, n: int, **options: Any) -> None:
            given.append({"n": n, **options})
            raise ValueError("enough")

    monkeypatch.setattr(handfast.cli.stress, "StressRun", Refusing)
    stress(here, "fine")
    plain = {"n": 1000, "cancel": "random", "seed": 0, "timeout": 10.0, "memory": False}
    assert given.pop() == plain
    stress(here, "fine", "--memory", "-n", "9", "--cancel", "none", "--seed=2", "--timeout=3")
    assert given == [{"n": 9, "cancel": None, "seed": 2, "timeout": 3.0, "memory": True}]


# --- wrong use -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "arguments", "said"),
    [
        ("laeky", (), "has no 'laeky'. Did you mean leaky?"),
        ("sync", (), "is not an async function"),
        ("needs", (), "needs x: write an async function without arguments"),
        ("fine", ("-n", "9"), "n=9: fewer than 10 runs show no trend"),
        ("fine", ("-n", "many"), "Invalid value for '-n'"),
        ("fine", ("--cancel", "randon"), "Invalid value for '--cancel'"),
        ("fine", ("--timeout", "0"), "timeout=0.0: must be more than 0 seconds"),
        ("fails", (), "the function fails without a cancel: ValueError: by itself ("),
        ("exits", (), "the program calls sys.exit(0): let it return, or raise an error"),
        ("endless", ("--timeout", "0.1"), "not cancelled, did not end within 0.1 s"),
    ],
)
def test_wrong_use_is_reported_on_stderr_with_status_two(
    here: Path, function: str, arguments: tuple[str, ...], said: str
) -> None:
    result = stress(here, function, *arguments)
    assert (result.exit_code, result.stdout) == (2, ""), result.output
    assert said in result.stderr
    assert "Traceback" not in result.stderr


def test_the_help_says_what_is_counted_and_what_the_status_means() -> None:
    output = " ".join(CliRunner().invoke(app, ["stress", "--help"]).stdout.split())
    for word in ("-n", "--cancel", "random|none", "--seed", "--memory", "--json", "--timeout"):
        assert word in output
    assert "Only a trend counts" in output
    assert "Exit status 0: nothing grows" in output


def test_an_error_in_handfast_is_raised(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("handfast._leaks.stress.growth.Rounds._settled", lambda *_: 1 / 0)
    assert isinstance(stress(here, "fine").exception, ZeroDivisionError)


# --- the bar ---------------------------------------------------------------------------------


def bar_of(terminal: bool, *progress: Progress) -> str:
    from rich.console import Console

    console = Console(force_terminal=terminal, width=120, record=True, file=io.StringIO())
    bar = handfast.cli.stress._Bar(console)
    with bar:
        for each in progress:
            bar(each)
    return console.export_text()


def test_the_bar_shows_the_runs_and_what_grows() -> None:
    late = Progress(150, 1000, 3.0, ())
    assert "150 of 1,000 runs" in bar_of(True, late)
    assert "nothing grows yet" in bar_of(True, late)
    growing = Progress(300, 1000, 6.0, ("tasks", "timers"))
    assert "growing: tasks, timers" in bar_of(True, late, growing)


def test_the_bar_does_not_show_output_of_the_program() -> None:
    from rich.console import Console

    console = Console(force_terminal=True, width=120, record=True, file=io.StringIO())
    bar = handfast.cli.stress._Bar(console)
    with bar:
        bar(Progress(150, 1000, 3.0, ()))
        print("the program speaks")  # noqa: T201 - as it would
    assert "the program speaks" not in console.export_text()


def test_no_bar_for_short_runs_or_without_a_terminal() -> None:
    assert bar_of(True, Progress(64, 1000, 1.9, ())) == ""
    assert bar_of(False, Progress(64, 1000, 4.0, ())) == ""


# --- the real command ------------------------------------------------------------------------


def test_the_real_command_exits_with_the_right_status(here: Path) -> None:
    arguments = (f"{here.name}:leaky", "-n", "10", "--cancel=none")
    process = start("stress", here, *arguments, PYTHONIOENCODING="ascii")
    printed, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (1, "")
    assert "*" in printed  # the plot, on a terminal that can print no more
    assert printed.isascii()


def test_ctrl_c_prints_the_result_so_far_and_leaves_no_process(here: Path) -> None:
    output = interrupted("stress", here, f"{here.stem}:long", "-n", "1000000", after=30)
    assert (output.status, output.errors) == (130, "")
    assert re.match(r"too few rounds to find growth: [\d,]+ runs? after ", output.printed), output
    assert re.search(r"not checked: the [\d,]+ runs that were still to come", output.printed)
    assert output.orphans == []
