"""Every wrong example shows its symptom to the same probe that finds nothing in the right one."""

from __future__ import annotations

import pytest

from handfast.catalogue import KINDS, BugKind
from tests.catalogue.probe import PROBES, examine
from tests.catalogue.probes import (  # noqa: F401  (each registers its probes)
    cancellation,
    errors,
    ownership,
    resources,
    slots,
    teardown,
    threads,
)

pytestmark = pytest.mark.usefixtures("small_heap")

each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind.code}-{kind.name}")


def test_every_kind_has_a_probe_and_every_probe_a_kind() -> None:
    assert set(PROBES) == {kind.code for kind in KINDS}


@each_kind
def test_wrong_example_shows_the_symptom(kind: BugKind) -> None:
    evidence = examine(kind.code, kind.wrong, f"{kind.code} wrong")
    assert evidence.symptom


@each_kind
def test_right_example_shows_none_and_leaves_nothing(kind: BugKind) -> None:
    evidence = examine(kind.code, kind.right, f"{kind.code} right")
    assert evidence.symptom is None
    assert evidence.complaints == []
    assert evidence.left == []
