"""Make a failing schedule small: the fewest departures from the plain order, then the least
lateness, with the same verdict all the while.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from holdfast.explore.plan import Plan, Record
from holdfast.explore.strategies.branching import Branching
from holdfast.explore.verdicts import Verdict

__all__ = ["settled", "shrink"]

# A run of the program under a plan.
Try = Callable[[Plan], Record]
# The search for a smaller one may take so many steps in all: about a second.
_STEPS = 1_000_000


def settled(record: Record) -> Plan:
    """The plan that says outright what the run did, whoever decided it."""
    return Plan(record.departed, record.plan.cancels[: record.cancelled])


def shrink(failing: Record, attempt: Try, *, tries: int = 2_000) -> Record:
    """The smallest failing run that about `tries` attempts lead to: first from this one, by leaving
    out what is not needed; then among all that depart as little from the plain order."""
    verdict = failing.verdict
    assert verdict is not None
    hunt = _Hunt(failing, attempt, verdict, tries)
    hunt.leave_out()
    hunt.tries = min(hunt.tries, _STEPS // max(1, hunt.best.steps))
    hunt.search()
    return hunt.best


class _Hunt:
    """The smallest failing run so far, and how many attempts are left."""

    def __init__(self, best: Record, attempt: Try, verdict: Verdict, tries: int) -> None:
        self.best = best
        self.tries = tries
        self._attempt = attempt
        self._verdict = verdict

    def leave_out(self) -> None:
        while any(self._improves(plan)[0] for plan in self._within(_smaller(self.best))):
            pass

    def search(self) -> None:
        """Level by level, up to that of the best."""
        branching = Branching(len(settled(self.best).cancels))
        level = [Plan()]
        for departures in range(settled(self.best).departures + 1):
            following: list[Plan] = []
            for plan in self._within(level):
                if _size(self.best)[:2] <= (departures, 0.0):
                    return  # there can be nothing smaller
                looks = departures < settled(self.best).departures
                _, record = self._improves(replace(plan, observe=looks))
                if looks and len(following) < self.tries:
                    following += (plan for _, plan in branching.branches(record, 0))
            level = following

    def _within(self, plans: Iterable[Plan]) -> Iterator[Plan]:
        for plan in plans:
            if self.tries <= 0:
                return
            self.tries -= 1
            yield plan

    def _improves(self, plan: Plan) -> tuple[bool, Record]:
        record = self._attempt(plan)
        smaller = self._verdict.same_bug(record.verdict) and _size(record) < _size(self.best)
        if smaller:
            self.best = record
        return smaller, record


def _size(record: Record) -> tuple[int, float, int, int]:
    plan = settled(record)
    return (
        plan.departures,
        round(record.stall, 9),
        sum(value for _, value in plan.choices),
        record.steps,
    )


def _smaller(record: Record) -> Iterator[Plan]:
    """Plans to try: half of the departures at once, each one alone, then milder answers."""
    plan = settled(record)
    chunk = len(plan.choices) // 2
    while chunk:
        for start in range(0, len(plan.choices), chunk):
            kept = plan.choices[:start] + plan.choices[start + chunk :]
            yield replace(plan, choices=kept)
        chunk //= 2
    for at in range(len(plan.cancels)):
        yield replace(plan, cancels=plan.cancels[:at] + plan.cancels[at + 1 :])
    for at, (ordinal, value) in enumerate(plan.choices):
        for milder in range(1, min(value, 16)):
            choices = (*plan.choices[:at], (ordinal, milder), *plan.choices[at + 1 :])
            yield replace(plan, choices=choices)
