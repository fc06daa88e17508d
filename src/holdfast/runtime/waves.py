"""In which order the members of a scope are asked to end. Decides only; `roster` acts.

Later things close first. A resource that the scope holds is a step on this ladder: what was
spawned after it may use it, so that is joined before the resource is left. Between two
resources all tasks go at once, except that a task which another one `uses` waits for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Container, Mapping
from typing import Any

from holdfast.origin import Origin

__all__ = ["Member", "next_wave"]


class Member:
    """One task as it was when closing began: a task forgets its birth when it ends."""

    __slots__ = ("birth", "key", "origin", "task")

    def __init__(
        self,
        key: object,
        task: asyncio.Task[Any],
        origin: Origin | None,
        birth: float | None,
    ) -> None:
        self.key = key
        self.task = task
        self.origin = origin
        self.birth = birth


def next_wave(
    ladder: list[Member],
    held: Container[object],
    uses: Mapping[object, tuple[object, ...]],
) -> list[Member]:
    """The members to ask now; empty when all have ended. Ended ones are taken off the top."""
    while ladder and ladder[-1].task.done():
        ladder.pop()
    wave: list[Member] = []
    for member in reversed(ladder):
        if member.key in held:
            if not wave:
                wave.append(member)
            break
        if not member.task.done():
            wave.append(member)
    consumed = {id(thing) for member in wave for thing in uses.get(member.key, ())}
    # The oldest is asked first: in the queues of asyncio's own locks and events it then is the
    # first, too. The other way round each would be searched for from the wrong end.
    # `uses` can only name what is older, so somebody is always free to go.
    return [member for member in reversed(wave) if id(member.task) not in consumed]
