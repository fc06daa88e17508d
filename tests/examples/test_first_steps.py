"""`python -m examples`: each first step does what its summary says, and the command shows it."""

import asyncio
import inspect
import re
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

import examples
import handfast
from examples import first_steps
from examples.__main__ import main, run_step, selected

STEP_OF = {step.program: step for step in first_steps.STEPS}

app = typer.Typer()
app.command()(main)


def output_of(program: Callable[[], Coroutine[Any, Any, str]]) -> str:
    return run_step(STEP_OF[program])


def test_a_failing_child_cancels_its_sibling_and_is_raised() -> None:
    expected = "parcel cancelled, then raised ValueError('card declined')"
    assert output_of(first_steps.failing_child) == expected


def test_straggler_is_named_with_its_origin_and_where_it_waits() -> None:
    seen = output_of(first_steps.straggler)
    assert "1 finished, 1 cancelled, 1 still running" in seen
    assert re.search(
        r"still running: stubborn .*created at .*first_steps\.py:\d+ in straggler, waiting at", seen
    )


def test_only_the_last_replacement_has_an_effect_and_no_entry_is_left() -> None:
    assert output_of(first_steps.replaced) == "edits by [999] of 1000, entries left: 0"


def test_submission_from_a_worker_runs_on_the_loops_thread() -> None:
    submitted, answered = output_of(first_steps.from_thread).split(", answered on ")
    assert answered == "MainThread"
    assert not submitted.endswith("MainThread")


def test_a_grandchild_that_has_the_pipe_open_is_ended_and_its_output_read() -> None:
    expected = r"exit 3, grandchild said b'here\n', then b'goodbye\n'"
    assert output_of(first_steps.grandchild) == expected


def test_an_unsupported_platform_is_reported_as_output() -> None:
    async def lacking() -> str:
        raise handfast.errors.UnsupportedPlatform("no process groups here")

    assert run_step(first_steps.Step("title", "summary", lacking)) == "no process groups here"


def test_every_program_fits_a_terminal_of_eighty_columns() -> None:
    result = CliRunner(env={"COLUMNS": "80"}).invoke(app, ["first_steps"])
    shown = "\n".join(line.strip("│ ") for line in result.output.splitlines())
    for step in first_steps.STEPS:
        for line in inspect.getsource(step.program).splitlines():
            assert line.strip() in shown


def test_the_explorer_shows_the_cancel_that_keeps_the_lock() -> None:
    seen = output_of(first_steps.cancelled_everywhere)
    assert "HF441" in seen
    assert re.search(r"cancel .*work is cancelled", seen)
    assert "assert not lock.locked()" in seen


def test_the_watch_names_the_task_that_the_block_leaks() -> None:
    seen = output_of(first_steps.leaked_task)
    assert seen.startswith("HF102 task-left-over: task 'poll' running")
    assert re.search(r"created at .*first_steps\.py:\d+ in leaked_task\n", seen)
    assert re.search(r"waiting at .*first_steps\.py:\d+ in leaked_task.<locals>.poll", seen)


def test_every_step_has_a_test_here() -> None:
    source = Path(__file__).read_text()
    assert [
        step.program.__name__
        for step in first_steps.STEPS
        if f"first_steps.{step.program.__name__}" not in source
    ] == []


@pytest.mark.parametrize("step", first_steps.STEPS, ids=lambda step: step.program.__name__)
def test_no_step_leaks_a_task(step: first_steps.Step) -> None:
    async def alone() -> set[asyncio.Task[object]]:
        before = asyncio.all_tasks()
        await step.program()
        return asyncio.all_tasks() - before

    assert asyncio.run(alone()) == set()


def test_the_command_shows_each_program_with_its_output() -> None:
    result = CliRunner(env={"COLUMNS": "160"}).invoke(app, ["first_steps"])
    assert result.exit_code == 0, result.output
    for number, step in enumerate(first_steps.STEPS, start=1):
        assert f"{number}. {step.title}" in result.output
        assert f"async def {step.program.__name__}() -> str:" in result.output
    for text in ("card declined", "1 still running", "entries left: 0", "answered on", "goodbye"):
        assert text in result.output


def test_an_example_is_shown_with_its_claims_and_every_section() -> None:
    result = CliRunner(env={"COLUMNS": "160"}).invoke(app, ["captures"])
    assert result.exit_code == 0, result.output
    assert "Report 1, captures: A task for each key" in result.output
    assert "It evicts the successor" in result.output
    for words in ("HF204", "are edited concurrently", "nothing found", "HF102", "No leaks."):
        assert words in result.output
    assert first_steps.STEPS[0].title not in result.output


def test_an_unknown_name_is_an_error_that_lists_the_names() -> None:
    result = CliRunner(env={"COLUMNS": "160"}).invoke(app, ["attic"])
    assert result.exit_code == 2
    assert "there is no example 'attic'" in result.output
    assert "and first_steps" in result.output


def test_without_a_name_all_examples_are_selected() -> None:
    assert selected("") == examples.all_examples()
    assert selected("first_steps") == ()
