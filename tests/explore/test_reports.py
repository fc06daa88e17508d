"""The five bug reports: each program breaks as reported, and as its report would mend it; on the
runtime it does not, whatever is tried. (`nox -s right` tries a hundred times as much.)
"""

from __future__ import annotations

import os
from types import ModuleType

import pytest

from holdfast.explore import explore
from tests.explore.reports import bridge, captures, drain, phases, prefetch

SYSTEMS = pytest.mark.parametrize(
    "system",
    [captures, drain, bridge, phases, prefetch],
    ids=lambda module: module.__name__.rpartition(".")[2],
)
# How many schedules of the right programs are tried.
SCHEDULES = int(os.environ.get("HOLDFAST_RIGHT_SCHEDULES", "300"))


@SYSTEMS
@pytest.mark.parametrize("version", ["as_reported", "as_the_report_would_fix_it"])
def test_a_system_breaks_as_reported_and_as_its_report_would_fix_it(
    system: ModuleType, version: str
) -> None:
    """S0.2, S0.3, S1.2, S1.7, S2.5, S3.1, S3.4, S4.1, S4.3: within a thousand schedules."""
    counterexample = explore(getattr(system, version), cancel=True).counterexample
    assert counterexample is not None
    assert counterexample.replay().code == counterexample.code


@SYSTEMS
@pytest.mark.parametrize("cancel", [False, True, "main"])
def test_a_system_on_the_runtime_survives(system: ModuleType, cancel: bool) -> None:
    exploration = explore(system.as_it_should_be, cancel=cancel, schedules=SCHEDULES)
    assert exploration.counterexample is None, str(exploration.counterexample)
