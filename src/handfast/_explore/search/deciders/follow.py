"""Answers that are known beforehand: those of a plan, and 0 wherever it has none."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

Actors = Callable[[], Sequence[Hashable]]


class Diverged(BaseException):
    """A choice has another number of answers than the plan expects: it is not the same run."""

    def __init__(self, ordinal: int, kind: str, options: int, expected: int) -> None:
        self.ordinal = ordinal
        self._given = (ordinal, kind, options, expected)
        super().__init__(
            f"choice {ordinal} ({kind}) has {options} answers, and had {expected} before"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        # A run in a forked process sends it to its parent.
        return Diverged, self._given


class Follow:
    """The answers of a plan, then 0.

    With `expected`, the number of answers at each departing choice, a choice that has another number
    raises Diverged.
    """

    def __init__(
        self, choices: Sequence[tuple[int, int]], expected: dict[tuple[int, int], int] | None = None
    ) -> None:
        self._answers = dict(choices)
        self._ordinal = -1
        self._expected = expected

    def choose(self, kind: str, options: int, actors: Actors) -> int:
        self._ordinal += 1
        value = self._answers.get(self._ordinal)
        if value is None:
            return 0
        if self._expected is not None and options != self._expected[self._ordinal, value]:
            raise Diverged(self._ordinal, kind, options, self._expected[self._ordinal, value])
        return value if value < options else 0
