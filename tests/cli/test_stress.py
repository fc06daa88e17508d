"""`holdfast stress`: what it prints, the status it leaves with, and that Ctrl-C leaves no mess."""

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

import holdfast.cli.stress
from holdfast.cli.app import app
from holdfast.leaks.stressing import Progress
from tests.cli.real_command import interrupted, start

pytestmark = pytest.mark.usefixtures("small_heap")

PROGRAMS = """
import asyncio, holdfast, os, signal, sys

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
    async with holdfast.Process("sleep", "600") as process:
        await process.close(grace=0)

def sync(): ...
async def needs(x): ...
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a module of programs, and the command run in it leaves no trace in ours."""
    name = f"programs_{uuid.uuid4().hex}"
    (tmp_path / f"{name}.py").write_text(PROGRAMS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield tmp_path / f"{name}.py"
    sys.modules.pop(name, None)


def stress(here: Path, function: str, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["stress", f"{here.stem}:{function}", *arguments])


def as_json(here: Path, function: str, *arguments: str) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(stress(here, function, "--json", *arguments).stdout)
    return told


# --- what is printed -------------------------------------------------------------------------


def test_a_growth_is_shown_with_its_birth_place_a_plot_and_status_one(here: Path) -> None:
    result = stress(here, "leaky", "-n", "20", "--cancel", "none")
    assert (result.exit_code, result.stderr) == (1, "")
    headline, _, *rest = result.stdout.splitlines()
    assert headline == "growth in tasks: 20 runs after 10 to warm up"
    assert re.match(r"tasks +\d+ +\d+ +\+1\.0$", rest[1]), result.stdout
    assert f"HF102 task-left-over: 20 born at {here.name}:10 in leaky" in result.stdout
    assert "0 ... 20 runs" in result.stdout
    assert "the program speaks" not in result.stdout


def test_nothing_found_has_a_size_and_status_zero(here: Path) -> None:
    result = stress(here, "fine", "-n", "20")
    assert (result.exit_code, result.stderr) == (0, "")
    size = r"nothing grows: 20 runs after 10 to warm up, \d+ cancelled at 2 different steps\n"
    assert re.match(size, result.stdout), result.stdout
    assert "not checked: memory (memory=True traces it)" in result.stdout


def test_errors_after_a_cancel_are_shown_and_no_reason_to_fail(here: Path) -> None:
    result = stress(here, "torn", "-n", "20", "--seed", "3")
    assert result.exit_code == 0
    assert "runs ended with an error:" in result.stdout
    assert "cancelled at its step 1: ValueError: torn" in result.stdout


def test_a_run_that_does_not_end_is_shown_with_status_one(here: Path) -> None:
    result = stress(here, "swallows", "-n", "100", "--deadline", "0.1")
    assert result.exit_code == 1
    assert "HF501 cancel-swallowed: run " in result.stdout


def test_json_has_everything(here: Path) -> None:
    told = as_json(here, "leaky", "-n", "20", "--cancel", "none", "--seed", "5")
    (growth,) = told["growth"]
    assert (growth["check"], growth["per_run"]) == ("tasks", 1.0)
    assert len(growth["samples"]) == 21
    assert growth["places"][0]["count"] == 20
    assert (told["clean"], told["runs"], told["seed"]) == (False, 20, 5)
    assert told["summary"].startswith("growth in tasks")
    assert as_json(here, "torn", "-n", "20")["errors"][0]["point"]["step"] == 1


def test_what_is_asked_for_goes_where_it_belongs(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[dict[str, Any]] = []

    class Refusing:
        def __init__(self, program: object, n: int, **options: Any) -> None:
            asked.append({"n": n, **options})
            raise ValueError("enough")

    monkeypatch.setattr(holdfast.cli.stress, "Course", Refusing)
    stress(here, "fine")
    plain = {"n": 1000, "cancel": "random", "seed": 0, "deadline": 10.0, "memory": False}
    assert asked.pop() == plain
    stress(here, "fine", "--memory", "-n", "9", "--cancel", "none", "--seed=2", "--deadline=3")
    assert asked == [{"n": 9, "cancel": None, "seed": 2, "deadline": 3.0, "memory": True}]


# --- wrong use -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "arguments", "said"),
    [
        ("laeky", (), "has no 'laeky'. Did you mean leaky?"),
        ("sync", (), "is not an async function, and nothing else can be run here"),
        ("needs", (), "needs x: write an async function without arguments"),
        ("fine", ("-n", "9"), "n=9: fewer than 10 runs tell no trend"),
        ("fine", ("-n", "many"), "Invalid value for '-n'"),
        ("fine", ("--cancel", "randon"), "use one of random, none. Did you mean random"),
        ("fine", ("--deadline", "0"), "deadline=0.0: must be more than 0 seconds"),
        ("fails", (), "it fails by itself, without any cancel: ValueError: by itself ("),
        ("exits", (), "the program calls sys.exit(0): let it return, or raise an error"),
        ("endless", ("--deadline", "0.1"), "nobody cancelled, did not end within 0.1 s"),
    ],
)
def test_wrong_use_is_said_on_stderr_with_status_two(
    here: Path, function: str, arguments: tuple[str, ...], said: str
) -> None:
    result = stress(here, function, *arguments)
    assert (result.exit_code, result.stdout) == (2, ""), result.output
    assert said in result.stderr
    assert "Traceback" not in result.stderr


def test_the_help_says_what_is_counted_and_what_the_status_means() -> None:
    told = " ".join(CliRunner().invoke(app, ["stress", "--help"]).stdout.split())
    for word in ("-n", "--cancel", "random|none", "--seed", "--memory", "--json", "--deadline"):
        assert word in told
    assert "A trend decides" in told
    assert "Exit status 0: nothing grows" in told


def test_an_error_of_our_own_is_no_wrong_use(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.leaks.rounds.settled", lambda *_: 1 / 0)
    assert isinstance(stress(here, "fine").exception, ZeroDivisionError)


# --- the bar ---------------------------------------------------------------------------------


def bar_of(terminal: bool, *progress: Progress) -> str:
    from rich.console import Console

    console = Console(force_terminal=terminal, width=120, record=True, file=io.StringIO())
    bar = holdfast.cli.stress._Bar(console)
    with bar:
        for each in progress:
            bar(each)
    return console.export_text()


def test_the_bar_says_how_far_it_is_and_what_grows() -> None:
    late = Progress(150, 1000, 3.0, ())
    assert "150 of 1,000 runs" in bar_of(True, late)
    assert "nothing grows yet" in bar_of(True, late)
    growing = Progress(300, 1000, 6.0, ("tasks", "timers"))
    assert "growing: tasks, timers" in bar_of(True, late, growing)


def test_what_the_program_prints_stays_out_of_the_bar() -> None:
    from rich.console import Console

    console = Console(force_terminal=True, width=120, record=True, file=io.StringIO())
    bar = holdfast.cli.stress._Bar(console)
    with bar:
        bar(Progress(150, 1000, 3.0, ()))
        print("the program speaks")  # noqa: T201 - as it would
    assert "the program speaks" not in console.export_text()


def test_no_bar_for_short_runs_or_where_nobody_looks() -> None:
    assert bar_of(True, Progress(64, 1000, 1.9, ())) == ""
    assert bar_of(False, Progress(64, 1000, 4.0, ())) == ""


# --- the real command ------------------------------------------------------------------------


def test_the_real_command_leaves_with_the_right_status(here: Path) -> None:
    arguments = (f"{here.name}:leaky", "-n", "10", "--cancel=none")
    process = start("stress", here, *arguments, PYTHONIOENCODING="ascii")
    printed, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (1, "")
    assert "*" in printed  # the plot, on a terminal that can print no more
    assert printed.isascii()


def test_ctrl_c_prints_what_is_known_and_leaves_no_process(here: Path) -> None:
    told = interrupted("stress", here, f"{here.stem}:long", "-n", "1000000", after=30)
    assert (told.status, told.errors) == (130, "")
    assert re.match(r"too few rounds to tell a growth: [\d,]+ runs? after ", told.printed), told
    assert re.search(r"not checked: the [\d,]+ runs that were still to come", told.printed)
    assert told.orphans == []
