"""The planted bugs need another order than the plain one, and the table shows what was found."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.comparisons.search import NEVER, PLANTED, Bug, main, table
from benchmarks.fresh_process import run_python


@pytest.mark.parametrize("bug", PLANTED, ids=lambda bug: bug.name)
def test_a_planted_bug_is_not_met_in_the_plain_order(bug: Bug) -> None:
    assert bug.needed("random", 0, 1) == NEVER


def test_what_a_search_needs_depends_on_the_seed_alone() -> None:
    bug = PLANTED[0]
    assert bug.needed("pct", 3, 200) == bug.needed("pct", 3, 200) < NEVER


def test_a_cell_has_the_share_of_the_seeds_and_the_median_if_half_of_them_find_it() -> None:
    needed = {
        ("x", "a"): [1.0, 3.0, NEVER],
        ("x", "b"): [1.0, NEVER, NEVER],
        ("y", "a"): [2.0],
    }
    assert table(needed).splitlines() == [
        "| bug | a | b |",
        "|---|---|---|",
        "| x | 67%, 3 | 33% |",
        "| y | 100%, 2 |  |",
        "| all | 83.3% | 33.3% |",
    ]


def test_the_command_has_a_row_for_each_bug(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--seeds", "1", "--schedules", "1"])
    rows = [line.split("|")[1].strip() for line in capsys.readouterr().out.splitlines()]
    assert rows == ["bug", "---", *(bug.name for bug in PLANTED), "all"]


def test_a_bug_of_wild_is_searched_in_a_process_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "at_once.py"
    file.write_text('OPTIONS = {}\nasync def program():\n    raise LookupError("planted")\n')
    command = ("-m", "benchmarks.comparisons.search", "--only", str(file), "random")
    output = run_python(*command, "--seeds", "2", "--schedules", "5").stdout
    assert json.loads(output.removeprefix("NEEDED ")) == [1, 1]
