"""The examples of the catalogue under the explorer: every wrong one breaks, no right one does."""

from __future__ import annotations

import os

import pytest

from handfast.catalogue import KINDS, BugKind
from handfast.explore import explore
from tests.catalogue import test_examples  # noqa: F401  (its imports register the probes)
from tests.catalogue.probe import PROBES, as_program

SCHEDULES = int(os.environ.get("HANDFAST_RIGHT_SCHEDULES", "100"))
EXPLORABLE = [
    pytest.param(kind, id=f"{kind.code}-{kind.name}")
    for kind in KINDS
    if as_program(kind.code, kind.right, "") is not None
]


def test_most_kinds_can_be_explored() -> None:
    assert len(EXPLORABLE) >= len(PROBES) * 2 / 3


@pytest.mark.filterwarnings("ignore:.*never awaited:RuntimeWarning")  # it is the bug of HF122
@pytest.mark.parametrize("kind", EXPLORABLE)
def test_a_wrong_example_breaks(kind: BugKind) -> None:
    program = as_program(kind.code, kind.wrong, f"{kind.code} wrong")
    assert program is not None
    assert explore(program, schedules=50).counterexample is not None


@pytest.mark.parametrize("kind", EXPLORABLE)
def test_a_right_example_does_not_break(kind: BugKind) -> None:
    program = as_program(kind.code, kind.right, f"{kind.code} right")
    assert program is not None
    exploration = explore(program, schedules=SCHEDULES)
    assert exploration.counterexample is None, str(exploration.counterexample)
