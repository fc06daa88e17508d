"""What PCT and POS share: who takes part in a choice, and which choices are no contest.

How late the loop is, and how many timers fire together, is nobody's turn: there the plain answer
is as likely as all others together, so that a run does not spend all its lateness at once.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

__all__ = ["NO_CONTEST", "contenders"]

NO_CONTEST = frozenset({"timers", "late"})


def contenders(actors: Sequence[Hashable]) -> Iterator[Hashable]:
    """The actors, told apart where several have one name: (name, which of them)."""
    count: dict[Hashable, int] = {}
    for actor in actors:
        number = count.get(actor, 0)
        count[actor] = number + 1
        yield actor, number
