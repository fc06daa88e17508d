"""Schedules of a small program, and the steps of a long one."""

from __future__ import annotations

from benchmarks.comparisons import explore

SCHEDULES = 300


class Explore:
    def time_schedules(self) -> None:
        explore.handfast(SCHEDULES)

    def time_steps(self) -> None:
        explore.one_run(explore.LONG)

    def time_steps_with_a_cancel(self) -> None:
        explore.one_run(explore.LONG, cancel=True)
