"""Tries the commands that show a leak again: a command that does not show it is not printed.

A leak may need the tests before it, or a fixture that several tests share.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import replace

from handfast._audit.observation import Observation, Place, relative
from handfast._audit.suite.runner import SuiteResult, SuiteRunner
from handfast._leaks.leak import Leak

WHOLE_SUITE = "pytest --handfast"
# As many as the terminal shows.
_MOST = 10


def tried(
    found: list[Observation], runner: SuiteRunner, seconds: float, costs: Mapping[str, float]
) -> Iterator[Observation]:
    """The leaks, with the command for the whole suite where one test alone does not show it.

    `costs` are the seconds that a run of one test will take: a test for which there is no time is
    not tried, and the whole suite has shown its leak already.
    """
    ends = time.monotonic() + seconds
    alone: dict[str, set[tuple[str, Place | None]]] = {}
    for each in found[:_MOST]:
        test = each.tests[0] if each.tests else ""
        left = ends - time.monotonic()
        if test and test not in alone and left > costs.get(test, 0.0):
            result = runner.run(["--handfast=report", test], left, left)
            if result.interrupted or result.timed_out or result.hung_test:
                break  # nothing is known about this test, and there is no time for others
            alone[test] = {(leak.code, place_of(leak, runner)) for leak in leaks_of(result)}
    for each in found:
        test = each.tests[0] if each.tests else ""
        is_shown = (each.code, each.place) in alone.get(test, ())
        yield each if is_shown else replace(each, command=WHOLE_SUITE)


def leaks_of(result: SuiteResult) -> Iterator[Leak]:
    """The leaks of a run."""
    return (Leak.from_data(leak) for line in result.of("report") for leak in line["leaks"])


def place_of(leak: Leak, runner: SuiteRunner) -> Place | None:
    """The line that created it."""
    created = leak.created_at
    root = runner.project.root
    return Place(relative(created.filename, root), created.lineno) if created else None
