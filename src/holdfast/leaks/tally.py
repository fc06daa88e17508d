"""How much is alive after a round, check by check and place by place.

What is on its way out is given a moment, and the collector has run before anything is counted.
A tally keeps numbers and places, never the things.
"""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass, field

from holdfast.census import DEFAULT, Thing, memory, take
from holdfast.census.retained import Retained
from holdfast.origin import Origin

__all__ = ["Birthplace", "Look", "Mine", "Tally", "grown_most", "settled", "tally"]

_TURNS = 5
_PAUSE = 0.002
# Nothing has gone in so many pauses: it stays.
_STEADY = 3
_PAUSES = 100

Source = tuple[str, Origin | str | None]
"""The code of the catalogue, and the line that made it; None: nobody saw that."""
Mine = Callable[[Thing], bool]
Look = Callable[[Collection[str]], "Tally"]


@dataclass(frozen=True, slots=True)
class Birthplace:
    """Where things that grow were born, and how many of them (for memory: bytes)."""

    code: str
    where: str
    count: int


@dataclass(slots=True)
class Tally:
    """What was alive after so many runs."""

    runs: int
    sources: dict[str, Counter[Source]] = field(default_factory=dict)
    keys: frozenset[Hashable] = frozenset()
    not_checked: tuple[str, ...] = ()

    def count(self, check: str) -> int:
        """How many things of one check."""
        return self.sources[check].total() if check in self.sources else 0

    def exceeds(self, before: Tally | None) -> bool:
        """Whether there is more of anything than before."""
        return before is None or any(self.count(c) > before.count(c) for c in self.sources)


def tally(runs: int, checks: Collection[str], first: Tally | None, mine: Mine) -> Tally:
    """Count everything once; not what is `mine`, nor a part of something that is new since the
    `first` tally: the whole is counted. A part of what was there before may be one too many.

    What is on its way out counts as well: that is gone in the next round, and no trend.
    """
    census = take([check for check in checks if check != "memory"])
    sources: dict[str, Counter[Source]] = {check: Counter() for check in checks}
    counted = Tally(runs, sources, census.keys, census.not_checked)
    new = counted.keys - first.keys if first is not None else frozenset()
    for thing in census.things:
        if not (thing.part_of in new or mine(thing)):
            sources[thing.check][_source(thing)] += _weight(thing)
    if "memory" in checks:
        sources["memory"].update(_bytes_by_line())
    return counted


async def settled(look: Look, checks: Collection[str], before: Tally | None) -> Tally:
    """What `look` sees; if there is more of anything than before, after a moment for what is on its
    way out: as long as there is less with each look."""
    for _ in range(_TURNS):
        await asyncio.sleep(0)
    gc.collect(1)  # the whole heap takes longer than a round, and is mostly as it was
    counted = look(checks)
    if not counted.exceeds(before):
        return counted
    gc.collect()
    await _pass(lambda: look([check for check in DEFAULT if check in checks]), before)
    return look(checks)


async def _pass(look: Callable[[], Tally], before: Tally | None) -> None:
    counted, steady = look(), 0
    for _ in range(_PAUSES):
        if steady == _STEADY or not counted.exceeds(before):
            break
        await asyncio.sleep(_PAUSE)
        again = look()
        steady = steady + 1 if not counted.exceeds(again) else 0
        counted = again


def grown_most(first: Tally, last: Tally, check: str, most: int) -> tuple[Birthplace, ...]:
    """The places from which most has come between two tallies."""
    grown = last.sources[check] - first.sources[check]
    return tuple(
        Birthplace(code, str(where or ""), count)
        for (code, where), count in grown.most_common(most)
    )


def _weight(thing: Thing) -> int:
    return thing.count if isinstance(thing, Retained) else 1


def _source(thing: Thing) -> Source:
    return thing.code, thing.birth.origin if thing.birth is not None else None


def _bytes_by_line() -> Mapping[Source, int]:
    return {("HF761", f"{name}:{line}"): size for (name, line), size in memory.sizes().items()}
