"""How much was tried: so that "none found" has a size."""

from __future__ import annotations

from dataclasses import dataclass, field

from holdfast.explore.plan import Record

__all__ = ["Coverage"]


@dataclass(slots=True)
class Coverage:
    """Distinct schedules, distinct pairs of departures, and cancels out of those possible.

    `points_seen` counts each (task, instant) of the plain run at which a task could be cancelled;
    `points_cancelled` how many of them were, in runs without another departure before them.
    """

    points_seen: int = 0
    choice_points: int = 0
    _schedules: set[int] = field(default_factory=set, repr=False)
    _pairs: set[tuple[object, object]] = field(default_factory=set, repr=False)
    _cancelled: set[tuple[int, int]] = field(default_factory=set, repr=False)

    @property
    def schedules(self) -> int:
        return len(self._schedules)

    @property
    def pairs(self) -> int:
        return len(self._pairs)

    @property
    def points_cancelled(self) -> int:
        return len(self._cancelled)

    def add(self, record: Record) -> None:
        """Count one run."""
        departed = record.departed
        cancels = record.plan.cancels[: record.cancelled]
        self._schedules.add(hash((departed, cancels)))
        path = [*departed, *((c.instant, c.task, "cancel") for c in cancels)]
        self._pairs.update(zip([None, *path], path, strict=False))
        if not departed and not cancels and record.plan.observe:
            self.points_seen = sum(s.last - s.first + 1 for s in record.segments)
            self.choice_points = len(record.points)
        if cancels and not departed:
            self._cancelled.add((cancels[0].instant, cancels[0].task))

    def __str__(self) -> str:
        said = f"{self.schedules:,} distinct schedules, {self.pairs:,} pairs of departures"
        if self.points_seen:
            said += f", cancelled at {self.points_cancelled:,} of {self.points_seen:,} points"
        return said
