"""`StressReport`: what grows, which runs did not end, which failed. Text and numbers only."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TextIO

from handfast import catalogue
from handfast._leaks.stress.cancel_points import CancelPoint
from handfast._trend import Sample

_BLOCKS = "▁▂▃▄▅▆▇█"
_ASCII_BLOCKS = "_.-:=+*#"


@dataclass(frozen=True, slots=True)
class GrowthSource:
    """A line that created objects of a growth, and how many (for memory: bytes)."""

    code: str
    where: str
    count: int


@dataclass(frozen=True, slots=True)
class Growth:
    """A kind of object of which there are more and more."""

    check: str
    per_run: float
    """How many the trend adds with each run."""
    first: int
    last: int
    samples: tuple[Sample, ...]
    """After how many runs, how many there were."""
    sources: tuple[GrowthSource, ...]
    """The lines that created most of them."""

    def text(self, *, unicode: bool = True) -> str:
        """The growth, its sources, and a sparkline."""
        unit = " bytes" if self.check == "memory" else ""
        lines = [f"{self.check}: {_rate(self.per_run)}{unit} a run"]
        lines += [f"    {_source(source, unit)}" for source in self.sources]
        lines.append(f"    {sparkline(self.samples, unicode=unicode)}")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.text(unicode=can_encode_blocks())


@dataclass(frozen=True, slots=True)
class Stuck:
    """A run that did not end."""

    run: int
    point: CancelPoint | None
    """Where it was cancelled; None if it was not."""
    seconds: float
    """How long it was waited for."""
    waiting_at: tuple[str, ...]
    """The lines where it waits, innermost last."""

    @property
    def code(self) -> str:
        """HF501 if it swallows its cancel; else empty."""
        return "HF501" if self.point is not None else ""

    def __str__(self) -> str:
        name = f"{self.code} {catalogue.kind(self.code).name}: " if self.code else ""
        waiting = [f"    waiting at  {line}" for line in self.waiting_at[-1:]]
        what = f"{name}{_run(self.run, self.point)}, did not end within {self.seconds:g} s"
        return "\n".join([what, *waiting])


@dataclass(frozen=True, slots=True)
class Failed:
    """A run that ended with an error."""

    run: int
    point: CancelPoint | None
    error: str
    """One line of text, with the line that raised it."""

    def __str__(self) -> str:
        return f"{_run(self.run, self.point)}: {self.error}"


@dataclass(frozen=True, slots=True)
class StressReport:
    """The result of `stress`.

    >>> str(StressReport(runs=1000, warm_up=50, cancelled=893, steps=4))
    'nothing grows: 1,000 runs after 50 to warm up, 893 cancelled at 4 different steps'
    """

    runs: int
    """Not counting those that warm up."""
    warm_up: int = 0
    cancelled: int = 0
    """How many of these were cancelled before their end."""
    steps: int = 0
    """At how many different steps."""
    growth: tuple[Growth, ...] = ()
    judged: bool = True
    """Whether there were enough rounds to find a trend."""
    stuck: tuple[Stuck, ...] = ()
    failed: int = 0
    """How many runs raised an error; that is no leak."""
    errors: tuple[Failed, ...] = ()
    """The first few of them."""
    not_checked: tuple[str, ...] = ()
    interrupted: bool = False
    seed: int = 0
    seconds: float = 0.0

    @property
    def clean(self) -> bool:
        """Whether nothing grows and every run ended."""
        return self.judged and not (self.growth or self.stuck)

    @property
    def headline(self) -> str:
        """The result in one line."""
        verdict = "nothing grows" if self.judged else "too few rounds to find growth"
        if self.growth:
            verdict = f"growth in {', '.join(each.check for each in self.growth)}"
        if self.stuck:
            verdict = f"{_counted(len(self.stuck), 'run')} did not end, {verdict}"
        size = f"{_counted(self.runs, 'run')} after {self.warm_up:,} to warm up"
        if self.cancelled:
            steps = _counted(self.steps, "different step")
            size += f", {self.cancelled:,} cancelled at {steps}"
        return f"{verdict}: {size}"

    def text(self, *, unicode: bool = True) -> str:
        """The whole report."""
        return "\n".join(self._lines(unicode))

    def __str__(self) -> str:
        return self.text(unicode=can_encode_blocks())

    def _lines(self, unicode: bool) -> Iterator[str]:
        yield self.headline
        if self.growth:
            yield from ("", *_table(self.growth))
        for grown in self.growth:
            yield from ("", grown.text(unicode=unicode))
        for stuck in self.stuck:
            yield from ("", str(stuck))
        if self.failed:
            yield from ("", f"{_counted(self.failed, 'run')} ended with an error:")
            yield from (f"    {each}" for each in self.errors)
        yield from (f"not checked: {what}" for what in self.not_checked)


# --- text --------------------------------------------------------------------------------------


def _table(growth: Iterable[Growth]) -> Iterator[str]:
    yield f"{'':<12} {'first':>12} {'last':>12} {'a run':>10}"
    for each in growth:
        yield f"{each.check:<12} {each.first:>12,} {each.last:>12,} {_rate(each.per_run):>10}"


def _rate(per_run: float) -> str:
    return f"{per_run:+.2g}" if abs(per_run) < 1 else f"{per_run:+,.1f}"


def _source(source: GrowthSource, unit: str) -> str:
    name = catalogue.kind(source.code).name
    return (
        f"{source.code} {name}: {source.count:,}{unit} created at "
        f"{source.where or 'an unknown line'}"
    )


def _run(number: int, point: CancelPoint | None) -> str:
    if point is None:
        return f"run {number:,}, not cancelled"
    where = f"at its step {point.step}" if point.step else "before its first step"
    return f"run {number:,}, cancelled {where}"


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


# --- sparkline ---------------------------------------------------------------------------------


def sparkline(samples: Sequence[Sample], *, unicode: bool = True) -> str:
    """One character for each sample, from the lowest to the highest.

    >>> sparkline([(0, 0), (500, 40), (1000, 100)], unicode=False)
    '0 _-# 100  (0 ... 1,000 runs)'
    """
    blocks = _BLOCKS if unicode else _ASCII_BLOCKS
    values = [value for _, value in samples]
    low, high = min(values), max(values)
    scale = (len(blocks) - 1) / (high - low) if high > low else 0.0
    line = "".join(blocks[int((value - low) * scale)] for value in values)
    return f"{low:,.0f} {line} {high:,.0f}  ({samples[0][0]:,.0f} ... {samples[-1][0]:,.0f} runs)"


def can_encode_blocks(stream: TextIO | None = None) -> bool:
    """Whether a stream can print the characters of a sparkline."""
    encoding = getattr(stream or sys.stdout, "encoding", None) or "ascii"
    try:
        _BLOCKS.encode(encoding)
    except (UnicodeError, LookupError):
        return False
    return True
