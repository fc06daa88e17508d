"""Plain data of a search: its options, the schedules to run, and what each run has seen.

A plan is a list of departures from the plain order. There are two kinds: an answer other than 0 at a
choice point, and a cancel at an instant. All of this can be sent to another process and back, and
nothing here depends on asyncio.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from handfast.catalogue import UnknownCode, kind

if TYPE_CHECKING:
    from handfast._explore.verdict.verdict import Verdict


Model: TypeAlias = Literal["strict", "latency"]
MODELS = ("strict", "latency")
FAULTS = ("reset", "eof", "executor", "kill")
Invariant: TypeAlias = Callable[[], object] | None
# The option `cancel`, and the same as a word that a token can hold.
CancelOption: TypeAlias = bool | Literal["double", "main"]
CancelMode: TypeAlias = Literal["no", "tasks", "double", "main"]
_CANCEL_MODES: dict[object, CancelMode] = {
    False: "no",
    True: "tasks",
    "double": "double",
    "main": "main",
}
CANCEL_MODES = tuple(_CANCEL_MODES.values())
# How many cancels one run may have.
_CANCELS = {"no": 0, "tasks": 1, "main": 1, "double": 2}
# Who answers where the plan has no answer.
Tail: TypeAlias = Literal["plain", "random", "pct", "pos", "surw", "mutate"]
# Who goes first by an answer: the name of the channel, the number of the task that has opened it,
# and the fault; "" is the loop itself, while events from outside wait.
Actor: TypeAlias = tuple[str, int, str] | str


class BadOption(ValueError):
    """An option whose value is not one of the `choices`."""

    def __init__(self, name: str, value: object, choices: tuple[str, ...]) -> None:
        self.name = name
        self.value = value
        self.choices = choices
        super().__init__(f"{name}={value!r}: use one of {', '.join(choices)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a caller can choose about an exploration.

    `explore()`, the command line and the pytest marker all build one of these. A wrong value raises
    ValueError or TypeError; which strategies exist is checked where the strategy is made.
    """

    schedules: int | None = None
    seconds: float | None = None
    model: Model = "strict"
    strategy: str = "portfolio"
    cancel: CancelOption = False
    stall: float = 0.1
    faults: Iterable[str] = ()
    invariant: Invariant = None
    ignore: Iterable[str] = ()
    seed: int = 0
    workers: int = 1
    cluster: str | None = None
    real_io: bool = False

    def __post_init__(self) -> None:
        if self.invariant is not None and not callable(self.invariant):
            raise TypeError(f"invariant={self.invariant!r}: must be a function without arguments")
        if self.model not in MODELS:
            raise BadOption("model", self.model, MODELS)
        self._check_types()
        self._check_ranges()
        _cancel_mode(self.cancel)
        # The class is frozen, and these two are accepted in more forms than they are kept in.
        object.__setattr__(self, "faults", _faults(self.faults))
        object.__setattr__(self, "ignore", _codes(self.ignore))

    def _check_types(self) -> None:
        for name in ("schedules", "seed", "workers"):
            value = getattr(self, name)
            if not isinstance(value, int) and not (name == "schedules" and value is None):
                raise TypeError(f"{name}={value!r}: must be a whole number")
        for name in ("seconds", "stall"):
            value = getattr(self, name)
            if not isinstance(value, (int, float)) and not (name == "seconds" and value is None):
                raise TypeError(f"{name}={value!r}: must be a number of seconds")

    def _check_ranges(self) -> None:
        if not 0 <= self.stall < float("inf"):
            raise ValueError(f"stall={self.stall}: lateness is 0 or more seconds")
        for name in ("schedules", "seconds", "workers"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"{name}={value}: must be more than 0")

    @property
    def settings(self) -> Settings:
        """The part of the options that a single run depends on."""
        mode = _cancel_mode(self.cancel)
        return Settings(self.model, mode, self.stall, tuple(self.faults), bool(self.real_io))

    @property
    def cancels(self) -> int:
        """How many cancels one run may have."""
        return _CANCELS[_cancel_mode(self.cancel)]


def _cancel_mode(cancel: object) -> CancelMode:
    try:
        return _CANCEL_MODES[cancel]
    except (KeyError, TypeError):
        raise ValueError(f"cancel={cancel!r}: use False, True, 'double' or 'main'") from None


def _faults(faults: Iterable[str]) -> tuple[str, ...]:
    words = _words("faults", faults)
    for word in words:
        if word not in FAULTS:
            raise BadOption("faults", word, FAULTS)
    return words


def _codes(ignore: Iterable[str]) -> tuple[str, ...]:
    """Codes or names of the catalogue, as codes. A misspelt one would ignore nothing."""
    try:
        return tuple(sorted({kind(word).code for word in _words("ignore", ignore)}))
    except UnknownCode as error:
        raise ValueError(f"ignore: {error}") from error


def _words(name: str, words: Any) -> tuple[str, ...]:
    try:
        listed = (words,) if isinstance(words, str) else tuple(words)
    except TypeError:
        raise TypeError(f"{name}={words!r}: must be a list of strings") from None
    for word in listed:
        if not isinstance(word, str):
            raise TypeError(f"{name}: {word!r} is not a string")
    return listed


@dataclass(frozen=True, slots=True)
class Settings:
    """What fixes the set of choices: two runs with the same settings and plan are the same run."""

    model: Model = "strict"
    cancel: CancelMode = "no"
    stall: float = 0.1
    faults: tuple[str, ...] = ()
    real_io: bool = False
    step_limit: int = 500_000
    # The timers that the plain run leaves armed, as text; None until the plain run has ended.
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
    # Only a run from which others branch has to record what it saw; the rest is faster without.
    observe: bool = False
    # How many choice points the plain run has met, for a decider that has to know.
    length: int = 0
    # Whether the run records its state at each choice point.
    states: bool = False
    # How many events each actor had in the plain run, for a decider that has to know.
    counts: tuple[tuple[Actor, int], ...] = ()
    # Whether the run records which steps followed each other.
    trail: bool = False

    @property
    def departures(self) -> int:
        return len(self.choices) + len(self.cancels)


@dataclass(frozen=True, slots=True)
class Point:
    """A choice point that a run has met: its kind, how many answers there were, and when."""

    kind: str
    options: int
    instant: int


@dataclass(frozen=True, slots=True)
class Segment:
    """A range of instants in which a task that may be cancelled is suspended in one state."""

    task: int
    first: int
    last: int
    # Where it is suspended and whether what it waits for is done: equal for equal situations.
    state: int


@dataclass(slots=True)
class Record:
    """What a run did and how it ended."""

    plan: Plan
    verdict: Verdict | None = None
    # Every answer given, in order; the departures are those that are not 0.
    taken: list[int] = field(default_factory=list)
    points: list[Point] = field(default_factory=list)
    # The state at each point, if the plan wants it: equal numbers, equal futures. None: unknown.
    states: list[int | None] = field(default_factory=list)
    segments: list[Segment] = field(default_factory=list)
    steps: int = 0
    instants: int = 0
    # The lateness, in seconds, that the schedule needed.
    stall: float = 0.0
    # Whether lateness could have ordered its timers in a way that no plan can ask for.
    late_timers: bool = False
    # How many of the planned cancels met a task that had not ended.
    cancelled: int = 0
    # The callbacks of the timers that were still armed at the end.
    timers_left: tuple[str, ...] = ()
    # How many events each actor had, if the plan observes; which steps followed each other, as
    # numbers that are the same in every process, if it wants the trail.
    counts: tuple[tuple[Actor, int], ...] = ()
    trail: frozenset[int] = frozenset()

    @property
    def departed(self) -> tuple[tuple[int, int], ...]:
        return tuple((i, value) for i, value in enumerate(self.taken) if value)

    @property
    def settled(self) -> Plan:
        """The plan that lists outright what the run did, whichever decider made the choices."""
        return Plan(self.departed, self.plan.cancels[: self.cancelled])
