"""What is to be run, and what a run has seen: plain data that can go to another process and back.

A plan is a list of departures from the plain order. Two kinds exist: an answer other than 0 at a
choice point, and a cancel at an instant. Nothing here knows asyncio.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from holdfast.explore.verdicts import Verdict

__all__ = [
    "Cancel",
    "Cancelling",
    "Model",
    "Plan",
    "Point",
    "Record",
    "Segment",
    "Settings",
    "Tail",
]

Model = Literal["strict", "latency", "wild"]
Cancelling = Literal["no", "tasks", "double", "main"]
# Who answers where the plan says nothing.
Tail = Literal["plain", "random", "pct", "pos"]


@dataclass(frozen=True, slots=True)
class Settings:
    """What fixes the set of choices: two runs with the same settings and plan are the same run."""

    model: Model = "strict"
    cancel: Cancelling = "no"
    stall: float = 0.1
    faults: tuple[str, ...] = ()
    real_io: bool = False
    step_limit: int = 500_000
    # The timers that the plain run leaves armed, in words; None while that is not known.
    usual: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, order=True)
class Cancel:
    """Cancel the task with this number (in the order of creation) at this instant."""

    instant: int
    task: int


@dataclass(frozen=True, slots=True)
class Plan:
    """One schedule: answers by the ordinal of their choice point, and cancels."""

    choices: tuple[tuple[int, int], ...] = ()
    cancels: tuple[Cancel, ...] = ()
    tail: Tail = "plain"
    seed: int = 0
    # Only a run from which others branch has to say what it saw; the rest is faster without.
    observe: bool = False
    # How many choice points the plain run has met, for a decider that has to know.
    length: int = 0
    # Whether the run says in which state it was at each choice point.
    states: bool = False

    @property
    def departures(self) -> int:
        return len(self.choices) + len(self.cancels)


@dataclass(frozen=True, slots=True)
class Point:
    """A choice that a run was asked for: its kind, how many answers there were, and when."""

    kind: str
    options: int
    instant: int


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of instants in which a task that may be cancelled stands still in one state."""

    task: int
    first: int
    last: int
    # Where it stands and whether what it waits for is done already: equal for equal situations.
    state: int


@dataclass(slots=True)
class Record:
    """What a run did and what came of it."""

    plan: Plan
    verdict: Verdict | None = None
    # Every answer given, in order; the departures are those that are not 0.
    taken: list[int] = field(default_factory=list)
    points: list[Point] = field(default_factory=list)
    # The state at each point, if the plan asks for it: equal numbers, equal futures. None: not known.
    states: list[int | None] = field(default_factory=list)
    segments: list[Segment] = field(default_factory=list)
    steps: int = 0
    instants: int = 0
    # The lateness, in seconds, that the schedule needed.
    stall: float = 0.0
    # How many of the planned cancels found a living victim.
    cancelled: int = 0
    # The callbacks of the timers that were still armed in the end.
    timers_left: tuple[str, ...] = ()

    @property
    def departed(self) -> tuple[tuple[int, int], ...]:
        return tuple((i, value) for i, value in enumerate(self.taken) if value)
