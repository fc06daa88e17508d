"""Every guarantee that the docs list by number is quoted by a test."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_numbered_guarantee_is_quoted_by_a_test() -> None:
    numbers = re.findall(r"^\| (S\d\.\d) \|", (ROOT / "docs/guarantees.md").read_text(), re.M)
    assert len(numbers) == 38
    tests = "".join(
        path.read_text() for path in (ROOT / "tests").rglob("test_*.py") if path != Path(__file__)
    )
    assert [number for number in numbers if number not in tests] == []
