"""What many runs have come to: what grows, who got stuck, which runs failed, in values and words.

The verdict is `clean`. Words and numbers only: a report keeps nothing of the program alive.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from holdfast import catalogue
from holdfast.leaks.cancelling import Point
from holdfast.leaks.plot import can_draw, plot
from holdfast.leaks.tally import Birthplace
from holdfast.leaks.trend import Sample

__all__ = ["Failed", "Growth", "StressReport", "Stuck"]


@dataclass(frozen=True, slots=True)
class Growth:
    """Something that goes up and up."""

    check: str
    per_run: float
    """What the trend adds with each run."""
    first: int
    last: int
    samples: tuple[Sample, ...]
    """How many runs there had been, and how much was there then."""
    places: tuple[Birthplace, ...]
    """Where most of it was born."""

    def text(self, *, braille: bool = True) -> str:
        """In words, with a plot."""
        unit = " bytes" if self.check == "memory" else ""
        lines = [f"{self.check}: {_rate(self.per_run)}{unit} a run"]
        lines += [f"    {_place(place, unit)}" for place in self.places]
        lines += [f"    {line}" for line in plot(self.samples, braille=braille)]
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.text(braille=can_draw())


@dataclass(frozen=True, slots=True)
class Stuck:
    """A run that did not end."""

    run: int
    point: Point | None
    """Where it was cancelled; None: nobody did that."""
    seconds: float
    """How long it was waited for."""
    stands: tuple[str, ...]
    """Where it stands, the innermost line last."""

    @property
    def code(self) -> str:
        """HF501 if it swallows its cancel; else empty."""
        return "HF501" if self.point is not None else ""

    def __str__(self) -> str:
        name = f"{self.code} {catalogue.kind(self.code).name}: " if self.code else ""
        stands = [f"    stands at  {line}" for line in self.stands[-1:]]
        told = f"{name}{_run(self.run, self.point)}, did not end within {self.seconds:g} s"
        return "\n".join([told, *stands])


@dataclass(frozen=True, slots=True)
class Failed:
    """A run that ended with an error."""

    run: int
    point: Point | None
    error: str
    """In one line, with the place where it was raised."""

    def __str__(self) -> str:
        return f"{_run(self.run, self.point)}: {self.error}"


@dataclass(frozen=True, slots=True)
class StressReport:
    """What came of many runs.

    >>> str(StressReport(runs=1000, warm_up=50, cancelled=893, steps=4))
    'nothing grows: 1,000 runs after 50 to warm up, 893 cancelled at 4 different steps'
    """

    runs: int
    """After those that warm up."""
    warm_up: int = 0
    cancelled: int = 0
    """How many of these were cancelled before their end."""
    steps: int = 0
    """At how many different steps."""
    growth: tuple[Growth, ...] = ()
    judged: bool = True
    """Whether there were enough rounds to tell a trend."""
    stuck: tuple[Stuck, ...] = ()
    failed: int = 0
    """How many runs ended with an error; that is no leak."""
    errors: tuple[Failed, ...] = ()
    """The first few of them."""
    not_checked: tuple[str, ...] = ()
    interrupted: bool = False
    seed: int = 0
    seconds: float = 0.0

    @property
    def clean(self) -> bool:
        """Nothing grows, as far as that was seen to the end, and every run ended."""
        return self.judged and not (self.growth or self.stuck)

    @property
    def headline(self) -> str:
        """The verdict and its size in one line."""
        verdict = "nothing grows" if self.judged else "too few rounds to tell a growth"
        if self.growth:
            verdict = f"growth in {', '.join(each.check for each in self.growth)}"
        if self.stuck:
            verdict = f"{_counted(len(self.stuck), 'run')} did not end, {verdict}"
        size = f"{_counted(self.runs, 'run')} after {self.warm_up:,} to warm up"
        if self.cancelled:
            steps = _counted(self.steps, "different step")
            size += f", {self.cancelled:,} cancelled at {steps}"
        return f"{verdict}: {size}"

    def text(self, *, braille: bool = True) -> str:
        """All of it."""
        return "\n".join(self._lines(braille))

    def __str__(self) -> str:
        return self.text(braille=can_draw())

    def _lines(self, braille: bool) -> Iterator[str]:
        yield self.headline
        if self.growth:
            yield from ("", *_table(self.growth))
        for grown in self.growth:
            yield from ("", grown.text(braille=braille))
        for stuck in self.stuck:
            yield from ("", str(stuck))
        if self.failed:
            yield from ("", f"{_counted(self.failed, 'run')} ended with an error:")
            yield from (f"    {each}" for each in self.errors)
        yield from (f"not checked: {what}" for what in self.not_checked)


# --- words -------------------------------------------------------------------------------------


def _table(growth: Iterable[Growth]) -> Iterator[str]:
    yield f"{'':<12} {'first':>12} {'last':>12} {'a run':>10}"
    for each in growth:
        yield f"{each.check:<12} {each.first:>12,} {each.last:>12,} {_rate(each.per_run):>10}"


def _rate(per_run: float) -> str:
    return f"{per_run:+.2g}" if abs(per_run) < 1 else f"{per_run:+,.1f}"


def _place(place: Birthplace, unit: str) -> str:
    name = catalogue.kind(place.code).name
    born = f"born at {place.where}" if place.where else "born at a place that nobody saw"
    return f"{place.code} {name}: {place.count:,}{unit} {born}"


def _run(number: int, point: Point | None) -> str:
    if point is None:
        return f"run {number:,}, not cancelled"
    where = f"at its step {point.step}" if point.step else "before its first step"
    return f"run {number:,}, cancelled {where}"


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
