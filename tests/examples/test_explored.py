"""The five examples: each breaks as reported and with its report's fix; the fixed version does not
break, whatever is tried. (`nox -s false_alarms` tries a hundred thousand schedules.)
"""

from __future__ import annotations

import os

import pytest

import examples
from examples.example import AS_PROPOSED, AS_REPORTED, FIXED, Example
from handfast.explore import explore

EXAMPLES = pytest.mark.parametrize(
    "example", examples.all_examples(), ids=lambda example: example.name
)
# How many schedules of the fixed programs are tried.
SCHEDULES = int(os.environ.get("HANDFAST_RIGHT_SCHEDULES", "300"))


@EXAMPLES
@pytest.mark.parametrize("version", [AS_REPORTED, AS_PROPOSED])
def test_an_example_breaks_as_reported_and_with_the_reports_fix(
    example: Example, version: str
) -> None:
    """S0.2, S0.3, S1.2, S1.7, S2.5, S3.1, S3.4, S4.1, S4.3: within a thousand schedules."""
    counterexample = explore(example.explored(version), cancel=True).counterexample
    assert counterexample is not None
    assert counterexample.replay().code == counterexample.code


@EXAMPLES
@pytest.mark.parametrize("cancel", [False, True, "main"])
def test_a_fixed_example_survives(example: Example, cancel: bool) -> None:
    exploration = explore(example.explored(FIXED), cancel=cancel, schedules=SCHEDULES)
    assert exploration.counterexample is None, str(exploration.counterexample)
