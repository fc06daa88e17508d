"""Make a failing schedule small, with the same verdict all the while.

Smaller means, in this order: fewer departures from the plain order, less lateness, answers closer
to 0, fewer steps. Departures come first, because each is something that a reader has to imagine;
lateness second, because it says how unlikely the schedule is on a real machine.

Two passes. The first starts from the failing schedule and leaves out half of the departures, then
single ones, then takes milder answers; it is quick, and stops at a local minimum. The second goes
through all schedules by their number of departures, up to that of the best one, so that the result
is the smallest of all unless the attempts run out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from handfast._explore.search.plan import Cancel, Plan, Record
from handfast._explore.search.strategies.branching import Branching
from handfast._explore.verdict.verdict import Verdict

# A run of the program under a plan.
Try = Callable[[Plan], Record]
# The search for a smaller one may take so many steps in all: about a second.
_STEPS = 1_000_000


def shrink(
    failing: Record, attempt: Try, *, tries: int = 2_000, known: Iterable[Record] = ()
) -> Record:
    """The smallest failing run that about `tries` attempts lead to.

    Runs that are `known` already are not repeated.
    """
    verdict = failing.verdict
    assert verdict is not None
    shrinker = _Shrinker(failing, attempt, verdict, tries, known)
    shrinker.leave_out()
    shrinker.tries = min(shrinker.tries, _STEPS // max(1, shrinker.best.steps))
    shrinker.search()
    return shrinker.best


class _Shrinker:
    """The smallest failing run so far, and how many attempts are left."""

    def __init__(
        self, best: Record, attempt: Try, verdict: Verdict, tries: int, known: Iterable[Record]
    ) -> None:
        self.best = best
        self.tries = tries
        self._attempt = attempt
        self._verdict = verdict
        # The runs so far by their departures: the two passes try some schedules twice.
        self._known: dict[tuple[tuple[tuple[int, int], ...], tuple[Cancel, ...]], Record] = {}
        for record in (best, *known):
            self._remember(record.settled, record)

    def leave_out(self) -> None:
        while any(self._improves(plan)[0] for plan in self._within(_smaller(self.best))):
            pass

    def search(self) -> None:
        """Level by level, up to that of the best."""
        branching = Branching(len(self.best.settled.cancels))
        level = [Plan()]
        for departures in range(self.best.settled.departures + 1):
            following: list[Plan] = []
            for plan in self._within(level):
                if _size(self.best)[:2] <= (departures, 0.0):
                    return  # there can be nothing smaller
                looks = departures < self.best.settled.departures
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
        record = self._known.get((plan.choices, plan.cancels))
        # A run that was not observed has no branches.
        if record is None or (plan.observe and not record.plan.observe):
            record = self._attempt(plan)
            self._remember(plan, record)
        smaller = self._verdict.same_bug(record.verdict) and _size(record) < _size(self.best)
        if smaller:
            self.best = record
        return smaller, record

    def _remember(self, plan: Plan, record: Record) -> None:
        if record.verdict is not None:
            # An exception would keep the frames of its run alive.
            record = replace(record, verdict=replace(record.verdict, error=None))
        self._known[plan.choices, plan.cancels] = record


def _size(record: Record) -> tuple[int, float, int, int]:
    plan = record.settled
    return (
        plan.departures,
        round(record.stall, 9),
        sum(value for _, value in plan.choices),
        record.steps,
    )


def _smaller(record: Record) -> Iterator[Plan]:
    """Plans to try: half of the departures at once, each one alone, then milder answers."""
    plan = record.settled
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
