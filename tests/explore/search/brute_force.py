"""Every schedule with at most so many departures, by trying every combination there could be.

Nothing is known here of the order of departures in time: a plan that asks for something which does
not happen is simply another schedule, identified by what its record says that it did.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

from handfast._explore.search.plan import Cancel, Plan, Record, Settings
from handfast._explore.search.run import run
from tests.explore.search.recorded_search import Program

# What a run did: its answers other than 0, and the cancels that met somebody.
Schedule = tuple[tuple[tuple[int, int], ...], tuple[Cancel, ...]]


def schedule(record: Record) -> Schedule:
    return record.departed, record.plan.cancels[: record.cancelled]


def all_schedules(
    program: Program, settings: Settings, *, bound: int, cancels: int = 0
) -> dict[Schedule, Record]:
    """Every schedule up to the bound. Meant for a handful of choice points."""
    found: dict[Schedule, Record] = {}
    for plan in _plans(program, settings, bound, cancels):
        record = run(program, plan, settings)
        if record.cancelled == len(plan.cancels) and record.departed == plan.choices:
            found[schedule(record)] = record
    return found


def _plans(program: Program, settings: Settings, bound: int, cancels: int) -> Iterator[Plan]:
    points, most, instants, tasks = _sizes(program, settings, bound, cancels)
    answers = [(at, value) for at in range(points) for value in range(1, most)]
    strikes = [Cancel(at, task) for at in range(instants) for task in tasks]
    for count in range(min(cancels, bound) + 1):
        for blows in itertools.combinations(strikes, count):
            if len({blow.task for blow in blows}) <= 1 and _apart(blows):
                for departing in range(bound - count + 1):
                    for choices in itertools.combinations(answers, departing):
                        if len({at for at, _ in choices}) == departing:
                            yield Plan(choices, blows)


def _apart(blows: tuple[Cancel, ...]) -> bool:
    return len({blow.instant for blow in blows}) == len(blows)


def _sizes(
    program: Program, settings: Settings, bound: int, cancels: int
) -> tuple[int, int, int, list[int]]:
    """How many points, answers, instants there can be, and whom one may cancel: from the plain run and
    some random ones, and some more."""
    plans = [Plan(observe=True)]
    plans += [Plan(tail="random", seed=seed, observe=True) for seed in range(30)]
    records = [run(program, replace(plan, observe=True), settings) for plan in plans]
    # A cancel can bring more of them.
    points = max(len(record.points) for record in records) + bound * (1 + 2 * bool(cancels))
    most = max((point.options for r in records for point in r.points), default=1) + 1
    instants = max(record.instants for record in records) + bound
    tasks = sorted({segment.task for record in records for segment in record.segments})
    return points, most, instants, tasks
