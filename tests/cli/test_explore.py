"""`handfast explore`: what it prints, the status it leaves with, and that Ctrl-C leaves no mess."""

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

import handfast.cli.explore
from handfast._explore.campaign import Progress
from handfast.cli.app import app
from tests.cli.real_command import interrupted, start

PROGRAMS = """
import asyncio, handfast.explore, os, socket, sys

async def race():
    print("the program speaks")
    seen = []
    async def note(name, delay):
        await asyncio.sleep(delay)
        seen.append(name)
    await asyncio.gather(note("slow", 0.02), note("quick", 0.01))
    assert seen == ["quick", "slow"]

async def torn():
    kept = []
    async def work():
        kept.append(1)
        await asyncio.sleep(0.1)
        kept.clear()
    await handfast.explore.victim(work())
    assert not kept

async def fine(times=2):
    await asyncio.gather(*(asyncio.sleep(n) for n in range(times)))

async def many():
    await asyncio.gather(*(asyncio.sleep(n / 100) for n in range(7)))

async def reader():
    asyncio.get_running_loop().add_reader(0, print)

async def slow_answer():
    from handfast.explore import latency
    task = asyncio.create_task(latency())
    await asyncio.sleep(5)
    assert task.done()

async def exits():
    sys.exit(0)

async def stuck():
    await asyncio.Event().wait()

def sync(): ...
async def needs(x, *, y): ...
async def yields(): yield

class Callable:
    async def __call__(self): ...
    @staticmethod
    async def inside(): ...
instance = Callable()

async def long():
    # Each run prints that it runs; once the pipe is full, that is no longer needed.
    try:
        os.write(int(os.environ["RUNNING"]), b".")
    except BlockingIOError:
        pass
    await asyncio.gather(*(asyncio.sleep(n / 100) for n in range(6)))

async def changing():
    with open("changing", "a") as file:
        file.write(".")
    if os.path.getsize("changing") < 3:
        raise ValueError("only at first")

async def heard():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        loop = asyncio.get_running_loop()
        done = loop.create_future()
        loop.add_reader(ours, done.set_result, None)
        theirs.send(b"x")
        await done
        loop.remove_reader(ours)
    assert False, "heard"
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a module of programs, and the command run in it leaves no trace in ours."""
    name = f"programs_{uuid.uuid4().hex}"
    (tmp_path / f"{name}.py").write_text(PROGRAMS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = set(sys.modules)
    yield tmp_path / f"{name}.py"
    for module in set(sys.modules) - before:
        if "programs" in module or str(tmp_path) in str(
            getattr(sys.modules[module], "__file__", "")
        ):
            del sys.modules[module]


def explore(here: Path, function: str, *arguments: str) -> Result:
    target = f"{here.stem}:{function}"
    return CliRunner(env={"COLUMNS": "200"}).invoke(app, ["explore", target, *arguments])


def as_json(here: Path, function: str, *arguments: str) -> dict[str, Any]:
    output: dict[str, Any] = json.loads(explore(here, function, *arguments, "--json").stdout)
    return output


# --- found -----------------------------------------------------------------------------------


def test_a_counterexample_is_printed_in_full_with_status_one(here: Path) -> None:
    result = explore(here, "race")
    assert result.exit_code == 1, result.output
    parts = [
        r"HF441  the program fails under this schedule\n",
        r"AssertionError\n",
        rf"{here.name}:11 in race\n",
        r"what differs from a normal run:\n  1\. .*took 10 ms before it started a timer",
        r"has to be 10 ms late\n",
        r"╭─ race",
        r"✗ .*fails",
        r"found in 2 schedules \(.* schedules a second\)\n",
        rf"replay: handfast explore {here.stem}:race --replay hf1\.\S+\n",
        r"handfast explain HF441\n",
    ]
    assert re.search(".*".join(parts), result.stdout, re.DOTALL), result.stdout
    assert (result.stderr, "program speaks" in result.stdout) == ("", False)


def test_the_replay_line_shows_the_same_and_lets_the_program_speak(here: Path) -> None:
    token = as_json(here, "race")["counterexample"]["token"]
    again = explore(here, "race", "--replay", token)
    assert again.exit_code == 1
    assert again.stdout.startswith(
        "the program speaks\nHF441  the program fails under this schedule"
    )
    assert f"--replay {token}" in again.stdout
    replayed = explore(here, "race", "--replay", token, "--json")
    output = json.loads(replayed.stdout)
    assert (output["counterexample"]["token"], output["schedules"]) == (token, None)
    assert replayed.stderr == "the program speaks\n"


def test_json_is_one_object_with_all_keys_whatever_was_found(here: Path) -> None:
    found = as_json(here, "torn", "--cancel")
    fine = as_json(here, "fine", "--cancel=double", "--schedules", "50")
    replayed = as_json(here, "torn", "--replay", found["counterexample"]["token"])
    assert found.keys() == fine.keys() == replayed.keys()
    assert fine["counterexample"] is None
    assert (fine["settings"]["cancel"], found["settings"]["cancel"]) == ("double", "tasks")
    assert found["coverage"]["points_seen"] >= found["coverage"]["points_cancelled"] > 0
    case = found["counterexample"]
    assert (case["code"], case["name"]) == ("HF441", "fails-under-schedule")
    assert case["departures"] == [f"work is cancelled while it waits at 17 ({here.name}:17)"]
    assert case["replay"].endswith(f"--replay {case['token']}")
    assert replayed["counterexample"] == case


def test_what_a_module_prints_when_imported_is_no_part_of_the_json(here: Path) -> None:
    Path("loud.py").write_text("print('imported')\nasync def main(): ...\n")
    result = CliRunner().invoke(app, ["explore", "loud.py:main", "--json"])
    assert json.loads(result.stdout)["counterexample"] is None
    assert result.stderr == "imported\n"


def test_the_same_is_found_by_several_workers(here: Path) -> None:
    alone = as_json(here, "race")["counterexample"]
    assert as_json(here, "race", "--workers", "2")["counterexample"] == alone


def test_the_page_is_written_to_the_given_file(here: Path) -> None:
    result = explore(here, "race", "--html", "pages/race.html")
    assert result.stdout.endswith("page: pages/race.html\n")
    assert "--replay hf1." in Path("pages/race.html").read_text(encoding="utf-8")
    assert explore(here, "fine", "--html", "pages/fine.html").exit_code == 0
    assert not Path("pages/fine.html").exists()
    explore(here, "race", "--html", "quiet.html", "--json")
    assert Path("quiet.html").exists()


def test_a_program_that_does_not_do_the_same_twice_is_still_reported(here: Path) -> None:
    result = explore(here, "changing")
    assert result.exit_code == 1
    assert "HF443  the program fails in a normal run\n  ValueError: only at first" in result.stdout
    Path("changing").unlink()
    assert as_json(here, "changing")["counterexample"]["departures"] == []


def test_a_finding_of_another_model_is_labelled(here: Path) -> None:
    result = explore(here, "slow_answer", "--model", "latency")
    assert result.exit_code == 1
    assert result.stdout.startswith("model latency\nHF441  ")
    assert (
        as_json(here, "slow_answer", "--model", "latency")["counterexample"]["model"] == "latency"
    )
    assert explore(here, "slow_answer").exit_code == 0


def test_real_io_needs_its_option_and_is_not_replayable(here: Path) -> None:
    result = explore(here, "heard", "--real-io", "--schedules", "2")
    assert result.exit_code == 1
    assert "no token: real I/O cannot be replayed" in result.stdout
    assert "other timings of real I/O were not tested" in result.stdout
    assert as_json(here, "heard", "--real-io", "--schedules", "2")["replayable"] is False


# --- not found -------------------------------------------------------------------------------


def test_nothing_found_has_a_size_and_status_zero(here: Path) -> None:
    result = explore(here, "fine", "--schedules", "30", "--cancel", "--ignore", "hf102")
    assert (result.exit_code, result.stderr) == (0, "")
    size = r"nothing found\nall [\d,]+ schedules; cancelled at \d+ of \d+ points \(.+\)\n"
    assert re.match(size, result.stdout), result.stdout
    assert "ignored: HF102" in result.stdout
    assert "cancellation was not tested; add --cancel\n" in explore(here, "fine").stdout
    assert "creates no task of its own" in explore(here, "instance", "--cancel").stdout
    bounded = explore(here, "many", "--schedules", "100").stdout
    assert re.search(r"\nall \d+ schedules with at most 1 change, plus \d+ random ones", bounded), (
        bounded
    )


def test_an_ignored_kind_does_not_count(here: Path) -> None:
    assert explore(here, "stuck").exit_code == 1
    assert explore(here, "stuck", "--ignore", "HF431").exit_code == 0


def test_cancel_has_a_mode_or_no_value(here: Path) -> None:
    def settings(*arguments: str) -> object:
        output = CliRunner().invoke(app, ["explore", "--json", *arguments])
        return json.loads(output.stdout)["settings"]["cancel"]

    target = f"{here.stem}:fine"
    assert settings("--cancel", target) == "tasks"
    assert settings("--cancel", "main", target) == "main"
    assert settings(target, "--cancel=double", "--schedules=9") == "double"
    assert settings(target) == "no"


def test_seconds_end_it_and_numbers_go_where_they_belong(here: Path) -> None:
    output = as_json(here, "fine", "--seconds", "0.05", "--stall", "0.2", "--fault", "reset")
    assert output["settings"]["stall"] == 0.2
    assert output["settings"]["faults"] == ["reset"]
    output = as_json(here, "fine", "--model", "latency", "--strategy", "dfs", "--seed", "3")
    assert output["settings"]["model"] == "latency"


# --- wrong use -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "arguments", "said"),
    [
        ("rase", (), "has no 'rase'. Did you mean race?"),
        ("instance.insid", (), "has no 'instance.insid'. Did you mean inside?"),
        ("sync", (), "is not an async function"),
        ("yields", (), "is not an async function"),
        ("needs", (), "needs x, y: write an async function without arguments"),
        (
            "fine",
            ("--strategy", "dsf"),
            "--strategy 'dsf': use one of dfs, portfolio, random",
        ),
        ("fine", ("--model", "strickt"), "Did you mean strict?"),
        ("fine", ("--fault", "rest"), "Did you mean reset?"),
        ("fine", ("--cancel=twice",), "--cancel 'twice': use one of true, double, main."),
        ("fine", ("--ignore", "HF1O1"), "no bug kind is called 'HF1O1'. Did you mean"),
        ("fine", ("--ignore", "deadlok"), "Did you mean HF431 deadlock?"),
        ("fine", ("--ignore", "zzzzzz"), "called 'zzzzzz'. `handfast explain` lists all."),
        ("fine", ("--schedules", "0"), "schedules=0: must be more than 0"),
        ("fine", ("--stall", "-1"), "stall=-1.0: lateness is 0 or more seconds"),
        ("fine", ("--workers", "no"), "Invalid value for '--workers'"),
        ("fine", ("--replay", "xx"), "'xx' is not a token"),
        ("exits", (), "the program calls sys.exit(0): let it return, or raise an error"),
        ("reader", (), "loop.add_reader is not controlled: "),
        ("reader", ("--workers", "2"), "allow it with real_io=True (--real-io)"),
    ],
)
def test_wrong_use_is_an_error_on_stderr_with_status_two(
    here: Path, function: str, arguments: tuple[str, ...], said: str
) -> None:
    result = explore(here, function, *arguments)
    assert (result.exit_code, result.stdout) == (2, ""), result.output
    assert said in result.stderr
    assert "Traceback" not in result.stderr


def test_a_token_of_another_program_is_a_divergence(here: Path) -> None:
    token = as_json(here, "race")["counterexample"]["token"]
    result = explore(here, "fine", "--replay", token)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "the token does not fit: " in result.stderr


def test_the_line_of_what_is_not_controlled_is_named(here: Path) -> None:
    assert f"called at {here}:29 in reader" in explore(here, "reader").stderr


def test_workers_that_cannot_get_the_program_are_refused(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("threading.active_count", lambda: 2)
    Path("other.py").write_text("async def outer(): ...\nouter.__qualname__ = 'elsewhere'\n")
    result = CliRunner().invoke(app, ["explore", "other.py:outer", "--workers", "2"])
    assert result.exit_code == 2
    assert "cannot be run by several workers here" in result.stderr


def test_a_missing_cluster_library_is_named(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    result = explore(here, "fine", "--cluster", "tcp://127.0.0.1:1")
    assert result.exit_code == 2
    assert "pip install 'handfast[cluster]'" in result.stderr


def test_an_interrupt_after_something_was_found_shows_it(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("handfast._explore.campaign.shrink", interrupted)
    result = explore(here, "race")
    assert result.exit_code == 1
    assert result.stdout.startswith("HF441  the program fails under this schedule")
    assert "interrupted: the remaining schedules were not run" in result.stdout


# --- the bar ---------------------------------------------------------------------------------


def bar_of(terminal: bool, *progress: Progress) -> str:
    from rich.console import Console

    nowhere = io.StringIO()
    console = Console(force_terminal=terminal, width=120, record=True, file=nowhere)
    bar = handfast.cli.explore._Bar(console)
    with bar:
        for each in progress:
            bar(each)

    return console.export_text()


def test_the_bar_shows_the_rate_and_the_finding() -> None:
    late = Progress(1500, 10_000, 3.0, None)
    assert "1,500 schedules" in bar_of(True, late)
    assert "500 a second nothing found yet" in bar_of(True, late)
    found = Progress(1600, None, 3.2, "deadlock")
    assert "found, now shrinking: deadlock" in bar_of(True, late, found)


def test_what_the_program_prints_stays_out_of_the_bar() -> None:
    from rich.console import Console

    console = Console(force_terminal=True, width=120, record=True, file=io.StringIO())
    bar = handfast.cli.explore._Bar(console)
    with bar:
        bar(Progress(1500, 10_000, 3.0, None))
        print("the program speaks")  # noqa: T201 - as it would
    assert "the program speaks" not in console.export_text()


def test_no_bar_for_short_runs_or_without_a_terminal() -> None:
    assert bar_of(True, Progress(64, 1000, 0.4, None)) == ""
    assert bar_of(False, Progress(64, 1000, 4.0, None)) == ""


# --- the real command ------------------------------------------------------------------------


def test_the_real_command_leaves_with_the_right_status(here: Path) -> None:
    running = [
        start("explore", here, f"{here.stem}:fine"),
        start("explore", here, f"{here.name}:race", "--workers", "2"),
        start("explore", here, f"{here.stem}:sync"),
    ]
    results = [process.communicate(timeout=60) for process in running]
    assert [process.returncode for process in running] == [0, 1, 2], results
    assert [bool(errors) for _, errors in results] == [False, False, True]


@pytest.mark.parametrize("workers", ["1", "2"])
def test_ctrl_c_prints_what_is_known_and_leaves_no_process(here: Path, workers: str) -> None:
    arguments = (f"{here.stem}:long", "--seconds", "600", "--workers", workers)
    output = interrupted("explore", here, *arguments, after=100)
    assert (output.status, output.errors) == (130, "")
    assert re.match(r"nothing found\nall [\d,]+ schedules ", output.printed)
    assert "interrupted: the remaining schedules were not run" in output.printed
    assert output.orphans == []
