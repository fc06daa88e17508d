"""Answers that are known beforehand: those of a plan, and 0 wherever it says nothing."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

__all__ = ["Actors", "Diverged", "Follow"]

Actors = Callable[[], Sequence[Hashable]]


class Diverged(BaseException):
    """The program does not ask what the plan answers: it is not the same run any more."""

    def __init__(self, ordinal: int, kind: str, options: int, expected: int) -> None:
        self.ordinal = ordinal
        super().__init__(
            f"choice {ordinal} ({kind}) has {options} answers, and had {expected} before"
        )


class Follow:
    """The answers of a plan, then 0. With `expected` (how many answers there were at each departing
    choice) it says where the program asks something else."""

    def __init__(
        self,
        choices: Sequence[tuple[int, int]],
        expected: dict[tuple[int, int], int] | None = None,
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
