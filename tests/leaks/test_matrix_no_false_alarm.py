"""Programs that are right, under each runner: nothing is reported, nothing fails, nothing warns."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.leaks.matrix.correct_programs import CORE, INNOCENTS, Innocent
from tests.leaks.matrix.runners import RUNNERS, Runner, Suite, Suites, file_text


def _can_run(runner: Runner, program: Innocent) -> bool:
    if runner.core and program.name not in CORE:
        return False
    if runner.suite == "uvloop" and program.name == "eager_tasks":
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
def suites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suites]:
    root = tmp_path_factory.mktemp("innocents")
    built = {name: Suite(root / name, name) for name in {r.suite for r in RUNNERS.values()}}
    for runner, program in CASES:
        built[runner.suite].write(runner, program.name, _text(runner, program))
    with Suites(built.values()) as running:
        yield running


@pytest.mark.parametrize(
    ("runner", "program"), CASES, ids=[f"{runner.name}-{program.name}" for runner, program in CASES]
)
def test_a_correct_program_has_no_leaks(suites: Suites, runner: Runner, program: Innocent) -> None:
    for outcome in suites[runner.suite].outcomes(runner, program.name):
        assert outcome.status in ("passed", "skipped"), outcome.text


@pytest.mark.parametrize("name", sorted({runner.suite for runner in RUNNERS.values()}))
def test_the_suite_is_green_and_no_code_is_printed(suites: Suites, name: str) -> None:
    assert (suites[name].returncode, "HF" in suites[name].printed) == (0, False), suites[
        name
    ].printed
