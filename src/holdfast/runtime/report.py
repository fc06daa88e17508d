"""How a close ended, as a value: who finished, who was cancelled, who failed, who is still there.

Only the shape and the words live here; `closing` fills a report in. A report holds no task,
so keeping one keeps nothing else alive.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from holdfast.origin import Origin
from holdfast.runtime.errors import StragglersLeft
from holdfast.runtime.failure import CleanupErrors

__all__ = ["CloseReport", "Ending", "Straggler"]

# A report of a hundred thousand tasks must stay readable.
_SHOWN = 10


# A named tuple is made three times as fast as a frozen dataclass; there may be many.
class Ending(NamedTuple):
    """One task that has ended."""

    name: str
    origin: Origin | None
    error: BaseException | None = None

    def __str__(self) -> str:
        where = f", born at {self.origin}" if self.origin else ""
        return f"{self.name}{where}" + (f": {self.error!r}" if self.error else "")


class Straggler(NamedTuple):
    """One task that is still there: `stack` is where it stands, the innermost line last.

    Its `age` is 0.0 where nobody has noted its birth.
    """

    name: str
    origin: Origin | None
    age: float
    stack: tuple[str, ...]

    def __str__(self) -> str:
        known = [f"{self.age:.1f} s old"] if self.age else []
        known += [f"born at {self.origin}"] if self.origin else []
        known += [f"stands at {self.stack[-1]}"] if self.stack else []
        return f"{self.name} ({', '.join(known)})" if known else self.name


@dataclass(frozen=True, slots=True)
class CloseReport:
    """What closing a scope came to.

    >>> print(CloseReport("bot", finished=(Ending("save", None),)))
    scope 'bot' closed: 1 finished
    """

    scope: str
    finished: tuple[Ending, ...] = ()
    cancelled: tuple[Ending, ...] = ()
    failed: tuple[Ending, ...] = ()
    cleanup_errors: tuple[Exception, ...] = ()
    stragglers: tuple[Straggler, ...] = ()

    @property
    def clean(self) -> bool:
        """Nothing failed and nothing is left."""
        return not (self.failed or self.cleanup_errors or self.stragglers)

    def raise_if_unclean(self) -> None:
        """Raise all that went wrong as one group, operational errors first."""
        if problems := self.problems():
            raise BaseExceptionGroup(f"scope {self.scope!r} did not close cleanly", problems)

    def problems(self) -> list[BaseException]:
        """The members of that group; the clean-up errors stand in a group of their own."""
        problems: list[BaseException] = [e.error for e in self.failed if e.error is not None]
        if cleanup := [*self.cleanup_errors, *self.left_behind()]:
            problems.append(CleanupErrors(f"while closing scope {self.scope!r}", cleanup))
        return problems

    def left_behind(self) -> list[StragglersLeft]:
        """The stragglers, as an error that names them."""
        if not self.stragglers:
            return []
        return [StragglersLeft("; ".join(_listed(self.stragglers)))]

    def __str__(self) -> str:
        counts = [
            f"{len(group)} {word}"
            for group, word in (
                (self.finished, "finished"),
                (self.cancelled, "cancelled"),
                (self.failed, "failed"),
                (self.cleanup_errors, "clean-up errors"),
                (self.stragglers, "still there"),
            )
            if group
        ]
        lines = [f"scope {self.scope!r} closed: {', '.join(counts) or 'nothing was running'}"]
        lines += [f"  failed: {line}" for line in _listed(self.failed)]
        lines += [f"  clean-up error: {line}" for line in _listed(self.cleanup_errors)]
        lines += [f"  still there: {line}" for line in _listed(self.stragglers)]
        return "\n".join(lines)


def _listed(things: tuple[object, ...]) -> Iterator[str]:
    for thing in islice(things, _SHOWN):
        yield repr(thing) if isinstance(thing, BaseException) else str(thing)
    if len(things) > _SHOWN:
        yield f"... and {len(things) - _SHOWN} more"
