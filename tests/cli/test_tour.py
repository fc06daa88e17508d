"""The tour shows what is true: each stop really runs, and the map says which rooms are there."""

import asyncio
import inspect
import re
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import holdfast
from holdfast import casebook
from holdfast.cli import stops
from holdfast.cli.app import app
from holdfast.cli.tour import ROOMS, asked_for, is_built, visit

STOP_OF = {stop.program: stop for stop in stops.STOPS}


def seen_at(program: Callable[[], Coroutine[Any, Any, str]]) -> str:
    return visit(STOP_OF[program])


def test_failing_child_cancels_its_sibling_and_surfaces() -> None:
    expected = "parcel cancelled, then raised ValueError('card declined')"
    assert seen_at(stops.failing_child) == expected


def test_straggler_is_named_with_where_it_was_born_and_stands() -> None:
    seen = seen_at(stops.straggler)
    assert "1 finished, 1 cancelled, 1 still there" in seen
    assert re.search(
        r"still there: stubborn .*born at .*stops\.py:\d+ in straggler, stands at", seen
    )


def test_only_the_last_replacement_has_an_effect_and_no_entry_is_left() -> None:
    assert seen_at(stops.replaced) == "edits by [999] of 1000, entries left: 0"


def test_submission_from_a_worker_runs_on_the_loops_thread() -> None:
    asked, answered = seen_at(stops.from_thread).split(", answered on ")
    assert answered == "MainThread"
    assert not asked.endswith("MainThread")


def test_grandchild_that_holds_the_pipe_is_ended_and_heard() -> None:
    expected = r"exit 3, grandchild said b'here\n', then b'goodbye\n'"
    assert seen_at(stops.grandchild) == expected


def test_what_a_platform_lacks_is_said_and_the_tour_goes_on() -> None:
    async def lacking() -> str:
        raise holdfast.UnsupportedPlatform("no process groups here")

    assert visit(stops.Stop("title", "promise", lacking)) == "no process groups here"


def test_every_program_fits_a_terminal_of_eighty_columns() -> None:
    result = CliRunner(env={"COLUMNS": "80"}).invoke(app, ["tour", "rooms"])
    shown = "\n".join(line.strip("│ ") for line in result.output.splitlines())
    for stop in stops.STOPS:
        for line in inspect.getsource(stop.program).splitlines():
            assert line.strip() in shown


def test_the_explorer_shows_the_cancel_that_keeps_the_lock() -> None:
    seen = seen_at(stops.cancelled_everywhere)
    assert "HF441" in seen
    assert re.search(r"cancel .*work is cancelled", seen)
    assert "assert not lock.locked()" in seen


def test_the_watch_names_the_task_that_the_block_leaves_behind() -> None:
    seen = seen_at(stops.left_behind)
    assert seen.startswith("HF102 task-left-over: task 'poll' running")
    assert re.search(r"born .*stops\.py:\d+ in left_behind\n", seen)
    assert re.search(r"stands at .*stops\.py:\d+ in left_behind.<locals>.poll", seen)


def test_every_stop_has_a_test_here() -> None:
    source = Path(__file__).read_text()
    assert [
        stop.program.__name__
        for stop in stops.STOPS
        if f"stops.{stop.program.__name__}" not in source
    ] == []


@pytest.mark.parametrize("stop", stops.STOPS, ids=lambda stop: stop.program.__name__)
def test_no_stop_leaves_a_task_behind(stop: stops.Stop) -> None:
    async def alone() -> set[asyncio.Task[object]]:
        before = asyncio.all_tasks()
        await stop.program()
        return asyncio.all_tasks() - before

    assert asyncio.run(alone()) == set()


def test_the_tour_shows_each_program_with_what_it_saw_and_the_map() -> None:
    result = CliRunner(env={"COLUMNS": "160"}).invoke(app, ["tour", "rooms"])
    assert result.exit_code == 0, result.output
    for number, stop in enumerate(stops.STOPS, start=1):
        assert f"{number}. {stop.title}" in result.output
        assert f"async def {stop.program.__name__}() -> str:" in result.output
    for text in ("card declined", "1 still there", "entries left: 0", "answered on", "goodbye"):
        assert text in result.output
    for room in ROOMS:
        (line,) = [line for line in result.output.splitlines() if room.question in line]
        assert ("here" if is_built(room.name) else "to come") in line


def test_a_case_is_shown_with_its_claims_and_each_chapter_and_written_as_pages(
    tmp_path: Path,
) -> None:
    pages = tmp_path / "pages"
    runner = CliRunner(env={"COLUMNS": "160"})
    result = runner.invoke(app, ["tour", "captures", "--html", str(pages)])
    assert result.exit_code == 0, result.output
    assert "Case 000, captures: A task for each key" in result.output
    assert "It evicts the successor" in result.output
    for words in ("HF204", "are edited side by side", "nothing found", "HF102", "Nothing is left."):
        assert words in result.output
    assert "The house" not in result.output
    assert {each.name for each in pages.iterdir()} >= {"index.html", "captures.html"}
    timelines = [each for each in pages.iterdir() if each.name.startswith("captures-")]
    assert len(timelines) == 2


def test_an_unknown_stop_is_bad_use_and_names_those_that_there_are() -> None:
    result = CliRunner(env={"COLUMNS": "160"}).invoke(app, ["tour", "attic"])
    assert result.exit_code == 2
    assert "there is no case 'attic'" in result.output
    assert "and rooms" in result.output


def test_without_a_stop_all_cases_are_meant() -> None:
    assert asked_for("") == casebook.cases()
    assert asked_for("rooms") == ()


def test_a_room_is_built_when_it_can_be_imported() -> None:
    assert is_built("runtime")
    assert is_built("catalogue")
    assert not is_built("no_such_room")


def test_a_folder_without_a_module_is_a_building_site_and_no_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "orangery").mkdir()
    monkeypatch.setattr(holdfast, "__path__", [*holdfast.__path__, str(tmp_path)])
    assert not is_built("orangery")
    (tmp_path / "orangery" / "__init__.py").touch()
    assert is_built("orangery")
