"""Every guarantee that the docs list by number is quoted by a test."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


REPORTS = {0: 6, 1: 8, 2: 8, 3: 8, 4: 8}
NUMBERS = [
    *(f"S{report}.{line + 1}" for report, lines in REPORTS.items() for line in range(lines)),
    *(f"A{line + 1}" for line in range(25)),
]


def test_the_docs_list_every_guarantee_once() -> None:
    text = (ROOT / "docs/how-it-works/guarantees.md").read_text()
    assert re.findall(r"^\| (S\d\.\d|A\d+) \|", text, re.M) == NUMBERS


def test_every_numbered_guarantee_is_quoted_by_a_test() -> None:
    tests = "".join(
        path.read_text() for path in (ROOT / "tests").rglob("test_*.py") if path != Path(__file__)
    )
    quoted = set(re.findall(r"\b(?:S\d\.\d|A\d+)\b", tests))
    assert [number for number in NUMBERS if number not in quoted] == []
