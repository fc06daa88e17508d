"""Each kind of bug has a harm, and each harm has a description."""

from __future__ import annotations

import pytest

from handfast.catalogue import HARMS, KINDS, BugKind, kind


@pytest.mark.parametrize("entry", KINDS, ids=lambda entry: entry.code)
def test_each_kind_has_a_harm_that_is_described(entry: BugKind) -> None:
    assert HARMS[entry.harm]


@pytest.mark.parametrize(
    ("code", "harm"),
    [
        ("HF101", "lost work"),
        ("HF111", "leak"),
        ("HF301", "corruption"),
        ("HF501", "hang"),
        ("HF721", "noise"),
    ],
)
def test_the_longest_prefix_of_a_code_decides(code: str, harm: str) -> None:
    assert kind(code).harm == harm


def test_a_code_of_another_program_is_a_leak() -> None:
    assert BugKind("X1").harm == "leak"
