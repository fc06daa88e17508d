"""`handfast explain` shows a page of the catalogue, and suggests codes for a wrong one."""

import pytest
from typer.testing import CliRunner, Result

from handfast.catalogue import FAMILIES, KINDS, BugKind, kind
from handfast.cli.app import app

every_kind = pytest.mark.parametrize("entry", KINDS, ids=lambda entry: entry.code)


def explain(*arguments: str) -> Result:
    return CliRunner(env={"COLUMNS": "240"}).invoke(app, ["explain", *arguments])


def code_lines(source: str) -> list[str]:
    return [line.strip() for line in source.splitlines() if line.strip()]


@every_kind
def test_a_page_has_all_its_parts(entry: BugKind) -> None:
    result = explain(entry.code)
    assert result.exit_code == 0, result.output
    assert f"{entry.code} {entry.name}" in result.output
    wrong, right = result.output.index("─ wrong ─"), result.output.index("─ right ─")
    for line in code_lines(entry.wrong):
        assert line in result.output[wrong:right]
    for line in code_lines(entry.right):
        assert line in result.output[right:]
    assert ("When to ignore it: " in result.output[right:]) is bool(entry.when_to_ignore)


def test_the_list_has_every_code_with_its_name_in_order() -> None:
    result = explain()
    assert result.exit_code == 0
    lines = [line.split() for line in result.output.splitlines()]
    listed = [(line[0], line[1]) for line in lines if line and line[0][-1].isdigit()]
    assert listed == [(entry.code, entry.name) for entry in KINDS]


def test_the_list_is_in_families() -> None:
    output = explain().output
    places = [output.index(f"{prefix}xx") for prefix in FAMILIES]
    assert places == sorted(places)


def test_lower_case_codes_and_names_are_accepted() -> None:
    first = KINDS[0]
    page = explain(first.code).output
    assert explain(first.code.lower()).output == page
    assert explain(first.name).output == page


def test_an_unknown_code_is_an_error_with_similar_codes() -> None:
    result = explain("HF1O1")  # the letter O
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "'HF1O1'" in result.stderr
    assert f"  HF101  {kind('HF101').name}" in result.stderr


def test_an_unknown_word_without_similar_codes_refers_to_the_list() -> None:
    result = explain("zzzzzzzz")
    assert result.exit_code == 2
    assert "Did you mean" not in result.stderr
    assert "`handfast explain` lists all" in result.stderr


def test_the_codes_of_the_checker_itself_are_explained() -> None:
    assert "noqa-unused" in explain("hf001").output
    assert "file-not-checked" in explain("HF000").output


def test_the_argument_is_not_read_as_markup() -> None:
    assert "'[bold]x[/]'" in explain("[bold]x[/]").stderr
