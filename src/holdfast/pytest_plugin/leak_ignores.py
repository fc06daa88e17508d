"""Which ignores were of use: one that matched nothing is stale, and is to be taken out.

But only if all the tests that it is for ran. Half a suite proves nothing, and so does the half
that one worker of xdist ran: what all of them say is added up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal, TypedDict

import pytest

from holdfast.leaks.ignoring import Ignores

__all__ = ["Reach", "Source", "Use", "reach", "stale"]

Reach = Literal["test", "module", "suite"]
"""How far an ignore goes, and how wide a run must be to judge it."""

_JUDGED: dict[Reach, tuple[Reach, ...]] = {
    "test": ("test",),
    "module": ("test", "module"),
    "suite": ("test", "module", "suite"),
}


class Use(TypedDict):
    """How an ignore has fared in one process, as JSON can hold it."""

    where: str
    pattern: str
    reason: str
    reach: Reach
    used: bool
    ran: int
    of: int


@dataclass(slots=True)
class Source:
    """A marker, or the ini file: where ignores stand, and the tests that they are for."""

    where: str
    reach: Reach
    ignores: Ignores
    ran: set[str] = field(default_factory=set)
    there: set[str] = field(default_factory=set)

    def uses(self) -> Iterator[Use]:
        """One for each ignore."""
        stale = {id(ignore) for ignore in self.ignores.stale}
        for ignore in self.ignores.all:
            yield Use(
                where=self.where,
                pattern=ignore.pattern,
                reason=ignore.reason,
                reach=self.reach,
                used=id(ignore) not in stale,
                ran=len(self.ran),
                of=len(self.there),
            )


def reach(config: pytest.Config) -> Reach:
    """How wide this run is, by what was named on the command line. Ask where xdist was started:
    its workers are always told which paths to take."""
    if any("::" in each for each in config.args):
        return "test"
    narrowed = any(config.getoption(name, None) for name in ("lf", "ignore", "ignore_glob"))
    named = config.args_source is pytest.Config.ArgsSource.ARGS
    return "module" if named or narrowed else "suite"


def stale(uses: Iterable[Use], reach: Reach = "suite") -> list[str]:
    """A line for each ignore that matched nothing, though all the tests that it is for ran."""
    return [
        f"{each['where']}: ignore {each['pattern']!r} matches nothing any more: take it out "
        f"(its reason was: {each['reason']})"
        for each in _added_up(uses)
        if each["reach"] in _JUDGED[reach] and not each["used"] and each["ran"] >= each["of"] > 0
    ]


def _added_up(uses: Iterable[Use]) -> Iterable[Use]:
    sums: dict[tuple[str, str, str], Use] = {}
    for each in uses:
        key = (each["where"], each["pattern"], each["reason"])
        if key in sums:
            each = _sum(sums[key], each)
        sums[key] = each
    return sums.values()


def _sum(one: Use, other: Use) -> Use:
    return {
        **one,
        "used": one["used"] or other["used"],
        "ran": one["ran"] + other["ran"],
        "of": max(one["of"], other["of"]),  # each worker collects all the tests
    }
