"""Programs that are right, under each runner: nothing is reported, nothing fails, nothing warns."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.leaks.matrix.innocents import CORE, INNOCENTS, Innocent
from tests.leaks.matrix.suites import RUNNERS, House, Houses, Runner, file_text


def _can_run(runner: Runner, program: Innocent) -> bool:
    if runner.core and program.name not in CORE:
        return False
    if runner.house == "uvloop" and program.name == "eager_tasks":
        return False  # its create_task hands the factory an argument that 3.13.0 does not take
    if program.whole:
        return program.whole == runner.name
    if program.async_fixtures:
        return bool(runner.fixtures)
    return runner.arguments or not program.arguments


CASES = [
    (runner, program)
    for runner in RUNNERS.values()
    for program in INNOCENTS.values()
    if _can_run(runner, program)
]


def _text(runner: Runner, program: Innocent) -> str:
    if program.whole:
        return f"{program.head}{runner.fixtures}{program.source}"
    options = ""
    if "pytest_asyncio" in runner.fixtures:
        options = f'scope="{runner.scope}", loop_scope="{runner.scope}"'
    return file_text(
        runner, program.head, program.source.replace("OPTIONS", options), program.arguments
    )


@pytest.fixture(scope="module")
def houses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Houses]:
    root = tmp_path_factory.mktemp("innocents")
    built = {name: House(root / name, name) for name in {r.house for r in RUNNERS.values()}}
    for runner, program in CASES:
        built[runner.house].write(runner, program.name, _text(runner, program))
    with Houses(built.values()) as running:
        yield running


@pytest.mark.parametrize(
    ("runner", "program"), CASES, ids=[f"{runner.name}-{program.name}" for runner, program in CASES]
)
def test_nothing_is_said_of_a_program_that_is_right(
    houses: Houses, runner: Runner, program: Innocent
) -> None:
    for outcome in houses[runner.house].outcomes(runner, program.name):
        assert outcome.status in ("passed", "skipped"), outcome.text


@pytest.mark.parametrize("name", sorted({runner.house for runner in RUNNERS.values()}))
def test_the_suite_is_green_and_no_code_is_printed(houses: Houses, name: str) -> None:
    assert (houses[name].returncode, "HF" in houses[name].printed) == (0, False), houses[
        name
    ].printed
